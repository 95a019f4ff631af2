"""Hosts and supervisors that vanish without a word: others free their devices, and nothing of them comes back."""

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from jobs.states import Intent, Outcome, State
from tests.service import Service, is_running
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(240)

LEASE_S = 6


@pytest.fixture
def service(postgresql_url: str, broker_url: str, tmp_path: Path) -> Iterator[Service]:
    """A service with leases that run out soon."""
    with Service(postgresql_url, broker_url, tmp_path, lease_s=LEASE_S, heartbeat_s=1, host_timeout_s=3) as service:
        yield service


def test_the_ranks_of_a_supervisor_that_was_stopped_past_its_lease_are_dead_before_their_device_is_used_again(
    service: Service,
) -> None:
    service.start_worker()
    # Longer than the lease: a run that completes meanwhile is shipped, and has succeeded.
    stopped = service.submit("0", train={"epochs": 25})
    service.wait_for_step(stopped, 3)
    waiting = service.submit("0", train={"epochs": 1}, priority=90)
    stale = service.placement(stopped)
    ranks = service.rank_pids(stopped)
    supervisor = psutil.Process(service.supervisor_pid(stopped))
    supervisor.suspend()
    try:
        wait_until(
            lambda: service.job(waiting).attempt == 1 and service.placement(waiting).claimed_at,
            timeout_s=60,
            what=lambda: f"the device to be given to the job that waits; {service.story(stopped)}",
        )
        assert not any(map(is_running, ranks)), "ranks of the stopped supervisor share a device with the next job"
    finally:
        with suppress(psutil.NoSuchProcess):
            supervisor.resume()

    wait_until(
        lambda: not supervisor.is_running(),
        timeout_s=30,
        what=lambda: f"the supervisor to leave; its log:\n{service.supervisor_log(stale)}",
    )
    for job_id in (waiting, stopped):
        service.wait_for(job_id, State.SUCCEEDED, timeout_s=150)
    lost, again = service.attempts(stopped)
    assert (lost.outcome, again.outcome) == (Outcome.LOST, Outcome.SUCCEEDED)
    assert lost.failure is not None
    assert "its lease ran out" in lost.failure["message"]
    service.assert_laws_held(stopped, waiting)


def test_a_job_of_a_host_that_vanished_goes_on_at_another_and_one_that_needs_that_host_says_so(
    service: Service,
) -> None:
    alpha = service.start_worker("alpha")
    job_id = service.submit({"count": 1}, train={"epochs": 4})
    checkpoint = service.wait_for_checkpoint(job_id)
    assert service.placement(job_id).host_name == "alpha"
    service.start_worker("beta")
    supervisor, ranks = service.supervisor_pid(job_id), service.rank_pids(job_id)

    alpha.kill()
    alpha.wait()
    for pid in (supervisor, *ranks):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    pinned = service.submit({"count": 1, "host": "alpha"})

    service.wait_for(job_id, State.SUCCEEDED)
    lost, again = service.attempts(job_id)
    assert lost.outcome == Outcome.LOST
    assert service.placement(job_id).host_name == "beta"
    assert again.resumed_step is not None
    assert again.resumed_step >= checkpoint.step
    expired_at = service.leases(job_id, 1)[0].expires_at
    assert lost.ended_at is not None
    assert lost.ended_at >= expired_at, "its devices were freed before its lease was over"
    assert service.job(pinned).state == State.QUEUED
    assert service.job(pinned).reason == "every host with 1 CUDA device on alpha is out of contact"
    service.set_intent(pinned, Intent.CANCEL)
    service.assert_laws_held(job_id, pinned)
