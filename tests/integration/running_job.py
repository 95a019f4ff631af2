"""A job on its way through the store, as planner and supervisor would move it, without their processes."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from jobs.database import Database, lock_planning, now
from jobs.planner.view import Node, Start
from jobs.states import Outcome
from jobs.store import attempts, hosts, leases, reports, scenes
from jobs.store.hosts import DeviceInfo
from jobs.store.reports import CheckpointFile, LogPiece, MetricPoint
from jobs.tables import Placement
from tests.integration.endings import end_as


@dataclass
class RunningJob:
    """An attempt that has its devices and trains."""

    database: Database
    placement: Placement

    @property
    def job_id(self) -> int:
        return self.placement.job_id

    def add(
        self,
        *,
        metrics: list[MetricPoint] | None = None,
        checkpoint: CheckpointFile | None = None,
        logs: list[LogPiece] | None = None,
        progress: dict[str, Any] | None = None,
    ) -> None:
        """Report, as shipping does."""
        with self.database.session_scope() as session:
            reports.add_metrics(session, self.placement, metrics or [])
            reports.add_logs(session, self.placement, logs or [])
            if checkpoint is not None:
                reports.add_checkpoint(session, self.placement, checkpoint)
            if progress is not None:
                attempts.set_progress(session, self.placement, progress)

    def end(self, outcome: Outcome, *, failure: dict[str, Any] | None = None) -> None:
        """End the attempt, as its supervisor does."""
        end_as(self.database, self.placement, outcome, failure=failure)


def saved(path: str, *, step: int = 1) -> CheckpointFile:
    """A best checkpoint at this path."""
    at = datetime.now(UTC)
    return CheckpointFile(path=path, step=step, epoch=1, sha256="0" * 64, size_bytes=1, best=True, values={}, at=at)


def start_job(database: Database, job_id: int) -> RunningJob:
    """Give a queued job two simulated devices on a host of its own, past any other job that waits, and let it run."""
    host_name = f"host-of-{job_id}"
    devices = [DeviceInfo(f"cuda:{index}", "cuda", model="simulated", simulated=True) for index in range(2)]
    with database.session_scope() as session:
        hosts.register(session, host_name, worker="1:1", run_root="/runs", devices=devices)
    with database.session_scope() as session:
        lock_planning(session)
        (host,) = [host for host in scenes.view_hosts(session, now(session)) if host.name == host_name]
        placements = attempts.start(session, Start(job_id, (Node(host_name, host.devices),)))
    assert placements, f"job {job_id} is not queued"
    with database.session_scope() as session:
        placement = leases.claim(session, placements[0].id, "1:1")
    with database.session_scope() as session:
        attempts.set_running(session, placement, resumed_step=None)
    return RunningJob(database, placement)
