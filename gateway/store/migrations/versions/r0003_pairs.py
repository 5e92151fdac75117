"""Compared pairs of shadow traffic."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "pairs",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("request_id", sa.String(length=64), nullable=False),
        sa.Column("at", sa.Float(precision=53), nullable=False),
        sa.Column("rule", sa.String(length=128), server_default="", nullable=False),
        sa.Column("tenant", sa.String(length=64), server_default="", nullable=False),
        sa.Column("bucket", sa.String(length=255), server_default="", nullable=False),
        sa.Column("task", sa.String(length=64), server_default="", nullable=False),
        sa.Column("baseline", sa.String(length=128), server_default="", nullable=False),
        sa.Column("candidate", sa.String(length=128), server_default="", nullable=False),
        sa.Column("verdict", sa.String(length=32), server_default="", nullable=False),
        sa.Column("kind", sa.String(length=32), server_default="", nullable=False),
        sa.Column("agreement", sa.Float(precision=53), nullable=True),
        sa.Column("noise", sa.Float(precision=53), nullable=True),
        sa.Column("excess", sa.Float(precision=53), nullable=True),
        sa.Column("loss", sa.Float(precision=53), nullable=True),
        sa.Column("promotion", sa.Float(precision=53), nullable=True),
        sa.Column("likelihood_gap", sa.Float(precision=53), nullable=True),
        sa.Column("parts", sa.Text(), server_default="{}", nullable=False),
        sa.Column("candidate_failure", sa.String(length=32), server_default="", nullable=False),
        sa.Column("baseline_failure", sa.String(length=32), server_default="", nullable=False),
        sa.Column("ttft_baseline_s", sa.Float(precision=53), server_default="-1", nullable=False),
        sa.Column("ttft_candidate_s", sa.Float(precision=53), server_default="-1", nullable=False),
        sa.Column("total_baseline_s", sa.Float(precision=53), server_default="-1", nullable=False),
        sa.Column("total_candidate_s", sa.Float(precision=53), server_default="-1", nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_pairs")),
    )
    op.create_index(op.f("ix_pairs_at"), "pairs", ["at"], unique=False)
    op.create_index(op.f("ix_pairs_bucket_candidate_at"), "pairs", ["bucket", "candidate", "at"], unique=False)
    op.create_index(op.f("ix_pairs_request_id"), "pairs", ["request_id"], unique=False)


def downgrade() -> None:
    """Drop the table."""
    op.drop_index(op.f("ix_pairs_request_id"), table_name="pairs")
    op.drop_index(op.f("ix_pairs_bucket_candidate_at"), table_name="pairs")
    op.drop_index(op.f("ix_pairs_at"), table_name="pairs")
    op.drop_table("pairs")
