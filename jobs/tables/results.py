"""What runs bring forth: metrics, checkpoints, output."""

from datetime import datetime
from typing import Any

from sqlalchemy import (
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

from jobs.tables.base import Base, Id


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


class MetricBucket(Base):
    """What a job's series of one metric is over a stretch of steps, so that a long one is drawn without reading all of
    it. Written in the transaction that writes the values, from those that the newest attempt there has reported."""

    __tablename__ = "metric_buckets"

    job_id: Mapped[int] = mapped_column(Id, ForeignKey("jobs.id"), primary_key=True)
    name: Mapped[str] = mapped_column(primary_key=True)
    bucket: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    """Number of the stretch: its steps divided by the length of one (`jobs.store.buckets`), rounded down."""
    count: Mapped[int]
    """Steps in it that have a value, those included where it is not finite."""
    first_step: Mapped[int] = mapped_column(BigInteger)
    last_step: Mapped[int] = mapped_column(BigInteger)
    lowest: Mapped[float | None]
    lowest_step: Mapped[int | None] = mapped_column(BigInteger)
    """The first step at which the value was the lowest."""
    highest: Mapped[float | None]
    highest_step: Mapped[int | None] = mapped_column(BigInteger)
    gap_step: Mapped[int | None] = mapped_column(BigInteger)
    """The first step at which the value was not finite."""


class Checkpoint(Base):
    """A committed checkpoint file. `removed_at` is set once the trainer has let go of the file."""

    __tablename__ = "checkpoints"
    __table_args__ = (
        ForeignKeyConstraint(["job_id", "attempt"], ["attempts.job_id", "attempts.number"]),
        UniqueConstraint("job_id", "attempt", "path"),
        Index(
            "ix_checkpoints_doomed",
            "host_name",
            sqlite_where=text("doomed_at IS NOT NULL"),
            postgresql_where=text("doomed_at IS NOT NULL"),
        ),
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
    doomed_at: Mapped[datetime | None]
    """Since when file and copy are to be removed by its host's worker, at a user's word; None again once they are."""
    storage: Mapped[str | None]
    """Id of the storage that `path` lies in: a host that has it among its own can read the file."""
    copy_url: Mapped[str | None] = mapped_column(Text)
    """Where its copy under the checkpoint root lies, once it is whole: an absolute path, or an fsspec URL."""
    copy_storage: Mapped[str | None]
    """Id of the storage that the copy lies in."""
    placed_at: Mapped[datetime | None] = mapped_column(index=True)
    """Database's time at which it was last told where it lies: when it was registered, and when it was copied."""


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
