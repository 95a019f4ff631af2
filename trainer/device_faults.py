"""Device faults: what CUDA's errors say of whose fault they are, the program's or the GPU's. Never imports torch.

The texts are those of cudaGetErrorString (CUDA Runtime API, "Error Handling"), which torch and NCCL pass on.
"""

import re

from trainer.errors import Cause

_OF_THE_PROGRAM = re.compile(
    r"device-side assert triggered|illegal memory access|misaligned address|illegal instruction|invalid program counter"
    r"|operation not supported on global/shared address space",
    re.IGNORECASE,
)
"""Kernels fail so by what they are given, on any GPU alike, such as a label that is no class. The whole of an assert's
text: torch's advice on any error of CUDA's ends in "to enable device-side assertions"."""
_OF_THE_DEVICE = re.compile(
    r"uncorrectable (ECC|NVLink) error|unspecified launch failure|hardware stack error|nvlink or a hardware error"
    r"|devices? (is|are) busy or unavailable|no CUDA-capable device is detected|launch timed out and was terminated"
    r"|CUDA( driver)? error: (unknown error|initialization error|system not yet initialized)|GPU is lost",
    re.IGNORECASE,
)
"""An unspecified launch failure may be a kernel's fault, too; those of torch's own do not fail so on a sound GPU."""
_OF_COLLECTIVES = re.compile(r"ProcessGroupNCCL|DistBackendError|NCCL error|\bgloo::")
_ASSERT = re.compile(r"device-side assert triggered", re.IGNORECASE)
_INITIALIZATION = re.compile(r"CUDA( driver)? error: initialization error", re.IGNORECASE)


def cuda_cause(text: str, *, in_loader: bool = False) -> Cause | None:
    """Return the cause that an error's text stands for, or None where it is no such error of CUDA's.

    `in_loader`: it was raised in a loader process. That is a fork of its rank, and on any GPU CUDA does not initialize
    in a fork of a process that uses it.
    """
    if _OF_THE_PROGRAM.search(text) or (in_loader and _INITIALIZATION.search(text)):
        return Cause.EXCEPTION
    return Cause.DEVICE if _OF_THE_DEVICE.search(text) else None


def abort_cause(log: str) -> Cause | None:
    """Return what made a process abort, by its last lines, or None where nothing there says it.

    NCCL's watchdog, and C++ code that throws where nothing catches, end a process without a word of Python's.
    """
    return cuda_cause(log) or (Cause.COMMUNICATION if _OF_COLLECTIVES.search(log) else None)


def advice(text: str, *, in_loader: bool = False) -> str | None:
    """Return where to look further, for an error of which the text alone says little; `in_loader` as above."""
    if in_loader and _INITIALIZATION.search(text):
        return "loader processes are forks, in which CUDA does not work: use the GPU in the model, not in the dataset"
    if _ASSERT.search(text):
        return "a label or an index out of range, most often: on the CPU the same step says which"
    if cuda_cause(text) is Cause.DEVICE:
        return "the kernel's log (dmesg) has what the driver says of it, as an Xid"
    return None
