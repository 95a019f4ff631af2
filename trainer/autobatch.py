"""Autobatch: the global batch that `batch: -1` stands for, measured where a device's memory can be."""

import random
from collections.abc import Callable, Iterator, Sized
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from trainer.batch_loss import batch_loss
from trainer.config import TrainConfig
from trainer.data.loading import on_device
from trainer.devices import check_nominal_batch
from trainer.errors import Cause, DeviceMemoryError
from trainer.faults import cause_of
from trainer.freezing import set_training
from trainer.optimization import build_optimizer, set_learning_rate
from trainer.process_group import ProcessGroup
from trainer.recipes.recipe import Recipe, TaskData

CPU_BATCH = 16
"""Samples for each rank on the CPU and on MPS: their memory is the machine's, and filling that helps nobody."""
HEADROOM = 0.05
"""Share of the memory a device has for us that the measured step leaves free: for what it does not do and training
does (NCCL's buffers, a last batch of another size, validation), and for other processes' growth. Where the model alone
takes less than half of the memory, the batch is thus more than 90 % of the largest that fits."""
_ITEMS = 8
"""Training samples that the measured batches repeat."""
_LARGEST = 1_000_000
"""The largest `batch` that a configuration may have."""


def resolve_batch(
    config: TrainConfig,
    *,
    group: ProcessGroup,
    recipe: Recipe,
    model: nn.Module,
    data: TaskData,
    split_among: int = 1,
    is_graphed: bool = False,
) -> int:
    """Return the global batch that `batch: -1` stands for, the same on every rank.

    Rank 0 measures on its device, so the model must still be its own: neither wrapped nor with BatchNorm synchronised,
    which would wait for the other ranks. `split_among`: devices that each rank's batch is split among by strategy `dp`.
    `is_graphed`: a CUDA graph will hold a step's memory for good, beside that of a last batch of another size.

    It is a multiple of the number of devices, at most `nbs` rounded down to one, and no more than puts the whole
    training set into one batch; one sample for each device at least. Raises DeviceMemoryError where that does not fit,
    and ConfigError where `nbs` has fewer.
    """
    assert isinstance(data.train, Sized)
    devices = group.world_size * split_among
    check_nominal_batch(config.nbs, devices, among="devices" if split_among > 1 else "ranks")
    at_most = min(-(-len(data.train) // devices), _LARGEST // devices)
    if config.nbs is not None:
        at_most = min(at_most, config.nbs // devices)
    share = 0
    if group.rank == 0:
        share = min(CPU_BATCH, max(1, at_most))
        if group.device.type == "cuda":
            # DataParallel's first device also holds the gradients of another while it adds them to its own.
            copies = (config.ema is not None) + (split_among > 1)
            keeps_gradients = devices > 1 or config.nbs is not None
            probe = Probe(
                config,
                recipe,
                model,
                data,
                keeps_gradients=keeps_gradients,
                weight_copies=copies,
                times=2 if is_graphed else 1,
                alive=group.alive,
            )
            share = probe.largest_batch(at_most=max(1, at_most))
    return int(group.share("batch", str(share))) * devices


def largest_batch(fits: Callable[[int], bool], *, at_most: int) -> int:
    """Return the largest batch from 1 to `at_most` that fits, or 0: by doubling until one does not, then by bisection.

    What fits must be smaller than what does not; even if that fails to hold, the batch returned is one that was tried
    and found to fit. It takes 2·log2(at_most) + 2 trials at most.
    """
    fitting, too_large, trial = 0, at_most + 1, 1
    while too_large - fitting > 1:
        if fits(trial):
            fitting = trial
        else:
            too_large = trial
        trial = min(2 * fitting, at_most) if too_large > at_most else (fitting + too_large) // 2
    return fitting


class Probe:
    """Real training steps on batches of any size, to see which of them a device has memory for."""

    def __init__(
        self,
        config: TrainConfig,
        recipe: Recipe,
        model: nn.Module,
        data: TaskData,
        *,
        keeps_gradients: bool = False,
        weight_copies: int = 0,
        times: int = 1,
        alive: Callable[[], None] = lambda: None,
    ) -> None:
        """`keeps_gradients`: whether gradients stay during the next forward pass, as they do in DDP's buckets and in
        accumulation. `weight_copies`: copies of the weights that training keeps and the probe does not make. `times`:
        how often training needs a step's memory at once. `alive` is called before each step."""
        self.config, self.recipe, self.model, self.data = config, recipe, model, data
        self.keeps_gradients, self.weight_copies, self.times = keeps_gradients, weight_copies, times
        self.alive = alive
        self.device = next(model.parameters()).device
        self.optimizer = build_optimizer(config, model)
        set_learning_rate(self.optimizer, 0)  # with the one for a whole batch, steps on a few samples may diverge

    def largest_batch(self, *, at_most: int) -> int:
        """Return the largest batch that fits. Model and random generators are then what they were, to the last bit.

        Raises DeviceMemoryError where not even one sample fits.
        """
        with left_as_it_was(self.model, self.device):
            # The first step leaves behind what all later ones find: optimizer state, loaded kernels, workspaces.
            self._refuse_too_small_a_device()
            with self._leaving_headroom():
                return max(1, largest_batch(self._fits, at_most=at_most))

    def step(self, batch: int) -> None:
        """Train once on `batch` samples. Raises torch.OutOfMemoryError."""
        self.alive()
        set_training(self.model, self.config.freeze)
        if batch == 1:
            for layer in self.model.modules():
                if isinstance(layer, _BatchNorm):  # it cannot normalise by a single value
                    layer.eval()
        self.optimizer.zero_grad(set_to_none=not self.keeps_gradients)
        samples = self.data.collate([self._items[number % len(self._items)] for number in range(batch)])
        prepared = self.data.prepare_train(on_device(samples, self.device))
        loss = batch_loss(self.recipe, self.model, prepared, config=self.config, device=self.device)
        loss.backward()  # type: ignore[no-untyped-call]  # torch's own is untyped
        self.optimizer.step()

    @cached_property
    def _items(self) -> list[Any]:
        assert isinstance(self.data.train, Sized)
        return [self.data.train[number] for number in range(min(_ITEMS, len(self.data.train)))]

    def _refuse_too_small_a_device(self) -> None:
        try:
            self.step(1)
        except (RuntimeError, MemoryError) as error:
            if cause_of(error) is not Cause.OUT_OF_MEMORY:
                raise
            raise DeviceMemoryError(
                f"batch: -1 finds that {self.device} has too little memory to train {self.config.model} on a single "
                f"sample; use a device with more free memory, a smaller model or image_size, or amp: bf16"
            ) from error

    def _fits(self, batch: int) -> bool:
        if self.device.type == "cuda":
            torch.cuda.empty_cache()  # blocks cut for other sizes would stand in the way
        try:
            self.step(batch)
        except (RuntimeError, MemoryError):
            # Not only torch.OutOfMemoryError: the same step has passed with fewer of the same samples, so this is some
            # limit of size, such as a kernel's 32-bit indices.
            return False
        return True

    @contextmanager
    def _leaving_headroom(self) -> Iterator[None]:
        """Let torch's allocator run out of memory before the device does: it knows best what fits once it is cut up."""
        if self.device.type != "cuda":
            yield
            return
        torch.cuda.empty_cache()
        limit = torch.cuda.get_per_process_memory_fraction(self.device)
        free, total = torch.cuda.mem_get_info(self.device)
        ours = min(free + torch.cuda.memory_reserved(self.device), int(limit * total))
        weights = sum(tensor.nbytes for tensor in (*self.model.parameters(), *self.model.buffers()))
        budget = max(0, int(ours * (1 - HEADROOM)) - self.weight_copies * weights) // self.times
        torch.cuda.set_per_process_memory_fraction(budget / total, self.device)
        try:
            yield
        finally:
            torch.cuda.set_per_process_memory_fraction(limit, self.device)


@contextmanager
def left_as_it_was(model: nn.Module, device: torch.device) -> Iterator[None]:
    """Put the model and every random generator of this process back afterwards, and free the device's cached memory.

    The copies are kept in the host's memory, so that they take none of what is measured.
    """
    modes = [(layer, layer.training) for layer in model.modules()]
    gradients = [(parameter, parameter.grad) for parameter in model.parameters()]
    tensors = [
        (layer, name, tensor, tensor.detach().to("cpu", copy=True))
        for layer in model.modules()
        for name, tensor in (*layer.named_parameters(recurse=False), *layer.named_buffers(recurse=False))
    ]
    python, numpy, torchs = random.getstate(), np.random.get_state(), torch.get_rng_state()
    cudas = torch.cuda.get_rng_state(device) if device.type == "cuda" else None
    model.zero_grad(set_to_none=True)
    try:
        yield
    finally:
        for layer, training in modes:
            layer.training = training
        with torch.no_grad():
            for layer, name, tensor, saved in tensors:
                tensor.copy_(saved)
                setattr(layer, name, tensor)  # a layer may have put another buffer in its place
        for parameter, gradient in gradients:
            parameter.grad = gradient
        random.setstate(python)
        np.random.set_state(numpy)
        torch.set_rng_state(torchs)
        if cudas is not None:
            torch.cuda.set_rng_state(cudas, device)
            torch.cuda.empty_cache()
