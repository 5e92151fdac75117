"""The requests of the demo: what is sent, by whom, and what must become of it.

Each request knows by its making whether it is privileged or too long for a quantised KV cache, so the gateway's own
classification is nowhere needed to judge where it went. Pure: a seed gives the same requests each time. ``client``
sends them, ``proof`` judges.
"""

from collections.abc import Callable, Iterable
from enum import StrEnum
from random import Random
from typing import Any

import msgspec

from gateway.demo import prompts
from gateway.demo.witness import WATERMARK, mark_of

MODEL = "smollm2-135m"
ALIAS = "gpt-4o-mini"
MISSPELT_MODEL = "smollm2-153m"
ACME, GLOBEX, TRIAL, STRANGER = "acme", "globex", "trial", "stranger"
TENANTS = (ACME, GLOBEX, TRIAL)
"""Those of ``routing_policies/demo.yaml``. ``STRANGER`` is none of them: its key is wrong."""

LEAST = 18
TRIAL_REQUESTS = 2
"""What the policy lets ``trial`` send in a minute."""

LONG_DAYS = 56
OK = frozenset({200})


class Kind(StrEnum):
    """What a request is about, in the words of the report."""

    CHAT = "chat"
    CODE = "code"
    JSON = "JSON schema"
    RAG = "RAG with citations"
    TOOL = "harmless tool"
    PRIVILEGED = "tool privileged by name"
    GRANTED = "tool privileged by grant"
    UNGRANTED = "same tool without the grant"
    LONG = "long context"
    EMBEDDINGS = "embeddings"
    UNKNOWN_MODEL = "unknown model"
    WRONG_KEY = "wrong key"
    TRIAL = "tenant with a rate limit"


class Item(msgspec.Struct, frozen=True):
    """One request. ``number`` is carried to the server and back; ``body`` holds the client's arguments.

    ``kind``: a ``Kind``, or what another part of the demo calls it. ``may_answer``: the statuses that are right for it.
    """

    number: int
    kind: StrEnum
    tenant: str
    body: dict[str, Any]
    may_answer: frozenset[int] = OK

    @property
    def privileged(self) -> bool:
        """It declares a tool that only 16-bit weights may see."""
        return self.kind in (Kind.PRIVILEGED, Kind.GRANTED)

    @property
    def long(self) -> bool:
        """Its context is longer than the policy lets a quantised KV cache hold."""
        return self.kind is Kind.LONG

    @property
    def stream(self) -> bool:
        """It asks for a stream."""
        return self.body.get("stream") is True


Step = tuple[Item, ...]
"""Requests that are sent one after another, or at once if they are to meet a rate limit; steps run side by side."""

Draft = tuple[Kind, str, dict[str, Any]]

# How often each kind comes: at least once, and this share of what is left. Chat takes the rest.
_SHARES = {
    Kind.CODE: 0.12,
    Kind.JSON: 0.12,
    Kind.RAG: 0.10,
    Kind.TOOL: 0.08,
    Kind.PRIVILEGED: 0.10,
    Kind.GRANTED: 0.05,
    Kind.UNGRANTED: 0.05,
    Kind.LONG: 0.06,
    Kind.EMBEDDINGS: 0.02,
    Kind.UNKNOWN_MODEL: 0.02,
    Kind.WRONG_KEY: 0.02,
}
_TRIAL_SENDS = 4
_LONG_MOST = 5
_REFUSALS = {
    Kind.EMBEDDINGS: frozenset({501}),
    Kind.UNKNOWN_MODEL: frozenset({404}),
    Kind.WRONG_KEY: frozenset({401}),
    Kind.TRIAL: frozenset({200, 429}),
}


def workload(count: int, seed: int) -> tuple[Step, ...]:
    """``count`` requests (at least ``LEAST``) in steps. The first and the last step are short chat, so that an edit of
    its route in between shows. The questions on one long report come early and one after another, as a person asks.
    """
    if count < LEAST:
        raise ValueError(f"the demo needs at least {LEAST} requests to send one of each kind")
    rng = Random(seed)  # noqa: S311 - makes a workload, guards nothing
    counts = _counts(count)
    chats = [_draft(Kind.CHAT, rng, index) for index in range(counts.pop(Kind.CHAT))]
    long = [_draft(Kind.LONG, rng, index) for index in range(counts.pop(Kind.LONG))]
    rest = [[_draft(kind, rng, index)] for kind, many in counts.items() for index in range(many)]
    rest += [[draft] for draft in chats[2:]]
    rest.append([_draft(Kind.TRIAL, rng, index) for index in range(_TRIAL_SENDS)])
    rng.shuffle(rest)
    return _numbered([[chats[0]], long, *rest, [chats[1]]])


def items_of(steps: Iterable[Step]) -> tuple[Item, ...]:
    """All requests, by number."""
    return tuple(sorted((item for step in steps for item in step), key=lambda item: item.number))


def _counts(count: int) -> dict[Kind, int]:
    """How many of each kind; the sum with the limited tenant's is ``count``."""
    spare = count - LEAST
    counts = {kind: 1 + int(spare * share) for kind, share in _SHARES.items()}
    counts[Kind.LONG] = min(counts[Kind.LONG], _LONG_MOST)
    return {Kind.CHAT: count - _TRIAL_SENDS - sum(counts.values()), **counts}


def _numbered(steps: Iterable[Iterable[Draft]]) -> tuple[Step, ...]:
    number, done = 0, []
    for step in steps:
        items = []
        for kind, tenant, body in step:
            number += 1
            marked = body if kind is Kind.EMBEDDINGS else {**body, "extra_body": {WATERMARK: mark_of(number)}}
            items.append(Item(number, kind, tenant, marked, _REFUSALS.get(kind, OK)))
        done.append(tuple(items))
    return tuple(done)


def _draft(kind: Kind, rng: Random, index: int) -> Draft:
    tenant, body = _MAKERS[kind](rng, index)
    if kind is not Kind.EMBEDDINGS:
        # Every other one is streamed.
        body |= {"stream": index % 2 == 0, "temperature": 0.3, "seed": rng.randint(1, 999)}
    return kind, tenant, {"model": MODEL, **body}


def _user(text: str, max_tokens: int, **more: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}], "max_tokens": max_tokens, **more}


def _any_tenant(rng: Random) -> str:
    return rng.choice((ACME, GLOBEX))


def _chat(rng: Random, index: int) -> tuple[str, dict[str, Any]]:
    """Single questions, now and then by the model's alias, and every fourth a conversation."""
    if index % 4 == 3:
        first, answer, second = rng.choice(prompts.SMALL_TALK)
        turns = (("user", first), ("assistant", answer), ("user", second))
        return _any_tenant(rng), {"messages": [{"role": r, "content": t} for r, t in turns], "max_tokens": 32}
    named = {"model": ALIAS} if index % 4 == 2 else {}
    return _any_tenant(rng), _user(rng.choice(prompts.QUESTIONS), rng.choice((24, 32, 40)), **named)


def _code(rng: Random, index: int) -> tuple[str, dict[str, Any]]:
    del index
    return _any_tenant(rng), _user(rng.choice(prompts.CODE), 48)


def _json(rng: Random, index: int) -> tuple[str, dict[str, Any]]:
    del index
    form = {"type": "json_schema", "json_schema": {"name": "weather", "strict": True, "schema": prompts.WEATHER}}
    return _any_tenant(rng), _user(f"As JSON: {rng.choice(prompts.FORECASTS)}", 64, response_format=form)


def _rag(rng: Random, index: int) -> tuple[str, dict[str, Any]]:
    del index
    system = "\n".join((prompts.RAG_SYSTEM, *prompts.DOCUMENTS))
    turns = (("system", system), ("user", rng.choice(prompts.RAG_QUESTIONS)))
    return _any_tenant(rng), {"messages": [{"role": r, "content": t} for r, t in turns], "max_tokens": 32}


def _tool(choices: tuple[tuple[str, str], ...], *tenants: str) -> Callable[[Random, int], tuple[str, dict[str, Any]]]:
    """A tool request by one of ``tenants``. A harmless second tool is declared too: it takes no privilege away."""

    def make(rng: Random, index: int) -> tuple[str, dict[str, Any]]:
        name, text = choices[index % len(choices)]
        return rng.choice(tenants), _user(text, 24, tools=[prompts.tool(name), prompts.tool("get_time")])

    return make


def _long(rng: Random, index: int) -> tuple[str, dict[str, Any]]:
    """Questions about one report: the servers keep what they have read, so only the first one is slow."""
    del rng
    question = prompts.LONG_QUESTIONS[index % len(prompts.LONG_QUESTIONS)]
    turns = (("system", prompts.pump_log(LONG_DAYS)), ("user", question))
    return GLOBEX, {"messages": [{"role": r, "content": t} for r, t in turns], "max_tokens": 24}


def _trial(rng: Random, index: int) -> tuple[str, dict[str, Any]]:
    del index
    return TRIAL, _user(rng.choice(prompts.QUESTIONS), 16)


_MAKERS: dict[Kind, Callable[[Random, int], tuple[str, dict[str, Any]]]] = {
    Kind.CHAT: _chat,
    Kind.CODE: _code,
    Kind.JSON: _json,
    Kind.RAG: _rag,
    Kind.TOOL: _tool(prompts.HARMLESS_TOOLS, ACME, GLOBEX),
    Kind.PRIVILEGED: _tool(prompts.PRIVILEGED_TOOLS, ACME, GLOBEX),
    Kind.GRANTED: _tool((prompts.GRANTED_TOOL,), ACME),
    Kind.UNGRANTED: _tool((prompts.GRANTED_TOOL,), GLOBEX),
    Kind.LONG: _long,
    Kind.EMBEDDINGS: lambda rng, _: (_any_tenant(rng), {"input": rng.choice(prompts.QUESTIONS)}),
    Kind.UNKNOWN_MODEL: lambda rng, _: (
        _any_tenant(rng),
        {**_user(rng.choice(prompts.QUESTIONS), 16), "model": MISSPELT_MODEL},
    ),
    Kind.WRONG_KEY: lambda rng, _: (STRANGER, _user(rng.choice(prompts.QUESTIONS), 16)),
    Kind.TRIAL: _trial,
}
