"""A host that is cut off from the database for longer than its lease: what its runs did is saved, or counts.

That its ranks are dead before its lease is over, and its job goes on elsewhere, is a row of the matrix.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import psutil
import pytest

from jobs.database import now
from jobs.states import Intent, Outcome, State
from tests.proxy import Proxy
from tests.service import Service, is_running
from tests.waiting import wait_until
from trainer.run_dir import RunDir

pytestmark = pytest.mark.timeout(240)


@pytest.fixture
def proxy(postgresql_url: str) -> Iterator[Proxy]:
    """The way to the database of the host that is to be cut off; the test itself has another."""
    with Proxy(postgresql_url) as proxy:
        yield proxy


@pytest.fixture
def service(postgresql_url: str, broker_url: str, tmp_path: Path) -> Iterator[Service]:
    """A service with short leases."""
    with Service(postgresql_url, broker_url, tmp_path, lease_s=9, heartbeat_s=1, host_timeout_s=3) as service:
        yield service


def expires_at(service: Service, job_id: int) -> datetime:
    """When the lease of the job's first attempt runs out, by the database's clock, which is this machine's."""
    (lease,) = service.leases(job_id, 1)
    return lease.expires_at


def has_run_out(service: Service, job_id: int) -> bool:
    with service.database.session_scope(read_only=True) as session:
        return expires_at(service, job_id) < now(session)


def test_a_run_that_its_supervisor_ended_in_an_outage_is_saved_first_and_tried_again_after_it(
    service: Service, proxy: Proxy
) -> None:
    service.start_worker(database_url=proxy.url)
    job_id = service.submit("0", train={"epochs": 200})
    service.wait_for_step(job_id, 3)
    ranks = service.rank_pids(job_id)

    with proxy.refusing():
        wait_until(lambda: not any(map(is_running, ranks)), timeout_s=30, what="the ranks to end")
        assert datetime.now(UTC) < expires_at(service, job_id)
        wait_until(lambda: has_run_out(service, job_id), timeout_s=30, what="the lease to run out")
    service.wait_for_attempt(job_id, 2)

    lost, again = service.attempts(job_id)
    assert lost.outcome == Outcome.LOST
    assert lost.failure is not None
    assert "cut off" in lost.failure["message"]
    steps = [each.step for each in service.metrics(job_id) if each.attempt == 1 and each.name == "train/loss"]
    assert again.resumed_step == max(steps), "what it had done was to be saved"
    service.set_intent(job_id, Intent.CANCEL)
    service.wait_for(job_id, State.CANCELLED)
    service.assert_laws_held(job_id)


def test_a_run_that_finished_in_an_outage_longer_than_its_lease_succeeds_though_its_worker_is_back_first(
    service: Service, proxy: Proxy
) -> None:
    # An expiry is held back for two heartbeats: time for the supervisor to find its way back.
    service.start_worker(database_url=proxy.url, heartbeat_s=3)
    job_id = service.submit_program("0")
    service.wait_for(job_id, State.RUNNING)
    run_dir = RunDir(Path(service.placement(job_id).run_dir))
    supervisor = psutil.Process(service.supervisor_pid(job_id))

    with proxy.refusing():
        supervisor.suspend()
        wait_until(run_dir.completed, timeout_s=60, what="the run to finish")
        wait_until(lambda: has_run_out(service, job_id), timeout_s=30, what="the lease to run out")
        beat = service.heartbeat("alpha")
    wait_until(lambda: service.heartbeat("alpha") != beat, timeout_s=30, what="the worker to be back")
    supervisor.resume()

    service.wait_for(job_id, State.SUCCEEDED)
    assert [attempt.outcome for attempt in service.attempts(job_id)] == [Outcome.SUCCEEDED]
    service.assert_laws_held(job_id)
