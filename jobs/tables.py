"""The tables. Times are the database's own clock, always UTC."""

from datetime import datetime
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    CheckConstraint,
    Double,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    String,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship

from jobs.column_types import UtcDateTime
from jobs.states import Intent, Outcome, State

NAMING = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}
Id = BigInteger().with_variant(Integer, "sqlite")
"""SQLite counts up by itself only on INTEGER."""


class Base(DeclarativeBase):
    metadata = MetaData(naming_convention=NAMING)
    type_annotation_map = {  # noqa: RUF012  # SQLAlchemy's own class attribute
        datetime: UtcDateTime(),
        dict[str, Any]: JSON(),
        dict[str, str]: JSON(),
        list[dict[str, Any]]: JSON(),
        list[str]: JSON(),
        str: String(255),
        float: Double(),
    }


def _one_of(column: str, values: type[State] | type[Intent] | type[Outcome]) -> CheckConstraint:
    listed = ", ".join(f"'{value.value}'" for value in values)
    return CheckConstraint(f"{column} IN ({listed})", name=column)


class Job(Base):
    """What a user asked for, what they want of it now, and where it is."""

    __tablename__ = "jobs"
    __table_args__ = (
        _one_of("state", State),
        _one_of("intent", Intent),
        Index("ix_jobs_name", "name"),
        Index("ix_jobs_state_line_key", "state", "line_key"),
        Index("ix_jobs_parent_id", "parent_id"),
    )

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    name: Mapped[str]
    spec: Mapped[dict[str, Any]]
    labels: Mapped[dict[str, str]]
    priority: Mapped[int]
    max_retries: Mapped[int]
    state: Mapped[str] = mapped_column(String(16))
    intent: Mapped[str] = mapped_column(String(16))
    attempt: Mapped[int]
    """Number of the newest attempt; 0 before the first."""
    retries: Mapped[int]
    """How many attempts the infrastructure has lost."""
    reason: Mapped[str | None] = mapped_column(Text)
    """What a queued job waits for."""
    failure: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    """The error report of the attempt that failed last."""
    progress: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    """How far the newest attempt is: step, total_steps, epoch, epochs, values."""
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]
    queued_at: Mapped[datetime]
    """When it last became queued; its place in the line goes by `waits_from`."""
    started_at: Mapped[datetime | None]
    """When its first attempt began to train."""
    finished_at: Mapped[datetime | None]
    user: Mapped[str | None]
    """Whom it is for; None is a user too, whose share all jobs with none have in common."""
    request: Mapped[str | None] = mapped_column(Text)
    """What the planner reads of the spec, as the JSON of a `jobs.planner.request.Request`; None before it was read."""
    waits_from: Mapped[datetime]
    """Since when it has had its place in the line: its submission, or the moment its user asked for it again."""
    not_before: Mapped[datetime | None]
    """Until when it rests after an attempt was lost."""
    line_key: Mapped[float | None]
    """Its place in the line when it was last planned: of two queued jobs the one with the smaller key comes first."""
    predicted_start: Mapped[datetime | None]
    """When it will start, by what was known when it was last planned; None where nothing can be said."""
    waits_for: Mapped[list[dict[str, Any]] | None] = mapped_column(JSON(none_as_null=True))
    """Who holds what it waits for: `{"host", "device", "job_id"}` for each device."""
    reservation: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    """The devices that are set aside for it, as the JSON of a `jobs.planner.view.Reservation`."""
    parent_id: Mapped[int | None] = mapped_column(Id, ForeignKey("jobs.id"))
    """The job it was cloned from, or whose checkpoint it starts from."""
    parent_checkpoint_id: Mapped[int | None] = mapped_column(Id)
    """The checkpoint it starts from. No foreign key, nor below: checkpoints belong to attempts, and those to jobs."""


class Attempt(Base):
    """One try at running a job. Its number is the fencing token of every write it makes."""

    __tablename__ = "attempts"
    __table_args__ = (_one_of("outcome", Outcome),)

    job_id: Mapped[int] = mapped_column(Id, ForeignKey("jobs.id"), primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True)
    outcome: Mapped[str | None] = mapped_column(String(16))
    failure: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    created_at: Mapped[datetime]
    started_at: Mapped[datetime | None]
    trained_until: Mapped[datetime | None]
    """When the ranks of node 0 had ended: copies of checkpoints may still have been made since, with devices held."""
    ended_at: Mapped[datetime | None]
    world_size: Mapped[int]
    resumed_step: Mapped[int | None] = mapped_column(BigInteger)
    """Global step of the checkpoint it continued from."""
    stop_order: Mapped[str | None] = mapped_column(String(16))
    """Why the service itself wants it to stop, if it does: a `StopOrder`."""
    stop_message: Mapped[str | None] = mapped_column(Text)
    """That in words."""
    resume_decided_at: Mapped[datetime | None]
    """When node 0 decided what to continue from; the other nodes of the attempt wait for it."""
    resume_checkpoint_id: Mapped[int | None] = mapped_column(Id)
    """What it continues from, once decided; None where it begins anew."""


class Host(Base):
    """A machine with a worker."""

    __tablename__ = "hosts"

    name: Mapped[str] = mapped_column(primary_key=True)
    registered_at: Mapped[datetime]
    heartbeat_at: Mapped[datetime]
    worker: Mapped[str]
    """Identity of the one worker process that has this name."""
    run_root: Mapped[str] = mapped_column(Text)
    catalog: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    """What its trainer can run; None until it has said so."""
    address: Mapped[str | None]
    """Name or address at which the ranks of other hosts reach it."""
    storages: Mapped[list[str]]
    """Ids of the storages whose files its runs can read (`worker.storage`): that of its run root first."""
    free_bytes: Mapped[int | None] = mapped_column(BigInteger)
    """Space left on its run root at its last heartbeat."""
    min_free_bytes: Mapped[int | None] = mapped_column(BigInteger)
    """Below which space it gets no new jobs, by its own settings."""
    rendezvous_ports: Mapped[str | None] = mapped_column(String(11))
    """`lowest-highest` of its ports at which the ranks of jobs on several hosts may meet."""
    drained_at: Mapped[datetime | None]
    """Since when it gets no new jobs, until it is taken back."""
    drain_note: Mapped[str | None] = mapped_column(Text)
    """Why, in the words of whoever drained it."""
    removed_at: Mapped[datetime | None]
    """Since when it counts as gone for good: it is listed no more, and a worker that registers brings it back."""


class DeviceRow(Base):
    """A device of a host: a CUDA device (real or simulated), `mps`, or a CPU slot."""

    __tablename__ = "devices"
    __table_args__ = (
        UniqueConstraint("host_name", "uuid"),
        Index(
            "uq_devices_present_name",
            "host_name",
            "name",
            unique=True,
            sqlite_where=text("present"),
            postgresql_where=text("present"),
        ),
    )

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    host_name: Mapped[str] = mapped_column(ForeignKey("hosts.name"))
    name: Mapped[str] = mapped_column(String(32))
    """`cuda:N` in the worker's own view, `mps`, or `cpu:N` for a slot. A real GPU keeps its row under a new name."""
    kind: Mapped[str] = mapped_column(String(8))
    uuid: Mapped[str | None]
    """The driver's name for the physical device, whatever its index."""
    driver_index: Mapped[int | None]
    """The number by which the driver listed it when its worker last started, as `nvidia-smi` prints it."""
    model: Mapped[str | None]
    memory_bytes: Mapped[int | None] = mapped_column(BigInteger)
    simulated: Mapped[bool] = mapped_column(Boolean)
    present: Mapped[bool] = mapped_column(Boolean)
    """Whether the host reported it when its worker last started."""
    losses: Mapped[int]
    """Attempts in a row that were lost by a fault that may be the device's; an attempt that succeeds sets it to 0."""
    quarantined_at: Mapped[datetime | None]
    """Since when it is not handed out, until somebody releases it."""
    quarantine_reason: Mapped[str | None] = mapped_column(Text)


class Placement(Base):
    """One host's share of an attempt, and how far its supervisor has shipped its files."""

    __tablename__ = "placements"
    __table_args__ = (
        ForeignKeyConstraint(["job_id", "attempt"], ["attempts.job_id", "attempts.number"]),
        UniqueConstraint("job_id", "attempt", "node_rank"),
        Index(
            "ix_placements_open",
            "host_name",
            sqlite_where=text("ended_at IS NULL"),
            postgresql_where=text("ended_at IS NULL"),
        ),
        Index(
            "uq_placements_live_port",
            "host_name",
            "master_port",
            unique=True,
            sqlite_where=text("ended_at IS NULL"),
            postgresql_where=text("ended_at IS NULL"),
        ),
    )

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    job_id: Mapped[int] = mapped_column(Id)
    attempt: Mapped[int]
    node_rank: Mapped[int]
    host_name: Mapped[str] = mapped_column(ForeignKey("hosts.name"))
    devices: Mapped[list[str]]
    """Names of its devices, in rank order."""
    run_dir: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime]
    claimed_at: Mapped[datetime | None]
    """When its one supervisor took it; a second supervisor finds it taken and leaves."""
    supervisor: Mapped[str | None]
    """`pid:start time` of that supervisor on its host."""
    heartbeat_at: Mapped[datetime | None]
    ended_at: Mapped[datetime | None]
    journal_offset: Mapped[int] = mapped_column(BigInteger)
    """Bytes of the journal that the database has; moves in the same transaction as the rows."""
    log_offsets: Mapped[dict[str, Any]]
    """Bytes of each rank's log that the database has, by rank."""
    master_port: Mapped[int | None]
    """Port of this host that node 0 of a run on several hosts has to itself: held until the placement ends."""
    completed: Mapped[bool | None] = mapped_column(Boolean)
    """How it ended: True with the completion record (node 0) or with its part done (another); None before its end."""
    failure: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    """Its error report, if it did not complete. The attempt's own failure is the first of these."""
    spends_retry: Mapped[bool | None] = mapped_column(Boolean)
    """Whether a loss of its attempt costs the job a retry: not where whoever shut its host down told it to stop."""


class Lease(Base):
    """Exclusive hold of a device by an attempt. Rows stay after their release: they are the history."""

    __tablename__ = "leases"
    __table_args__ = (
        ForeignKeyConstraint(["job_id", "attempt"], ["attempts.job_id", "attempts.number"]),
        Index(
            "uq_leases_live_device",
            "device_id",
            unique=True,
            sqlite_where=text("released_at IS NULL"),
            postgresql_where=text("released_at IS NULL"),
        ),
        Index("ix_leases_job_id_attempt", "job_id", "attempt"),
    )

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    device_id: Mapped[int] = mapped_column(Id, ForeignKey("devices.id"))
    job_id: Mapped[int] = mapped_column(Id)
    attempt: Mapped[int]
    placement_id: Mapped[int | None] = mapped_column(Id, ForeignKey("placements.id"))
    """The placement whose supervisor renews it; None only where it was released before there was this column."""
    acquired_at: Mapped[datetime]
    expires_at: Mapped[datetime]
    released_at: Mapped[datetime | None]


class JobEvent(Base):
    """What happened to a job, in order."""

    __tablename__ = "job_events"
    __table_args__ = (Index("ix_job_events_job_id_id", "job_id", "id"),)

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    job_id: Mapped[int] = mapped_column(Id, ForeignKey("jobs.id"))
    attempt: Mapped[int]
    at: Mapped[datetime]
    kind: Mapped[str] = mapped_column(String(32))
    """`submitted`, `state`, `intent`, `retry`, `change`, `epoch`, `log`, `note`."""
    from_state: Mapped[str | None] = mapped_column(String(16))
    to_state: Mapped[str | None] = mapped_column(String(16))
    detail: Mapped[dict[str, Any]]


class Metric(Base):
    """One value of one metric after one step of one attempt."""

    __tablename__ = "metrics"
    __table_args__ = (ForeignKeyConstraint(["job_id", "attempt"], ["attempts.job_id", "attempts.number"]),)

    job_id: Mapped[int] = mapped_column(Id, primary_key=True)
    name: Mapped[str] = mapped_column(primary_key=True)
    step: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    attempt: Mapped[int] = mapped_column(primary_key=True)
    epoch: Mapped[int]
    at: Mapped[datetime]
    value: Mapped[float | None]
    """None where it is not finite; `kind` says which then."""
    kind: Mapped[str | None] = mapped_column(String(4))


class Checkpoint(Base):
    """A committed checkpoint file. `removed_at` is set once the trainer has let go of the file."""

    __tablename__ = "checkpoints"
    __table_args__ = (
        ForeignKeyConstraint(["job_id", "attempt"], ["attempts.job_id", "attempts.number"]),
        UniqueConstraint("job_id", "attempt", "path"),
    )

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    job_id: Mapped[int] = mapped_column(Id)
    attempt: Mapped[int]
    host_name: Mapped[str]
    path: Mapped[str] = mapped_column(Text)
    """Absolute on that host."""
    step: Mapped[int] = mapped_column(BigInteger)
    epoch: Mapped[int]
    sha256: Mapped[str] = mapped_column(String(64))
    size_bytes: Mapped[int] = mapped_column(BigInteger)
    best: Mapped[bool] = mapped_column(Boolean)
    values: Mapped[dict[str, Any]]
    created_at: Mapped[datetime]
    removed_at: Mapped[datetime | None]
    storage: Mapped[str | None]
    """Id of the storage that `path` lies in: a host that has it among its own can read the file."""
    copy_url: Mapped[str | None] = mapped_column(Text)
    """Where its copy under the checkpoint root lies, once it is whole: an absolute path, or an fsspec URL."""
    copy_storage: Mapped[str | None]
    """Id of the storage that the copy lies in."""


class LogChunk(Base):
    """A piece of one rank's output."""

    __tablename__ = "log_chunks"
    __table_args__ = (
        ForeignKeyConstraint(["job_id", "attempt"], ["attempts.job_id", "attempts.number"]),
        UniqueConstraint("job_id", "attempt", "rank", "offset"),
        Index("ix_log_chunks_job_id_id", "job_id", "id"),
    )

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    job_id: Mapped[int] = mapped_column(Id)
    attempt: Mapped[int]
    rank: Mapped[int]
    offset: Mapped[int] = mapped_column(BigInteger)
    """Byte of the rank's log at which it begins."""
    text: Mapped[str] = mapped_column(Text)
    at: Mapped[datetime]


class Quota(Base):
    """What all jobs of one user, or with one label, may have at once, and their share."""

    __tablename__ = "quotas"
    __table_args__ = (UniqueConstraint("kind", "subject"),)

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    kind: Mapped[str] = mapped_column(String(8))
    """`user` or `label`."""
    subject: Mapped[str] = mapped_column(String(320))
    """The user's name, `*` for each user that has none of its own, or `key=value`."""
    max_devices: Mapped[int | None]
    """Most devices held at once; None sets no limit."""
    share: Mapped[float]
    """Weight in the fair share; 1 is everybody's."""


class Usage(Base):
    """What a user's, or a label's, jobs have used lately: device-seconds, halved for every half-life that passes."""

    __tablename__ = "usage"

    kind: Mapped[str] = mapped_column(String(8), primary_key=True)
    subject: Mapped[str] = mapped_column(String(320), primary_key=True)
    device_s: Mapped[float]
    """As of `at`; what is held now comes on top."""
    at: Mapped[datetime]


class PlanningRound(Base):
    """The last round of planning: one row, so that workers which sweep at the same time do not all plan the same."""

    __tablename__ = "planning_rounds"

    id: Mapped[int] = mapped_column(primary_key=True)
    """Always 1."""
    began_at: Mapped[datetime]


class DeviceSample(Base):
    """What a GPU did during one stretch of time."""

    __tablename__ = "device_samples"

    device_id: Mapped[int] = mapped_column(Id, ForeignKey("devices.id"), primary_key=True)
    at: Mapped[datetime] = mapped_column(primary_key=True)
    """Begin of the stretch, a whole number of stretches since the epoch."""
    samples: Mapped[int]
    """Readings in it."""
    utilisation: Mapped[float | None]
    """Mean, in percent of the time."""
    memory_bytes: Mapped[int | None] = mapped_column(BigInteger)
    """Most that was used."""
    temperature_c: Mapped[float | None]
    """Highest."""
    power_w: Mapped[float | None]
    """Mean."""
    device: Mapped[DeviceRow] = relationship(lazy="joined")


class SubmissionKey(Base):
    """A key that a client gave to a submission, so that it may send it again where it got no answer."""

    __tablename__ = "submission_keys"

    key: Mapped[str] = mapped_column(primary_key=True)
    digest: Mapped[str] = mapped_column(String(64))
    """sha256 of what was asked for: the same key for anything else is a mistake."""
    job_id: Mapped[int] = mapped_column(Id, ForeignKey("jobs.id"))
    created_at: Mapped[datetime]
