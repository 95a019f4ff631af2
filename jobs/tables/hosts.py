"""Hosts, their devices, and what these did."""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, BigInteger, Boolean, ForeignKey, Index, String, Text, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column, relationship

from jobs.tables.base import Base, Id


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
    roots: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    """What its operator lets jobs read and start there, as a `jobs.roots.Roots`; None of a worker that does not say."""
    data_sets: Mapped[list[dict[str, Any]] | None] = mapped_column(JSON(none_as_null=True))
    """What lies in its data roots, each a `jobs.data_sets.DataSet`; None until it has looked."""
    address: Mapped[str | None]
    """Name or address at which the ranks of other hosts reach it."""
    storages: Mapped[list[str]]
    """Ids of the storages whose files its runs can read (`worker.storage`): that of its run root first."""
    looked_at: Mapped[datetime | None]
    """Database's time at which it last looked for storages: of what had its place by then, it can read no others."""
    free_bytes: Mapped[int | None] = mapped_column(BigInteger)
    """Space left on its run root at its last heartbeat."""
    min_free_bytes: Mapped[int | None] = mapped_column(BigInteger)
    """Below which space it gets no new jobs, by its own settings."""
    fault: Mapped[str | None] = mapped_column(Text)
    """Why it can begin no run, in its own words, which follow "it is": while it says so it gets no new jobs."""
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
