"""Hosts and supervisors that vanish without a word: others free their devices, and nothing of them comes back."""

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from jobs.states import Intent, Outcome, State
from tests.service import Service

pytestmark = pytest.mark.timeout(240)

LEASE_S = 6


@pytest.fixture
def service(postgresql_url: str, broker_url: str, tmp_path: Path) -> Iterator[Service]:
    """A service with leases that run out soon."""
    with Service(postgresql_url, broker_url, tmp_path, lease_s=LEASE_S, heartbeat_s=1, host_timeout_s=3) as service:
        yield service


def test_a_job_of_a_host_that_vanished_goes_on_at_another_and_one_that_needs_that_host_says_so(
    service: Service,
) -> None:
    alpha = service.start_worker("alpha")
    job_id = service.submit_program({"count": 1}, pace_s=2)  # its host is gone long before it is over
    service.wait_for_step(job_id, 1)
    assert service.placement(job_id).host_name == "alpha"
    service.start_worker("beta")
    checkpoint = service.wait_for_checkpoint(job_id)
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
