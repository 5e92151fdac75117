"""Trials: a candidate that is ejected goes on to be tried, on nobody's account, and only where that means something."""

import asyncio
from typing import Any

import pytest

from gateway.core.breaker import BUDGET_FLOOR
from gateway.dataplane.fleet import EndpointView
from gateway.dataplane.trials import Trials
from tests.unit.dataplane.conftest import Make
from tests.unit.dataplane.plane import CHAT, OK, Plane, Upstream, answer

INT4 = {"weights": "int4", "activations": "bf16", "kv_cache": "bf16", "method": "awq", "group_size": 128}
NEVER_AGAIN_S = 1e6


async def planes(make: Make, first: Upstream, second: Upstream, *, share_bp: int = 10_000, **more: Any) -> Plane:
    """``second`` is the candidate, which fails; ``first`` is the baseline. The share is latched."""
    second.script = lambda _body, writer: writer.write(answer(b"{}", 500))
    plan = {"name": "r", "candidate": "int4", "baseline": "bf16", "stages": [{"weight": "100%"}], "control": 0.0}
    more["rollouts"] = [{**plan, "guards": ["errors"]}]
    more["guards"] = {"errors": {"metric": "error_rate", "limit": "1%"}}
    extra = {"int4": {"precision": INT4, **more.pop("int4", {})}, "bf16": more.pop("bf16", {})}
    plane = await make({"int4": [second.url], "bf16": [first.url]}, pool=extra, **more)
    bucket = (await plane.ask(CHAT)).header["x-quantgate-bucket"]
    current = plane.worker.pipeline.current
    assert current is not None
    plane.worker.pipeline.deciding.shares = {current.generation.rollouts["r"].identity: {bucket: share_bp}}
    return plane


def candidate_of(plane: Plane) -> EndpointView:
    return next(view for view in plane.worker.fleet.views.values() if view.endpoint.pool == "int4")


def eject(plane: Plane) -> None:
    """Fail until the breaker opens. No trial was made before."""
    view = candidate_of(plane)
    while not view.breaker.failing:
        view.breaker.failure(plane.worker.forwarder.clock())
    plane.worker.forwarder.trials = Trials(NEVER_AGAIN_S)


async def tried(plane: Plane, second: Upstream, requests: int = 3, pool: str = "bf16") -> int:
    """How often the candidate was asked for so many requests; all of them are answered by ``pool``."""
    before = len(second.bodies)
    for _ in range(requests):
        reply = await plane.ask(CHAT)
        assert (reply.status, reply.header["x-quantgate-pool"]) == (200, pool)
    return len(second.bodies) - before


async def test_an_ejected_candidate_is_tried_now_and_then(make: Make, first: Upstream, second: Upstream) -> None:
    """One request when it is due, and none until it is again: evidence goes on, and each client has its answer."""
    plane = await planes(make, first, second)
    eject(plane)
    assert await tried(plane, second) == 1
    assert await tried(plane, second) == 0
    plane.worker.forwarder.trials = Trials(0.0)
    assert await tried(plane, second) == 3
    outcome = await plane.outcome(len(first.bodies))
    assert [(one.pool, one.failure) for one in outcome.attempts] == [("int4", "status_5xx"), ("bf16", "")]


async def test_a_trial_is_on_nobodys_account(make: Make, first: Upstream, second: Upstream) -> None:
    """Its failover takes no retry of others, its failure does not prolong the ejection, its success does not end it."""
    plane = await planes(make, first, second, gateway={"retry_budget": 0.0})
    view = candidate_of(plane)
    eject(plane)
    plane.worker.forwarder.trials = Trials(0.0)
    until = view.breaker._until
    assert await tried(plane, second, BUDGET_FLOOR + 5) == BUDGET_FLOOR + 5
    assert view.breaker._until == until
    second.script = lambda _body, writer: writer.write(answer(OK))
    assert await tried(plane, second, 1, pool="int4") == 1
    assert view.breaker._until == until
    assert view.breaker.failing


async def test_a_trial_is_none_of_the_attempts(make: Make, first: Upstream, second: Upstream) -> None:
    """Its client may be tried for as often as one whose request was not taken for it."""
    third = await Upstream().start()
    bf16 = {"endpoints": [first.url, third.url]}
    plane = await planes(make, first, second, gateway={"attempts": 2, "retry_budget": 1.0}, bf16=bf16)
    eject(plane)

    def once(_body: bytes, writer: asyncio.StreamWriter) -> None:
        first.script = third.script = lambda _again, other: other.write(answer(OK))
        writer.write(answer(b"{}", 500))

    first.script = third.script = once
    assert await tried(plane, second, 1) == 1
    outcome = await plane.outcome(2)
    assert [(one.pool, one.failure) for one in outcome.attempts] == [
        ("int4", "status_5xx"),
        ("bf16", "status_5xx"),
        ("bf16", ""),
    ]
    third.server.close()


async def test_what_health_checks_withdrew_is_not_tried(make: Make, first: Upstream, second: Upstream) -> None:
    """A drain, or a pool that was never up: no request failed, so there is nothing to prove; one that failed is tried
    whatever its health checks say, but for one that says it is loading."""
    plane = await planes(make, first, second)
    plane.worker.forwarder.trials = Trials(0.0)
    plane.report("int4/0", "unhealthy")
    assert await tried(plane, second) == 0
    plane.report("int4/0", "ready")
    eject(plane)
    for state, number in (("unhealthy", 1), ("loading", 0), ("quarantined", 0)):
        plane.worker.forwarder.trials = Trials(NEVER_AGAIN_S)
        plane.report("int4/0", state)
        assert await tried(plane, second) == number, state


@pytest.mark.parametrize(
    "more",
    [
        {"share_bp": 0},
        {"gateway": {"attempts": 1}},
        {"bf16": {"limits": {"inflight": 1}}},
    ],
    ids=["outside its share", "no second attempt", "no room instead"],
)
async def test_no_trial_may_cost_a_client_its_answer(
    make: Make, first: Upstream, second: Upstream, more: dict[str, Any]
) -> None:
    """Only requests of the candidate's own share, and only where the pool that would serve still can."""
    plane = await planes(make, first, second, **more)
    eject(plane)
    plane.worker.forwarder.trials = Trials(0.0)
    assert await tried(plane, second) == 0


async def test_a_trial_that_takes_all_of_its_time_is_made_good_too(
    make: Make, first: Upstream, second: Upstream
) -> None:
    """Nobody is asked twice for so long, but for a trial's client, who would have had its answer without it."""

    async def half(_body: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(answer(OK)[:-1])
        await asyncio.Event().wait()

    plane = await planes(make, first, second, int4={"timeouts": {"total": "50ms"}})
    eject(plane)
    second.script = half
    assert await tried(plane, second, 1) == 1
    outcome = await plane.outcome(len(first.bodies))
    assert [(one.pool, one.failure) for one in outcome.attempts] == [("int4", "total_timeout"), ("bf16", "")]


async def test_while_an_endpoint_serves_none_is_tried(make: Make, first: Upstream, second: Upstream) -> None:
    """The rest of the pool gives evidence enough, and its answers are good."""
    plane = await planes(make, first, second, int4={"endpoints": [second.url, first.url]})
    eject(plane)
    plane.worker.forwarder.trials = Trials(0.0)
    assert await tried(plane, second, pool="int4") == 0
