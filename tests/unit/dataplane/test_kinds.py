"""A kind is found again by what it is made of: alike requests share its bytes, and no others do."""

from typing import Any

import msgspec

from gateway.core.answer import AnswerInfo
from gateway.dataplane import kinds as module
from gateway.dataplane.exchange import Exchange
from gateway.dataplane.fleet import Generation
from gateway.dataplane.identity import Caller
from gateway.dataplane.kinds import PackedKinds
from gateway.dataplane.outcomes import Tried
from gateway.model.decision import Decision
from gateway.model.enums import Api, Result, Structured, ToolUse
from gateway.model.facts import Facts, Profile, Sampling
from gateway.model.outcome import Kind
from gateway.model.table import Tenant
from tests.unit.dataplane.parts import Client, generation_of, pool_of, table_of

GENERATION = generation_of(table_of([pool_of("p"), pool_of("q")], generation=4))
ANNA = Caller(Tenant("anna"))
FACTS: dict[str, Any] = {"tool_use": ToolUse.NONE, "structured": Structured.NONE, "stream": False}
PROFILE: dict[str, Any] = {
    **FACTS,
    "api": Api.CHAT,
    "model": "m",
    "adapter": None,
    "length": "short",
    "task": "chat",
    "privilege": "none",
    "tenant": "anna",
    "tier": "default",
    "images": False,
    "sampling": Sampling(),
    "prompt_tokens": 5,
    "context_tokens": 6,
    "turns": 1,
    "bucket": "b",
}
DECISION: dict[str, Any] = {"rule": "all", "pools": ("p", "q"), "constraints": (), "arm": "none", "rollout": None}


def exchange(generation: Generation = GENERATION, **state: Any) -> Exchange:
    """A request in this state, or one that reached nothing."""
    client = Client()
    made = Exchange(
        client.connection,
        client.ask(),
        api=state.pop("api", Api.CHAT),
        request_id="r",
        generation=generation,
        wall_at=0.0,
        on_finish=lambda _exchange, _result, _status: None,
    )
    for name, value in state.items():
        setattr(made, name, value)
    return made


def served(**changed: Any) -> Exchange:
    """A request that was answered. Any field of what it is made of may be another."""
    sampling = Sampling(seed=True) if "seed" in changed else Sampling()
    facts = Facts(Api.CHAT, "m", sampling=sampling, **{name: changed.get(name, value) for name, value in FACTS.items()})
    profile = Profile(**{name: changed.get(name, value) for name, value in PROFILE.items()})
    decision = Decision(**{name: changed.get(name, value) for name, value in DECISION.items()})
    return exchange(
        caller=changed.get("caller", ANNA),
        api=changed.get("api", Api.CHAT),
        facts=facts,
        profile=profile,
        decision=decision,
        attempts=[Tried(changed.get("pool", "p"), changed.get("endpoint", "p/0"), 200, "", 0.0, 1.0)],
        usage=AnswerInfo(1, 2, 3, changed.get("finish_reason", "stop"), None, True),
        failure=changed.get("failure", ""),
        error_code=changed.get("error_code", ""),
    )


def kind_of(packed: bytes) -> dict[str, Any]:
    return msgspec.structs.asdict(msgspec.msgpack.decode(packed, type=Kind))


def test_every_field_is_what_the_request_was() -> None:
    """As control will read it."""
    kind = kind_of(
        PackedKinds(2).of(served(adapter="a", arm="control", rollout="r", constraints=("c",)), Result.OK, 201)
    )
    assert kind == {
        "generation": 4,
        "worker": 2,
        "api": "chat",
        "tenant": "anna",
        "tier": "default",
        "model": "m",
        "adapter": "a",
        "bucket": "b",
        "length": "short",
        "task": "chat",
        "privilege": "none",
        "tool_use": "none",
        "structured": "none",
        "stream": False,
        "rule": "all",
        "arm": "control",
        "rollout": "r",
        "pool": "p",
        "endpoint": "p/0",
        "precision": GENERATION.table.pools["p"].precision.label,
        "status": 201,
        "result": "ok",
        "failure": "",
        "error_code": "",
        "constraints": ("c",),
        "finish_reason": "stop",
        "seed": False,
    }


def test_alike_requests_share_one_kind() -> None:
    """What a kind does not hold makes no other: tokens, turns, times."""
    kinds = PackedKinds(0)
    first = kinds.of(served(), Result.OK, 200)
    assert kinds.of(served(prompt_tokens=9, turns=7, context_tokens=11), Result.OK, 200) is first


def test_whatever_a_kind_holds_makes_another() -> None:
    """One field at a time; each comes back as the kind that a fresh memory makes of it."""
    changes: list[dict[str, Any]] = [
        *({name: "other"} for name in ("model", "adapter", "bucket", "length", "task", "privilege", "rule", "arm")),
        *({name: "other"} for name in ("rollout", "failure", "error_code", "finish_reason", "endpoint")),
        *({"tool_use": use} for use in ToolUse if use is not ToolUse.NONE),
        *({"structured": structured} for structured in Structured if structured is not Structured.NONE),
        *({"stream": True}, {"seed": True}, {"pool": "q"}, {"api": Api.MESSAGES}, {"constraints": ("c",)}),
        *({"caller": Caller(Tenant("berta"))}, {"caller": Caller(Tenant("anna", tier="gold"))}, {"caller": None}),
    ]
    kinds = PackedKinds(0)
    ends = [(served(), Result.OK, 200), (served(), Result.SHED, 200), (served(), Result.OK, 201)]
    ends += [(served(**change), Result.OK, 200) for change in changes]
    ends += [(exchange(), Result.OK, 200), (exchange(facts=Facts(Api.CHAT, "m", stream=True)), Result.OK, 200)]
    packed = [kinds.of(*end) for end in ends]
    assert packed == [PackedKinds(0).of(*end) for end in ends] == [kinds.of(*end) for end in ends]
    assert len(set(packed)) == len(ends)


def test_another_generation_begins_anew() -> None:
    """Its number is in the kind; and what the last one's requests were made of is let go."""
    kinds = PackedKinds(0)
    later = generation_of(table_of([pool_of("p")], generation=5))
    numbers = [
        kind_of(kinds.of(exchange(made), Result.OK, 200))["generation"] for made in (GENERATION, later, GENERATION)
    ]
    assert numbers == [4, 5, 4]
    assert len(kinds._packed) == 1


def test_the_memory_is_bounded() -> None:
    """More kinds than it holds are made again, and stay right."""
    kinds = PackedKinds(0)
    for number in range(module.KINDS_MOST + 10):
        assert kind_of(kinds.of(exchange(error_code=str(number)), Result.INTERNAL, 500))["error_code"] == str(number)
    assert len(kinds._packed) == 10
