"""The figures of `/metrics`: those that are documented and no others, true, and the same from every process."""

import re
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import update

from jobs.database import Database, now
from jobs.states import Outcome
from jobs.store import durations, gauges, maintenance
from jobs.tables import Attempt, Host, Job, Lease
from tests.api_server import ApiServer
from tests.integration.running_job import start_job
from tests.servers import PostgresServer

PAGE = Path(__file__).parents[2] / "docs" / "monitoring.md"
Figures = dict[str, dict[tuple[str, ...], float]]


def scrape(api: ApiServer) -> Figures:
    """The samples by name and by their labels' values."""
    answer = api.http.get("/metrics")
    assert answer.status_code == 200, answer.text
    found: Figures = {}
    for family in text_string_to_metric_families(answer.text):
        for sample in family.samples:
            found.setdefault(sample.name, {})[tuple(sample.labels.values())] = sample.value
    return found


def of_database(figures: Figures) -> Mapping[str, object]:
    """Those that do not move by themselves."""
    moving = ("age", "oldest", "overdue_seconds", "lag", "http")
    return {
        name: values
        for name, values in figures.items()
        if name.startswith("rankzero_") and not any(word in name for word in moving)
    }


def test_the_figures_are_those_that_are_documented(database_url: str, tmp_path: Path) -> None:
    documented = set(re.findall(r"^\| `(rankzero_\w+)` \|", PAGE.read_text(), re.MULTILINE))
    with ApiServer(database_url, tmp_path) as api:
        start_job(api.database, api.submit()).end(Outcome.SUCCEEDED)
        text = api.http.get("/metrics").text
    families = {family.name for family in text_string_to_metric_families(text) if family.name.startswith("rankzero_")}
    assert families == {name.removesuffix("_total") for name in documented}


def test_every_process_gives_the_same_figures_of_the_database(database_url: str, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    # However slow this machine is, no host is out of contact.
    with (
        ApiServer(database_url, tmp_path, host_timeout_s=3600) as one,
        ApiServer(database_url, tmp_path / "other", host_timeout_s=3600) as other,
    ):
        start_job(one.database, one.submit()).end(Outcome.SUCCEEDED)
        start_job(one.database, other.submit())
        one.submit()
        figures = scrape(one)
        assert of_database(figures) == of_database(scrape(other))
    assert figures["rankzero_jobs"] == {
        ("queued",): 1,
        ("starting",): 0,
        ("running",): 1,
        ("paused",): 0,
        ("succeeded",): 1,
        ("failed",): 0,
        ("cancelled",): 0,
    }
    assert figures["rankzero_leases"] == {(): 2}
    assert figures["rankzero_devices"] == {
        ("cuda", "quarantined"): 0,
        ("cuda", "held"): 2,
        ("cuda", "closed"): 0,
        ("cuda", "free"): 2,
    }
    assert figures["rankzero_job_wait_seconds_count"] == {(): 2}
    assert figures["rankzero_attempt_run_seconds_count"] == {("succeeded",): 1}


def test_requests_are_counted_by_the_template_of_their_route(api: ApiServer) -> None:
    before = scrape(api)["rankzero_http_requests_total"]
    for path in ("/jobs/8888/logs", "/jobs/9999/logs", "/jobs/x/logs", "/made/up/1", "/made/up/2"):
        api.http.get(path)
    api.http.request("BREW", "/jobs")
    counted = scrape(api)["rankzero_http_requests_total"]
    grown = {labels: count - before.get(labels, 0) for labels, count in counted.items()}
    assert grown["GET", "/jobs/{job_id}/logs", "404"] == 2
    assert grown["GET", "/jobs/{job_id}/logs", "422"] == 1
    assert grown["GET", "none", "404"] == 2
    assert [labels for labels in counted if labels[0] == "other"] == [("other", "/jobs", "405")]


def test_without_the_database_there_is_the_figure_that_says_so(
    postgresql_url: str, postgres: PostgresServer, tmp_path: Path
) -> None:
    with ApiServer(postgresql_url, tmp_path) as api:
        postgres.stop()
        figures = scrape(api)
        postgres.start()
    assert figures["rankzero_database_up"] == {(): 0}
    assert "rankzero_jobs" not in figures
    assert figures["process_resident_memory_bytes"][()] > 0


def test_an_openmetrics_scraper_gets_that_format(api: ApiServer) -> None:
    answer = api.http.get("/metrics", headers={"Accept": "application/openmetrics-text; version=1.0.0"})
    assert answer.headers["Content-Type"].startswith("application/openmetrics-text")
    assert answer.text.endswith("# EOF\n")


def moment_of(database: Database) -> gauges.Gauges:
    """The gauges at a moment at which every host has just reported."""
    with database.session_scope() as session:
        session.execute(update(Host).values(heartbeat_at=now(session)))
        return gauges.read(session)


@pytest.fixture
def database(api: ApiServer) -> Database:
    return api.database


def test_times_are_counted_once_each_and_in_the_right_bucket(api: ApiServer, database: Database) -> None:
    job = start_job(database, api.submit())
    job.end(Outcome.FAILED, failure={"cause": "data", "message": "m"})
    with database.session_scope() as session:
        before = durations.runs(session)["failed"]
        attempt = session.get_one(Attempt, (job.job_id, 1))
        assert attempt.ended_at is not None
        began = attempt.ended_at - timedelta(seconds=250)
        session.execute(update(Attempt).where(Attempt.job_id == job.job_id).values(started_at=began))
        session.execute(
            update(Job).where(Job.id == job.job_id).values(created_at=attempt.created_at - timedelta(seconds=3.5))
        )
    with database.session_scope(read_only=True) as session:
        runs, waits = durations.runs(session)["failed"], durations.waits(session)
        assert durations.runs(session)["failed"] == runs
    assert sum(runs.counts) == sum(before.counts)
    assert runs.counts[runs.bounds_s.index(300)] - before.counts[before.bounds_s.index(300)] == 1
    assert runs.sum_s - before.sum_s == pytest.approx(250, abs=1)
    assert waits.counts[waits.bounds_s.index(5)] >= 1


def test_a_device_counts_once_and_a_lease_that_has_run_out_is_seen(api: ApiServer, database: Database) -> None:
    job = start_job(database, api.submit())
    before = moment_of(database)
    with database.session_scope() as session:
        maintenance.drain(session, job.placement.host_name, note=None, evict=False)
        lease = update(Lease).where(Lease.job_id == job.job_id)
        session.execute(lease.values(expires_at=job.placement.created_at - timedelta(days=1)))
    after = moment_of(database)
    assert after.overdue_leases - before.overdue_leases == 2
    assert after.devices == before.devices, "a run goes on there"
    assert after.hosts["closed"] - before.hosts["closed"] == 1
    assert sum(after.hosts.values()) == sum(before.hosts.values())
