"""What the report reads of a stored request and of what became of it, column by column.

Owns the order of columns, so that rows can come as plain tuples from a database or a file. Filled by the store,
read by `tally`.
"""

from typing import NamedTuple


class RequestRow(NamedTuple):
    """One finished request; the fields are the record's own. ``attempts`` and ``findings`` are JSON as stored."""

    at: float
    bucket: str
    pool: str
    model: str
    precision: str
    deployment: str
    result: str
    stream: bool
    attempts: str
    queue_s: float
    overhead_s: float
    ttft_s: float
    first_to_last_s: float
    longest_gap_s: float
    total_s: float
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    finish_reason: str
    score: float | None
    findings: str


class ConsequenceRow(NamedTuple):
    """One thing that became known of one request: each kind counts once for a request. ``score`` of feedback alone."""

    kind: str
    bucket: str
    pool: str
    score: float | None


REQUEST_COLUMNS = RequestRow._fields
