"""A run that saves checkpoints, for tests of what becomes of the files: real files, a real store, and no trainer."""

import hashlib
from dataclasses import dataclass, field
from pathlib import Path

from jobs.database import Database
from jobs.store import attempts, reports
from jobs.tables import Checkpoint, Placement
from tests.integration.store.conftest import Service
from trainer.journal import CheckpointSaved, JournalWriter
from trainer.run_dir import RunDir
from worker import storage
from worker.shipping import Shipper


@dataclass
class SavingRun:
    """An attempt that has its device, in a run directory under `run_root`."""

    service: Service
    placement: Placement
    run_dir: RunDir
    contents: dict[int, bytes] = field(default_factory=dict)
    """What each checkpoint holds, by step."""

    @property
    def database(self) -> Database:
        return self.service.database

    def save(
        self,
        step: int,
        *,
        best: bool = False,
        removed: tuple[int, ...] = (),
        ship: bool = True,
        content: bytes | None = None,
    ) -> Path:
        """Save a checkpoint, as rank 0 does, and tell the database of it; return its path."""
        path = self.run_dir.checkpoints / name(step)
        self.contents[step] = f"weights after step {step}".encode() * 1000 if content is None else content
        path.write_bytes(self.contents[step])
        journal = JournalWriter(self.run_dir.journal)
        journal.append(
            CheckpointSaved,
            step=step,
            epoch=1,
            path=f"checkpoints/{path.name}",
            sha256=hashlib.sha256(self.contents[step]).hexdigest(),
            size_bytes=len(self.contents[step]),
            best=best,
            removed=tuple(f"checkpoints/{name(each)}" for each in removed),
        )
        journal.close()
        for each in removed:
            (self.run_dir.checkpoints / name(each)).unlink()
        if ship:
            self.ship()
        return path

    def ship(self) -> None:
        """Tell the database what the journal says."""
        with self.database.session_scope(read_only=True) as session:
            placement = attempts.get_placement(session, self.placement.id)
        Shipper(self.database, placement).ship()

    def checkpoints(self, *, with_removed: bool = False) -> dict[int, Checkpoint]:
        """The job's checkpoints, by step."""
        query = reports.select_checkpoints(self.placement.job_id, with_removed=with_removed)
        with self.database.session_scope(read_only=True) as session:
            return {checkpoint.step: checkpoint for checkpoint in session.scalars(query)}

    def warnings(self) -> list[str]:
        """What the job's user has been warned of."""
        details = [event.detail for event in self.service.events(self.placement.job_id) if event.kind == "log"]
        return [detail["message"] for detail in details if detail["level"] == "warning"]


def start_run(service: Service, run_root: Path, *, device: str = "0") -> SavingRun:
    """Bring a new job to where it saves its first checkpoint."""
    return saving(service, service.run(device), run_root)


def saving(service: Service, placement: Placement, run_root: Path) -> SavingRun:
    """Give a running placement, that of node 0, a run directory under `run_root`."""
    storage.mark(run_root)
    run_dir = RunDir(run_root / f"job-{placement.job_id}" / f"attempt-{placement.attempt}-token")
    run_dir.checkpoints.mkdir(parents=True)
    with service.database.session_scope() as session:
        placement = attempts.get_placement(session, placement.id)
        placement.run_dir = str(run_dir.path)
    return SavingRun(service, placement, run_dir)


def name(step: int) -> str:
    return f"step-{step:08}.pt"
