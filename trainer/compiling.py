"""Compiling: the model's forward pass, and so its backward pass, through `torch.compile`."""

import traceback
from collections.abc import Callable

import torch
from torch import nn
from torch.nn.modules.batchnorm import SyncBatchNorm

from trainer.config import TrainConfig
from trainer.errors import ConfigError
from trainer.sync_batchnorm import SynchronizedBatchNorm


def compile_in_place(*models: nn.Module, device: torch.device) -> None:
    """Let calls of the models go through `torch.compile`; names, parameters and state_dict keys stay.

    Nothing is compiled before the first call. A batch of another size is compiled once more, then for every size, and
    once each for a single sample and for evaluation: that bounds what an epoch's uneven last batch costs.

    Raises ConfigError where this host cannot compile.
    """
    _refuse_without_compiler(device)
    for model in models:
        for layer in model.modules():
            if isinstance(layer, (SynchronizedBatchNorm, SyncBatchNorm)):
                # It waits for other ranks in the middle of forward and backward: the compiler leaves it as it is.
                layer.forward = _uncompiled(layer.forward)  # type: ignore[method-assign]  # this layer's alone
        model.compile()


def refuse_uncompilable(config: TrainConfig, devices: int) -> None:
    """Raise ConfigError for a strategy that cannot compile: DataParallel's copies would call the first one's code."""
    if config.compile and config.strategy == "dp" and devices > 1:
        raise ConfigError("compile: strategy dp computes with copies of the model, which are not compiled; use ddp")


def is_of_compiled_code(error: BaseException) -> bool:
    """Whether the compiler, or the code that it made of a model, raised the error; not the model's own code."""
    if any(kind.__module__.startswith(("torch._dynamo.", "torch._inductor.")) for kind in type(error).__mro__):
        return True
    # What it made lies in a folder that the user may choose; who calls that is the compiler's.
    last = traceback.extract_tb(error.__traceback__)[-2:]
    return any("/torch/_inductor/" in frame.filename for frame in last)


def _refuse_without_compiler(device: torch.device) -> None:
    """Try it on a function of one line: what a compiler needs differs from device to device, and from host to host."""
    try:
        torch.compile(_twice)(torch.ones(2, device=device))
    except Exception as error:
        raise ConfigError(
            f"compile: torch.compile does not work on this host's {device.type} ({_first_line(error)}); leave compile "
            "out, or install what it needs: a C++ compiler on the CPU (g++, or another that CXX names), Triton on CUDA"
        ) from error


def _uncompiled(forward: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    left: Callable[..., torch.Tensor] = torch.compiler.disable(forward)  # type: ignore[no-untyped-call]  # torch's own
    return left


def _twice(values: torch.Tensor) -> torch.Tensor:
    return values * 2


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
