"""Preparation: what a placement's trainer is started with, read from the database and from earlier attempts' files."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import structlog
from sqlalchemy.orm import Session

from jobs.database import Database
from jobs.spec import JobSpec
from jobs.store import attempts, jobs, reports
from jobs.store.hosts import DeviceInfo
from jobs.tables import Checkpoint, DeviceRow, Job, Placement
from trainer.run_dir import RunConfig
from worker import trainer_view
from worker.link import patiently

BLOCK_BYTES = 16 * 1024 * 1024

log = structlog.get_logger()


@dataclass(frozen=True)
class Prepared:
    """What a placement's trainer is started with."""

    config: RunConfig
    environment: dict[str, str]
    """Variables that come on top of the supervisor's own."""
    devices: list[str]
    """Which devices these are, in words, a line for each."""


def prepare(database: Database, placement: Placement, *, until: float, is_stopped: Callable[[], bool]) -> Prepared:
    """Return what a placement's trainer is started with.

    Waits for a database that is away until `until` on the link's clock. `is_stopped` is asked between blocks of large
    files: once it says so the result is of no use, and comes at once.
    """

    def read(session: Session) -> tuple[Job, Sequence[DeviceRow], Sequence[Checkpoint]]:
        job = jobs.get(session, placement.job_id)
        return job, attempts.device_rows(session, placement), reports.resumable(session, job.id)

    job, rows, checkpoints = patiently(database, read, until=until)
    devices = [
        DeviceInfo(
            name=name,
            kind=row.kind,
            uuid=row.uuid,
            driver_index=row.driver_index,
            model=row.model,
            simulated=row.simulated,
        )
        for name, row in zip(placement.devices, rows, strict=True)
    ]
    config = RunConfig(
        train=JobSpec.model_validate(job.spec).train,
        devices=trainer_view.device_names(devices),
        simulated=any(device.simulated for device in devices),
        resume=_first_intact(database, placement, checkpoints, until=until, is_stopped=is_stopped),
        job_id=job.id,
        attempt=placement.attempt,
    )
    described = trainer_view.describe(devices, host_name=placement.host_name)
    return Prepared(config, trainer_view.environment(devices), described)


def _first_intact(
    database: Database,
    placement: Placement,
    checkpoints: Sequence[Checkpoint],
    *,
    until: float,
    is_stopped: Callable[[], bool],
) -> Path | None:
    """The furthest checkpoint of earlier attempts that is here and whole, by its hash."""
    for checkpoint in checkpoints:
        path = Path(checkpoint.path)
        try:
            if _digest(path, is_stopped) == checkpoint.sha256:
                return path
            problem = "its content does not match its hash"
        except FileNotFoundError:
            problem = "there is no such file here"
            if checkpoint.host_name == placement.host_name:
                gone = partial(reports.set_removed, placement=placement, path=checkpoint.path)
                patiently(database, gone, until=until)
        except OSError as error:
            problem = f"it cannot be read here: {error.strerror}"
        if is_stopped():
            return None
        message = f"checkpoint {path} of step {checkpoint.step} is passed over: {problem}"
        log.warning("checkpoint_passed_over", message=message)
        detail = {"level": "warning", "message": message}
        patiently(database, partial(attempts.note, placement=placement, kind="log", detail=detail), until=until)
    return None


def _digest(path: Path, is_stopped: Callable[[], bool]) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while not is_stopped() and (block := file.read(BLOCK_BYTES)):
            digest.update(block)
    return digest.hexdigest()
