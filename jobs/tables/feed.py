"""The feed: one row for each transaction that has something to tell to those who follow."""

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Index, String
from sqlalchemy.orm import Mapped, mapped_column

from jobs.tables.base import Base, Id


class FeedEntry(Base):
    """What one transaction wrote on one topic.

    On PostgreSQL ids become visible out of order, since they are drawn before the commit. Read are the rows whose
    `xid` is below the oldest transaction that is under way (`pg_snapshot_xmin`), in the order of (xid, id): whoever has
    read up to one of them has missed none (`jobs.store.feed`). On SQLite one transaction writes at a time, and `xid` is
    0.
    """

    __tablename__ = "feed"
    __table_args__ = (Index("ix_feed_xid_id", "xid", "id"), Index("ix_feed_at", "at"))

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    xid: Mapped[int] = mapped_column(BigInteger)
    """Number of the transaction that wrote it, or of the last that was over by then, whichever is later."""
    at: Mapped[datetime]
    topic: Mapped[str] = mapped_column(String(16))
    """A `jobs.feed.Topic`."""
    job_id: Mapped[int | None] = mapped_column(Id)
    """The job that it is about; None where it is about none."""
    detail: Mapped[dict[str, Any]]
    """What to tell, or where it is to be read: see `jobs.store.feed`."""
