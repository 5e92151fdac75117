"""Whether everything went where the policy lets it go: the client's, the gateway's and the servers' accounts compared.

Three accounts of the same requests, each kept by another program: what the client sent and was told (``Item``,
``Answer``), the gateway's access log and metrics (``Entry``), and what each llama.cpp server logged and counted
(``Account``). A check holds only if they agree; an account that says nothing is never taken for agreement. Pure.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from gateway.demo.access import Entry
from gateway.demo.client import Answer, right
from gateway.demo.witness import Counters, Sighting
from gateway.demo.workload import Item


class Account(msgspec.Struct, frozen=True):
    """One server's own account of the workload."""

    pool: str
    sightings: tuple[Sighting, ...]
    counters: Counters


class Ban(msgspec.Struct, frozen=True):
    """A constraint of the policy: its name, and the pools that it forbids to the requests it matches.

    ``least_context_tokens``: it is about contexts of this many tokens or more; 0 = about something else.
    """

    constraint: str
    pools: tuple[str, ...]
    least_context_tokens: int = 0


class Check(msgspec.Struct, frozen=True):
    """One statement, whether it holds, and by which accounts: pairs of (who, what it says)."""

    claim: str
    holds: bool
    accounts: tuple[tuple[str, str], ...]


class Evidence(msgspec.Struct, frozen=True):
    """Everything that is compared. ``counted``: the sum of the gateway's request counter."""

    items: Sequence[Item]
    answers: Mapping[int, Answer]
    entries: Sequence[Entry]
    accounts: Sequence[Account]
    counted: int


CLIENT, GATEWAY, SERVERS = "client", "gateway", "llama.cpp"


def checks(evidence: Evidence, privileged: Ban, long: Ban) -> tuple[Check, ...]:
    """All checks of the routing, the two that matter most at the end."""
    return (
        _answers(evidence),
        accounted(evidence),
        same_pool(evidence),
        tokens(evidence),
        _never(evidence, privileged, lambda item: item.privileged, "privileged tool call"),
        _never(evidence, long, lambda item: item.long, f"context of {long.least_context_tokens:,} tokens or more"),
    )


def _answers(evidence: Evidence) -> Check:
    """Every request has the answer that is right for it, refusals included."""
    answers = list(evidence.answers.values())
    wrong = [
        f"request {item.number} ({item.kind}) got {answer.status} {answer.error}".rstrip()
        for item in evidence.items
        if not right(item, answer := evidence.answers[item.number])
    ]
    refused = Counter(answer.status for answer in answers if answer.status != 200)
    statuses = ", ".join(f"{count} × {status}" for status, count in sorted(refused.items()))
    limited = [answer for answer in answers if answer.status == 429]
    waits = bool(limited) and all(answer.retry_after.isdigit() for answer in limited)
    shaped = [answer.valid_json for answer in answers if answer.valid_json is not None]
    said = [
        f"{len(answers) - sum(refused.values())} answered, {sum(refused.values())} refused ({statuses})",
        f"{sum(shaped)} of {len(shaped)} JSON answers follow their schema",
        "every 429 says when to come again" if waits else "a 429 that does not say when to come again",
        *wrong[:5],
    ]
    return Check(
        "Every request got the answer that is right for it, refusals included",
        not wrong and waits and all(shaped) and len(answers) == len(evidence.items),
        tuple((CLIENT, line) for line in said),
    )


def accounted(evidence: Evidence) -> Check:
    """Every request is in the log once and counted once, and every one that reached a server is in its log once."""
    sent, logged = len(evidence.items), len(evidence.entries)
    tried = _answered(evidence.entries)
    seen = Counter({account.pool: len(account.sightings) for account in evidence.accounts})
    pools = [account.pool for account in evidence.accounts]
    strangers = sum(sighting.number < 0 for account in evidence.accounts for sighting in account.sightings)
    unique = len({entry.request_id for entry in evidence.entries}) == logged
    return Check(
        "No request is missing, and none came from elsewhere",
        sent == logged == evidence.counted and unique and tried == seen and not strangers and sum(seen.values()) > 0,
        (
            (CLIENT, f"{sent} sent"),
            (
                GATEWAY,
                f"{logged} in the access log, {evidence.counted} in /metrics; answered: {placed(tried, pools)}",
            ),
            (SERVERS, f"computed: {placed(seen, pools)}" + (f"; {strangers} without a number" if strangers else "")),
        ),
    )


def _answered(entries: Iterable[Entry]) -> Counter[str]:
    """Attempts that a server answered, by pool. What its HTTP side refuses it never computes."""
    return Counter(attempt.pool for entry in entries for attempt in entry.attempts if attempt.status == 200)


def same_pool(evidence: Evidence) -> Check:
    """The pool that the client was told, the one in the access log and the server that computed it are the same."""
    logged = {entry.request_id: entry.pool for entry in evidence.entries}
    seen = _servers_of(evidence)
    told = {number: answer for number, answer in evidence.answers.items() if answer.status == 200}
    differ = [
        number
        for number, answer in told.items()
        if not (answer.pool and [answer.pool] == [logged.get(answer.request_id)] == seen.get(number, []))
    ]
    return Check(
        "Client, gateway and servers name the same pool for every answer",
        not differ and bool(told),
        (
            (CLIENT, f"{len(told)} answers with x-quantgate-pool"),
            (GATEWAY, f"{sum(answer.request_id in logged for answer in told.values())} of them in the access log"),
            (SERVERS, f"{sum(number in seen for number in told)} of them in exactly that server's log")
            if not differ
            else (SERVERS, f"requests {differ[:10]} differ"),
        ),
    )


def tokens(evidence: Evidence) -> Check:
    """Tokens per pool: the sums of the access log are the servers' own counters."""
    logged = {
        account.pool: [
            sum(max(getattr(entry, field), 0) for entry in evidence.entries if entry.pool == account.pool)
            for field in ("prompt_tokens", "completion_tokens")
        ]
        for account in evidence.accounts
    }
    counted = {
        account.pool: [account.counters.prompt_tokens, account.counters.completion_tokens]
        for account in evidence.accounts
    }
    return Check(
        "Tokens agree to the last one",
        logged == counted and sum(sum(pair) for pair in counted.values()) > 0,
        ((GATEWAY, _pairs(logged)), (SERVERS, _pairs(counted))),
    )


def _never(evidence: Evidence, ban: Ban, concerned: Callable[[Item], bool], what: str) -> Check:
    """No request that ``concerned`` picks ever reached a pool that the constraint forbids, by any account."""
    items = [item for item in evidence.items if concerned(item)]
    numbers = {item.number for item in items}
    ids = {evidence.answers[number].request_id for number in numbers}
    bound = [entry for entry in evidence.entries if ban.constraint in entry.constraints]
    by_gateway = _answered(bound)
    attempted = Counter(attempt.pool for entry in bound for attempt in entry.attempts)
    by_servers: Counter[str] = Counter(
        account.pool
        for account in evidence.accounts
        for sighting in account.sightings
        if sighting.number in numbers or 0 < ban.least_context_tokens <= sighting.context_tokens
    )
    pools = [account.pool for account in evidence.accounts]
    forbidden = sum(attempted[pool] + by_servers[pool] for pool in ban.pools)
    agree = ids == {entry.request_id for entry in bound} and by_gateway == by_servers
    longest = [account for account in evidence.accounts if account.pool in ban.pools and ban.least_context_tokens]
    under = all(account.counters.longest_context < ban.least_context_tokens for account in longest)
    return Check(
        f"No {what} ever reached {' or '.join(ban.pools)}",
        bool(items) and bool(ban.pools) and agree and forbidden == 0 and under,
        (
            (CLIENT, f"{len(items)} sent"),
            (GATEWAY, f"{len(bound)} bound by {ban.constraint}: {placed(by_gateway, pools)}"),
            (SERVERS, f"{placed(by_servers, pools)}{_longest(longest)}"),
        ),
    )


def _servers_of(evidence: Evidence) -> dict[int, list[str]]:
    """Which servers computed each request."""
    found: dict[int, list[str]] = {}
    for account in evidence.accounts:
        for sighting in account.sightings:
            found.setdefault(sighting.number, []).append(account.pool)
    return found


def _longest(accounts: Iterable[Account]) -> str:
    return "".join(
        f"; the most tokens that {account.pool} ever held in one context: {account.counters.longest_context:,}"
        for account in accounts
    )


def placed(counts: Mapping[str, int], pools: Iterable[str]) -> str:
    """Counts by pool, in words."""
    return ", ".join(f"{pool} {counts.get(pool, 0)}" for pool in pools)


def _pairs(sums: Mapping[str, Sequence[int]]) -> str:
    return ", ".join(f"{pool} {prompt:,} in {completion:,} out" for pool, (prompt, completion) in sums.items())
