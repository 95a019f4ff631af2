"""The learning rate of each step: torch's own schedules, as functions of the step."""

import itertools
import math
import warnings
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from torch import nn, optim
from torch.optim.lr_scheduler import (
    CosineAnnealingLR,
    LinearLR,
    LRScheduler,
    OneCycleLR,
    SequentialLR,
    StepLR,
)

from trainer.config import TrainConfig
from trainer.errors import ConfigError
from trainer.schedules import learning_rate, refuse_endless_warmup, warmup_steps

SCHEDULES = ("constant", "cosine", "linear", "step", "one_cycle")
LR = 0.4


def config(**options: Any) -> TrainConfig:
    return TrainConfig.model_validate({"model": "resnet18", "data": "digits", "lr": LR} | options)


def rates(steps_per_epoch: int, **options: Any) -> list[float]:
    """The learning rate of each step of a run."""
    run = config(**options)
    total = steps_per_epoch * run.epochs
    return [learning_rate(run, step=step, total_steps=total, steps_per_epoch=steps_per_epoch) for step in range(total)]


def torchs(build: Callable[[optim.Optimizer], LRScheduler], steps: int) -> list[float]:
    """The learning rate of each step by one of torch's schedulers."""
    optimizer = optim.SGD(nn.Linear(1, 1).parameters(), lr=LR)
    scheduler = build(optimizer)
    found = []
    for _ in range(steps):
        found.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return found


@pytest.mark.parametrize(
    ("options", "build"),
    [
        ({"schedule": "cosine"}, lambda optimizer: CosineAnnealingLR(optimizer, T_max=34)),
        ({"schedule": "linear"}, lambda optimizer: LinearLR(optimizer, 1.0, 0.0, total_iters=34)),
        (
            {"schedule": "step", "step_epochs": 2, "step_gamma": 0.3},
            lambda optimizer: StepLR(optimizer, step_size=14, gamma=0.3),
        ),
        ({"schedule": "one_cycle"}, lambda optimizer: OneCycleLR(optimizer, LR, total_steps=36, cycle_momentum=False)),
    ],
)
def test_a_schedule_is_the_one_that_torch_steps_through(
    options: dict[str, Any], build: Callable[[optim.Optimizer], LRScheduler]
) -> None:
    if options["schedule"] == "one_cycle":  # torch wants one step more than it is asked about
        own = [learning_rate(config(**options), step=step, total_steps=36, steps_per_epoch=7) for step in range(35)]
    else:
        own = rates(7, epochs=5, **options)
    assert own == pytest.approx(torchs(build, 35), rel=1e-9, abs=1e-15)


def test_a_schedule_begins_after_the_warmup_and_takes_the_steps_that_are_left() -> None:
    def build(optimizer: optim.Optimizer) -> LRScheduler:
        rise = LinearLR(optimizer, 1 / 11, 1.0, total_iters=10)
        return SequentialLR(optimizer, [rise, CosineAnnealingLR(optimizer, T_max=29)], milestones=[10])

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # SequentialLR's own call of a deprecated signature
        expected = torchs(build, 40)
    assert rates(4, epochs=10, warmup_epochs=2.5) == pytest.approx(expected, rel=1e-9, abs=1e-15)


def test_constant_and_cosine_are_to_the_bit_what_earlier_releases_trained_with() -> None:
    assert rates(3, epochs=2, schedule="constant") == [LR] * 6
    assert rates(3, epochs=2) == [LR * (1 + math.cos(math.pi * step / 5)) / 2 for step in range(6)]
    assert rates(1, epochs=1) == [LR]


@given(
    schedule=st.sampled_from(SCHEDULES),
    epochs=st.integers(1, 6),
    steps_per_epoch=st.integers(1, 9),
    warmed=st.floats(0, 1),
)
def test_a_rate_is_never_above_lr_nor_below_nought_and_the_warmup_only_rises(
    schedule: str, epochs: int, steps_per_epoch: int, warmed: float
) -> None:
    options = {"schedule": schedule, "epochs": epochs, "warmup_epochs": warmed * epochs}
    found = rates(steps_per_epoch, **options)
    assert all(0 <= rate <= LR * (1 + 1e-12) for rate in found)
    rise = found[: warmup_steps(config(**options), steps_per_epoch=steps_per_epoch)]
    assert all(0 < earlier < later for earlier, later in itertools.pairwise(rise))
    if len(rise) < len(found):
        assert not rise or rise[-1] < found[len(rise)]


@pytest.mark.parametrize("schedule", ["cosine", "linear", "one_cycle"])
def test_what_falls_to_nought_does_so_at_the_last_step_whatever_the_warmup(schedule: str) -> None:
    for warmup in (0.0, 0.5, 2.0):
        *_, last = rates(5, epochs=4, schedule=schedule, warmup_epochs=warmup)
        assert last == pytest.approx(0, abs=1e-5)


def test_a_warmup_that_outlasts_the_run_is_refused() -> None:
    refuse_endless_warmup(config(epochs=3, warmup_epochs=3))
    with pytest.raises(ConfigError, match=r"^warmup_epochs: 3.5 epochs .* epochs=3; "):
        refuse_endless_warmup(config(epochs=3, warmup_epochs=3.5))
