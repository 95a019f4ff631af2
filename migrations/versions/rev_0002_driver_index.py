"""The driver's own number of a GPU, beside the one by which its host's worker calls it."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("devices", sa.Column("driver_index", sa.Integer(), nullable=True))
