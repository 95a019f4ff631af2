"""What the planner goes by besides jobs and hosts: quotas, recent use, its own last round."""

from datetime import datetime

from sqlalchemy import String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from jobs.tables.base import Base, Id


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
