"""Where rollouts stand, and the append-only record of how they came there."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

_SQLITE = """
CREATE TRIGGER rollout_events_no_{verb} BEFORE {event} ON rollout_events
BEGIN SELECT RAISE(ABORT, 'rollout_events is append-only'); END
"""
_POSTGRES_FUNCTION = """
CREATE FUNCTION rollout_events_append_only() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'rollout_events is append-only'; END $$
"""
_POSTGRES = """
CREATE TRIGGER rollout_events_append_only BEFORE UPDATE OR DELETE ON rollout_events
FOR EACH ROW EXECUTE FUNCTION rollout_events_append_only()
"""


def upgrade() -> None:
    """Create the tables, and the triggers that keep the record append-only."""
    op.create_table(
        "rollouts",
        sa.Column("identity", sa.String(length=64), nullable=False),
        sa.Column("bucket", sa.String(length=255), nullable=False),
        sa.Column("rollout", sa.String(length=128), server_default="", nullable=False),
        sa.Column("state", sa.String(length=16), server_default="", nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("at", sa.Float(precision=53), nullable=False),
        sa.Column("standing", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("identity", "bucket", name=op.f("pk_rollouts")),
    )
    op.create_table(
        "rollout_events",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("identity", sa.String(length=64), nullable=False),
        sa.Column("bucket", sa.String(length=255), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("rollout", sa.String(length=128), server_default="", nullable=False),
        sa.Column("at", sa.Float(precision=53), nullable=False),
        sa.Column("event", sa.String(length=16), server_default="", nullable=False),
        sa.Column("before", sa.String(length=16), server_default="", nullable=False),
        sa.Column("after", sa.String(length=16), server_default="", nullable=False),
        sa.Column("stage", sa.Integer(), nullable=False),
        sa.Column("share_bp", sa.Integer(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("actor", sa.String(length=128), server_default="", nullable=False),
        sa.Column("policy", sa.String(length=64), server_default="", nullable=False),
        sa.Column("evidence", sa.Text(), server_default="{}", nullable=False),
        sa.Column("chain", sa.String(length=64), server_default="", nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_rollout_events")),
        sa.UniqueConstraint("identity", "bucket", "version", name=op.f("uq_rollout_events_identity_bucket_version")),
    )
    op.create_index(
        op.f("ix_rollout_events_rollout_bucket_id"), "rollout_events", ["rollout", "bucket", "id"], unique=False
    )
    if op.get_bind().dialect.name == "postgresql":
        op.execute(_POSTGRES_FUNCTION)
        op.execute(_POSTGRES)
    else:
        for verb in ("update", "delete"):
            op.execute(_SQLITE.format(verb=verb, event=verb.upper()))


def downgrade() -> None:
    """Drop both."""
    op.drop_index(op.f("ix_rollout_events_rollout_bucket_id"), table_name="rollout_events")
    op.drop_table("rollout_events")
    op.drop_table("rollouts")
    if op.get_bind().dialect.name == "postgresql":
        op.execute("DROP FUNCTION IF EXISTS rollout_events_append_only()")
