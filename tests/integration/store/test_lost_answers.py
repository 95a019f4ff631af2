"""A commit that is done while its answer is lost: whoever asked does it again, and nothing is doubled or missing."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import event, select
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session

from jobs.errors import OffsetsMovedError, StaleAttemptError
from jobs.states import Outcome
from jobs.store import attempts, leases, reports
from jobs.store.attempts import Shipped
from jobs.tables import LogChunk, Metric, Placement
from tests.integration.store.conftest import Service
from trainer.journal import JournalWriter, Log, Metrics
from trainer.run_dir import RunDir
from worker.clock import clock
from worker.link import patiently
from worker.shipping import Shipper


@contextmanager
def answers_lost(*, first: int = 1) -> Iterator[list[int]]:
    """Let the first so many commits be made, and their clients learn only that the connection broke."""
    lost: list[int] = []

    def lose(_session: Session) -> None:
        if len(lost) < first:
            lost.append(len(lost))
            raise OperationalError("COMMIT", {}, Exception("the connection broke before the answer came"))

    event.listen(Session, "after_commit", lose)
    try:
        yield lost
    finally:
        event.remove(Session, "after_commit", lose)


@pytest.fixture
def run(service: Service, tmp_path: Path) -> tuple[Placement, RunDir]:
    """A running placement whose run directory has a log and a journal of three steps."""
    placement = service.run()
    placement.run_dir = str(tmp_path)
    run_dir = RunDir(tmp_path)
    run_dir.ranks.mkdir()
    write(run_dir, steps=range(1, 4), output="first\n")
    return placement, run_dir


def write(run_dir: RunDir, *, steps: range, output: str) -> None:
    """What a run adds to its files."""
    journal = JournalWriter(run_dir.journal)
    for step in steps:
        journal.append(Metrics, step=step, epoch=1, values={"loss": 1 / step})
        journal.append(Log, message=f"step {step}")
    journal.close()
    with run_dir.log(0).open("a") as file:
        file.write(output)


def stored(service: Service, job_id: int) -> tuple[list[int], list[str], str]:
    """The steps, the messages and the output that the database has of a job."""
    with service.database.session_scope(read_only=True) as session:
        steps = session.scalars(select(Metric.step).where(Metric.job_id == job_id).order_by(Metric.step)).all()
        output = session.scalars(select(LogChunk.text).where(LogChunk.job_id == job_id).order_by(LogChunk.id)).all()
    messages = [event.detail["message"] for event in service.events(job_id) if event.kind == "log"]
    return list(steps), messages, "".join(output)


@pytest.mark.parametrize("lost_at", [1, 2], ids=["the journal's", "the journal's and the log's"])
def test_shipping_whose_answer_was_lost_goes_on_with_each_record_and_byte_once(
    service: Service, run: tuple[Placement, RunDir], lost_at: int
) -> None:
    placement, run_dir = run
    shipper = Shipper(service.database, placement)

    with answers_lost(first=lost_at) as lost:
        for _ in range(lost_at):
            with pytest.raises(OperationalError):
                shipper.ship()
        assert len(lost) == lost_at
    write(run_dir, steps=range(4, 6), output="second\n")
    shipper.ship(final=True)

    messages = [f"step {step}" for step in range(1, 6)]
    assert stored(service, placement.job_id) == ([1, 2, 3, 4, 5], messages, "first\nsecond\n")
    assert service.state(placement.job_id) == "running"


def test_shipping_from_what_the_database_no_longer_is_at_writes_nothing_and_says_where_it_is(
    service: Service, run: tuple[Placement, RunDir]
) -> None:
    placement, _ = run
    Shipper(service.database, placement).ship()
    before = service.everything()

    def ship_again() -> None:
        with service.database.session_scope() as session:
            attempts.advance(session, placement, shipped=Shipped(0, {}), to=Shipped(10, {0: 6}))
            reports.add_logs(session, placement, [reports.LogPiece(0, 6, "twice\n")])

    with pytest.raises(OffsetsMovedError, match=r"Shipped\(journal_offset=\d+, log_offsets=\{0: 6\}\) is shipped, not"):
        ship_again()

    assert service.everything() == before


def test_a_shipper_that_knows_less_than_the_database_continues_where_that_is(
    service: Service, run: tuple[Placement, RunDir]
) -> None:
    placement, run_dir = run
    late = Shipper(service.database, placement)
    Shipper(service.database, placement).ship()
    write(run_dir, steps=range(4, 5), output="second\n")

    late.ship()

    assert stored(service, placement.job_id)[0] == [1, 2, 3, 4]
    assert stored(service, placement.job_id)[2] == "first\nsecond\n"


def test_a_claim_whose_answer_was_lost_is_made_again_and_holds(service: Service) -> None:
    placement = service.launch()
    claim = partial(leases.claim, placement_id=placement.id, supervisor="7:7")

    with answers_lost() as lost:
        claimed = patiently(service.database, claim, until=clock() + 30)

    assert len(lost) == 1
    assert claimed.supervisor == "7:7"
    with pytest.raises(StaleAttemptError, match="is taken"):
        service.claim(placement, "8:8")


def test_a_claim_may_be_repeated_by_its_owner_only_and_not_after_the_end(service: Service) -> None:
    placement = service.launch()
    first = service.claim(placement, "7:7")
    again = service.claim(placement, "7:7")

    assert again.supervisor == first.supervisor
    service.end(placement, Outcome.LOST)
    with pytest.raises(StaleAttemptError):
        service.claim(placement, "7:7")
