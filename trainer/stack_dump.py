"""The stack dump: what the threads of a process are at, asked for by a signal and read from its log.

The process answers by faulthandler, in C and whatever it is at: also where Python code of its own would never come to
run, as inside a call that does not return. Never imports torch.
"""

import faulthandler
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_SIGNAL = signal.SIGUSR1
_WITHIN_S = 2.0
_LOADERS_WITHIN_S = 2.0
_SETTLED_S = 0.15
"""Nothing more has come for so long: a dump has no last line that says so."""
_POLL_S = 0.02
_MOST_LOADERS = 16
_HEADING = "hang watch: the stacks of "
_THREAD = re.compile(r"^(?:Current thread|Thread) 0x[0-9a-f]+.*\(most recent call first\):$")
_FRAME = re.compile(r'^  (?:File ".*", line \d+ in .*|<no Python frame>|\.\.\.)$')
_LOADER = "torch/utils/data/dataloader.py"

_COLLECTIVE = ("torch/distributed/", "torch/nn/parallel/distributed.py", "trainer/roll_call.py")
_BACKWARD = "torch/autograd/graph.py"
"""Where a rank waits while DistributedDataParallel averages gradients, and also while it computes them."""


def answer_signals() -> None:
    """Have this process write the stacks of its threads to standard error, its log, whenever it is asked to."""
    faulthandler.register(_SIGNAL, all_threads=True, chain=False)


def leave_signals() -> None:
    """Undo `answer_signals`: for a program that may use the signal otherwise."""
    faulthandler.unregister(_SIGNAL)


@dataclass(frozen=True)
class StackDump:
    """What one process was found at."""

    threads: tuple[tuple[str, ...], ...] = ()
    """The lines of each thread, its newest frame first; the main thread comes first. None where it did not answer."""
    is_stopped: bool = False
    """Its process was stopped, as by SIGSTOP."""
    is_in_kernel: bool = False
    """Its process was in the kernel, where no signal reaches it: waiting for a disk, a network share or a driver."""
    loaders: tuple[str, ...] = ()
    """The dumps of its loader processes."""

    @property
    def frames(self) -> tuple[str, ...]:
        """The main thread's frames, the newest first."""
        return self.threads[0][1:] if self.threads else ()

    @property
    def is_in_collective(self) -> bool:
        """Whether the main thread waits for other ranks, or may: a backward pass is where gradients are averaged."""
        newest = self.frames[0] if self.frames else ""
        return any(code in newest for code in (*_COLLECTIVE, _BACKWARD))

    @property
    def is_in_loader(self) -> bool:
        """Whether the main thread waits for a loader process."""
        return any(_LOADER in frame for frame in self.frames)

    @property
    def text(self) -> str:
        """All of it."""
        own = "\n\n".join("\n".join(thread) for thread in self.threads)
        return "\n\n".join(part for part in (own, *self.loaders) if part)


def dump_stacks(processes: Mapping[int, tuple[int, Path]]) -> dict[int, StackDump]:
    """Ask processes, each by its pid and its log, for their stacks; return what has come within two seconds.

    A stopped process is continued: only so can it answer. Whoever asks is to end it soon.
    """
    asked = {key: _Question.ask(pid, log, "this process") for key, (pid, log) in processes.items()}
    _wait_for(lambda: all(question.is_answered() for question in asked.values()), _WITHIN_S)
    return {key: question.answer() for key, question in asked.items()}


def with_loaders(dump: StackDump, pid: int, log: Path) -> StackDump:
    """Add the dumps of a process's loader processes, which write into the same log and so are asked one by one."""
    deadline = time.monotonic() + _LOADERS_WITHIN_S
    found = []
    for number, loader in enumerate(_children(pid)[:_MOST_LOADERS]):
        if (left := deadline - time.monotonic()) <= 0:
            break
        question = _Question.ask(loader, log, f"its loader process {number}")
        _wait_for(question.is_answered, left)
        if (answer := question.answer()).text:
            stopped = ", which is stopped" if answer.is_stopped else ""
            found.append(f"In loader process {number}{stopped}:\n{answer.text}")
    return StackDump(dump.threads, dump.is_stopped, dump.is_in_kernel, tuple(found))


def without_dumps(lines: Sequence[str]) -> list[str]:
    """Return the lines of a log but those of the dumps that were asked for here, each from its heading on."""
    kept, is_dump = [], False
    for line in lines:
        is_dump = line.startswith(_HEADING) or (is_dump and bool(not line or _THREAD.match(line) or _FRAME.match(line)))
        if not is_dump:
            kept.append(line)
    return kept


def place(frame: str) -> str:
    """Return a frame's line of a dump as people write it: `forward (model.py:12)`."""
    if (found := re.match(r'  File "(.*)", line (\d+) in (.*)', frame)) is None:
        return "no Python code"
    return f"{found[3]} ({Path(found[1]).name}:{found[2]})"


@dataclass
class _Question:
    pid: int
    log: Path
    state: str
    begin: int
    """Where in the log the answer begins."""
    is_asked: bool
    size: int = 0
    grown_at: float = 0.0

    @classmethod
    def ask(cls, pid: int, log: Path, whose: str) -> "_Question":
        state, answers = _status(pid)
        with suppress(OSError):  # a full disk: then there is no answer either
            if answers:
                with log.open("ab") as file:
                    file.write(f"\n{_HEADING}{whose}, {pid}:\n".encode())
        question = cls(pid, log, state, begin=log.stat().st_size if log.exists() else 0, is_asked=answers)
        question.grown_at = time.monotonic()
        if answers:
            with suppress(ProcessLookupError):
                os.kill(pid, _SIGNAL)
                if state == "T":
                    os.kill(pid, signal.SIGCONT)
        return question

    def is_answered(self) -> bool:
        """Whether no more is to be expected."""
        if not self.is_asked:
            return True
        threads = self._threads()
        if (size := sum(map(len, threads))) != self.size:
            self.size, self.grown_at = size, time.monotonic()
        is_whole = any(thread[0].startswith("Current") and len(thread) > 1 for thread in threads)
        return is_whole and time.monotonic() - self.grown_at > _SETTLED_S

    def answer(self) -> StackDump:
        threads = self._threads() if self.is_asked else []
        threads.sort(key=lambda thread: not thread[0].startswith("Current"))  # signals come to the main thread
        return StackDump(
            tuple(tuple(thread) for thread in threads), is_stopped=self.state == "T", is_in_kernel=self.state == "D"
        )

    def _threads(self) -> list[list[str]]:
        """Return the lines of the answer so far, by thread; what else is printed meanwhile is left out."""
        threads: list[list[str]] = []
        try:
            with self.log.open("rb") as file:
                file.seek(self.begin)
                lines = file.read().decode(errors="replace").splitlines()
        except OSError:  # what cannot be read is as good as not said
            return threads
        for line in lines:
            if _THREAD.match(line):
                threads.append([line])
            elif threads and _FRAME.match(line):
                threads[-1].append(line)
        return threads


def _status(pid: int) -> tuple[str, bool]:
    """Return the state of a process by its letter, and whether it catches the signal, which else would end it."""
    if sys.platform != "linux":
        return "", True
    try:
        fields = _proc_status(pid)
    except OSError:  # it has just ended
        return "", False
    caught = int(fields.get("SigCgt", "0"), 16)
    return fields.get("State", "?")[0].upper(), bool(caught >> (_SIGNAL - 1) & 1)


def _children(pid: int) -> list[int]:
    """Return the processes that a process has started and that answer as it does, the oldest first."""
    if sys.platform != "linux":
        return []
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with suppress(OSError):
                if _proc_status(int(entry.name)).get("PPid") == str(pid) and _status(int(entry.name))[1]:
                    found.append(int(entry.name))
    return sorted(found)


def _proc_status(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def _wait_for(is_done: Callable[[], bool], within_s: float) -> None:
    deadline = time.monotonic() + within_s
    while not is_done() and time.monotonic() < deadline:
        time.sleep(_POLL_S)
