"""Rows and reports for tests of the report."""

import json

from gateway.core.report import Report, RequestRow, Tally, build

EVIL = '<script>alert("x")</script>|`a`[b](c)\n&'

PASSED = '[["json","pass"],["empty","pass"],["repetition","pass"]]'
BROKEN = '[["json","fail"],["empty","pass"],["repetition","pass"]]'


def attempts(*tries: tuple[str, str]) -> str:
    """Attempts as stored: (pool, failure)."""
    return json.dumps([[pool, f"{pool}/0", 200, failure, 0.0, 0.1] for pool, failure in tries], separators=(",", ":"))


def row(**fields: object) -> RequestRow:
    """A good streamed answer of the baseline, checked."""
    base = {
        "at": 1_700_000_000.0,
        "bucket": "chat",
        "pool": "bf16",
        "model": "m",
        "precision": "bf16",
        "deployment": "d1",
        "result": "ok",
        "stream": True,
        "attempts": "",
        "queue_s": 0.0,
        "overhead_s": 0.0004,
        "ttft_s": 0.1,
        "first_to_last_s": 1.0,
        "longest_gap_s": 0.05,
        "total_s": 1.1,
        "prompt_tokens": 100,
        "cached_tokens": 50,
        "completion_tokens": 51,
        "finish_reason": "stop",
        "score": 1.0,
        "findings": PASSED,
    }
    made = base | fields
    made["attempts"] = made["attempts"] or attempts((str(made["pool"]), "" if made["result"] == "ok" else "status_5xx"))
    return RequestRow(**made)  # type: ignore[arg-type]


def int4(**fields: object) -> RequestRow:
    """The same of a candidate that is twice as fast."""
    base = {"pool": "int4", "precision": "int4", "deployment": "d2", "ttft_s": 0.05, "first_to_last_s": 0.5}
    return row(**(base | {"total_s": 0.55} | fields))


def report(number: int = 400, broken: int = 80) -> Report:
    """A candidate that is faster and breaks JSON."""
    tally = Tally()
    for index in range(number):
        tally.add(row(at=1_700_000_000.0 + index))
        failed = index < broken
        tally.add(int4(at=1_700_000_000.0 + index, score=0.2 if failed else 1.0, findings=BROKEN if failed else PASSED))
    return build(tally, 1_700_001_000.0)


def evil_report() -> Report:
    """Names that would break every format."""
    tally = Tally()
    tally.add_requests(
        [row(bucket=EVIL, model=EVIL), int4(bucket=EVIL, model=EVIL, pool="<b>"), row(pool="", bucket=EVIL)]
    )
    return build(tally, 0.0)
