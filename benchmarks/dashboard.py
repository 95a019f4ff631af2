"""How fast the dashboard shows a long job and a long list of jobs, in a Chromium on an API with PostgreSQL."""

import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import psutil
from playwright.sync_api import Browser, sync_playwright
from sqlalchemy import insert, text
from sqlalchemy.orm import Session

from api.web.inputs import WEB
from benchmarks.report import Line, spread
from benchmarks.watching import FRAME_MS, Traffic, forget, limit, smoothness, watched_page
from jobs.database import Database, upgrade
from jobs.planning import plan_once
from jobs.spec import JobSpec
from jobs.store import attempts, hosts, jobs, leases, reports
from jobs.store.hosts import DeviceInfo
from jobs.store.reports import MetricPoint
from jobs.tables import Job, Placement
from tests.api_server import ApiServer
from tests.browser.chromium import launch
from tests.servers import PostgresServer

STEPS = 100_000
NAMES = ("train/loss", "train/lr", "val/loss", "val/accuracy")
POINTS = 1_500
"""Points of each series that the page asks for."""
BATCH_STEPS = 5_000
JOBS = 10_000
TURNS = 5
WRITING_S = 20
STEPS_PER_S = 20
WRITES_PER_S = 4
"""As often as a supervisor ships."""
SCROLLS, SCROLL_PX = 120, 1_200
MOST_SERVED_MS = 1_000
"""What all requests of an opening may take in the API."""
AT = datetime(2026, 1, 1, tzinfo=UTC)
UPLOT = WEB / "node_modules" / "uplot" / "dist" / "uPlot.iife.min.js"

_WHEN_DRAWN = """(many) => new Promise((resolve) => {
  requestAnimationFrame(function look(at) {
    if (document.querySelectorAll("figure canvas").length >= many) resolve(at)
    else requestAnimationFrame(look)
  })
})"""
_ALONE = """async ([path, names]) => {
  const began = performance.now()
  const { items } = await (await fetch(path)).json()
  for (const name of names) {
    const its = items.filter((item) => item.name === name)
    const place = document.body.appendChild(document.createElement("div"))
    const series = [{}, { stroke: "blue" }]
    const columns = [its.map(({ step }) => step), its.map(({ value }) => value)]
    new uPlot({ width: 500, height: 220, scales: { x: { time: false } }, series }, columns, place)
  }
  await new Promise(requestAnimationFrame)
  return performance.now() - began
}"""


def measure(say: Callable[[str], None]) -> list[Line]:
    """Fill a PostgreSQL server of our own, and look at it in a browser."""
    say("dashboard: building it, and starting PostgreSQL and an API …")
    subprocess.run([sys.executable, "-m", "api.web.build"], check=True, stdout=subprocess.DEVNULL)
    with tempfile.TemporaryDirectory(prefix="rankzero-bench-") as folder, PostgresServer() as postgres:
        url = postgres.create_database()
        upgrade(url)
        with ApiServer(url, Path(folder)) as api:
            placement = _seed(api.database, say)
            with sync_playwright() as playwright:
                browser = launch(playwright)
                try:
                    return [
                        *_openings(browser, api, placement, say),
                        _growing(browser, api, placement, say),
                        _scrolling(browser, api, say),
                    ]
                finally:
                    browser.close()


def _openings(browser: Browser, api: ApiServer, placement: Placement, say: Callable[[str], None]) -> list[Line]:
    """The job's charts in a browser that has never been there, and uPlot alone with the same answer, in turns."""
    process = psutil.Process(api.pid)
    served, used, ready, alone = [], [], [], []
    for turn in range(TURNS):
        with watched_page(browser) as page:
            traffic = Traffic(page)
            logged, before = api.log.stat().st_size, _cpu_ms(process)
            page.goto(f"{api.url}/ui/jobs/{placement.job_id}/metrics")
            ready.append(page.evaluate(_WHEN_DRAWN, len(NAMES)))
            traffic.wait_for_quiet()  # what else the page asks for once its charts are there
            served.append(sum(_request_ms(api.log, after=logged)))
            used.append(_cpu_ms(process) - before)
        with watched_page(browser) as page:
            page.goto(f"{api.url}/healthz")
            page.add_script_tag(path=UPLOT)
            path = f"/jobs/{placement.job_id}/metrics?points={POINTS}"
            alone.append(page.evaluate(_ALONE, [path, list(NAMES)]))
        say(f"dashboard: opened {turn + 1} of {TURNS}: {served[-1]:.0f} ms in the API, drawn after {ready[-1]:.0f} ms")
    series = f"{len(NAMES)} series of {STEPS:,} values"
    ratio = statistics.median(ready) / statistics.median(alone)
    return [
        Line(
            f"{series}: all requests of an opening in the API",
            f"{spread(served, 'ms')} ({limit(max(served), MOST_SERVED_MS)}), of it CPU {spread(used, 'ms')}",
        ),
        Line(
            f"{series}: until all are drawn, nothing cached",
            spread(ready, "ms"),
            f"their request and uPlot alone: {spread(alone, 'ms')}",
            ratio,
        ),
    ]


def _growing(browser: Browser, api: ApiServer, placement: Placement, say: Callable[[str], None]) -> Line:
    """The same charts while values come."""
    say(f"dashboard: {STEPS_PER_S * len(NAMES)} new values a second, for {WRITING_S} s …")
    with watched_page(browser) as page:
        traffic = Traffic(page)
        page.goto(f"{api.url}/ui/jobs/{placement.job_id}/metrics")
        page.evaluate(_WHEN_DRAWN, len(NAMES))
        traffic.wait_for_quiet()
        forget(page)
        writer = threading.Thread(target=_write, args=(api.database, placement))
        writer.start()
        while writer.is_alive():
            page.wait_for_timeout(250)
        chart = page.get_by_role("figure", name=NAMES[0], exact=True)
        chart.get_by_text(_shown(STEPS + WRITING_S * STEPS_PER_S - 1)).first.wait_for()
        smooth = smoothness(page)
    return Line(f"charts while {STEPS_PER_S * len(NAMES)} values a second come", str(smooth))


def _scrolling(browser: Browser, api: ApiServer, say: Callable[[str], None]) -> Line:
    """The table of all jobs, by the wheel."""
    say(f"dashboard: scrolling a table of {JOBS:,} jobs …")
    with watched_page(browser) as page:
        traffic = Traffic(page)
        page.goto(f"{api.url}/ui/jobs")
        table = page.get_by_role("region", name="Jobs", exact=True)
        table.get_by_role("row").nth(5).wait_for()
        traffic.wait_for_quiet()
        table.hover()
        forget(page)
        for _ in range(SCROLLS):
            page.mouse.wheel(0, SCROLL_PX)
            page.wait_for_timeout(FRAME_MS)
        smooth = smoothness(page)
        passed = table.evaluate("(region) => region.scrollTop")
    return Line(f"{JOBS:,} jobs, {passed:,.0f} pixels of them scrolled past", str(smooth))


def _request_ms(log: Path, *, after: int) -> list[float]:
    """What each request took that the log has behind so many bytes, but for streams, which last while they are open."""
    lines = [json.loads(line) for line in log.read_bytes()[after:].splitlines() if line.startswith(b"{")]
    return [line["ms"] for line in lines if line["event"] == "request" and line["route"] != "/events"]


def _cpu_ms(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system) * 1000


def _write(database: Database, placement: Placement) -> None:
    """Store values as a supervisor does, at a steady rate."""
    began = time.monotonic()
    steps = STEPS_PER_S // WRITES_PER_S
    for write in range(WRITING_S * WRITES_PER_S):
        first = STEPS + write * steps
        with database.session_scope() as session:
            reports.add_metrics(session, placement, _points(first, first + steps))
        time.sleep(max(0.0, began + (write + 1) / WRITES_PER_S - time.monotonic()))


def _seed(database: Database, say: Callable[[str], None]) -> Placement:
    say(f"dashboard: storing {len(NAMES)} series of {STEPS:,} values and {JOBS:,} jobs …")
    with database.session_scope() as session:
        devices = [DeviceInfo("cuda:0", "cuda", simulated=True)]
        hosts.register(session, "alpha", worker="1:1", run_root="/runs/alpha", devices=devices)
        jobs.submit(session, _spec())
    with database.session_scope() as session:
        (launched,) = plan_once(session)
    with database.session_scope() as session:
        placement = leases.claim(session, launched.placement_id, "1:1")
        attempts.set_running(session, placement, resumed_step=None)
    for first in range(0, STEPS, BATCH_STEPS):
        with database.session_scope() as session:
            reports.add_metrics(session, placement, _points(first, first + BATCH_STEPS))
    with database.session_scope() as session:
        _add_jobs(session)
    with database.session_scope() as session:
        session.execute(text("ANALYZE"))
    return placement


def _add_jobs(session: Session) -> None:
    job = jobs.submit(session, _spec()).job
    columns = [column for column in Job.__table__.columns if column.name != "id"]
    row = {column.name: getattr(job, column.key) for column in columns}
    session.execute(insert(Job), [row | {"name": f"waiting {number}"} for number in range(JOBS - 2)])


def _spec() -> JobSpec:
    train = {"model": "resnet18", "data": "digits"}
    return JobSpec.model_validate({"device": {"count": 1, "host": "alpha"}, "train": train})


def _points(first: int, end: int) -> list[MetricPoint]:
    return [MetricPoint(name, step, 1, AT, _value(step)) for step in range(first, end) for name in NAMES]


def _value(step: int) -> float:
    """A noisy curve that falls; the same each time."""
    return 1 / (1 + step / 10_000) + (step * 7919 % 100_003) / 1_000_030


def _shown(step: int) -> str:
    """The value after a step as the page's legend says it."""
    return f"{_value(step):.4g}"
