"""A request in two parts, its kind once for many and what is its own; ``requests`` becomes a view that joins them."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"

_WORDS = {
    "api": 16,
    "tenant": 64,
    "tier": 32,
    "model": 128,
    "adapter": 128,
    "bucket": 255,
    "length": 32,
    "task": 64,
    "privilege": 8,
    "tool_use": 16,
    "structured": 16,
    "rule": 128,
    "arm": 16,
    "rollout": 128,
    "pool": 128,
    "endpoint": 160,
    "precision": 32,
    "result": 32,
    "failure": 32,
    "error_code": 64,
    "finish_reason": 32,
    "deployment": 64,
}
_KIND = (*("generation", "worker", "stream", "status", "constraints", "seed"), *_WORDS)
_SECONDS = ("queue_s", "overhead_s", "ttft_s", "first_to_last_s", "longest_gap_s", "total_s")
_COUNTS = (
    *("prompt_tokens_estimated", "prompt_tokens", "cached_tokens", "completion_tokens", "events", "bytes_in"),
    "bytes_out",
)
_FACTS = (
    *("request_id", "at", "attempts", *_SECONDS, *_COUNTS, "temperature", "conversation", "trace_id", "score"),
    *("failures", "findings"),
)
# The order that records have had in exports.
_VIEW = (
    *("id", "request_id", "at", "generation", "worker", "api", "tenant", "tier", "model", "adapter", "bucket"),
    *("length", "task", "privilege", "tool_use", "structured", "stream", "rule", "arm", "rollout", "pool", "endpoint"),
    *("precision", "status", "result", "failure", "error_code", "attempts", "constraints", "queue_s", "overhead_s"),
    *("ttft_s", "first_to_last_s", "longest_gap_s", "total_s", "prompt_tokens_estimated", "prompt_tokens"),
    *("cached_tokens", "completion_tokens", "events", "bytes_in", "bytes_out", "finish_reason", "seed", "temperature"),
    *("conversation", "trace_id", "deployment", "score", "failures", "findings"),
)
_SERIAL = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Make the parts, move every request into them, put the view in the table's place."""
    op.create_table(
        "request_kinds",
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("at", sa.Float(precision=53), nullable=False),
        *_kind_columns(),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_request_kinds")),
    )
    op.create_table(
        "request_facts",
        sa.Column("id", _SERIAL, autoincrement=True, nullable=False),
        sa.Column("kind", sa.BigInteger(), nullable=False),
        *_fact_columns(),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_request_facts")),
    )
    kinds, facts = _names(_KIND), _names(_FACTS)
    op.execute(
        f"INSERT INTO request_kinds (id, at, {kinds}) "  # noqa: S608 - names of the schema
        f"SELECT -ROW_NUMBER() OVER (ORDER BY MIN(id)), MAX(at), {kinds} FROM requests GROUP BY {kinds}"
    )
    same = " AND ".join(f"k.{name} = r.{name}" for name in map(_quoted, _KIND))
    of_request = ", ".join(f"r.{name}" for name in map(_quoted, _FACTS))
    op.execute(
        f"INSERT INTO request_facts (id, kind, {facts}) "  # noqa: S608 - names of the schema
        f"SELECT r.id, k.id, {of_request} FROM requests r JOIN request_kinds k ON {same}"
    )
    op.create_index(op.f("ix_request_facts_request_id"), "request_facts", ["request_id"], unique=False)
    op.create_index(op.f("ix_request_facts_at"), "request_facts", ["at"], unique=False)
    op.drop_table("requests")
    _go_on_counting("request_facts")
    # A cross join keeps SQLite from looking up the requests of each kind, which nothing is indexed for.
    columns = ", ".join(
        f"{'f' if name in ('id', *_FACTS) else 'k'}.{_quoted(name)} AS {_quoted(name)}" for name in _VIEW
    )
    op.execute(
        f"CREATE VIEW requests AS SELECT {columns}, f.kind AS kind "  # noqa: S608 - names of the schema
        "FROM request_facts f CROSS JOIN request_kinds k WHERE k.id = f.kind"
    )


def downgrade() -> None:
    """One table again, with the indexes that it had."""
    op.create_table(
        "whole_requests",
        sa.Column("id", _SERIAL, autoincrement=True, nullable=False),
        *_kind_columns(),
        *_fact_columns(),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_requests")),
    )
    names = _names(("id", *_KIND, *_FACTS))
    op.execute(f"INSERT INTO whole_requests ({names}) SELECT {names} FROM requests")  # noqa: S608 - names of the schema
    op.execute("DROP VIEW requests")
    op.drop_table("request_facts")
    op.drop_table("request_kinds")
    op.rename_table("whole_requests", "requests")
    _go_on_counting("requests")
    for names_ in (["request_id"], ["at"], ["bucket", "pool", "at"], ["conversation"]):
        op.create_index(op.f(f"ix_requests_{'_'.join(names_)}"), "requests", names_, unique=False)


def _kind_columns() -> list[sa.Column[Any]]:
    return [
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("worker", sa.Integer(), nullable=False),
        sa.Column("stream", sa.Boolean(), nullable=False),
        sa.Column("status", sa.Integer(), nullable=False),
        sa.Column("constraints", sa.Text(), server_default="[]", nullable=False),
        sa.Column("seed", sa.Boolean(), nullable=False),
        *(sa.Column(name, sa.String(length=most), server_default="", nullable=False) for name, most in _WORDS.items()),
    ]


def _fact_columns() -> list[sa.Column[Any]]:
    return [
        sa.Column("request_id", sa.String(length=64), nullable=False),
        sa.Column("at", sa.Float(precision=53), nullable=False),
        sa.Column("attempts", sa.Text(), server_default="[]", nullable=False),
        *(sa.Column(name, sa.Float(precision=53), server_default="-1", nullable=False) for name in _SECONDS),
        *(sa.Column(name, sa.BigInteger(), server_default="-1", nullable=False) for name in _COUNTS),
        sa.Column("temperature", sa.Float(precision=53), nullable=False),
        sa.Column("conversation", sa.String(length=64), server_default="", nullable=False),
        sa.Column("trace_id", sa.String(length=32), server_default="", nullable=False),
        sa.Column("score", sa.Float(precision=53), nullable=True),
        sa.Column("failures", sa.String(length=255), server_default="", nullable=False),
        sa.Column("findings", sa.Text(), server_default="[]", nullable=False),
    ]


def _quoted(name: str) -> str:
    return f'"{name}"'


def _names(names: tuple[str, ...]) -> str:
    return ", ".join(map(_quoted, names))


def _go_on_counting(table: str) -> None:
    """PostgreSQL counts ids up by itself, and knows nothing of those that were copied. SQLite does."""
    if op.get_bind().dialect.name == "postgresql":
        op.execute(
            f"SELECT setval(pg_get_serial_sequence('{table}', 'id'), GREATEST(MAX(id), 1)) "  # noqa: S608 - our tables
            f"FROM {table} HAVING MAX(id) IS NOT NULL"
        )
