"""What several gateways on one database tell each other of the evidence, in one order, and meters for who joins."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Create the tables, and the one row that orders the reports."""
    op.create_table(
        "evidence_reports",
        sa.Column("position", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("at", sa.Float(precision=53), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("position", name=op.f("pk_evidence_reports")),
    )
    op.create_index(op.f("ix_evidence_reports_at"), "evidence_reports", ["at"], unique=False)
    order = op.create_table(
        "evidence_order",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_evidence_order")),
    )
    op.bulk_insert(order, [{"id": 1, "position": 0}])
    op.create_table(
        "evidence_meters",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("at", sa.Float(precision=53), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_evidence_meters")),
    )


def downgrade() -> None:
    """Drop them."""
    op.drop_table("evidence_meters")
    op.drop_table("evidence_order")
    op.drop_index(op.f("ix_evidence_reports_at"), table_name="evidence_reports")
    op.drop_table("evidence_reports")
