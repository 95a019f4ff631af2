"""Shipping: a placement's journal and logs on their way from the run directory into the database, each once."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, assert_never

import structlog
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.orm import Session

from jobs.database import Database
from jobs.settings import get_settings
from jobs.store import attempts, reports
from jobs.tables import Placement
from trainer.errors import JournalError
from trainer.journal import CheckpointSaved, Completed, EpochEnd, Log, Metrics, Record, Started, read_journal
from trainer.run_dir import RunDir

BATCH = 500
"""Records in one transaction: enough to catch up fast, few enough to keep a transaction short."""
PIECE_BYTES = 64 * 1024

log = structlog.get_logger()


class Shipper:
    """Ships one placement's files; every call continues where the database says it is."""

    def __init__(self, database: Database, placement: Placement) -> None:
        self._database = database
        self._placement = placement
        self._run_dir = RunDir(Path(placement.run_dir))
        self._journal_offset = placement.journal_offset
        self._log_offsets = {int(rank): int(offset) for rank, offset in placement.log_offsets.items()}
        self._journal_damaged = False

    def ship(self, *, final: bool = False) -> None:
        """Ship all that is there; with `final` also a last line of output that has no newline.

        Raises StaleAttemptError once the attempt has ended, and SQLAlchemy's errors while the database is away: then
        nothing is lost, the next call begins at the same place.
        """
        while self._ship_journal():
            pass
        while self._ship_logs(final=final):
            pass

    def _ship_journal(self) -> bool:
        """Ship one batch of records; False when there are no more."""
        if self._journal_damaged:
            return False
        try:
            records, end = read_journal(self._run_dir.journal, self._journal_offset, limit=BATCH)
        except JournalError as error:
            self._journal_damaged = True
            with self._database.session_scope() as session:
                attempts.advance(session, self._placement)
                attempts.note(session, self._placement, "log", {"level": "error", "message": str(error)[:2000]})
            return False
        if not records:
            return False
        try:
            self._write(records, end)
        except (OperationalError, InterfaceError):
            raise
        except DBAPIError as error:
            log.error("records_refused", run_dir=self._placement.run_dir, error=str(error))
            self._write_one_by_one(records, end)
        self._journal_offset = end
        return True

    def _write(self, records: Sequence[Record], end: int) -> None:
        with self._database.session_scope() as session:
            attempts.advance(session, self._placement, journal=(self._journal_offset, end))
            store_records(session, self._placement, records)

    def _write_one_by_one(self, records: Sequence[Record], end: int) -> None:
        """The database refuses the value of some record: keep the others, and say which is missing."""
        with self._database.session_scope() as session:
            attempts.advance(session, self._placement, journal=(self._journal_offset, end))
            for record in records:
                try:
                    with session.begin_nested():
                        store_records(session, self._placement, [record])
                        session.flush()
                except (OperationalError, InterfaceError):
                    raise
                except DBAPIError as error:
                    message = f"journal record {record.seq} ({record.kind}) was refused: {error.orig}"
                    attempts.note(session, self._placement, "log", {"level": "error", "message": message[:2000]})

    def _ship_logs(self, *, final: bool) -> bool:
        pieces = []
        offsets = dict(self._log_offsets)
        for rank in range(len(self._placement.devices)):
            start = offsets.get(rank, 0)
            raw = _read_piece(self._run_dir.log(rank), start, final=final)
            limit = get_settings().log_limit_bytes
            if not raw or start >= limit:
                continue
            text = raw.decode("utf-8", "replace")
            if start + len(raw) >= limit:
                text += f"\n[the rest of this output is only in {self._run_dir.log(rank)}]\n"
            pieces.append(reports.LogPiece(rank, start, text))
            offsets[rank] = start + len(raw)
        if not pieces:
            return False
        with self._database.session_scope() as session:
            by_rank = {str(rank): offset for rank, offset in offsets.items()}
            attempts.advance(session, self._placement, log_offsets=by_rank)
            reports.add_logs(session, self._placement, pieces)
        self._log_offsets = offsets
        return True


def store_records(session: Session, placement: Placement, records: Sequence[Record]) -> None:
    """Store what journal records say. The caller's transaction has fenced."""
    points: list[reports.MetricPoint] = []
    progress: dict[str, Any] = {}
    for record in records:
        match record:
            case Started():
                attempts.set_running(session, placement, resumed_step=record.resumed_step)
                progress |= record.model_dump(
                    mode="json",
                    include={"world_size", "batch_per_rank", "epochs", "steps_per_epoch", "total_steps", "parameters"},
                )
                progress["step"] = record.resumed_step or 0
            case Metrics():
                points += _points(record)
                progress |= {"step": record.step, "epoch": record.epoch}
                progress["values"] = progress.get("values", {}) | record.values
            case CheckpointSaved():
                reports.add_checkpoint(session, placement, _checkpoint(record, placement))
            case Log():
                attempts.note(session, placement, "log", {"level": record.level, "message": record.message})
            case EpochEnd():
                detail = record.model_dump(mode="json", include={"epoch", "step", "seconds", "values", "nonfinite"})
                attempts.note(session, placement, "epoch", detail)
                progress |= {"step": record.step, "epoch": record.epoch}
            case Completed():
                progress |= {"step": record.step, "epoch": record.epoch}
                progress["values"] = progress.get("values", {}) | record.values
            case _:
                assert_never(record)
    reports.add_metrics(session, placement, points)
    if progress:
        attempts.set_progress(session, placement, progress)


def _points(record: Metrics) -> list[reports.MetricPoint]:
    return [
        reports.MetricPoint(name, record.step, record.epoch, record.time, value, record.nonfinite.get(name))
        for name, value in record.values.items()
    ]


def _checkpoint(record: CheckpointSaved, placement: Placement) -> reports.CheckpointFile:
    folder = Path(placement.run_dir)
    return reports.CheckpointFile(
        path=str(folder / record.path),
        step=record.step,
        epoch=record.epoch,
        sha256=record.sha256,
        size_bytes=record.size_bytes,
        best=record.best,
        values=record.values,
        at=record.time,
        removed=[str(folder / path) for path in record.removed],
    )


def _read_piece(path: Path, start: int, *, final: bool) -> bytes:
    """The next whole lines of a log, at most PIECE_BYTES; a longer line, or the last one when `final`, as it is."""
    try:
        with path.open("rb") as file:
            file.seek(start)
            raw = file.read(PIECE_BYTES)
    except FileNotFoundError:
        return b""
    if final or len(raw) == PIECE_BYTES:
        whole = raw.rfind(b"\n") + 1
        return raw[:whole] if whole and len(raw) == PIECE_BYTES else raw
    return raw[: raw.rfind(b"\n") + 1]
