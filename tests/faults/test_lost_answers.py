"""A network that loses the answers of commits that were made: a healthy run goes on, and tells of itself once."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import select

from jobs.states import Outcome, State
from jobs.tables import JobEvent, LogChunk
from tests.proxy import Proxy
from tests.service import Service
from trainer.journal import EpochEnd, Metrics, read_records
from trainer.run_dir import RunDir


@pytest.fixture
def proxy(postgresql_url: str) -> Iterator[Proxy]:
    with Proxy(postgresql_url) as proxy:
        yield proxy


def test_a_run_whose_commits_lose_their_answers_succeeds_with_each_row_and_byte_once(
    service: Service, proxy: Proxy
) -> None:
    proxy.lose_answers_to_commits(share=0.3)
    service.start_worker(database_url=proxy.url)
    job_id = service.submit("0")
    service.wait_for(job_id, State.SUCCEEDED)

    assert proxy.lost_answers >= 5, "the claim, a renewal or shipping has lost an answer"
    assert [attempt.outcome for attempt in service.attempts(job_id)] == [Outcome.SUCCEEDED]
    run_dir = RunDir(Path(service.placement(job_id).run_dir))
    records = list(read_records(run_dir.journal))
    told = [(name, each.step) for each in records if isinstance(each, Metrics) for name in each.values]
    assert sorted((metric.name, metric.step) for metric in service.metrics(job_id)) == sorted(told)
    assert epochs(service, job_id) == [each.epoch for each in records if isinstance(each, EpochEnd)]
    assert output(service, job_id) == run_dir.log(0).read_text()
    service.assert_laws_held(job_id)


def epochs(service: Service, job_id: int) -> list[int]:
    """The epochs that the job's events tell of."""
    query = select(JobEvent).where(JobEvent.job_id == job_id, JobEvent.kind == "epoch").order_by(JobEvent.id)
    with service.database.session_scope(read_only=True) as session:
        return [event.detail["epoch"] for event in session.scalars(query)]


def output(service: Service, job_id: int) -> str:
    """What rank 0 wrote, as the database has it."""
    query = select(LogChunk.text).where(LogChunk.job_id == job_id, LogChunk.rank == 0).order_by(LogChunk.offset)
    with service.database.session_scope(read_only=True) as session:
        return "".join(session.scalars(query))
