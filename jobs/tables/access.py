"""Users, their tokens, what was done with them, and secrets that jobs are given by name."""

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, Index, String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from jobs.access import Role
from jobs.tables.base import Base, Id, one_of


class User(Base):
    """Someone, or something, that may use the service."""

    __tablename__ = "users"
    __table_args__ = (one_of("role", Role),)

    name: Mapped[str] = mapped_column(primary_key=True)
    role: Mapped[str] = mapped_column(String(16))
    created_at: Mapped[datetime]
    disabled_at: Mapped[datetime | None]
    """Since when none of their tokens counts."""


class Token(Base):
    """An opaque token. Only its hash is kept: it is shown once, when it is made."""

    __tablename__ = "tokens"
    __table_args__ = (one_of("role", Role), UniqueConstraint("digest"))

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    user_name: Mapped[str] = mapped_column(ForeignKey("users.name"), index=True)
    name: Mapped[str]
    """What it is for, in words."""
    role: Mapped[str] = mapped_column(String(16))
    """The most that it may do; never more than its user's role, as that is now."""
    digest: Mapped[str] = mapped_column(String(64))
    """SHA-256 of the token, which is 256 random bits: nothing slower is needed."""
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]
    last_used_at: Mapped[datetime | None]
    """To the minute."""


class AuditEvent(Base):
    """Something that a principal did, or was refused."""

    __tablename__ = "audit_events"
    __table_args__ = (Index("ix_audit_events_actor_id", "actor", "id"), Index("ix_audit_events_at", "at"))

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    at: Mapped[datetime]
    actor: Mapped[str | None]
    """The user; None where no token is asked for. No foreign key, nor below: it outlives what it tells of."""
    token_id: Mapped[int | None] = mapped_column(Id)
    action: Mapped[str] = mapped_column(String(64))
    """The operation, as in the schema: `submit_job`, `drain_host`, …"""
    subject: Mapped[str | None]
    """What it was done to, as a path: `jobs/7`."""
    detail: Mapped[dict[str, Any]]
    request_id: Mapped[str | None] = mapped_column(String(64))


class Secret(Base):
    """A secret that jobs name, and are given in their environment. Nobody can read it back."""

    __tablename__ = "secrets"

    name: Mapped[str] = mapped_column(primary_key=True)
    sealed: Mapped[str] = mapped_column(Text)
    """Encrypted with the service's key."""
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]
    updated_by: Mapped[str | None]
