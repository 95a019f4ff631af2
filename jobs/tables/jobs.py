"""Jobs, and what is known of each: what happened to it, and by which key it was submitted."""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, ForeignKey, Index, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from jobs.states import Intent, State
from jobs.tables.base import Base, Id, one_of


class Job(Base):
    """What a user asked for, what they want of it now, and where it is."""

    __tablename__ = "jobs"
    __table_args__ = (
        one_of("state", State),
        one_of("intent", Intent),
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
    needs: Mapped[str | None] = mapped_column(Text)
    """What a host's operator has to allow for it, as the JSON of a `jobs.roots.Needs`; None where any host will do."""
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


class SubmissionKey(Base):
    """A key that a client gave to a request that makes something, to send it again under where it got no answer."""

    __tablename__ = "submission_keys"

    key: Mapped[str] = mapped_column(primary_key=True)
    digest: Mapped[str] = mapped_column(String(64))
    """sha256 of what was asked for: the same key for anything else is a mistake."""
    made: Mapped[str]
    """What was made under it, as a path: `jobs/7`."""
    created_at: Mapped[datetime] = mapped_column(index=True)
