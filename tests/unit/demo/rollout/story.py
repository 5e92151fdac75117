"""A small rollout that was told alike by everybody, for tests to spoil a part of it."""

from datetime import UTC, datetime
from typing import Any

import msgspec

from gateway.demo.access import Attempt, Entry
from gateway.demo.client import Answer
from gateway.demo.proof import Account, Evidence
from gateway.demo.rollout.findings import Found
from gateway.demo.rollout.notes import Requests, Way
from gateway.demo.rollout.standing import Bucket, Event, Guard, Twin
from gateway.demo.rollout.traffic import Decision, Sent
from gateway.demo.witness import Counters, Sighting

START = 1_800_000_000.0
PROMPT, MADE = 40, 20
BUCKETS = {way: f"short/{way}/none" for way in Way}

# way, pool, whether the answer is right, in the order of arrival, one a second
PLAN = (
    (Way.SCHEMA, "bf16", True),
    (Way.FREE, "bf16", True),
    (Way.SCHEMA, "q4", True),
    (Way.FREE, "q4", False),
    (Way.FREE, "q4", False),
    (Way.SCHEMA, "q4", True),
    (Way.FREE, "bf16", False),
    (Way.SCHEMA, "q4", True),
    (Way.FREE, "bf16", True),
)
FREE_OUT_AFTER = 6
"""The last request before every worker knew of the rollback."""


def event(way: Way, at: float, kind: str, after: str, share_bp: int, **more: Any) -> Event:
    """One line of the record; ``at`` counts from the first request."""
    fields = {"before": "stepping", "stage": 0, "reason": f"because of {kind}", **more}
    return Event(int(at * 10), BUCKETS[way], START + at, kind, after=after, share_bp=share_bp, **fields)


EVENTS = {
    Way.SCHEMA: (
        event(Way.SCHEMA, 0.5, "begin", "stepping", 2500, before="pending"),
        event(Way.SCHEMA, 4.5, "pass", "stepping", 5000, stage=1),
        event(Way.SCHEMA, 6.5, "pass", "promoted", 10_000, stage=1),
    ),
    Way.FREE: (
        event(Way.FREE, 1.5, "begin", "stepping", 2500, before="pending"),
        event(Way.FREE, 5.5, "fail", "rolled_back", -1),
    ),
}


def guard(series: str = "wrong", **change: Any) -> Guard:
    """A guard some way into a stage."""
    found = Guard(series, 0.15, True, 30, 0.0, -6.5, 2.9, 4.49, (0.0, 0.2), Twin(80, 1.0))
    return msgspec.structs.replace(found, **change)


def bucket(way: Way, state: str = "stepping", share_bp: int = 2500, **more: Any) -> Bucket:
    """Where a way stands."""
    fields = {"stage": 0, "reason": "q4 is ready", "stages": ({}, {}, {}), "series": (guard(),), **more}
    return Bucket(BUCKETS[way], state, share_bp=share_bp, **fields)


def sent() -> list[Sent]:
    """Every request with its answer."""
    requests = Requests(1, 7)
    made = []
    for number, (way, pool, good) in enumerate(PLAN, start=1):
        answer = Answer(number, 200, 0.5, pool=pool, request_id=f"id-{number}")
        made.append(Sent(requests.next(way), answer, good, told=True))
    return made


def entries() -> list[Entry]:
    """The gateway's lines."""
    return [
        Entry(
            at=datetime.fromtimestamp(START + number - 1, UTC),
            request_id=f"id-{number}",
            status=200,
            result="ok",
            total_ms=500.0,
            generation=3,
            bucket=BUCKETS[way],
            pool=pool,
            attempts=(Attempt(pool, 200),),
            prompt_tokens=PROMPT,
            completion_tokens=MADE,
        )
        for number, (way, pool, _) in enumerate(PLAN, start=1)
    ]


def accounts() -> list[Account]:
    """The servers' logs and counters."""
    found = []
    for name in ("bf16", "q8", "q4"):
        numbers = [number for number, (_, pool, _) in enumerate(PLAN, start=1) if pool == name]
        seen = tuple(Sighting(number, number, PROMPT, PROMPT + MADE) for number in numbers)
        counters = Counters(PROMPT * len(seen), MADE * len(seen), PROMPT + MADE)
        found.append(Account(name, seen, counters))
    return found


def story(**change: Any) -> Found:
    """One way is promoted, the other is rolled back, and all agree."""
    everything = sent()
    items = [one.request.item for one in everything]
    answers = {one.answer.number: one.answer for one in everything}
    found = Found(
        "q4",
        "bf16",
        {
            Way.SCHEMA: bucket(Way.SCHEMA, "promoted", 10_000),
            Way.FREE: bucket(Way.FREE, "rolled_back", -1),
        },
        EVENTS,
        {Way.SCHEMA: Decision("promoted", 7), Way.FREE: Decision("rolled_back", FREE_OUT_AFTER)},
        everything,
        Evidence(items, answers, entries(), accounts(), len(PLAN)),
        12.0,
    )
    return msgspec.structs.replace(found, **change)
