"""What runs report: stored once however often it is told, and read as one series over all attempts."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from jobs.states import Outcome
from jobs.store import attempts, output, reports
from jobs.store import checkpoints as stored
from jobs.store.reports import CheckpointFile, LogPiece, MetricPoint
from jobs.tables import Checkpoint, Metric, Placement
from tests.integration.store.conftest import Service
from tests.integration.store.reported import logs, refreshed, series
from tests.integration.store.statements import executed
from trainer.journal import CheckpointSaved
from trainer.run_dir import RunDir
from worker.shipping import Shipper

AT = datetime(2024, 5, 1, 12, 30, tzinfo=UTC)
HOUR = timedelta(hours=1)


def point(step: int, value: float | None, *, name: str = "loss", kind: str | None = None) -> MetricPoint:
    return MetricPoint(name, step, 1, AT, value, kind)


def checkpoint(step: int, *, best: bool = False, removed: tuple[str, ...] = ()) -> CheckpointFile:
    return CheckpointFile(f"/runs/{step}.pt", step, 1, f"{step:064}", 10, best, {"accuracy": 0.5}, AT, removed)


def add(service: Service, placement: Placement, *reported: MetricPoint | CheckpointFile | LogPiece) -> None:
    with service.database.session_scope() as session:
        for each in reported:
            match each:
                case MetricPoint():
                    reports.add_metrics(session, placement, [each])
                case CheckpointFile():
                    reports.add_checkpoint(session, placement, each)
                case LogPiece():
                    reports.add_logs(session, placement, [each])


def checkpoints(service: Service, job_id: int, *, with_removed: bool = False) -> list[Checkpoint]:
    with service.database.session_scope(read_only=True) as session:
        return list(session.scalars(reports.select_checkpoints(job_id, with_removed=with_removed)))


def next_attempt(service: Service, placement: Placement) -> Placement:
    service.end(placement, Outcome.LOST)
    (again,) = service.plan()
    return service.claim(again)


def test_a_metric_series_takes_the_newest_attempt_at_each_step(service: Service) -> None:
    first = service.run()
    add(service, first, point(10, 0.9), point(20, 0.8), point(30, 0.7))
    second = next_attempt(service, first)
    add(service, second, point(20, 0.81), point(30, 0.71))
    third = next_attempt(service, second)
    add(service, third, point(30, 0.72), point(40, 0.6))

    assert series(service, first.job_id) == [
        ("loss", 10, 0.9),
        ("loss", 20, 0.81),
        ("loss", 30, 0.72),
        ("loss", 40, 0.6),
    ]


def test_a_metric_series_can_be_limited_by_name_and_step(service: Service) -> None:
    placement = service.run()
    add(service, placement, point(1, 1.0), point(2, 2.0), point(2, 0.5, name="точность"))

    assert series(service, placement.job_id, names=["точность"]) == [("точность", 2, 0.5)]
    assert series(service, placement.job_id, from_step=2, names=["loss"]) == [("loss", 2, 2.0)]


def test_metrics_of_one_job_are_not_seen_in_another(service: Service) -> None:
    mine, other = service.run("0"), service.run("1")
    add(service, other, point(1, 1.0))

    assert series(service, mine.job_id) == []


@pytest.mark.parametrize("kind", ["nan", "inf", "-inf"])
def test_a_value_that_is_not_finite_is_a_gap_that_says_its_kind(service: Service, kind: str) -> None:
    placement = service.run()
    add(service, placement, point(1, None, kind=kind))

    with service.database.session_scope(read_only=True) as session:
        (row,) = session.scalars(select(Metric))
    assert (row.value, row.kind) == (None, kind)


@pytest.mark.parametrize("value", [0.1, 1e308, 5e-324, -2.5, 1 / 3])
def test_a_value_comes_back_bit_for_bit(service: Service, value: float) -> None:
    placement = service.run()
    add(service, placement, point(1, value))

    ((_, _, stored),) = series(service, placement.job_id)
    assert stored is not None
    assert stored.hex() == value.hex()


def test_a_time_comes_back_as_the_same_moment_in_utc(service: Service) -> None:
    placement = service.run()
    add(service, placement, point(1, 0.5))

    with service.database.session_scope(read_only=True) as session:
        (row,) = session.scalars(select(Metric))
    assert row.at == AT
    assert row.at.tzinfo is UTC


def test_the_same_reports_told_twice_change_nothing(service: Service) -> None:
    placement = service.run()
    told: list[MetricPoint | CheckpointFile | LogPiece] = [
        point(1, 0.5),
        checkpoint(1, best=True),
        checkpoint(2, best=True, removed=("/runs/1.pt",)),
        checkpoint(3),
        LogPiece(0, 0, "one\n"),
        LogPiece(1, 0, "two\n"),
    ]
    add(service, placement, *told)
    before = service.everything()

    add(service, placement, *told)

    assert service.everything() == before
    assert [(each.step, each.best) for each in checkpoints(service, placement.job_id)] == [(2, True), (3, False)]


@pytest.mark.parametrize("step", [1, 2, 3], ids=["an earlier step", "the same step", "a later step"])
@pytest.mark.parametrize("clock", [-3600, 0, 1], ids=["the clock was set back", "at once", "later"])
def test_a_file_that_is_written_over_is_known_as_what_it_is_now(service: Service, step: int, clock: int) -> None:
    placement = service.run()
    first = checkpoint(2)
    second = replace(first, step=step, sha256="f" * 64, size_bytes=20, at=AT + timedelta(seconds=clock))
    add(service, placement, first, second)
    before = service.everything()

    add(service, placement, second)

    (known,) = checkpoints(service, placement.job_id)
    assert (known.path, known.step, known.sha256, known.size_bytes) == (first.path, step, "f" * 64, 20)
    assert service.everything() == before, "it was told before"


@pytest.mark.parametrize("step", [1, 3], ids=["whose steps begin anew", "whose clock is set back"])
def test_a_journal_with_a_file_that_is_written_over_is_replayed_with_no_effect(
    service: Service, tmp_path: Path, step: int
) -> None:
    placement = service.run()
    placement.run_dir = str(tmp_path)
    late = Shipper(service.database, placement)
    first = CheckpointSaved(seq=0, time=AT, step=2, epoch=1, path="a.pt", sha256="1" * 64, size_bytes=1, best=False)
    second = first.model_copy(update={"seq": 1, "step": step, "sha256": "2" * 64, "time": AT - (step - 2) * HOUR})
    with RunDir(tmp_path).journal.open("ab") as journal:
        for saved in (first, second):
            journal.write(saved.model_dump_json().encode() + b"\n")
            journal.flush()
            Shipper(service.database, refreshed(service, placement)).ship()
    before = service.everything()

    late.ship()

    assert service.everything() == before
    assert [(each.step, each.sha256) for each in checkpoints(service, placement.job_id)] == [(step, "2" * 64)]


def test_one_checkpoint_is_the_best_over_all_attempts(service: Service) -> None:
    first = service.run()
    add(service, first, checkpoint(1, best=True), checkpoint(2))
    second = next_attempt(service, first)
    add(service, second, checkpoint(3, best=True))

    assert [each.step for each in checkpoints(service, first.job_id) if each.best] == [3]


def test_a_removed_checkpoint_stays_in_the_history_only(service: Service) -> None:
    placement = service.run()
    add(service, placement, checkpoint(1), checkpoint(2, removed=("/runs/1.pt",)))

    assert [each.step for each in checkpoints(service, placement.job_id)] == [2]
    assert [each.step for each in checkpoints(service, placement.job_id, with_removed=True)] == [1, 2]


def test_a_new_attempt_may_continue_from_the_furthest_checkpoint_that_is_left(service: Service) -> None:
    first = service.run()
    add(service, first, checkpoint(10), checkpoint(20), checkpoint(30, removed=("/runs/20.pt",)))
    next_attempt(service, first)

    with service.database.session_scope(read_only=True) as session:
        assert [each.step for each in reports.resumable(session, first.job_id)] == [30, 10]


def test_logs_are_read_by_rank_attempt_and_from_where_a_reader_left_off(service: Service) -> None:
    first = service.run("0,1")
    add(service, first, LogPiece(0, 0, "a\n"), LogPiece(1, 0, "b\n"), LogPiece(0, 2, "c\n"))
    second = next_attempt(service, first)
    add(service, second, LogPiece(0, 0, "d\n"))
    job_id = first.job_id

    everything = logs(service, job_id)
    assert [chunk.text for chunk in everything] == ["a\n", "b\n", "c\n", "d\n"]
    assert [chunk.text for chunk in logs(service, job_id, rank=0)] == ["a\n", "c\n", "d\n"]
    assert [chunk.text for chunk in logs(service, job_id, attempt=1, rank=1)] == ["b\n"]
    assert [chunk.text for chunk in logs(service, job_id, after=everything[1].id)] == ["c\n", "d\n"]


@pytest.mark.parametrize(
    ("written", "stored"),
    [("a\x00b", "a\ufffdb"), ("\ud800 alone", "? alone"), ("🚀 точность", "🚀 точность"), ("100% 'x' \"y\"\\", None)],
)
def test_any_text_can_be_stored_in_any_report(service: Service, written: str, stored: str | None) -> None:
    stored = stored or written
    placement = service.run()
    add(service, placement, LogPiece(0, 0, written), point(1, 0.5, name=written))
    with service.database.session_scope() as session:
        attempts.note(session, placement, "log", {"message": written})
        attempts.set_progress(session, placement, {"values": {written: 1.0}})

    (chunk,) = logs(service, placement.job_id)
    ((name, _, _),) = series(service, placement.job_id)
    event = service.events(placement.job_id)[-1]
    progress: Any = service.job(placement.job_id).progress
    assert [chunk.text, name, event.detail["message"], *progress["values"]] == [stored] * 4


def test_an_escaped_nul_that_was_written_out_stays_as_it_was(service: Service) -> None:
    placement = service.run()
    with service.database.session_scope() as session:
        attempts.note(session, placement, "log", {"message": "\\u0000 and \\\\u0000"})

    assert service.events(placement.job_id)[-1].detail["message"] == "\\u0000 and \\\\u0000"


def test_progress_is_merged_into_what_is_known(service: Service) -> None:
    placement = service.run()
    for news in ({"step": 1, "values": {"loss": 0.9}}, {"step": 2, "values": {"accuracy": None}}, {"epoch": 1}):
        with service.database.session_scope() as session:
            attempts.set_progress(session, placement, news)

    assert service.job(placement.job_id).progress == {
        "step": 2,
        "epoch": 1,
        "values": {"loss": 0.9, "accuracy": None},
    }


def test_a_new_attempt_begins_with_no_progress(service: Service) -> None:
    first = service.run()
    with service.database.session_scope() as session:
        attempts.set_progress(session, first, {"step": 5})

    next_attempt(service, first)

    assert service.job(first.job_id).progress is None


def test_the_last_lines_of_programs_that_print_none_come_to_so_much_of_each_rank_and_of_all(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "TAIL_BYTES", 20)
    monkeypatch.setattr(output, "ALL_TAILS_BYTES", 30)
    placement = service.run()
    add(service, placement, *(LogPiece(rank, offset, "no line;") for offset in (0, 8, 16, 24) for rank in range(3)))

    with service.database.session_scope(read_only=True) as session:
        of_one = output.tail(session, placement.job_id, lines=5, rank=1).parts
        of_all = output.tail(session, placement.job_id, lines=5).parts

    assert [(part.rank, part.offset) for part in of_one] == [(1, 8), (1, 16), (1, 24)]
    assert [(part.rank, part.offset) for part in of_all] == [(rank, offset) for offset in (16, 24) for rank in range(3)]


def test_the_last_lines_are_found_without_a_look_at_all_that_was_printed(service: Service) -> None:
    placement = service.run()
    add(service, placement, LogPiece(0, 0, "one\n"), LogPiece(0, 4, "two\n"))

    with executed(service.database) as statements, service.database.session_scope(read_only=True) as session:
        (part,) = output.tail(session, placement.job_id, lines=1).parts

    assert part.text == "two\n"
    assert [each for each in statements if "length(" in each] == []


def test_many_checkpoints_are_removed_with_no_more_queries_than_few(service: Service) -> None:
    asked = []
    for count in (2, 8):
        placement = service.run()
        files = [replace(checkpoint(step), path=f"{placement.run_dir}/{step}.pt") for step in range(count)]
        add(service, placement, *files)
        service.end(placement, Outcome.SUCCEEDED)
        with executed(service.database) as statements, service.database.session_scope() as session:
            assert len(stored.prune(session, placement.job_id, keep=["last"]).removed) == count - 1
        asked.append(sum(each.startswith("SELECT") for each in statements))

    assert asked[0] == asked[1]
