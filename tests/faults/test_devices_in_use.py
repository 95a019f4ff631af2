"""Devices are exclusive: what the lease history says about jobs that want the same ones, and others."""

from datetime import datetime

import pytest

from jobs.states import State
from jobs.store import hosts
from tests.service import Service

pytestmark = pytest.mark.timeout(240)  # whole runs, several in a row


def holds(service: Service) -> dict[int, tuple[datetime, datetime]]:
    """When each job held its devices, from the first lease to the last release."""
    with service.database.session_scope(read_only=True) as session:
        history = hosts.lease_history(session)
    spans: dict[int, tuple[datetime, datetime]] = {}
    for _host, _device, lease, _job in history:
        assert lease.released_at is not None
        start, end = spans.get(lease.job_id, (lease.acquired_at, lease.released_at))
        spans[lease.job_id] = min(start, lease.acquired_at), max(end, lease.released_at)
    return spans


def test_jobs_on_disjoint_devices_of_one_host_run_at_the_same_time(service: Service) -> None:
    first, second = service.submit_program("0"), service.submit_program("1")
    service.start_worker()
    for job_id in (first, second):
        service.wait_for(job_id, State.SUCCEEDED)
    service.assert_laws_held(first, second)
    spans = holds(service)
    assert max(spans[first][0], spans[second][0]) < min(spans[first][1], spans[second][1])


def test_jobs_on_overlapping_devices_never_run_at_the_same_time(service: Service) -> None:
    both, one, other = (service.submit_program(device, steps=10) for device in ("0,1", "1", "cuda:1,cuda:0"))
    service.start_worker()
    for job_id in (both, one, other):
        service.wait_for(job_id, State.SUCCEEDED)
    service.assert_laws_held(both, one, other)
    spans = holds(service)
    assert spans[both][1] <= spans[one][0]
    assert spans[one][1] <= spans[other][0]


def test_a_job_for_a_device_that_no_host_has_waits_and_says_so(service: Service) -> None:
    service.start_worker()
    job_id = service.submit("7")
    reason = service.job(job_id).reason
    assert reason is not None
    assert "no registered host has cuda:7" in reason
    assert service.job(job_id).state == State.QUEUED
