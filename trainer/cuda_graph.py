"""The CUDA graph: forward and backward of a full batch, recorded once and replayed without Python in between."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from trainer.autobatch import left_as_it_was
from trainer.config import TrainConfig
from trainer.data.loading import on_device
from trainer.data.seeded import SeededSamples
from trainer.errors import Cause, ConfigError
from trainer.faults import cause_of
from trainer.recipes.recipe import TaskData

_WARM_UP = 3
"""Passes before the recording: libraries choose their kernels, and allocate what they keep, in the first ones."""

Compute = Callable[[Any], torch.Tensor]
"""Forward and backward of a batch, for parameters without gradients: returns the detached loss."""
Replay = Callable[[], None]
Record = Callable[[Callable[[], torch.Tensor], nn.Module], tuple[torch.Tensor, Replay]]
"""Records a computation: returns the tensor that holds its result after each replay, and what replays it."""


def why_eager(
    config: TrainConfig,
    device: torch.device,
    *,
    is_distributed: bool,
    devices: int,
    accumulate: int,
    is_recordable: Callable[[], bool],
) -> str | None:
    """Return why `cuda_graph` is without effect in a run, or None where it is not asked for or takes effect.

    `devices` are those of a rank, `accumulate` the batches of an optimizer step. `is_recordable` is asked last, since
    it costs a sample: whether a batch is tensors alone.
    """
    if not config.cuda_graph:
        return None
    reasons = {
        f"this is {device.type}, and only CUDA has graphs": device.type != "cuda",
        "among several ranks gradients are averaged while they are computed": is_distributed,
        "strategy dp has several devices": devices > 1,
        f"each step accumulates {accumulate} batches": accumulate > 1,
        "with amp: fp16 the loss is scaled anew at each step": config.amp == "fp16",
        "compile has its own way to save launches": config.compile,
    }
    why = next((reason for reason, applies in reasons.items() if applies), None)
    if why is None and not is_recordable():
        why = "its batches hold more than tensors"
    return None if why is None else f"cuda_graph: without effect here, training goes on without ({why})"


def is_recordable(data: TaskData, model: nn.Module, config: TrainConfig) -> bool:
    """Return whether a training batch, as `loss` takes it, is tensors alone, by one sample of it.

    Model and random generators are left as they were. Raises DataError for a sample that cannot be read.
    """
    device = next(model.parameters()).device
    with left_as_it_was(model, device):
        samples = data.collate([SeededSamples(data.train, seed=config.seed)[0, 0]])
        return _tensors(data.prepare_train(on_device(samples, device))) is not None


class GraphedComputation:
    """Computes batches: those of the first one's shapes by a graph, any other as it would be without.

    The graph reads its inputs from, and leaves gradients in, memory of its own. What is random on the device draws from
    its generator as that is seeded before each replay, since torch hands the graph seed and offset anew each time.
    """

    def __init__(self, model: nn.Module, compute: Compute, *, record: Record) -> None:
        self._model, self._compute, self._record = model, compute, record
        self._recording: _Recording | None = None

    def __call__(self, batch: Any, *, is_full: bool) -> torch.Tensor:
        """Leave the gradients of a batch in the parameters, which have none; return the detached loss.

        The loss is overwritten by the next call. `is_full`: whether batches of this size are those worth a graph.
        Raises ConfigError where the computation cannot be recorded.
        """
        tensors = _tensors(batch)
        if self._recording is None and is_full and tensors is not None:
            self._recording = self._recorded(batch)
        recording = self._recording
        if recording is None or tensors is None or _shapes(tensors) != _shapes(recording.inputs):
            return self._compute(batch)
        for static, tensor in zip(recording.inputs, tensors, strict=True):
            static.copy_(tensor)
        recording.replay()
        for parameter, gradient in zip(self._model.parameters(), recording.gradients, strict=True):
            parameter.grad = gradient
        return recording.loss

    def _recorded(self, batch: Any) -> "_Recording":
        static = _copied(batch)
        loss, replay = self._record(lambda: self._compute(static), self._model)
        inputs, gradients = _tensors(static), [parameter.grad for parameter in self._model.parameters()]
        assert inputs is not None, "a copy has the tensors of the batch"
        return _Recording(inputs, loss, gradients, replay)


@dataclass(frozen=True)
class _Recording:
    """A recorded computation, and the memory that it reads and writes at each replay."""

    inputs: list[torch.Tensor]
    loss: torch.Tensor
    gradients: list[torch.Tensor | None]
    """Those of the model's parameters, in order."""
    replay: Replay


def record_on_cuda(compute: Callable[[], torch.Tensor], model: nn.Module) -> tuple[torch.Tensor, Replay]:
    """Record a computation in a CUDA graph (PyTorch's notes on CUDA semantics, "CUDA Graphs": whole-network capture).

    Weights, statistics and generators are what they were; the parameters have the graph's gradients.
    """
    device = next(model.parameters()).device
    with left_as_it_was(model, device):
        side = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]  # torch's own __new__ is untyped
        side.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(side):
            for _ in range(_WARM_UP):
                model.zero_grad(set_to_none=True)
                compute()
        torch.cuda.current_stream(device).wait_stream(side)
    model.zero_grad(set_to_none=True)  # so that the backward pass makes them, in the graph's memory
    graph = torch.cuda.CUDAGraph()
    try:
        # The loader's thread pins memory meanwhile, which the default mode takes for a fault of the recording.
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            loss = compute()
    except RuntimeError as error:
        if cause_of(error) is Cause.OUT_OF_MEMORY:
            raise
        raise ConfigError(
            f"cuda_graph: the training step cannot be recorded ({str(error).splitlines()[0]}); what waits for the "
            "device, such as .item(), cannot be in it: leave cuda_graph out"
        ) from error
    return loss, graph.replay


def _copied(batch: Any) -> Any:
    if isinstance(batch, torch.Tensor):
        return batch.clone()
    if isinstance(batch, dict):
        return {name: _copied(part) for name, part in batch.items()}
    return type(batch)(_copied(part) for part in batch)


def _tensors(batch: Any) -> list[torch.Tensor] | None:
    """The tensors of a batch (a tensor, or tuples, lists and dicts of them), in order.

    None where it holds anything else: that would stay in the graph as it was when it was recorded.
    """
    if isinstance(batch, torch.Tensor):
        return [batch]
    if not isinstance(batch, (tuple, list, dict)):
        return None
    tensors: list[torch.Tensor] = []
    for part in batch.values() if isinstance(batch, dict) else batch:
        if (of_part := _tensors(part)) is None:
            return None
        tensors += of_part
    return tensors


def _shapes(tensors: list[torch.Tensor]) -> list[tuple[torch.Size, torch.dtype]]:
    return [(tensor.shape, tensor.dtype) for tensor in tensors]
