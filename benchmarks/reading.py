"""How fast what runs report is stored and read, and how fast a long line of jobs, on PostgreSQL and over HTTP."""

import statistics
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import psycopg
from sqlalchemy import func, insert, select, text
from sqlalchemy.orm import Session

from benchmarks.report import Line, percentile, spread
from jobs.database import Database, upgrade
from jobs.planning import plan_once
from jobs.spec import JobSpec
from jobs.store import attempts, buckets, hosts, jobs, leases, reports
from jobs.store.hosts import DeviceInfo
from jobs.store.reports import MetricPoint
from jobs.tables import Job, Metric, Placement
from tests.api_server import ApiServer
from tests.servers import PostgresServer

SERIES = 1_000_000
"""Values of the one long series."""
POINTS = 1_500
NAMES, STEPS = 10, 500
"""Metrics and records of one batch, as shipping sends it."""
BATCHES = 10
TURNS = 5
WAITING = 10_000
CLAIMS = 64
REQUESTS = 60
PAGES = ("/jobs", "/jobs?state=queued&sort=-priority", "/jobs?name=resnet&size=200&fields=id,name,state")
"""As a dashboard, a search and a script ask."""
AT = datetime(2026, 1, 1, tzinfo=UTC)


def measure(say: Callable[[str], None]) -> list[Line]:
    """Fill a PostgreSQL server of our own, and ask it and an API on it."""
    say("reading: starting PostgreSQL and an API …")
    with tempfile.TemporaryDirectory(prefix="rankzero-bench-") as folder, PostgresServer() as postgres:
        url = postgres.create_database()
        upgrade(url)
        with ApiServer(url, Path(folder)) as api:
            placement = _start_run(api.database)
            return [_ingest(api.database, placement, say), _chart(api, placement, say), *_line(api, say)]


def _ingest(database: Database, placement: Placement, say: Callable[[str], None]) -> Line:
    """Batches through the store, and the same rows by COPY into an equal table, in turns."""
    with database.session_scope() as session:
        session.execute(text("CREATE TABLE plain (LIKE metrics INCLUDING ALL)"))
        # LIKE leaves foreign keys out; they are looked up for each row.
        key = "FOREIGN KEY (job_id, attempt) REFERENCES attempts (job_id, number)"
        session.execute(text(f"ALTER TABLE plain ADD {key}"))
    ours, theirs = [], []
    for turn in range(TURNS):
        batches = [_batch(turn * BATCHES + number) for number in range(BATCHES)]
        rows = sum(map(len, batches))
        began = time.perf_counter()
        for batch in batches:
            with database.session_scope() as session:
                reports.add_metrics(session, placement, batch)
        ours.append(rows / (time.perf_counter() - began))
        began = time.perf_counter()
        for batch in batches:
            with database.session_scope() as session:
                _copy(session, "plain", placement, batch)
        theirs.append(rows / (time.perf_counter() - began))
        say(f"reading: turn {turn + 1} of {TURNS}: {ours[-1]:.0f} values/s stored, by COPY {theirs[-1]:.0f}")
    what = f"metric values stored, {NAMES * STEPS:,} in each transaction"
    ratio = statistics.median(ours) / statistics.median(theirs)
    return Line(what, spread(ours, "values/s"), f"COPY: {spread(theirs, 'values/s')}", ratio)


def _chart(api: ApiServer, placement: Placement, say: Callable[[str], None]) -> Line:
    """A chart of the long series over HTTP, and the same stretches by a plain GROUP BY over all values."""
    say(f"reading: a series of {SERIES:,} values …")
    piece = SERIES // TURNS
    for turn in range(TURNS):
        with api.database.session_scope() as session:
            _copy(session, "metrics", placement, [_point("long", turn * piece + step) for step in range(piece)])
        say(f"reading: {(turn + 1) * piece:,} of {SERIES:,} values are there")
    with api.database.session_scope() as session:
        session.execute(text("SET LOCAL statement_timeout = 0"))
        buckets.refresh(session, placement.job_id, [("long", 0), ("long", SERIES - 1)])
    _analyze(api.database)
    say(f"reading: {REQUESTS} charts of {POINTS:,} points …")
    path = f"/jobs/{placement.job_id}/metrics?name=long&points={POINTS}"
    ours = [_ms(partial(_get, api, path)) for _ in range(REQUESTS)]
    stretch = Metric.step * (POINTS // 2) // SERIES
    plain = select(stretch, func.min(Metric.value), func.max(Metric.value)).where(Metric.job_id == placement.job_id)
    plain = plain.where(Metric.name == "long").group_by(stretch)
    theirs = []
    for _ in range(TURNS):
        with api.database.session_scope(read_only=True) as session:
            theirs.append(_ms(lambda: session.execute(plain).all()))
    what = f"{POINTS:,} points of {SERIES:,} values over HTTP"
    return _figures(what, ours, f"GROUP BY in the database alone: {spread(theirs, 'ms')}", statistics.median(theirs))


def _line(api: ApiServer, say: Callable[[str], None]) -> list[Line]:
    """A page of a long line, and the claims of supervisors while it is planned."""
    say(f"reading: {WAITING:,} waiting jobs …")
    with api.database.session_scope() as session:
        devices = [DeviceInfo(f"cuda:{index}", "cuda", simulated=True) for index in range(CLAIMS)]
        hosts.register(session, "line", worker="2:2", run_root="/runs/line", devices=devices)
        job = jobs.submit(session, JobSpec.model_validate(_spec({"count": 1, "host": "line"}))).job
        rows = [{column.name: getattr(job, column.key) for column in Job.__table__.columns if column.name != "id"}]
        session.execute(insert(Job), rows * (WAITING - 1))
    _analyze(api.database)
    with api.database.session_scope() as session:
        launches = plan_once(session)
    say(f"reading: {len(launches)} claims and {REQUESTS} pages …")
    claims = [_ms(partial(_claim, api.database, launch.placement_id)) for launch in launches]
    pages = [_ms(partial(_get, api, path)) for _ in range(REQUESTS // len(PAGES)) for path in PAGES]
    return [
        _figures(f"GET /jobs with {WAITING:,} waiting", pages),
        _figures(f"a claim with {WAITING:,} waiting", claims),
    ]


def _start_run(database: Database) -> Placement:
    with database.session_scope() as session:
        devices = [DeviceInfo("cuda:0", "cuda", simulated=True)]
        hosts.register(session, "alpha", worker="1:1", run_root="/runs/alpha", devices=devices)
        jobs.submit(session, JobSpec.model_validate(_spec({"count": 1, "host": "alpha"})))
    with database.session_scope() as session:
        (launch,) = plan_once(session)
    with database.session_scope() as session:
        placement = leases.claim(session, launch.placement_id, "1:1")
        attempts.set_running(session, placement, resumed_step=None)
    return placement


def _spec(device: object) -> dict[str, object]:
    return {"device": device, "train": {"model": "resnet18", "data": "digits"}}


def _batch(number: int) -> list[MetricPoint]:
    steps = range(number * STEPS, (number + 1) * STEPS)
    return [_point(f"metric {name}", step) for step in steps for name in range(NAMES)]


def _point(name: str, step: int) -> MetricPoint:
    return MetricPoint(name, step, 1, AT, (step * 7919 % 100_003) / 100_003)


def _copy(session: Session, table: str, placement: Placement, points: list[MetricPoint]) -> None:
    connection = session.connection().connection.driver_connection
    assert isinstance(connection, psycopg.Connection)
    columns = "job_id, attempt, name, step, epoch, at, value, kind"
    with connection.cursor().copy(f"COPY {table} ({columns}) FROM STDIN") as copy:
        for each in points:
            row = (
                placement.job_id,
                placement.attempt,
                each.name,
                each.step,
                each.epoch,
                each.at,
                each.value,
                each.kind,
            )
            copy.write_row(row)


def _analyze(database: Database) -> None:
    with database.session_scope() as session:
        session.execute(text("ANALYZE"))


def _claim(database: Database, placement_id: int) -> None:
    with database.session_scope() as session:
        leases.claim(session, placement_id, f"{placement_id}:1")


def _get(api: ApiServer, path: str) -> None:
    api.http.get(path).raise_for_status()


def _figures(what: str, taken_ms: list[float], peer: str = "", peer_ms: float | None = None) -> Line:
    figure = f"p50 {percentile(taken_ms, 0.5):.0f} ms, p95 {percentile(taken_ms, 0.95):.0f} ms (n={len(taken_ms)})"
    return Line(what, figure, peer, None if peer_ms is None else statistics.median(taken_ms) / peer_ms)


def _ms(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return (time.perf_counter() - began) * 1000
