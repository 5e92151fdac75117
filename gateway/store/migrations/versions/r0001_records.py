"""Requests, what became of them, deployments, samples."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "aftermath",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("at", sa.Float(precision=53), nullable=False),
        sa.Column("request_id", sa.String(length=64), nullable=False),
        sa.Column("kind", sa.String(length=32), server_default="", nullable=False),
        sa.Column("tenant", sa.String(length=64), server_default="", nullable=False),
        sa.Column("bucket", sa.String(length=255), server_default="", nullable=False),
        sa.Column("pool", sa.String(length=128), server_default="", nullable=False),
        sa.Column("label", sa.String(length=64), server_default="", nullable=False),
        sa.Column("score", sa.Float(precision=53), nullable=True),
        sa.Column("by_request_id", sa.String(length=64), server_default="", nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_aftermath")),
    )
    op.create_index(op.f("ix_aftermath_at"), "aftermath", ["at"], unique=False)
    op.create_index(op.f("ix_aftermath_request_id"), "aftermath", ["request_id"], unique=False)
    op.create_table(
        "deployments",
        sa.Column("hash", sa.String(length=64), nullable=False),
        sa.Column("pool", sa.String(length=128), server_default="", nullable=False),
        sa.Column("first_seen_at", sa.Float(precision=53), nullable=False),
        sa.Column("record", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("hash", name=op.f("pk_deployments")),
    )
    op.create_table(
        "requests",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("request_id", sa.String(length=64), nullable=False),
        sa.Column("at", sa.Float(precision=53), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("worker", sa.Integer(), nullable=False),
        sa.Column("api", sa.String(length=16), server_default="", nullable=False),
        sa.Column("tenant", sa.String(length=64), server_default="", nullable=False),
        sa.Column("tier", sa.String(length=32), server_default="", nullable=False),
        sa.Column("model", sa.String(length=128), server_default="", nullable=False),
        sa.Column("adapter", sa.String(length=128), server_default="", nullable=False),
        sa.Column("bucket", sa.String(length=255), server_default="", nullable=False),
        sa.Column("length", sa.String(length=32), server_default="", nullable=False),
        sa.Column("task", sa.String(length=64), server_default="", nullable=False),
        sa.Column("privilege", sa.String(length=8), server_default="", nullable=False),
        sa.Column("tool_use", sa.String(length=16), server_default="", nullable=False),
        sa.Column("structured", sa.String(length=16), server_default="", nullable=False),
        sa.Column("stream", sa.Boolean(), nullable=False),
        sa.Column("rule", sa.String(length=128), server_default="", nullable=False),
        sa.Column("arm", sa.String(length=16), server_default="", nullable=False),
        sa.Column("rollout", sa.String(length=128), server_default="", nullable=False),
        sa.Column("pool", sa.String(length=128), server_default="", nullable=False),
        sa.Column("endpoint", sa.String(length=160), server_default="", nullable=False),
        sa.Column("precision", sa.String(length=32), server_default="", nullable=False),
        sa.Column("status", sa.Integer(), nullable=False),
        sa.Column("result", sa.String(length=32), server_default="", nullable=False),
        sa.Column("failure", sa.String(length=32), server_default="", nullable=False),
        sa.Column("error_code", sa.String(length=64), server_default="", nullable=False),
        sa.Column("attempts", sa.Text(), server_default="[]", nullable=False),
        sa.Column("constraints", sa.Text(), server_default="[]", nullable=False),
        sa.Column("queue_s", sa.Float(precision=53), server_default="-1", nullable=False),
        sa.Column("overhead_s", sa.Float(precision=53), server_default="-1", nullable=False),
        sa.Column("ttft_s", sa.Float(precision=53), server_default="-1", nullable=False),
        sa.Column("first_to_last_s", sa.Float(precision=53), server_default="-1", nullable=False),
        sa.Column("total_s", sa.Float(precision=53), server_default="-1", nullable=False),
        sa.Column("prompt_tokens_estimated", sa.BigInteger(), server_default="-1", nullable=False),
        sa.Column("prompt_tokens", sa.BigInteger(), server_default="-1", nullable=False),
        sa.Column("cached_tokens", sa.BigInteger(), server_default="-1", nullable=False),
        sa.Column("completion_tokens", sa.BigInteger(), server_default="-1", nullable=False),
        sa.Column("events", sa.BigInteger(), server_default="-1", nullable=False),
        sa.Column("bytes_in", sa.BigInteger(), server_default="-1", nullable=False),
        sa.Column("bytes_out", sa.BigInteger(), server_default="-1", nullable=False),
        sa.Column("finish_reason", sa.String(length=32), server_default="", nullable=False),
        sa.Column("seed", sa.Boolean(), nullable=False),
        sa.Column("temperature", sa.Float(precision=53), nullable=False),
        sa.Column("conversation", sa.String(length=64), server_default="", nullable=False),
        sa.Column("trace_id", sa.String(length=32), server_default="", nullable=False),
        sa.Column("deployment", sa.String(length=64), server_default="", nullable=False),
        sa.Column("score", sa.Float(precision=53), nullable=True),
        sa.Column("failures", sa.String(length=255), server_default="", nullable=False),
        sa.Column("findings", sa.Text(), server_default="[]", nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_requests")),
    )
    op.create_index(op.f("ix_requests_at"), "requests", ["at"], unique=False)
    op.create_index(op.f("ix_requests_bucket_pool_at"), "requests", ["bucket", "pool", "at"], unique=False)
    op.create_index(op.f("ix_requests_conversation"), "requests", ["conversation"], unique=False)
    op.create_index(op.f("ix_requests_request_id"), "requests", ["request_id"], unique=False)
    op.create_table(
        "samples",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("request_id", sa.String(length=64), nullable=False),
        sa.Column("at", sa.Float(precision=53), nullable=False),
        sa.Column("expires_at", sa.Float(precision=53), nullable=False),
        sa.Column("tenant", sa.String(length=64), server_default="", nullable=False),
        sa.Column("bucket", sa.String(length=255), server_default="", nullable=False),
        sa.Column("pool", sa.String(length=128), server_default="", nullable=False),
        sa.Column("reason", sa.String(length=32), server_default="", nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_samples")),
    )
    op.create_index(op.f("ix_samples_expires_at"), "samples", ["expires_at"], unique=False)
    op.create_index(op.f("ix_samples_request_id"), "samples", ["request_id"], unique=False)
    op.create_index(op.f("ix_samples_tenant_at"), "samples", ["tenant", "at"], unique=False)


def downgrade() -> None:
    """Drop the tables."""
    op.drop_index(op.f("ix_samples_tenant_at"), table_name="samples")
    op.drop_index(op.f("ix_samples_request_id"), table_name="samples")
    op.drop_index(op.f("ix_samples_expires_at"), table_name="samples")
    op.drop_table("samples")
    op.drop_index(op.f("ix_requests_request_id"), table_name="requests")
    op.drop_index(op.f("ix_requests_conversation"), table_name="requests")
    op.drop_index(op.f("ix_requests_bucket_pool_at"), table_name="requests")
    op.drop_index(op.f("ix_requests_at"), table_name="requests")
    op.drop_table("requests")
    op.drop_table("deployments")
    op.drop_index(op.f("ix_aftermath_request_id"), table_name="aftermath")
    op.drop_index(op.f("ix_aftermath_at"), table_name="aftermath")
    op.drop_table("aftermath")
