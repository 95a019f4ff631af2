"""Devices that run after run is lost on: they are taken away, and their jobs go on elsewhere."""

import os
import signal
from pathlib import Path

import pytest
from sqlalchemy import select

from jobs.states import Outcome, State
from jobs.tables import DeviceRow
from tests.service import Service
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(240)


def ranks(service: Service, job_id: int, attempt: int) -> list[int]:
    """The processes of the attempt's ranks, which may be only just starting."""
    if service.job(job_id).attempt != attempt:
        return []
    return [pid for pid in service.rank_pids(job_id) if b"\0LOCAL_RANK=" in Path(f"/proc/{pid}/environ").read_bytes()]


def test_a_device_on_which_three_runs_in_a_row_were_killed_is_taken_away_and_the_job_finishes_on_another(
    service: Service,
) -> None:
    service.start_worker()
    job_id = service.submit_program({"count": 1}, steps=200, max_retries=3)

    for attempt in (1, 2, 3):
        wait_until(
            lambda attempt=attempt: ranks(service, job_id, attempt),  # type: ignore[misc]  # a loop variable's default
            timeout_s=60,
            what=lambda: f"a rank to start; {service.story(job_id)}",
        )
        assert service.placement(job_id).devices == ["cuda:0"]
        os.kill(ranks(service, job_id, attempt)[0], signal.SIGKILL)
    service.wait_for(job_id, State.SUCCEEDED)

    *lost, last = service.attempts(job_id)
    assert [attempt.outcome for attempt in lost] == [Outcome.LOST] * 3
    assert {(attempt.failure or {}).get("cause") for attempt in lost} == {"killed_by_signal"}
    assert (last.outcome, service.placement(job_id).devices) == (Outcome.SUCCEEDED, ["cuda:1"])
    with service.database.session_scope(read_only=True) as session:
        device = session.scalars(select(DeviceRow).where(DeviceRow.name == "cuda:0")).one()
    assert device.quarantined_at is not None
    assert "3 attempts in a row were lost on it" in (device.quarantine_reason or "")
    starts = [attempt.created_at for attempt in (*lost[1:], last)]
    rests = [
        (start - attempt.ended_at).total_seconds()
        for start, attempt in zip(starts, lost, strict=True)
        if attempt.ended_at
    ]
    assert all(rest >= wanted for rest, wanted in zip(rests, (0.2, 0.4, 0.8), strict=True)), rests
    service.assert_laws_held(job_id)
