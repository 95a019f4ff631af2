"""Fencing: whatever is written in the name of an attempt that has ended is refused, and changes nothing."""

import inspect
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from jobs.errors import OffsetsMovedError, StaleAttemptError
from jobs.states import Intent, Outcome
from jobs.store import attempts, endings, leases, nodes, reports
from jobs.store.attempts import Shipped
from jobs.tables import LogChunk, Placement
from tests.integration.store.conftest import Service
from tests.integration.store.turns import wait_for_blocked
from trainer.journal import JournalWriter, Log, Metrics
from trainer.run_dir import RunDir
from worker.shipping import Shipper

AT = datetime(2024, 5, 1, tzinfo=UTC)
CHECKPOINT = reports.CheckpointFile("/runs/a.pt", 1, 1, "0" * 64, 10, True, {}, AT, removed=("/runs/b.pt",))
NOTHING = Shipped(0, {})

WRITES: dict[str, Callable[[Session, Placement], object]] = {
    "claim": lambda session, placement: leases.claim(session, placement.id, "9:9"),
    "renew": leases.renew,
    "advance": lambda session, placement: attempts.advance(session, placement, shipped=NOTHING, to=Shipped(10, {0: 5})),
    "set_running": lambda session, placement: attempts.set_running(session, placement, resumed_step=7),
    "set_progress": lambda session, placement: attempts.set_progress(session, placement, {"step": 9}),
    "note": lambda session, placement: attempts.note(session, placement, "log", {"message": "late"}),
    "set_removed": lambda session, placement: reports.set_removed(session, placement, "/runs/a.pt"),
    "end_placement": lambda session, placement: endings.end_placement(session, placement, completed=True),
    "decide_resume": lambda session, placement: nodes.decide_resume(session, placement, None),
    "add_metrics": lambda session, placement: reports.add_metrics(
        session, placement, [reports.MetricPoint("loss", 1, 1, AT, 0.5)]
    ),
    "add_checkpoint": lambda session, placement: reports.add_checkpoint(session, placement, CHECKPOINT),
    "add_logs": lambda session, placement: reports.add_logs(session, placement, [reports.LogPiece(0, 0, "late\n")]),
}


@pytest.mark.parametrize("next_attempt", [False, True], ids=["job waits", "next attempt runs"])
@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES.keys())
def test_a_stale_attempt_changes_nothing(
    service: Service, write: Callable[[Session, Placement], object], next_attempt: bool
) -> None:
    stale = service.run("0")
    service.end(stale, Outcome.LOST)
    if next_attempt:
        service.plan()
    before = service.everything()

    with pytest.raises(StaleAttemptError), service.database.session_scope() as session:
        write(session, stale)

    assert service.everything() == before


def test_every_function_that_writes_for_a_placement_is_tried_above() -> None:
    writers = {
        name
        for module in (attempts, endings, leases, nodes, reports)
        for name, function in inspect.getmembers(module, inspect.isfunction)
        if function.__module__ == module.__name__ and "placement" in inspect.signature(function).parameters
        if not name.startswith("_")
    }

    reading = {"read_orders", "have_run_out", "device_rows", "shipped_of", "meeting_point", "resume_decision"}
    reading |= {"by_reach", "fence", "ended_error"}
    assert writers - WRITES.keys() == reading | {"expire"}, "these only read; the last looks for itself"


def test_a_stale_attempt_is_not_told_what_its_user_wants(service: Service) -> None:
    placement = service.run()
    with service.database.session_scope(read_only=True) as session:
        assert leases.read_orders(session, placement).intent is Intent.RUN
    service.end(placement, Outcome.LOST)

    with pytest.raises(StaleAttemptError), service.database.session_scope(read_only=True) as session:
        leases.read_orders(session, placement)


def test_a_journal_and_logs_shipped_for_an_ended_attempt_change_nothing(service: Service, tmp_path: Path) -> None:
    placement = service.run()
    placement.run_dir = str(tmp_path)
    run_dir = RunDir(tmp_path)
    run_dir.ranks.mkdir()
    run_dir.log(0).write_text("late\n")
    journal = JournalWriter(run_dir.journal)
    journal.append(Log, message="late")
    journal.append(Metrics, step=3, epoch=1, values={"loss": 0.25})
    journal.close()
    service.end(placement, Outcome.LOST)
    before = service.everything()

    with pytest.raises(StaleAttemptError):
        Shipper(service.database, placement).ship(final=True)

    assert service.everything() == before


def test_rows_written_before_a_refused_step_are_not_kept(service: Service) -> None:
    placement = service.run()
    before = service.everything()

    def ship_behind_somebody_else() -> None:
        with service.database.session_scope() as session:
            reports.add_metrics(session, placement, [reports.MetricPoint("loss", 1, 1, AT, 0.5)])
            attempts.advance(session, placement, shipped=Shipped(100, {}), to=Shipped(200, {}))

    with pytest.raises(OffsetsMovedError, match="journal_offset=100"):
        ship_behind_somebody_else()

    assert service.everything() == before


def test_an_attempt_that_has_not_ended_may_write(service: Service) -> None:
    placement = service.run()

    for name in WRITES.keys() - {"claim", "end_placement"}:
        with service.database.session_scope() as session:
            WRITES[name](session, placement)


def test_an_attempt_ends_later_than_all_that_was_written_while_its_end_waited(postgres_service: Service) -> None:
    service, database = postgres_service, postgres_service.database
    placement = service.run()

    with database.session_scope() as session:
        attempts.fence(session, placement)
        ending = threading.Thread(target=service.end, args=(placement, Outcome.LOST))
        ending.start()
        wait_for_blocked(database)
        reports.add_logs(session, placement, [reports.LogPiece(0, 0, "the last word\n")])
    ending.join()

    with database.session_scope(read_only=True) as session:
        (chunk,) = session.scalars(select(LogChunk)).all()
    (attempt,) = service.attempts(placement.job_id)
    assert attempt.ended_at is not None
    assert chunk.at < attempt.ended_at
