"""The longest silence inside a stream."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Earlier rows do not know it."""
    op.add_column("requests", sa.Column("longest_gap_s", sa.Float(precision=53), server_default="-1", nullable=False))


def downgrade() -> None:
    """Drop it."""
    op.drop_column("requests", "longest_gap_s")
