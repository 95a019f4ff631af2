"""The API whole: users, tokens and what was done with them, secrets, webhooks, the feed, buckets of metrics,
roots, and checkpoints that are to be removed."""

import sqlalchemy as sa
from alembic import op

from jobs.column_types import UtcDateTime

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
ROLES = "role IN ('viewer', 'submitter', 'admin')"
FILL_BUCKETS = """
INSERT INTO metric_buckets (
    job_id, name, bucket, count, first_step, last_step, lowest, lowest_step, highest, highest_step, gap_step
)
SELECT job_id, name, bucket, count(*), min(step), max(step),
    min(value), min(CASE WHEN from_lowest = 1 AND value IS NOT NULL THEN step END),
    max(value), min(CASE WHEN from_highest = 1 AND value IS NOT NULL THEN step END),
    min(CASE WHEN value IS NULL THEN step END)
FROM (
    SELECT job_id, name, step, value, step / 64 AS bucket,
        row_number() OVER (PARTITION BY job_id, name, step / 64 ORDER BY value ASC NULLS LAST, step) AS from_lowest,
        row_number() OVER (PARTITION BY job_id, name, step / 64 ORDER BY value DESC NULLS LAST, step) AS from_highest
    FROM metrics
    WHERE NOT EXISTS (
        SELECT 1 FROM metrics AS newer
        WHERE newer.job_id = metrics.job_id AND newer.name = metrics.name
            AND newer.step = metrics.step AND newer.attempt > metrics.attempt
    )
) AS series
GROUP BY job_id, name, bucket
"""


def upgrade() -> None:
    _access()
    _feed()
    _webhooks()
    _metric_buckets()
    _shipping()
    _roots()
    _doomed_checkpoints()
    _keys()


def _access() -> None:
    op.create_table(
        "users",
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("role", sa.String(length=16), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("disabled_at", UtcDateTime(), nullable=True),
        sa.CheckConstraint(ROLES, name=op.f("ck_users_role")),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_users")),
    )
    op.create_table(
        "tokens",
        sa.Column("id", ID, nullable=False),
        sa.Column("user_name", sa.String(length=255), nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("role", sa.String(length=16), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("expires_at", UtcDateTime(), nullable=True),
        sa.Column("revoked_at", UtcDateTime(), nullable=True),
        sa.Column("last_used_at", UtcDateTime(), nullable=True),
        sa.CheckConstraint(ROLES, name=op.f("ck_tokens_role")),
        sa.ForeignKeyConstraint(["user_name"], ["users.name"], name=op.f("fk_tokens_user_name_users")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tokens")),
        sa.UniqueConstraint("digest", name=op.f("uq_tokens_digest")),
    )
    op.create_index("ix_tokens_user_name", "tokens", ["user_name"])
    op.create_table(
        "audit_events",
        sa.Column("id", ID, nullable=False),
        sa.Column("at", UtcDateTime(), nullable=False),
        sa.Column("actor", sa.String(length=255), nullable=True),
        sa.Column("token_id", ID, nullable=True),
        sa.Column("action", sa.String(length=64), nullable=False),
        sa.Column("subject", sa.String(length=255), nullable=True),
        sa.Column("detail", sa.JSON(), nullable=False),
        sa.Column("request_id", sa.String(length=64), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit_events")),
    )
    op.create_index("ix_audit_events_actor_id", "audit_events", ["actor", "id"])
    op.create_index("ix_audit_events_at", "audit_events", ["at"])
    op.create_table(
        "secrets",
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("sealed", sa.Text(), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("updated_at", UtcDateTime(), nullable=False),
        sa.Column("updated_by", sa.String(length=255), nullable=True),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_secrets")),
    )


def _feed() -> None:
    op.create_table(
        "feed",
        sa.Column("id", ID, nullable=False),
        sa.Column("xid", sa.BigInteger(), nullable=False),
        sa.Column("at", UtcDateTime(), nullable=False),
        sa.Column("topic", sa.String(length=16), nullable=False),
        sa.Column("job_id", ID, nullable=True),
        sa.Column("detail", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_feed")),
    )
    op.create_index("ix_feed_xid_id", "feed", ["xid", "id"])
    op.create_index("ix_feed_at", "feed", ["at"])


def _webhooks() -> None:
    op.create_table(
        "webhooks",
        sa.Column("id", ID, nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("topics", sa.JSON(), nullable=False),
        sa.Column("labels", sa.JSON(), nullable=False),
        sa.Column("description", sa.String(length=255), nullable=True),
        sa.Column("sealed_key", sa.Text(), nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("updated_at", UtcDateTime(), nullable=False),
        sa.Column("created_by", sa.String(length=255), nullable=True),
        sa.Column("deleted_at", UtcDateTime(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_webhooks")),
    )
    op.create_table(
        "webhook_deliveries",
        sa.Column("id", ID, nullable=False),
        sa.Column("webhook_id", ID, nullable=False),
        sa.Column("message_id", sa.String(length=64), nullable=False),
        sa.Column("topic", sa.String(length=32), nullable=False),
        sa.Column("job_id", ID, nullable=True),
        sa.Column("payload", sa.JSON(), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("due_at", UtcDateTime(), nullable=True),
        sa.Column("claimed_at", UtcDateTime(), nullable=True),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("delivered_at", UtcDateTime(), nullable=True),
        sa.Column("given_up_at", UtcDateTime(), nullable=True),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_webhook_deliveries_job_id_jobs")),
        sa.ForeignKeyConstraint(
            ["webhook_id"], ["webhooks.id"], name=op.f("fk_webhook_deliveries_webhook_id_webhooks")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_webhook_deliveries")),
    )
    op.create_index("ix_webhook_deliveries_webhook_id_id", "webhook_deliveries", ["webhook_id", "id"])
    op.create_index(
        "ix_webhook_deliveries_due",
        "webhook_deliveries",
        ["due_at"],
        sqlite_where=sa.text("due_at IS NOT NULL"),
        postgresql_where=sa.text("due_at IS NOT NULL"),
    )
    op.create_table(
        "webhook_tries",
        sa.Column("id", ID, nullable=False),
        sa.Column("delivery_id", ID, nullable=False),
        sa.Column("at", UtcDateTime(), nullable=False),
        sa.Column("took_ms", sa.Integer(), nullable=False),
        sa.Column("status", sa.Integer(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["delivery_id"], ["webhook_deliveries.id"], name=op.f("fk_webhook_tries_delivery_id_webhook_deliveries")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_webhook_tries")),
    )
    op.create_index("ix_webhook_tries_delivery_id", "webhook_tries", ["delivery_id"])


def _metric_buckets() -> None:
    op.create_table(
        "metric_buckets",
        sa.Column("job_id", ID, nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("bucket", sa.BigInteger(), nullable=False),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.Column("first_step", sa.BigInteger(), nullable=False),
        sa.Column("last_step", sa.BigInteger(), nullable=False),
        sa.Column("lowest", sa.Double(), nullable=True),
        sa.Column("lowest_step", sa.BigInteger(), nullable=True),
        sa.Column("highest", sa.Double(), nullable=True),
        sa.Column("highest_step", sa.BigInteger(), nullable=True),
        sa.Column("gap_step", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_metric_buckets_job_id_jobs")),
        sa.PrimaryKeyConstraint("job_id", "name", "bucket", name=op.f("pk_metric_buckets")),
    )
    op.execute(FILL_BUCKETS)  # for the values that earlier releases have stored


def _shipping() -> None:
    op.add_column("placements", sa.Column("shipped_at", UtcDateTime(), nullable=True))


def _roots() -> None:
    op.add_column("hosts", sa.Column("roots", sa.JSON(none_as_null=True), nullable=True))
    op.add_column("hosts", sa.Column("data_sets", sa.JSON(none_as_null=True), nullable=True))
    op.add_column("jobs", sa.Column("needs", sa.Text(), nullable=True))


def _doomed_checkpoints() -> None:
    op.add_column("checkpoints", sa.Column("doomed_at", UtcDateTime(), nullable=True))
    op.create_index(
        "ix_checkpoints_doomed",
        "checkpoints",
        ["host_name"],
        sqlite_where=sa.text("doomed_at IS NOT NULL"),
        postgresql_where=sa.text("doomed_at IS NOT NULL"),
    )


def _keys() -> None:
    with op.batch_alter_table("submission_keys") as table:
        table.add_column(sa.Column("made", sa.String(length=255), nullable=True))
    op.execute("UPDATE submission_keys SET made = 'jobs/' || job_id")
    with op.batch_alter_table("submission_keys") as table:
        table.alter_column("made", existing_type=sa.String(length=255), nullable=False)
        table.drop_constraint(op.f("fk_submission_keys_job_id_jobs"), type_="foreignkey")
        table.drop_column("job_id")
    op.create_index("ix_submission_keys_created_at", "submission_keys", ["created_at"])
