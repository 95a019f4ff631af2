"""Attempts, their placements on hosts, and the leases of the devices that they have."""

from datetime import datetime
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    String,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.orm import Mapped, mapped_column

from jobs.states import Outcome
from jobs.tables.base import Base, Id, one_of


class Attempt(Base):
    """One try at running a job. Its number is the fencing token of every write it makes."""

    __tablename__ = "attempts"
    __table_args__ = (one_of("outcome", Outcome),)

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
    shipped_at: Mapped[datetime | None]
    """Its last heartbeat at which the database had all that its run had written; None before the first of them."""
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
    """Whether a loss of its attempt costs the job a retry: not where whoever shut its host down told it to stop, nor
    where its host could not begin it."""


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
