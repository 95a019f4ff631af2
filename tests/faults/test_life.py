"""Lives of jobs that other systems got wrong: clocks in different time zones, and a success whose cleanup fails."""

import os
import signal
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import text

from jobs.states import State
from tests.api_server import ApiServer
from tests.service import Service
from tests.waiting import wait_until
from trainer.run_dir import RunDir

pytestmark = pytest.mark.timeout(180)


def test_times_are_utc_and_in_order_where_api_worker_and_database_live_in_different_zones(
    service: Service, broker_url: str, postgresql_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with service.database.session_scope() as session:
        name = session.execute(text("SELECT current_database()")).scalar_one()
        session.execute(text(f"ALTER DATABASE {name} SET timezone TO 'Asia/Kathmandu'"))
    service.database.dispose()
    monkeypatch.setenv("TZ", "America/St_Johns")
    service.start_worker()
    monkeypatch.setenv("TZ", "Pacific/Kiritimati")
    with ApiServer(postgresql_url, tmp_path, broker_url=broker_url) as api:
        job_id = api.submit(
            device="0", train={"model": "squeezenet1_1", "data": "digits", "epochs": 1, "image_size": 32}
        )
        over = service.wait_for(job_id, State.SUCCEEDED)
        job = api.http.get(f"/jobs/{job_id}").json()
        (attempt,) = api.http.get(f"/jobs/{job_id}/attempts").json()["items"]
        metrics = api.http.get(f"/jobs/{job_id}/metrics").json()["items"]

    order = [
        job["created_at"],
        attempt["created_at"],
        attempt["placements"][0]["claimed_at"],
        job["started_at"],
        attempt["ended_at"],
        job["finished_at"],
    ]
    times = [datetime.fromisoformat(time) for time in order]
    assert all(time.utcoffset() == timedelta(0) for time in times), order
    assert times == sorted(times)
    assert datetime.now(UTC) - times[0] < timedelta(minutes=3)
    for metric in metrics:
        at = datetime.fromisoformat(metric["at"])
        assert at.utcoffset() == timedelta(0)
        assert times[2] <= at <= times[-1]
    assert over.finished_at == times[-1]


def test_a_run_whose_processes_are_killed_while_they_clean_up_after_success_stays_succeeded(service: Service) -> None:
    service.start_worker()
    job_id = service.submit("0,1", train={"epochs": 1})
    wait_until(lambda: service.job(job_id).state == State.RUNNING, timeout_s=60, what=lambda: service.story(job_id))
    run_dir = RunDir(Path(service.placement(job_id).run_dir))

    wait_until(lambda: run_dir.completed() is not None, timeout_s=60, what="the completion record")
    for pid in service.rank_pids(job_id):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

    job = service.wait_for(job_id, State.SUCCEEDED)
    assert (job.attempt, job.retries, job.failure) == (1, 0, None)
    service.assert_laws_held(job_id)
