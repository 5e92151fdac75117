"""Three accounts of a small workload that agree, for tests to spoil one of them."""

from datetime import UTC, datetime, timedelta

import msgspec

from gateway.demo.access import Attempt, Entry
from gateway.demo.client import Answer
from gateway.demo.edit import Edits
from gateway.demo.proof import Account, Ban, Evidence
from gateway.demo.witness import Counters, Sighting
from gateway.demo.workload import Item, Kind

PRIVILEGED = Ban("privileged", ("q4", "q8"))
LONG = Ban("long", ("q4",), 1024)
START = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)

# number: (kind, pool, status, constraints, prompt tokens)
PLAN = {
    1: (Kind.CHAT, "q4", 200, (), 40),
    2: (Kind.PRIVILEGED, "bf16", 200, ("privileged",), 50),
    3: (Kind.LONG, "q8", 200, ("long",), 1200),
    4: (Kind.JSON, "q8", 200, (), 60),
    5: (Kind.TRIAL, "", 429, (), -1),
    6: (Kind.EMBEDDINGS, "bf16", 501, (), -1),
    7: (Kind.CHAT, "bf16", 200, (), 40),
}
MADE = 10
SECOND_GENERATION_FROM = 6


def good_evidence() -> Evidence:
    """Everything agrees."""
    items = [
        Item(number, kind, "acme", {"stream": number % 2 == 1}, frozenset({status}))
        for number, (kind, _, status, _, _) in PLAN.items()
    ]
    answers = {number: _answer(number) for number in PLAN}
    entries = [_entry(number) for number in PLAN]
    accounts = [_account(pool) for pool in ("bf16", "q8", "q4")]
    return Evidence(items, answers, entries, accounts, len(PLAN))


def good_edits() -> Edits:
    """The wrong edit was refused, the right one applied while request 5 ran."""
    return Edits(
        order_before=("q4", "q8", "bf16"),
        order_after=("bf16", "q8", "q4"),
        refusal="demo.yaml:9:9: there is no pool 'q44'",
        generation_before=1,
        generation_refused=1,
        generation_after=2,
        took_s=0.5,
        applied_at=START + timedelta(seconds=5.5),
    )


def spoil_entry(evidence: Evidence, number: int, **change: object) -> Evidence:
    """The access log tells something else of one request."""
    entries = [
        msgspec.structs.replace(entry, **change) if entry.request_id == f"id-{number}" else entry
        for entry in evidence.entries
    ]
    return msgspec.structs.replace(evidence, entries=entries)


def spoil_answer(evidence: Evidence, number: int, **change: object) -> Evidence:
    """The client was told something else on one request."""
    answer = msgspec.structs.replace(evidence.answers[number], **change)
    return msgspec.structs.replace(evidence, answers={**evidence.answers, number: answer})


def spoil_account(evidence: Evidence, pool: str, **change: object) -> Evidence:
    """A server tells something else."""
    accounts = [
        msgspec.structs.replace(account, **change) if account.pool == pool else account for account in evidence.accounts
    ]
    return msgspec.structs.replace(evidence, accounts=accounts)


def account_of(evidence: Evidence, pool: str) -> Account:
    """One server's account."""
    return next(account for account in evidence.accounts if account.pool == pool)


def _answer(number: int) -> Answer:
    kind, pool, status, _, _ = PLAN[number]
    return Answer(
        number,
        status,
        1.0,
        error="" if status == 200 else f"code_{status}: no",
        pool=pool,
        request_id=f"id-{number}",
        retry_after="30" if status == 429 else "",
        valid_json=True if kind is Kind.JSON else None,
    )


def _entry(number: int) -> Entry:
    kind, pool, status, constraints, prompt = PLAN[number]
    results = {200: "ok", 429: "rate_limited", 501: "client_error"}
    return Entry(
        at=START + timedelta(seconds=number),
        request_id=f"id-{number}",
        status=status,
        result=results[status],
        total_ms=800.0,
        generation=1 if number < SECOND_GENERATION_FROM else 2,
        bucket=f"short/{'rag' if kind is Kind.LONG else 'chat'}/none",
        rule="exact" if kind in (Kind.JSON, Kind.PRIVILEGED) else "talk",
        constraints=constraints,
        pool=pool,
        attempts=(Attempt(pool, status),) if pool else (),
        ttft_ms=100.0 * number if status == 200 else -1.0,
        tpot_ms=20.0,
        prompt_tokens=prompt,
        completion_tokens=MADE if status == 200 else -1,
        stream=number % 2 == 1,
    )


def _account(pool: str) -> Account:
    mine = {n: prompt for n, (_, where, status, _, prompt) in PLAN.items() if where == pool and status == 200}
    sightings = tuple(Sighting(number, number, prompt, prompt + MADE) for number, prompt in mine.items())
    longest = max(sighting.context_tokens for sighting in sightings)
    return Account(pool, sightings, Counters(sum(mine.values()), MADE * len(mine), longest))
