"""The figures of `/metrics` that are this process's own: its requests, its memory, its processor time."""

from prometheus_client import (
    CollectorRegistry,
    Counter,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    disable_created_metrics,
)

METHODS = ("DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT")

disable_created_metrics()  # type: ignore[no-untyped-call]  # it has no types. Else each counter and histogram has a second one, of when it began to count
REGISTRY = CollectorRegistry()
_requests = Counter(
    "rankzero_http_requests",
    "Requests that this process has answered; `status` is empty where the client went first.",
    ["method", "route", "status"],
    registry=REGISTRY,
)
_seconds = Histogram(
    "rankzero_http_request_seconds",
    "How long this process took to answer; an event stream counts until it ends.",
    ["method", "route"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
    registry=REGISTRY,
)
ProcessCollector(registry=REGISTRY)
PlatformCollector(registry=REGISTRY)
GCCollector(registry=REGISTRY)


def count_request(method: str, route: str | None, status: int | None, took_s: float) -> None:
    """Count an answered request by the template of its route: no client can make up a new label."""
    known = method if method in METHODS else "other"
    _requests.labels(known, route or "none", str(status or "")).inc()
    _seconds.labels(known, route or "none").observe(took_s)
