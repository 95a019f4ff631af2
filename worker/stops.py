"""Why a run must stop by order of somebody else: its user, the service, or whoever shuts its host down."""

import signal
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from jobs.settings import Settings
from jobs.states import Intent, StopOrder
from jobs.store.leases import Orders
from trainer.error_report import ErrorReport
from trainer.errors import Cause
from worker import failure_reports
from worker.clock import clock


@dataclass(frozen=True)
class Stop:
    """That the ranks must stop now."""

    report: ErrorReport
    """Why, should their own files not say better."""
    grace_s: float
    """Seconds that they may take, to save what they have."""
    in_order: bool = False
    """Nothing was at fault: it spends no retry."""


class StopRequest:
    """Whether whoever shuts this host down has asked this process to stop."""

    def __init__(self) -> None:
        self.made_at = float("inf")
        """Time on `clock` when that was; infinite while it was not."""
        signal.signal(signal.SIGTERM, self._make)
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    def _make(self, _number: int, _frame: object) -> None:
        self.made_at = min(self.made_at, clock())

    @property
    def is_made(self) -> bool:
        return self.made_at <= clock()


def ordered(orders: Orders, settings: Settings) -> Stop | None:
    """Return the stop that a placement's orders ask for, if any. What the user wants comes first."""
    match orders.intent:
        case Intent.CANCEL:
            return Stop(failure_reports.interrupted("cancelled"), settings.stop_grace_s, in_order=True)
        case Intent.PAUSE:
            return Stop(failure_reports.interrupted("paused"), settings.checkpoint_grace_s, in_order=True)
        case Intent.RUN:
            pass
    if orders.stop is None:
        return None
    report = failure_reports.interrupted(orders.stop_message or str(orders.stop))
    if orders.stop is StopOrder.PEER_ENDED:
        # There is nothing to save: all ranks would have to take part. Whether a retry is spent is the peer's to say.
        return Stop(report, settings.stop_grace_s)
    return Stop(report, settings.checkpoint_grace_s, in_order=True)


def host_going_down(settings: Settings) -> Stop:
    """Whoever shuts this host down has asked its supervisors to stop."""
    report = failure_reports.interrupted("its host is going down")
    return Stop(report, settings.checkpoint_grace_s, in_order=True)


def short_of_disk(run_root: Path, free_bytes: int, settings: Settings) -> Stop | None:
    """Return the stop of a run that has not begun yet, where its host has too little space left, if it has.

    It was planned before the host said so. Nothing was at fault, and until there is space the host gets no new jobs.
    """
    if free_bytes >= settings.min_free_bytes:
        return None
    message = (
        f"{settings.host_name} has {free_bytes / 1e9:.1f} GB left on its run root {run_root}, below "
        f"{settings.min_free_bytes / 1e9:.1f} GB (min_free_bytes)"
    )
    report = ErrorReport(cause=Cause.DISK_FULL, message=message, time=datetime.now(UTC))
    return Stop(report, settings.stop_grace_s, in_order=True)


def cut_off(*, grace_s: float) -> Stop:
    """The lease will be over before the database may answer again."""
    return Stop(failure_reports.lost("its supervisor was cut off from the database"), grace_s)
