"""Preparation: what a placement's trainer is started with, read from the database and from earlier attempts' files."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from sqlalchemy.orm import Session

from jobs.database import Database
from jobs.roots import Needs
from jobs.settings import Settings, get_settings
from jobs.spec import JobSpec
from jobs.store import attempts, jobs, nodes
from jobs.store.hosts import DeviceInfo
from jobs.store.nodes import MeetingPoint
from jobs.tables import DeviceRow, Job, Placement
from trainer.config import SCRIPT
from trainer.run_dir import RunConfig
from worker import peers, roots, secrets, trainer_view
from worker.link import patiently
from worker.resumption import Resumption


@dataclass(frozen=True)
class Prepared:
    """What a placement's trainer is started with."""

    config: RunConfig
    environment: dict[str, str]
    """Variables that come on top of the supervisor's own."""
    secrets: dict[str, str] = field(repr=False)
    """Variables that the launcher alone is told, and nobody else."""
    devices: list[str]
    """Which devices these are, in words, a line for each."""
    time_limit_s: float | None
    """For how long the job may train, over all attempts."""
    trained_s: float
    """For how long its earlier attempts have trained."""
    checkpoint_root: str | None
    """Where its checkpoints are copied to."""


@dataclass(frozen=True)
class _Facts:
    """What the database knows of a placement."""

    job: Job
    devices: Sequence[DeviceRow]
    trained_s: float
    meeting_point: MeetingPoint


class Preparation(threading.Thread):
    """Prepares one placement in a thread of its own.

    Nothing interrupts the read of a file on a network file system that hangs: whoever wants the result watches over
    it, and leaves when it is of no use any more.
    """

    def __init__(self, database: Database, placement: Placement, *, until: Callable[[], float]) -> None:
        """Waits for a database that is away until `until` on the link's clock."""
        super().__init__(name="preparation", daemon=True)  # a read that hangs must not keep the supervisor from ending
        self._database = database
        self._placement = placement
        self._until = until
        self._is_abandoned = threading.Event()
        self._prepared: Prepared | None = None
        self._error: Exception | None = None

    def run(self) -> None:
        """Prepare, for `result` to return."""
        try:
            self._prepared = prepare(
                self._database, self._placement, until=self._until, is_stopped=self._is_abandoned.is_set
            )
        except Exception as error:  # noqa: BLE001  (`result` raises it, where somebody still wants to know)
            self._error = error

    def has_ended(self, *, within_s: float) -> bool:
        """Wait for the end, but for `within_s` at most; return whether it has come."""
        self.join(within_s)
        return not self.is_alive()

    def abandon(self) -> None:
        """Let it come to its end where it can, for nobody."""
        self._is_abandoned.set()

    def result(self) -> Prepared:
        """Return what the trainer is started with, once it has ended.

        Raises what `prepare` does, and SQLAlchemy's error where the database was away for too long.
        """
        if self._error is not None:
            raise self._error
        assert self._prepared is not None, "it has ended"
        return self._prepared


def prepare(
    database: Database, placement: Placement, *, until: Callable[[], float], is_stopped: Callable[[], bool]
) -> Prepared:
    """Return what a placement's trainer is started with.

    Waits for a database that is away until `until` on the link's clock, and, on another node than node 0, for that
    one's decision what to continue from. `is_stopped` is asked while it waits, and between blocks of large files: once
    it says so the result is of no use, and comes at once. Raises CheckpointError and OSError where what the run begins
    with cannot be had (`worker.resumption`), OSError also where the nodes cannot meet (`worker.peers`); ConfigError and
    DataError for a program or data that this host does not allow (`worker.roots`), ConfigError also for a secret that
    it cannot open (`worker.secrets`).
    """

    def read(session: Session) -> _Facts:
        job = jobs.get(session, placement.job_id)
        return _Facts(
            job=job,
            devices=attempts.device_rows(session, placement),
            trained_s=attempts.trained_s(session, job.id),
            meeting_point=nodes.meeting_point(session, placement),
        )

    facts = patiently(database, read, until=until())
    spec = JobSpec.model_validate(facts.job.spec)
    needs_root = _needs_data_root(facts.job)
    train = roots.permitted(spec.train, get_settings(), needs_root=needs_root, variables=spec.secrets)
    devices = [
        DeviceInfo(
            name=name,
            kind=row.kind,
            uuid=row.uuid,
            driver_index=row.driver_index,
            model=row.model,
            simulated=row.simulated,
        )
        for name, row in zip(placement.devices, facts.devices, strict=True)
    ]
    if placement.node_rank == 0:
        peers.refuse_taken_port(facts.meeting_point)
    peers.refuse_unreachable(facts.meeting_point, placement, get_settings())
    resumption = Resumption(database, placement, until=until, is_stopped=is_stopped)
    beginning = resumption.begin(facts.job, spec.start_from)
    config = RunConfig(
        train=train,
        devices=trainer_view.device_names(devices),
        nnodes=facts.meeting_point.nnodes,
        node_rank=placement.node_rank,
        master_addr=facts.meeting_point.master_addr,
        master_port=facts.meeting_point.master_port,
        simulated=any(device.simulated for device in devices),
        resume=beginning.resume,
        resume_step=beginning.step,
        weights=beginning.weights,
        hang_limit_s=hang_limit_s(spec, get_settings()),
        job_id=facts.job.id,
        attempt=placement.attempt,
    )
    return Prepared(
        config=config,
        secrets=secrets.opened(database, spec.secrets, until=until),
        environment=trainer_view.environment(devices)
        | peers.environment(facts.meeting_point, get_settings())
        | roots.environment(train, get_settings()),
        devices=trainer_view.describe(devices, host_name=placement.host_name),
        time_limit_s=spec.time_limit_s,
        trained_s=facts.trained_s,
        checkpoint_root=spec.checkpoint_root or get_settings().checkpoint_root,
    )


def _needs_data_root(job: Job) -> bool:
    """Whether a bare name of its data is that of a data root, which was settled when it was submitted."""
    return job.needs is not None and Needs.model_validate_json(job.needs).data is not None


def hang_limit_s(spec: JobSpec, settings: Settings) -> float | None:
    """How long a rank may be without progress. A script is watched only where its user says so: it may never report."""
    if spec.hang_limit_s is None and spec.train.recipe == SCRIPT:
        return None
    return spec.hang_limit_s or settings.hang_limit_s
