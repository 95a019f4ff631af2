"""Shipping: a placement's journal and logs on their way from the run directory into the database, each once."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, assert_never

import structlog
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from jobs.database import AWAY, Database
from jobs.errors import OffsetsMovedError
from jobs.settings import get_settings
from jobs.store import attempts, reports
from jobs.tables import Placement
from trainer.errors import JournalError
from trainer.journal import CheckpointSaved, Completed, EpochEnd, Log, Metrics, Record, Started, read_journal
from trainer.run_dir import RunDir
from worker import storage
from worker.clock import clock
from worker.log_pieces import read_piece

BATCH = 500
"""Records in one transaction: enough to catch up fast, few enough to keep a transaction short."""
CLASSES = 100
"""With more, each class's figures stay in the journal: an event is there to be read, and epochs are many."""

log = structlog.get_logger()


class Shipper:
    """Ships one placement's files; every call continues where the database says it is."""

    def __init__(self, database: Database, placement: Placement) -> None:
        self._database = database
        self._placement = placement
        self._run_dir = RunDir(Path(placement.run_dir))
        self._shipped = attempts.shipped_of(placement)
        """What the database has, as far as its answers reached us; it is compared with the truth at each write."""
        self._is_journal_damaged = False

    def ship(self, *, final: bool = False, until: float = float("inf")) -> None:
        """Ship all that is there, but begin no batch after `until` on the link's clock.

        `final` also takes a last line of output that has no newline. Raises StaleAttemptError once the attempt has
        ended, OSError for files that cannot be read, and SQLAlchemy's errors while the database is away: then nothing
        is lost, the next call begins at the same place.
        """
        for step in (self._ship_journal, partial(self._ship_logs, final=final)):
            while clock() < until and self._step(step):
                pass

    def _step(self, step: Callable[[], bool]) -> bool:
        """Do one step; False when there was nothing to ship."""
        try:
            return step()
        except OffsetsMovedError as error:
            log.info("answer_was_lost", reason=str(error))
            with self._database.session_scope(read_only=True) as session:
                self._shipped = attempts.shipped_of(attempts.get_placement(session, self._placement.id))
            return True

    def _ship_journal(self) -> bool:
        if self._is_journal_damaged:
            return False
        try:
            records, end = read_journal(self._run_dir.journal, self._shipped.journal_offset, limit=BATCH)
        except JournalError as error:
            self._is_journal_damaged = True
            with self._database.session_scope() as session:
                self._note_error(session, str(error))
            return False
        if not records:
            return False
        to = replace(self._shipped, journal_offset=end)
        try:
            with self._advancing(to) as session:
                store_records(session, self._placement, records)
        except AWAY:
            raise
        except DBAPIError as error:
            log.error("records_refused", run_dir=self._placement.run_dir, error=str(error))
            with self._advancing(to) as session:
                self._store_one_by_one(session, records)
        return True

    def _store_one_by_one(self, session: Session, records: Sequence[Record]) -> None:
        """The database refuses the value of some record: keep the others, and say which is missing."""
        for record in records:
            try:
                with session.begin_nested():
                    store_records(session, self._placement, [record])
                    session.flush()
            except AWAY:
                raise
            except DBAPIError as error:
                self._note_error(session, f"journal record {record.seq} ({record.kind}) was refused: {error.orig}")

    def _ship_logs(self, *, final: bool) -> bool:
        pieces = []
        offsets = dict(self._shipped.log_offsets)
        # Each node has as many ranks as the others. With several of them there is one on each device.
        first = self._placement.node_rank * len(self._placement.devices)
        for rank, local_rank in enumerate(range(len(self._placement.devices)), start=first):
            start = offsets.get(rank, 0)
            raw = read_piece(self._run_dir.log(local_rank), start, final=final)
            limit = get_settings().log_limit_bytes
            if not raw or start >= limit:
                continue
            text = raw.decode("utf-8", "replace")
            if start + len(raw) >= limit:
                text += f"\n[the rest of this output is only in {self._run_dir.log(local_rank)}]\n"
            pieces.append(reports.LogPiece(rank, start, text))
            offsets[rank] = start + len(raw)
        if not pieces:
            return False
        with self._advancing(replace(self._shipped, log_offsets=offsets)) as session:
            reports.add_logs(session, self._placement, pieces)
        return True

    @contextmanager
    def _advancing(self, to: attempts.Shipped) -> Iterator[Session]:
        """A transaction that moves what is shipped on together with the rows that are written in it."""
        with self._database.session_scope() as session:
            attempts.advance(session, self._placement, shipped=self._shipped, to=to)
            yield session
        self._shipped = to

    def _note_error(self, session: Session, message: str) -> None:
        attempts.note(session, self._placement, "log", {"level": "error", "message": message[:2000]})


def store_records(session: Session, placement: Placement, records: Sequence[Record]) -> None:
    """Store what journal records say. The caller's transaction has fenced."""
    points: list[reports.MetricPoint] = []
    progress: dict[str, Any] = {}
    for record in records:
        match record:
            case Started():
                attempts.set_running(session, placement, resumed_step=record.resumed_step)
                progress |= record.model_dump(mode="json", exclude={"seq", "time", "kind", "devices", "resumed_step"})
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
                attempts.note(session, placement, "epoch", _epoch_detail(record))
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


def _epoch_detail(record: EpochEnd) -> dict[str, Any]:
    detail = record.model_dump(mode="json", include={"epoch", "step", "seconds", "values", "nonfinite", "by_class"})
    if (classes := len(record.by_class)) > CLASSES:
        detail["by_class"] = {}
        detail["note"] = f"figures of {classes} classes are only in the run directory's journal"
    return detail


def _checkpoint(record: CheckpointSaved, placement: Placement) -> reports.CheckpointFile:
    folder = Path(placement.run_dir)
    path = folder / record.path
    return reports.CheckpointFile(
        path=str(path),
        step=record.step,
        epoch=record.epoch,
        sha256=record.sha256,
        size_bytes=record.size_bytes,
        best=record.best,
        values=record.values,
        at=record.time,
        removed=[str(folder / removed) for removed in record.removed],
        # A program may save outside of its run directory, where nothing is known of who else can read it.
        storage=storage.storage_of_run(folder) if path.is_relative_to(folder) else None,
    )
