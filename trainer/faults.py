"""What an exception in a rank means: its cause, and the line that tells people."""

import re
import signal
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import torch
import torch.distributed as dist

from trainer.compiling import is_of_compiled_code
from trainer.device_faults import advice, cuda_cause
from trainer.error_report import ErrorReport, safe_text, traceback_of
from trainer.errors import Cause, TrainingError, os_error_cause
from trainer.micro_batches import TOO_FEW_FOR_BATCHNORM

_OUT_OF_MEMORY = re.compile(
    r"out of memory|can't allocate memory|cannot allocate memory|not enough memory|CU(BLAS|DNN)_STATUS_ALLOC_FAILED",
    re.IGNORECASE,
)
_COMMUNICATION = re.compile(r"\bgloo\b|\bnccl\b|Connection (closed|reset) by peer|TCPStore|Broken pipe", re.IGNORECASE)
_NO_SPACE = re.compile(r"No space left on device|Disk quota exceeded", re.IGNORECASE)
_LOADER_KILLED = re.compile(r"DataLoader worker \(pid.*\) (is killed by signal|exited unexpectedly)")
_ALLOCATOR = re.compile(r" Of the allocated memory .* is allocated by PyTorch.*")
"""What torch's allocator says after which process holds how much of the device: its own accounts, advice and a link."""
_SHARED_MEMORY = re.compile(r"insufficient shared memory|out of shared memory", re.IGNORECASE)
_LOADER = re.compile(r"Caught \w+ in (DataLoader|pin memory)")
_TRACEBACK = "Traceback (most recent call last):"
_OUR_ERROR = re.compile(r"^trainer\.errors\.\w+: ")

_LOADER_FILE = "torch/utils/data/dataloader.py"

_LOADER_DIES_S = 0.2


SignalHandler = Callable[[int, FrameType | None], object] | int | None
"""What signal.signal() takes and returns."""


def report_of(error: BaseException, *, rank: int, loader_check: SignalHandler = None) -> ErrorReport:
    """Describe what ended a rank. `loader_check` is torch's handler of SIGCHLD, where it has set one."""
    error = _loader_death(error, loader_check) or error
    report = ErrorReport.of(error, cause=cause_of(error), rank=rank, traceback=traceback_of(error))
    if report.cause is Cause.DISK_FULL:
        # torch says it in terms of its own file format.
        message = f"no space is left where the run writes (ENOSPC): {report.message}"
        report = report.model_copy(update={"message": message})
    if TOO_FEW_FOR_BATCHNORM.search(report.message):
        # A single sample is enough where a layer sees several pixels of it, so this is not known beforehand.
        ways = "take a larger batch or image_size, or set sync_bn to true where several ranks share the batch"
        report = report.model_copy(update={"message": f"batch: too small for BatchNorm ({report.message}); {ways}"})
    if report.cause is Cause.OUT_OF_MEMORY:
        report = report.model_copy(update={"message": _ALLOCATOR.sub("", report.message)})
    if report.cause is Cause.EXCEPTION and is_of_compiled_code(error):
        whose = (
            "torch.compile or what it made of the model raised this: leave compile out, and the model computes itself"
        )
        report = report.model_copy(update={"message": f"{report.message.rstrip('.')}; {whose}"})
    if in_loader := bool(_LOADER.match(text := safe_text(error))):
        report = report.model_copy(update={"message": _OUR_ERROR.sub("", _said_in_loader(text))})
    if (where := advice(report.message, in_loader=in_loader)) is not None:
        report = report.model_copy(update={"message": f"{report.message.rstrip('.')}; {where}"})
    return report


def cause_of(error: BaseException) -> Cause:
    """Return the cause that an exception, or one that it was raised from, stands for."""
    causes = [_own_cause(link) for link in _chain(error)]
    return next((cause for cause in causes if cause is not Cause.EXCEPTION), Cause.EXCEPTION)


def _said_in_loader(text: str) -> str:
    """Return the first line of what a loader process's exception said: it arrives with its traceback for a message.

    That is the first line behind the last traceback's frames, which are indented; what follows it may be anything.
    """
    lines = text.strip().splitlines()
    begin = max((number for number, line in enumerate(lines) if line.endswith(_TRACEBACK)), default=len(lines))
    return next((line for line in lines[begin + 1 :] if not line.startswith(" ")), lines[-1])


def _loader_death(error: BaseException, loader_check: SignalHandler) -> BaseException | None:
    """Return that a loader process died, where that is what an interrupted read from it really means."""
    if not _is_broken_read(error) or not callable(loader_check):
        return None
    deadline = time.monotonic() + _LOADER_DIES_S
    while time.monotonic() < deadline:  # its sockets are closed a moment before it counts as dead
        try:
            loader_check(signal.SIGCHLD, None)  # it raises for a loader process that has died
        except RuntimeError as death:
            death.__context__ = error
            return death
        time.sleep(0.01)
    # torch tells of a death once; it may have done so where the exception was lost. Nothing else breaks such a read.
    unseen = RuntimeError("DataLoader worker (pid unknown) is killed by signal: it ended while its data was being read")
    unseen.__context__ = error
    return unseen


def _is_broken_read(error: BaseException) -> bool:
    """Whether the machinery between a loader process and its rank raised it; what a loader raises comes otherwise."""
    files = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    reads = any(file.endswith(_LOADER_FILE) for file in files)
    return reads and "multiprocessing" in Path(files[-1]).parts


def _own_cause(error: BaseException) -> Cause:
    if isinstance(error, TrainingError):
        return error.cause
    if isinstance(error, (MemoryError, torch.OutOfMemoryError)):
        return Cause.OUT_OF_MEMORY
    if isinstance(error, OSError):
        return os_error_cause(error)
    if isinstance(error, ValueError) and TOO_FEW_FOR_BATCHNORM.search(safe_text(error)):
        return Cause.CONFIG
    if isinstance(error, RuntimeError):
        text = safe_text(error)
        if (cause := cuda_cause(text, in_loader=bool(_LOADER.match(text)))) is not None:
            return cause  # of the device whose collectives fail, too
        return Cause.COMMUNICATION if isinstance(error, dist.DistError) else _runtime_cause(text)
    return Cause.EXCEPTION


def _runtime_cause(message: str) -> Cause:
    """Tell torch's plain RuntimeErrors apart; their text is all there is."""
    for pattern, cause in (
        (_SHARED_MEMORY, Cause.OUT_OF_MEMORY),
        (_LOADER_KILLED, Cause.KILLED_BY_SIGNAL),
        (_NO_SPACE, Cause.DISK_FULL),
        (_OUT_OF_MEMORY, Cause.OUT_OF_MEMORY),
        (_COMMUNICATION, Cause.COMMUNICATION),
    ):
        if pattern.search(message):
            return cause
    return Cause.EXCEPTION


def _chain(error: BaseException) -> list[BaseException]:
    """The exception and all it was raised from or while handling, newest first."""
    links: list[BaseException] = []
    link: BaseException | None = error
    while link is not None and not any(link is each for each in links):  # how it compares is its class's to say
        links.append(link)
        link = link.__cause__ or link.__context__
    return links
