"""Webhooks, and the outbox of what they are to be told."""

from datetime import datetime
from typing import Any

from sqlalchemy import Boolean, ForeignKey, Index, String, Text, text
from sqlalchemy.orm import Mapped, mapped_column, relationship

from jobs.tables.base import Base, Id


class Webhook(Base):
    """A URL that wants to be told of what happens to jobs."""

    __tablename__ = "webhooks"

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    url: Mapped[str] = mapped_column(Text)
    topics: Mapped[list[str]]
    """Of which events: `job.succeeded`, …; empty for all."""
    labels: Mapped[dict[str, str]]
    """Only of jobs that have all of these."""
    description: Mapped[str | None]
    sealed_key: Mapped[str] = mapped_column(Text)
    """What its messages are signed with, encrypted with the service's key."""
    enabled: Mapped[bool] = mapped_column(Boolean)
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]
    created_by: Mapped[str | None]
    deleted_at: Mapped[datetime | None]


class Delivery(Base):
    """One message to one webhook, written in the transaction of what it tells of, and sent at least once."""

    __tablename__ = "webhook_deliveries"
    __table_args__ = (
        Index("ix_webhook_deliveries_webhook_id_id", "webhook_id", "id"),
        Index(
            "ix_webhook_deliveries_due",
            "due_at",
            sqlite_where=text("due_at IS NOT NULL"),
            postgresql_where=text("due_at IS NOT NULL"),
        ),
    )

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    webhook_id: Mapped[int] = mapped_column(Id, ForeignKey("webhooks.id"))
    message_id: Mapped[str] = mapped_column(String(64))
    """`webhook-id` of Standard Webhooks: the same for each try, so that a receiver can tell a repeat."""
    topic: Mapped[str] = mapped_column(String(32))
    job_id: Mapped[int | None] = mapped_column(Id, ForeignKey("jobs.id"))
    """The job that it tells of; None for a test."""
    payload: Mapped[dict[str, Any]]
    created_at: Mapped[datetime]
    due_at: Mapped[datetime | None]
    """When it is to be tried next; None once it is delivered or given up."""
    claimed_at: Mapped[datetime | None]
    """When a worker took it to send it, until that has told what came of it, or `due_at` is over."""
    tries: Mapped[int]
    """Tries begun since it was written, or since somebody had it delivered again."""
    delivered_at: Mapped[datetime | None]
    given_up_at: Mapped[datetime | None]

    log: Mapped[list["DeliveryTry"]] = relationship(order_by="DeliveryTry.id", lazy="raise")


class DeliveryTry(Base):
    """One try to deliver a message: the log of deliveries."""

    __tablename__ = "webhook_tries"

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    delivery_id: Mapped[int] = mapped_column(Id, ForeignKey("webhook_deliveries.id"), index=True)
    at: Mapped[datetime]
    took_ms: Mapped[int]
    status: Mapped[int | None]
    """HTTP status of the answer; None where there was none."""
    error: Mapped[str | None] = mapped_column(Text)
