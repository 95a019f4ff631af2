"""The figures of `/metrics` that come from the database: the same in every process, and asked for every few seconds."""

import threading
import time
from collections.abc import Iterator, Mapping
from itertools import accumulate
from typing import Any

import structlog
from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector
from sqlalchemy.exc import SQLAlchemyError

from api.session import reading
from jobs.store import durations, gauges
from jobs.store.durations import Durations
from jobs.store.gauges import Gauges

KEPT_S = 5.0
"""Seconds for which figures are given out again: more who scrape cost the database no more."""

log = structlog.get_logger()


class DatabaseFigures(Collector):
    """Reads them when they are scraped. While the database is away there are none, but one that says so."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._read_at = float("-inf")
        self._found: list[Metric] = []

    def collect(self) -> list[Metric]:
        """Return the figures, at most KEPT_S old."""
        with self._turn:
            if time.monotonic() - self._read_at > KEPT_S:
                self._found = _read()
                self._read_at = time.monotonic()
            return self._found


def _read() -> list[Metric]:
    try:
        with reading() as session:
            moment, waits, runs = gauges.read(session), durations.waits(session), durations.runs(session)
    except SQLAlchemyError as error:
        log.warning("figures_unreadable", error=str(error).splitlines()[0])
        return [_database_up(0)]
    return [_database_up(1), *_of_moment(moment), *_of_past(waits, runs)]


def _database_up(value: int) -> Metric:
    return GaugeMetricFamily(
        "rankzero_database_up", "Whether the database answers; without it, what it has is missing.", value
    )


def _of_moment(moment: Gauges) -> Iterator[Metric]:
    jobs = {(state,): count for state, count in moment.jobs.items()}
    yield _gauge("rankzero_jobs", "Jobs by state.", ["state"], jobs)
    yield _gauge(
        "rankzero_oldest_queued_seconds", "Longest that a queued job has been queued.", [], {(): moment.oldest_queued_s}
    )
    yield _gauge("rankzero_devices", "Devices by kind and state.", ["kind", "state"], moment.devices)
    hosts = {(state,): count for state, count in moment.hosts.items()}
    yield _gauge("rankzero_hosts", "Hosts by state.", ["state"], hosts)
    ages = {(host,): age_s for host, age_s in moment.heartbeat_ages_s.items()}
    yield _gauge("rankzero_host_heartbeat_age_seconds", "Time since the host's worker reported.", ["host"], ages)
    yield _gauge("rankzero_leases", "Devices that are leased.", [], {(): moment.leases})
    yield _gauge(
        "rankzero_leases_overdue", "Leases that have run out and are not released.", [], {(): moment.overdue_leases}
    )
    lag_s = {(): moment.ingest_lag_s}
    yield _gauge("rankzero_ingest_lag_seconds", "Longest that something which a run wrote is not here.", [], lag_s)
    held_back_s = {(): moment.feed_lag_s}
    yield _gauge("rankzero_feed_lag_seconds", "For how long events wait for an open transaction.", [], held_back_s)
    yield _gauge(
        "rankzero_webhook_deliveries_pending", "Messages to webhooks not yet delivered.", [], {(): moment.deliveries}
    )
    yield _gauge(
        "rankzero_webhook_delivery_overdue_seconds",
        "For how long the next of them has been due.",
        [],
        {(): moment.overdue_delivery_s},
    )


def _of_past(waits: Durations, runs: Mapping[str, Durations]) -> Iterator[Metric]:
    waited = HistogramMetricFamily("rankzero_job_wait_seconds", "From a job's submission until it first got devices.")
    waited.add_metric([], _buckets(waits), waits.sum_s)
    yield waited
    ran = HistogramMetricFamily(
        "rankzero_attempt_run_seconds", "How long attempts trained that have ended, by outcome.", labels=["outcome"]
    )
    for outcome, each in sorted(runs.items()):
        ran.add_metric([outcome], _buckets(each), each.sum_s)
    yield ran


def _gauge(name: str, text: str, labels: list[str], values: Mapping[Any, float]) -> Metric:
    """Make a figure with a value for each tuple of its labels' values."""
    family = GaugeMetricFamily(name, text, labels=labels)
    for named, value in values.items():
        family.add_metric(list(named), value)
    return family


def _buckets(durations: Durations) -> list[tuple[str, float]]:
    bounds = [*(str(float(bound)) for bound in durations.bounds_s), "+Inf"]
    return list(zip(bounds, map(float, accumulate(durations.counts)), strict=True))
