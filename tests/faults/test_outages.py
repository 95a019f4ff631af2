"""The broker forgets everything; the database goes away in the middle of a run."""

import time
from pathlib import Path

import pytest

from jobs.states import State
from tests.servers import PostgresServer, ValkeyServer
from tests.service import Service
from tests.waiting import wait_until
from trainer.journal import Metrics, read_records
from trainer.run_dir import RunDir

pytestmark = pytest.mark.timeout(240)  # whole runs, several in a row


def journal_steps(service: Service, job_id: int) -> list[int]:
    """The steps whose metrics the run's own journal holds."""
    records = read_records(RunDir(Path(service.placement(job_id).run_dir)).journal)
    return [record.step for record in records if isinstance(record, Metrics) and "train/loss" in record.values]


def test_ten_queued_jobs_finish_though_the_broker_forgets_them(service: Service, valkey: ValkeyServer) -> None:
    service.start_worker()
    job_ids = [service.submit_program(str(index % 2), steps=5) for index in range(10)]
    service.wait_for(job_ids[0], State.RUNNING, State.SUCCEEDED)
    valkey.flushall()
    for job_id in job_ids:
        service.wait_for(job_id, State.SUCCEEDED)
        assert service.job(job_id).attempt == 1
    service.assert_laws_held(*job_ids)


def test_training_goes_on_while_the_database_is_down_for_20_s(service: Service, postgres: PostgresServer) -> None:
    service.start_worker()
    job_id = service.submit_program(steps=60, pace_s=0.4)
    service.wait_for_step(job_id, 3)
    placement = service.placement(job_id)
    journal = RunDir(Path(placement.run_dir)).journal
    postgres.stop(mode="fast")
    size = journal.stat().st_size
    wait_until(lambda: journal.stat().st_size > size, timeout_s=20, what="the journal to grow with no database")
    back_at = time.monotonic() + 20
    wait_until(lambda: time.monotonic() >= back_at, timeout_s=30, what="20 s without a database to pass")
    postgres.start()
    service.wait_for(job_id, State.SUCCEEDED)
    assert [attempt.number for attempt in service.attempts(job_id)] == [1]
    rows = [metric.step for metric in service.metrics(job_id) if metric.name == "train/loss"]
    assert rows == journal_steps(service, job_id)
    assert rows == sorted(set(rows))
    service.assert_laws_held(job_id)
