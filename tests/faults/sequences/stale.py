"""What a supervisor that has been given up may still call: each of it has to be refused."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

from sqlalchemy.orm import Session

from jobs.store import attempts, copies, endings, leases, reports
from jobs.store.reports import CheckpointFile, LogPiece, MetricPoint
from jobs.tables import Checkpoint
from tests.faults.sequences.model import Share

FAULT = {"cause": "exception", "message": "ValueError: told too late", "rank": 0}


def _advance(session: Session, share: Share) -> None:
    to = replace(share.shipped, journal_offset=share.shipped.journal_offset + 100)
    attempts.advance(session, share.placement, shipped=share.shipped, to=to)


def _add_metrics(session: Session, share: Share) -> None:
    point = MetricPoint("train/loss", step=999_999, epoch=1, at=datetime.now(UTC), value=0.5)
    reports.add_metrics(session, share.placement, [point])


def _add_checkpoint(session: Session, share: Share) -> None:
    path = f"{share.placement.run_dir}/checkpoints/late.pt"
    file = CheckpointFile(path, 999_999, 1, "0" * 64, 1, best=True, values={}, at=datetime.now(UTC))
    reports.add_checkpoint(session, share.placement, file)


def _set_copied(session: Session, share: Share) -> None:
    copies.set_copied(session, share.placement, Checkpoint(id=1, sha256="0" * 64), url="/late", storage="late")


CALLS: dict[str, Callable[[Session, Share], object]] = {
    "claim": lambda session, share: leases.claim(session, share.placement.id, share.supervisor),
    "renew": lambda session, share: leases.renew(session, share.placement),
    "read its orders": lambda session, share: leases.read_orders(session, share.placement),
    "start": lambda session, share: attempts.set_running(session, share.placement, resumed_step=None),
    "tell its progress": lambda session, share: attempts.set_progress(session, share.placement, {"step": 1}),
    "note": lambda session, share: attempts.note(session, share.placement, "log", {"message": "late"}),
    "ship": _advance,
    "tell metrics": _add_metrics,
    "tell a checkpoint": _add_checkpoint,
    "tell of a copy": _set_copied,
    "tell of a file that is gone": lambda session, share: reports.set_removed(session, share.placement, "late.pt"),
    "tell output": lambda session, share: reports.add_logs(session, share.placement, [LogPiece(0, 0, "late")]),
    "end complete": lambda session, share: endings.end_placement(session, share.placement, completed=True),
    "end with a fault": lambda session, share: endings.end_placement(
        session, share.placement, completed=False, failure=FAULT
    ),
    "end with its devices in use": lambda session, share: endings.end_placement(
        session, share.placement, completed=False, failure=FAULT, still_used="process 7"
    ),
}
