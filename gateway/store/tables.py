"""The schema. Names are the records' own; times are seconds since the epoch; -1 = unknown, as in an ``Outcome``.

A change here needs a migration beside it (``migrations/versions``); a test compares the two.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

# SQLite only counts rows up in a column that is INTEGER to the letter.
SERIAL = BigInteger().with_variant(Integer, "sqlite")

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    }
)


def _word(name: str, length: int = 64) -> Column[str]:
    return Column(name, String(length), nullable=False, server_default="")


def _count(name: str) -> Column[int]:
    return Column(name, BigInteger, nullable=False, server_default="-1")


def _seconds(name: str) -> Column[float]:
    return Column(name, Float(53), nullable=False, server_default="-1")


# A request is stored in two parts: what it shares with many others (its kind, a row for all of them) and what is its
# own. Half the columns, a third of the bytes and of the time to write. Readers see ``requests``, which joins them.
request_kinds = Table(
    "request_kinds",
    metadata,
    Column("id", BigInteger, primary_key=True, autoincrement=False),  # a digest of the rest but ``at``
    Column("at", Float(53), nullable=False),  # of the last request known to be of it, to a day or so
    Column("generation", Integer, nullable=False),
    Column("worker", Integer, nullable=False),
    _word("api", 16),
    _word("tenant"),
    _word("tier", 32),
    _word("model", 128),
    _word("adapter", 128),
    _word("bucket", 255),
    _word("length", 32),
    _word("task", 64),
    _word("privilege", 8),
    _word("tool_use", 16),
    _word("structured", 16),
    Column("stream", Boolean, nullable=False),
    _word("rule", 128),
    _word("arm", 16),
    _word("rollout", 128),
    _word("pool", 128),
    _word("endpoint", 160),
    _word("precision", 32),
    Column("status", Integer, nullable=False),
    _word("result", 32),
    _word("failure", 32),
    _word("error_code"),
    Column("constraints", Text, nullable=False, server_default="[]"),
    _word("finish_reason", 32),
    Column("seed", Boolean, nullable=False),
    _word("deployment", 64),
)

request_facts = Table(
    "request_facts",
    metadata,
    Column("id", SERIAL, primary_key=True, autoincrement=True),
    Column("kind", BigInteger, nullable=False),
    Column("request_id", String(64), nullable=False),
    Column("at", Float(53), nullable=False),
    Column("attempts", Text, nullable=False, server_default="[]"),
    _seconds("queue_s"),
    _seconds("overhead_s"),
    _seconds("ttft_s"),
    _seconds("first_to_last_s"),
    _seconds("longest_gap_s"),
    _seconds("total_s"),
    _count("prompt_tokens_estimated"),
    _count("prompt_tokens"),
    _count("cached_tokens"),
    _count("completion_tokens"),
    _count("events"),
    _count("bytes_in"),
    _count("bytes_out"),
    Column("temperature", Float(53), nullable=False),
    _word("conversation", 64),
    _word("trace_id", 32),
    # What the checks found: a score in [0, 1], null where nothing was checked; the failure classes that count against
    # the pool, as ",class,class,"; and every check that applied with its verdict, as JSON [[check, verdict], …].
    Column("score", Float(53)),
    _word("failures", 255),
    Column("findings", Text, nullable=False, server_default="[]"),
    # Both grow at their end alone. One over kinds would be written all over for every batch: it took more time than
    # everything else, and a scan is bounded by ``at`` or stops at the page's end.
    Index(None, "request_id"),
    Index(None, "at"),
)

# The columns of records in the order in which they are exported.
_RECORD = (
    *("id", "request_id", "at", "generation", "worker", "api", "tenant", "tier", "model", "adapter", "bucket"),
    *("length", "task", "privilege", "tool_use", "structured", "stream", "rule", "arm", "rollout", "pool", "endpoint"),
    *("precision", "status", "result", "failure", "error_code", "attempts", "constraints", "queue_s", "overhead_s"),
    *("ttft_s", "first_to_last_s", "longest_gap_s", "total_s", "prompt_tokens_estimated", "prompt_tokens"),
    *("cached_tokens", "completion_tokens", "events", "bytes_in", "bytes_out", "finish_reason", "seed", "temperature"),
    *("conversation", "trace_id", "deployment", "score", "failures", "findings"),
)


def _part_of(name: str) -> Table:
    return request_facts if name in request_facts.c else request_kinds


# A view. It is no part of ``metadata``, which holds what migrations make as tables.
requests = Table("requests", MetaData(), *(Column(name, _part_of(name).c[name].type) for name in _RECORD))

aftermath = Table(
    "aftermath",
    metadata,
    Column("id", SERIAL, primary_key=True, autoincrement=True),
    Column("at", Float(53), nullable=False),
    Column("request_id", String(64), nullable=False),
    _word("kind", 32),  # feedback | tool_error | repeated_call | re_ask
    _word("tenant"),
    _word("bucket", 255),
    _word("pool", 128),
    _word("label", 64),
    Column("score", Float(53)),
    _word("by_request_id"),
    Index(None, "request_id"),
    Index(None, "at"),
)

deployments = Table(
    "deployments",
    metadata,
    Column("hash", String(64), primary_key=True),
    _word("pool", 128),
    Column("first_seen_at", Float(53), nullable=False),
    Column("record", Text, nullable=False),
)

samples = Table(
    "samples",
    metadata,
    Column("id", SERIAL, primary_key=True, autoincrement=True),
    Column("request_id", String(64), nullable=False),
    Column("at", Float(53), nullable=False),
    Column("expires_at", Float(53), nullable=False),
    _word("tenant"),
    _word("bucket", 255),
    _word("pool", 128),
    _word("reason", 32),  # incident | share | pair
    Column("sealed", LargeBinary, nullable=False),
    Index(None, "request_id"),
    Index(None, "expires_at"),
    Index(None, "tenant", "at"),
)

pairs = Table(
    "pairs",
    metadata,
    Column("id", SERIAL, primary_key=True, autoincrement=True),
    Column("request_id", String(64), nullable=False),
    Column("at", Float(53), nullable=False),
    _word("rule", 128),
    _word("tenant"),
    _word("bucket", 255),
    _word("task", 64),
    _word("baseline", 128),
    _word("candidate", 128),
    _word("verdict", 32),
    _word("kind", 32),
    Column("agreement", Float(53)),
    Column("noise", Float(53)),
    Column("excess", Float(53)),
    Column("loss", Float(53)),
    Column("promotion", Float(53)),
    Column("likelihood_gap", Float(53)),
    Column("parts", Text, nullable=False, server_default="{}"),
    _word("candidate_failure", 32),
    _word("baseline_failure", 32),
    _seconds("ttft_baseline_s"),
    _seconds("ttft_candidate_s"),
    _seconds("total_baseline_s"),
    _seconds("total_candidate_s"),
    _word("capped_by", 32),  # the flip that held the agreement down
    _word("unscored", 32),  # why there is no agreement
    _word("noise_failure", 32),
    Column("noise_parts", Text, nullable=False, server_default="{}"),
    Column("likelihood", Text, nullable=False, server_default="{}"),
    Index(None, "request_id"),
    Index(None, "at"),
    Index(None, "bucket", "candidate", "at"),
)

rollouts = Table(
    "rollouts",
    metadata,
    Column("identity", String(64), primary_key=True),
    Column("bucket", String(255), primary_key=True),
    _word("rollout", 128),
    _word("state", 16),
    Column("version", Integer, nullable=False),
    Column("at", Float(53), nullable=False),
    Column("standing", Text, nullable=False),  # the whole value as JSON; the columns beside it are for people
)

# Append-only: triggers refuse updates and deletions, and each row's chain covers the one before it.
rollout_events = Table(
    "rollout_events",
    metadata,
    Column("id", SERIAL, primary_key=True, autoincrement=True),
    Column("identity", String(64), nullable=False),
    Column("bucket", String(255), nullable=False),
    Column("version", Integer, nullable=False),
    _word("rollout", 128),
    Column("at", Float(53), nullable=False),
    _word("event", 16),
    _word("before", 16),
    _word("after", 16),
    Column("stage", Integer, nullable=False),
    Column("share_bp", Integer, nullable=False),
    Column("reason", Text, nullable=False),
    _word("actor", 128),
    _word("policy", 64),
    Column("evidence", Text, nullable=False, server_default="{}"),
    _word("chain", 64),
    UniqueConstraint("identity", "bucket", "version"),
    Index(None, "rollout", "bucket", "id"),
)

# What the gateways of one database tell each other of what they saw, in one order for all: ``evidence_order`` has a
# single row, and whoever counts it up writes next. ``evidence_meters`` has one too: meters for a gateway that joins.
evidence_reports = Table(
    "evidence_reports",
    metadata,
    Column("position", BigInteger, primary_key=True, autoincrement=False),
    Column("at", Float(53), nullable=False),
    Column("body", LargeBinary, nullable=False),
    Index(None, "at"),
)

evidence_order = Table(
    "evidence_order",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("position", BigInteger, nullable=False),
)

evidence_meters = Table(
    "evidence_meters",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("at", Float(53), nullable=False),
    Column("body", LargeBinary, nullable=False),
)
