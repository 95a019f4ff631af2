"""The run directory: what survives a crash, a full disk and a damaged file."""

import os
from pathlib import Path

import pytest

from tests.limits import file_size_limit
from trainer.config import TrainConfig
from trainer.durable_files import write_atomic
from trainer.errors import JournalError
from trainer.journal import (
    CheckpointSaved,
    Completed,
    JournalWriter,
    Log,
    Metrics,
    finite_values,
    read_backwards,
    read_journal,
    read_records,
)
from trainer.run_dir import Progress, RunConfig, RunDir


@pytest.fixture
def run_dir(tmp_path: Path) -> RunDir:
    run_dir = RunDir(tmp_path)
    run_dir.create(RunConfig(train=TrainConfig(model="resnet18", data="digits"), devices=("cpu",)))
    return run_dir


def write_logs(run_dir: RunDir, *messages: str) -> None:
    journal = JournalWriter(run_dir.journal)
    for message in messages:
        journal.append(Log, message=message)
    journal.close()


def test_the_configuration_is_read_back_as_written(run_dir: RunDir) -> None:
    assert run_dir.read_config().devices == ("cpu",)
    assert run_dir.ranks.is_dir()
    assert run_dir.checkpoints.is_dir()


def test_records_are_read_back_in_order_with_their_places(run_dir: RunDir) -> None:
    write_logs(run_dir, "first", "точность 😀\nline two")
    records, end = read_journal(run_dir.journal)
    assert [(record.seq, record.message) for record in records if isinstance(record, Log)] == [
        (0, "first"),
        (1, "точность 😀\nline two"),
    ]
    assert end == run_dir.journal.stat().st_size


def test_a_missing_journal_holds_no_records(run_dir: RunDir) -> None:
    assert read_journal(run_dir.journal) == ([], 0)


def test_a_line_that_is_still_being_written_waits_for_the_next_call(run_dir: RunDir) -> None:
    write_logs(run_dir, "whole", "torn")
    whole = run_dir.journal.read_bytes()
    run_dir.journal.write_bytes(whole[:-20])
    records, offset = read_journal(run_dir.journal)
    assert [record.seq for record in records] == [0]
    run_dir.journal.write_bytes(whole)
    records, offset = read_journal(run_dir.journal, offset)
    assert [record.seq for record in records] == [1]
    assert read_journal(run_dir.journal, offset) == ([], offset)


def test_a_journal_is_read_in_portions(run_dir: RunDir) -> None:
    write_logs(run_dir, "a", "b", "c")
    first, offset = read_journal(run_dir.journal, limit=2)
    rest, _ = read_journal(run_dir.journal, offset)
    assert [record.seq for record in (*first, *rest)] == [0, 1, 2]


def test_a_writer_cuts_off_a_torn_last_line_and_continues_the_numbers(run_dir: RunDir) -> None:
    write_logs(run_dir, "whole", "torn")
    run_dir.journal.write_bytes(run_dir.journal.read_bytes()[:-20])
    write_logs(run_dir, "after the power cut")
    records, _ = read_journal(run_dir.journal)
    assert [record.message for record in records if isinstance(record, Log)] == ["whole", "after the power cut"]
    assert [record.seq for record in records] == [0, 1]


@pytest.mark.parametrize(
    "line", [b"garbage\n", b'{"kind":"log"}\n', b"\n", b"\x00\x00\n", b'{"seq":0,"kind":"unheard-of"}\n']
)
def test_a_damaged_journal_is_an_error_that_says_where(run_dir: RunDir, line: bytes) -> None:
    write_logs(run_dir, "whole")
    end = run_dir.journal.stat().st_size
    with run_dir.journal.open("ab") as file:
        file.write(line)
    with pytest.raises(JournalError, match=f"byte {end}"):
        run_dir.completed()
    with pytest.raises(JournalError, match=f"byte {end}"):
        JournalWriter(run_dir.journal)
    assert run_dir.journal.stat().st_size == end + len(line), "what is damaged is left for people to look at"


def test_what_lies_before_the_damage_is_read_and_the_damage_reported_after_it(run_dir: RunDir) -> None:
    write_logs(run_dir, "one", "two")
    end = run_dir.journal.stat().st_size
    with run_dir.journal.open("ab") as file:
        file.write(b"garbage\n" + run_dir.journal.read_bytes())
    records, offset = read_journal(run_dir.journal, limit=500)
    assert [record.message for record in records if isinstance(record, Log)] == ["one", "two"]
    assert offset == end
    with pytest.raises(JournalError, match=f"byte {end}"):
        read_journal(run_dir.journal, offset, limit=500)
    every = read_records(run_dir.journal)
    assert [next(every).seq, next(every).seq] == [0, 1]
    with pytest.raises(JournalError, match=f"byte {end}"):
        next(every)


@pytest.mark.parametrize("longest", [1, 100, 200_000])
def test_a_journal_is_read_from_its_end_as_from_its_beginning(run_dir: RunDir, longest: int) -> None:
    write_logs(run_dir, *("x" * (number * longest // 20) for number in range(20)))
    forwards = list(read_records(run_dir.journal))
    assert list(read_backwards(run_dir.journal)) == forwards[::-1]
    with run_dir.journal.open("ab") as file:
        file.write(b'{"torn": "' + b"y" * longest)
    assert list(read_backwards(run_dir.journal)) == forwards[::-1]


@pytest.mark.parametrize("content", [b"", b"torn", b"torn" * 100_000])
def test_a_journal_without_a_complete_line_holds_no_records_from_its_end_either(
    run_dir: RunDir, content: bytes
) -> None:
    run_dir.journal.write_bytes(content)
    assert list(read_backwards(run_dir.journal)) == []


def test_the_end_of_a_run_is_found_behind_a_line_that_is_damaged(run_dir: RunDir) -> None:
    """The completion record is the only sign of success: damage further up must not turn it into a failure."""
    journal = JournalWriter(run_dir.journal)
    journal.append(Log, message="spoilt by a bad block")
    journal.append(Completed, durable=True, step=1, epoch=1, values={}, best_checkpoint="checkpoints/step-00000001.pt")
    journal.close()
    run_dir.journal.write_bytes(run_dir.journal.read_bytes().replace(b"spoilt", b"\x00\xff\x00", 1))
    assert run_dir.completed() is not None


def test_a_disk_that_fills_up_inside_a_line_leaves_no_half_line(run_dir: RunDir) -> None:
    journal = JournalWriter(run_dir.journal)
    journal.append(Log, message="whole")
    before = run_dir.journal.read_bytes()
    with file_size_limit(len(before) + 30), pytest.raises(OSError, match="No space left"):
        journal.append(Log, message="too much")
    assert run_dir.journal.read_bytes() == before
    journal.append(Log, message="after space was made")
    journal.close()
    assert [record.seq for record in read_journal(run_dir.journal)[0]] == [0, 1]


def test_a_value_that_is_not_finite_is_null_with_its_kind() -> None:
    values, kinds = finite_values({"a": float("nan"), "b": float("inf"), "c": float("-inf"), "точность": 0.5})
    assert values == {"a": None, "b": None, "c": None, "точность": 0.5}
    assert kinds == {"a": "nan", "b": "inf", "c": "-inf"}


def test_a_journal_is_strict_json_whatever_was_measured(run_dir: RunDir) -> None:
    journal = JournalWriter(run_dir.journal)
    values, kinds = finite_values({"val/loss": float("nan")})
    journal.append(Metrics, step=1, epoch=1, values=values, nonfinite=kinds)
    journal.close()
    assert b"NaN" not in run_dir.journal.read_bytes()
    (record,), _ = read_journal(run_dir.journal)
    assert isinstance(record, Metrics)
    assert record.nonfinite == {"val/loss": "nan"}


def test_only_a_completion_record_at_the_end_is_success(run_dir: RunDir) -> None:
    assert run_dir.completed() is None
    write_logs(run_dir, "all done!")
    assert run_dir.completed() is None
    journal = JournalWriter(run_dir.journal)
    journal.append(Completed, durable=True, step=1, epoch=1, values={}, best_checkpoint="checkpoints/step-00000001.pt")
    journal.close()
    assert run_dir.completed() is not None


def test_the_newest_checkpoint_is_the_one_to_continue_from(run_dir: RunDir) -> None:
    assert run_dir.last_checkpoint() is None
    journal = JournalWriter(run_dir.journal)
    for step in (5, 10):
        journal.append(
            CheckpointSaved, step=step, epoch=0, path=f"checkpoints/{step}.pt", sha256="", size_bytes=1, best=False
        )
    journal.append(Log, message="more")
    journal.close()
    newest = run_dir.last_checkpoint()
    assert newest is not None
    assert newest.path == "checkpoints/10.pt"


def test_replacing_a_file_leaves_no_temporary_file(tmp_path: Path) -> None:
    path = tmp_path / "error.json"
    write_atomic(path, b"old")
    write_atomic(path, b"new")
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["error.json"]


def test_a_replacement_that_fails_leaves_the_old_content(tmp_path: Path) -> None:
    path = tmp_path / "error.json"
    write_atomic(path, b"old")
    with file_size_limit(10), pytest.raises(OSError, match="File too large"):
        write_atomic(path, b"new" * 1000)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["error.json"]


def test_progress_that_is_half_written_is_no_progress_yet(run_dir: RunDir) -> None:
    assert run_dir.read_progress(0) is None
    run_dir.progress(0).write_bytes(b'{"phase":"training","st')
    assert run_dir.read_progress(0) is None


def test_progress_is_rewritten_in_place_and_stays_readable(run_dir: RunDir) -> None:
    from trainer.reporting import ProgressFile

    progress = ProgressFile(run_dir, local_rank=0)
    progress.write("evaluating", 123_456_789)
    progress.write("saving", 1)
    read = run_dir.read_progress(0)
    assert isinstance(read, Progress)
    assert (read.phase, read.step) == ("saving", 1)
