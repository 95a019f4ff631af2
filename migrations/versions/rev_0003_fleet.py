"""The fleet: places in the line, reservations, quotas, several hosts for an attempt, stop orders, drains, telemetry."""

import sqlalchemy as sa
from alembic import op

from jobs.column_types import UtcDateTime

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
OUTCOMES = "outcome IN ('succeeded', 'failed', 'cancelled', 'paused', 'lost', 'preempted')"


def upgrade() -> None:
    _jobs()
    _attempts()
    _hosts_and_devices()
    _placements_and_leases()
    _new_tables()


def _jobs() -> None:
    with op.batch_alter_table("jobs") as table:
        table.add_column(sa.Column("user", sa.String(length=255), nullable=True))
        table.add_column(sa.Column("request", sa.Text(), nullable=True))
        table.add_column(sa.Column("waits_from", UtcDateTime(), nullable=True))
        table.add_column(sa.Column("not_before", UtcDateTime(), nullable=True))
        table.add_column(sa.Column("line_key", sa.Double(), nullable=True))
        table.add_column(sa.Column("predicted_start", UtcDateTime(), nullable=True))
        table.add_column(sa.Column("waits_for", sa.JSON(none_as_null=True), nullable=True))
        table.add_column(sa.Column("reservation", sa.JSON(none_as_null=True), nullable=True))
        table.add_column(sa.Column("parent_id", ID, nullable=True))
        table.add_column(sa.Column("parent_checkpoint_id", ID, nullable=True))
        table.create_foreign_key(op.f("fk_jobs_parent_id_jobs"), "jobs", ["parent_id"], ["id"])
        table.drop_index("ix_jobs_state_priority_id")  # the line goes by its key now
        table.create_index("ix_jobs_state_line_key", ["state", "line_key"], unique=False)
        table.create_index("ix_jobs_parent_id", ["parent_id"], unique=False)
    op.execute("UPDATE jobs SET waits_from = created_at")
    with op.batch_alter_table("jobs") as table:
        table.alter_column("waits_from", existing_type=UtcDateTime(), nullable=False)


def _attempts() -> None:
    with op.batch_alter_table("attempts") as table:
        table.add_column(sa.Column("trained_until", UtcDateTime(), nullable=True))
        table.add_column(sa.Column("stop_order", sa.String(length=16), nullable=True))
        table.add_column(sa.Column("stop_message", sa.Text(), nullable=True))
        table.add_column(sa.Column("resume_decided_at", UtcDateTime(), nullable=True))
        table.add_column(sa.Column("resume_checkpoint_id", ID, nullable=True))
        table.drop_constraint(op.f("ck_attempts_outcome"), type_="check")
        table.create_check_constraint(op.f("ck_attempts_outcome"), OUTCOMES)


def _hosts_and_devices() -> None:
    with op.batch_alter_table("hosts") as table:
        table.add_column(sa.Column("address", sa.String(length=255), nullable=True))
        table.add_column(sa.Column("storages", sa.JSON(), nullable=False, server_default="[]"))
        table.add_column(sa.Column("looked_at", UtcDateTime(), nullable=True))
        table.add_column(sa.Column("free_bytes", sa.BigInteger(), nullable=True))
        table.add_column(sa.Column("min_free_bytes", sa.BigInteger(), nullable=True))
        table.add_column(sa.Column("fault", sa.Text(), nullable=True))
        table.add_column(sa.Column("rendezvous_ports", sa.String(length=11), nullable=True))
        table.add_column(sa.Column("drained_at", UtcDateTime(), nullable=True))
        table.add_column(sa.Column("drain_note", sa.Text(), nullable=True))
        table.add_column(sa.Column("removed_at", UtcDateTime(), nullable=True))
    with op.batch_alter_table("hosts") as table:
        table.alter_column("storages", existing_type=sa.JSON(), server_default=None)
    with op.batch_alter_table("devices") as table:
        table.add_column(sa.Column("losses", sa.Integer(), nullable=False, server_default="0"))
        table.add_column(sa.Column("quarantined_at", UtcDateTime(), nullable=True))
        table.add_column(sa.Column("quarantine_reason", sa.Text(), nullable=True))
    with op.batch_alter_table("devices") as table:
        table.alter_column("losses", existing_type=sa.Integer(), server_default=None)


def _placements_and_leases() -> None:
    with op.batch_alter_table("placements") as table:
        table.add_column(sa.Column("master_port", sa.Integer(), nullable=True))
        table.add_column(sa.Column("completed", sa.Boolean(), nullable=True))
        table.add_column(sa.Column("failure", sa.JSON(none_as_null=True), nullable=True))
        table.add_column(sa.Column("spends_retry", sa.Boolean(), nullable=True))
    op.create_index(
        "uq_placements_live_port",
        "placements",
        ["host_name", "master_port"],
        unique=True,
        sqlite_where=sa.text("ended_at IS NULL"),
        postgresql_where=sa.text("ended_at IS NULL"),
    )
    with op.batch_alter_table("leases") as table:
        table.add_column(sa.Column("placement_id", ID, nullable=True))
        table.create_foreign_key(op.f("fk_leases_placement_id_placements"), "placements", ["placement_id"], ["id"])
    # Until now an attempt had one placement, which had all of its leases.
    op.execute(
        "UPDATE leases SET placement_id = (SELECT placements.id FROM placements "
        "WHERE placements.job_id = leases.job_id AND placements.attempt = leases.attempt)"
    )
    with op.batch_alter_table("checkpoints") as table:
        table.add_column(sa.Column("storage", sa.String(length=255), nullable=True))
        table.add_column(sa.Column("copy_url", sa.Text(), nullable=True))
        table.add_column(sa.Column("copy_storage", sa.String(length=255), nullable=True))
        table.add_column(sa.Column("placed_at", UtcDateTime(), nullable=True))
    op.create_index(op.f("ix_checkpoints_placed_at"), "checkpoints", ["placed_at"])


def _new_tables() -> None:
    op.create_table(
        "quotas",
        sa.Column("id", ID, nullable=False),
        sa.Column("kind", sa.String(length=8), nullable=False),
        sa.Column("subject", sa.String(length=320), nullable=False),
        sa.Column("max_devices", sa.Integer(), nullable=True),
        sa.Column("share", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_quotas")),
        sa.UniqueConstraint("kind", "subject", name=op.f("uq_quotas_kind_subject")),
    )
    op.create_table(
        "usage",
        sa.Column("kind", sa.String(length=8), nullable=False),
        sa.Column("subject", sa.String(length=320), nullable=False),
        sa.Column("device_s", sa.Double(), nullable=False),
        sa.Column("at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("kind", "subject", name=op.f("pk_usage")),
    )
    op.create_table(
        "planning_rounds",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("began_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_planning_rounds")),
    )
    op.create_table(
        "device_samples",
        sa.Column("device_id", ID, nullable=False),
        sa.Column("at", UtcDateTime(), nullable=False),
        sa.Column("samples", sa.Integer(), nullable=False),
        sa.Column("utilisation", sa.Double(), nullable=True),
        sa.Column("memory_bytes", sa.BigInteger(), nullable=True),
        sa.Column("temperature_c", sa.Double(), nullable=True),
        sa.Column("power_w", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(["device_id"], ["devices.id"], name=op.f("fk_device_samples_device_id_devices")),
        sa.PrimaryKeyConstraint("device_id", "at", name=op.f("pk_device_samples")),
    )
    op.create_table(
        "submission_keys",
        sa.Column("key", sa.String(length=255), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("job_id", ID, nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_submission_keys_job_id_jobs")),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_submission_keys")),
    )
