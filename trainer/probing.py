"""Probing: how long one rank's input takes alone, and its training step alone, in this process."""

import time
from collections.abc import Callable, Iterator, Sized
from dataclasses import dataclass
from itertools import count, repeat
from typing import Any

import torch

from trainer.assembly import Assembly, assemble
from trainer.data.loading import on_device
from trainer.loss_watch import LossWatch
from trainer.optimization import set_learning_rate
from trainer.precision import autocast
from trainer.process_group import ProcessGroup, local_device
from trainer.run_dir import RunConfig, RunDir
from trainer.stepping import Stepper

_WARM_UP = 3
"""Times that something is done before it is timed: memory is laid out and kernels are chosen in them."""
_MOST = 20
"""Times that it is timed, or as often as it goes in the time below."""
_BUDGET_S = 5.0


@dataclass(frozen=True)
class Timings:
    """What one rank takes for each part of its work, with nothing else to do."""

    samples: int
    """Training samples of an epoch."""
    load_s: float
    """Until the loader has made the batches of one optimizer step, at its full rate."""
    compute_s: float
    """One optimizer step on batches that are there already."""
    val_s: float
    """Validation after an epoch."""
    loads_ahead: bool
    """Whether loader processes load while a step computes; with `num_workers: 0` the rank does one after the other."""

    @property
    def step_s(self) -> float:
        """One optimizer step with its input."""
        return max(self.load_s, self.compute_s) if self.loads_ahead else self.load_s + self.compute_s


def probe(config: RunConfig, run_dir: RunDir) -> Timings:
    """Measure a run on its first device as one rank, with the batch that the config names.

    Raises ConfigError, DeviceError or DataError for what cannot be run.
    """
    device = local_device(config.devices[0], simulated=config.simulated)
    group = ProcessGroup.alone(device)
    parts = assemble(run_dir, config, group, is_continued=False, batch=None)
    batches = _batches(parts)
    load_s = _seconds(lambda: next(batches), device, warm_up=1) * parts.sampler.accumulate
    return Timings(
        samples=parts.sampler.samples,
        load_s=load_s,
        compute_s=_computing(parts, next(batches), group),
        val_s=_validating(parts, device),
        loads_ahead=parts.config.num_workers > 0,
    )


def _batches(parts: Assembly) -> Iterator[Any]:
    for epoch in count():
        parts.sampler.start_at(epoch, 0)
        yield from parts.loader


def _computing(parts: Assembly, batch: Any, group: ProcessGroup) -> float:
    set_learning_rate(parts.optimizer, 0.0)  # many steps on one batch could make the loss anything
    stepper = Stepper(parts, parts.model, group, LossWatch(group.device, rank=0), rehearses=False)
    steps = count()
    return _seconds(
        lambda: stepper.take(repeat(batch), epoch=0, step_in_epoch=0, step=next(steps)), group.device, warm_up=_WARM_UP
    )


def _validating(parts: Assembly, device: torch.device) -> float:
    assert isinstance(parts.data.val, Sized)
    batches = iter(parts.val_loader)
    parts.evaluated.eval()

    def measure() -> None:
        with torch.inference_mode(), autocast(parts.config, device):
            parts.recipe.measure(parts.evaluated, parts.data.prepare_val(on_device(next(batches), device)))

    count_of_batches = len(parts.val_loader)
    return _seconds(measure, device, warm_up=min(1, count_of_batches - 1), most=count_of_batches - 1) * count_of_batches


def _seconds(work: Callable[[], object], device: torch.device, *, warm_up: int, most: int = _MOST) -> float:
    """Return how long a piece of work takes on average, done again and again."""
    for _ in range(warm_up):
        work()
    _wait_for(device)
    begun_s = time.monotonic()
    done = 0
    while done < max(1, min(most, _MOST)) and time.monotonic() - begun_s < _BUDGET_S:
        work()
        done += 1
    _wait_for(device)
    return (time.monotonic() - begun_s) / done


def _wait_for(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()
