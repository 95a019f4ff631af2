"""What the writers of one journal owe each other: numbers without a gap, and nothing behind the completion record."""

import fcntl
import multiprocessing
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from trainer.errors import JournalError
from trainer.journal import Completed, JournalWriter, Log, read_records

COMPLETED: dict[str, Any] = {"step": 1, "epoch": 1, "values": {}, "best_checkpoint": None}
DEADLINE_S = 20
WHERE_A_HANDLER_COMES = ("journal.py", "turns.py", "contextlib.py")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.jsonl"


def messages(path: Path) -> list[str]:
    """The messages in a journal, whose numbers are without a gap."""
    found = list(read_records(path))
    assert [record.seq for record in found] == list(range(len(found)))
    return [record.message if isinstance(record, Log) else record.kind for record in found]


def refused(writer: JournalWriter, message: str) -> bool:
    try:
        writer.append(Log, message=message)
    except JournalError as error:
        return "the run is complete" in str(error)
    return False


def test_nothing_goes_behind_the_completion_record_whoever_wrote_it_and_however_often_it_is_tried(path: Path) -> None:
    earlier, ending = JournalWriter(path), JournalWriter(path)
    earlier.append(Log, message="trains")
    ending.append(Completed, **COMPLETED)
    later = JournalWriter(path)
    before = path.read_bytes()
    for writer in (earlier, ending, later) * 2:
        assert refused(writer, "too late")
    assert path.read_bytes() == before


def test_a_torn_line_behind_the_completion_record_is_not_taken_for_one_of_another(path: Path) -> None:
    JournalWriter(path).append(Completed, **COMPLETED)
    whole = path.read_bytes()
    for torn in (b'{"seq":1,"ti', b'{"seq":1,"kind":"completed"'):
        path.write_bytes(whole + torn)
        assert refused(JournalWriter(path), "too late")
        assert path.read_bytes() == whole


@contextmanager
def interrupted(handler: Callable[[], None], *, after: int) -> Iterator[list[int]]:
    """Call `handler` as a signal would, after so many instructions of an append; yields their number, as it counts."""
    passed = [0]

    def trace(frame: FrameType, event: str, _argument: Any) -> Any:
        if os.path.basename(frame.f_code.co_filename) not in WHERE_A_HANDLER_COMES:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            passed[0] += 1
            if passed[0] == after:
                handler()
        return trace

    former = sys.gettrace()
    sys.settrace(trace)
    try:
        yield passed
    finally:
        sys.settrace(former)


@pytest.mark.parametrize("is_another", [False, True], ids=["by the same writer", "by one that it opens"])
def test_a_handler_may_append_wherever_in_an_append_it_comes(path: Path, is_another: bool) -> None:
    writer, after = JournalWriter(path), 0

    def handler() -> None:
        (JournalWriter(path) if is_another else writer).append(Log, durable=after % 50 == 0, message="handler")

    while True:
        after += 1
        with interrupted(handler, after=after) as passed:
            writer.append(Log, message="interrupted")
        if passed[0] < after:
            break
    assert after > 100, "the places at which an append can be interrupted"
    found = messages(path)
    assert (found.count("handler"), found.count("interrupted")) == (after - 1, after)


def test_what_a_handler_appends_in_the_middle_of_the_completion_record_is_left_out_or_before_it(path: Path) -> None:
    after = 0
    while True:
        after += 1
        path.unlink(missing_ok=True)
        writer = JournalWriter(path)

        def handler(writer: JournalWriter = writer) -> None:
            refused(writer, "handler")

        with interrupted(handler, after=after) as passed:
            writer.append(Completed, **COMPLETED)
        assert messages(path) in (["handler", "completed"], ["completed"])
        if passed[0] < after:
            break
    assert after > 100, "the places at which an append can be interrupted"


def test_what_a_handler_has_left_is_written_when_the_append_that_it_interrupted_fails(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer, write = JournalWriter(path), os.write

    def full(file: int, line: bytes) -> int:
        monkeypatch.undo()
        writer.append(Log, message="handler")
        return write(file, line[:10])

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space left"):
        writer.append(Log, message="interrupted")
    assert messages(path) == ["handler"]


def test_threads_of_a_fork_that_append_at_once_for_the_first_time_wait_for_the_turn_of_its_parent(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = JournalWriter(path)
    writer.append(Log, message="before the fork")
    in_turn, tried = (multiprocessing.get_context("fork").Event() for _ in range(2))
    open_file, lock, write = os.open, fcntl.flock, os.write

    def fork() -> None:
        """Have a second thread append while the first has come as far as opening the journal for this process."""

        def append() -> None:
            writer.append(Log, message="second thread")
            tried.set()

        second = threading.Thread(target=append)

        def opened_late(*arguments: Any) -> int:
            if second.ident is None:
                second.start()
                assert tried.wait(DEADLINE_S)
            return open_file(*arguments)

        def told(file: int, operation: int) -> None:
            try:
                lock(file, operation | fcntl.LOCK_NB)
            except BlockingIOError:
                tried.set()
                lock(file, operation)

        monkeypatch.setattr(os, "open", opened_late)
        monkeypatch.setattr(fcntl, "flock", told)
        assert in_turn.wait(DEADLINE_S)
        writer.append(Log, message="first thread")
        second.join()

    def write_late(file: int, line: bytes) -> int:
        monkeypatch.undo()
        in_turn.set()
        assert tried.wait(DEADLINE_S)
        return write(file, line)

    child = multiprocessing.get_context("fork").Process(target=fork)
    child.start()
    monkeypatch.setattr(os, "write", write_late)
    writer.append(Log, message="parent")
    child.join(DEADLINE_S)
    assert child.exitcode == 0
    found = messages(path)
    assert found[:2] == ["before the fork", "parent"]
    assert sorted(found[2:]) == ["first thread", "second thread"]
