"""What the engine sees of probes and loads, and the edges that people hear of."""

from collections.abc import Callable

from msgspec.structs import replace

from gateway.control.endpoints import EndpointView
from gateway.control.reload import ReloadReport, ReloadResult
from gateway.control.rollouts_world import Edges, World
from gateway.model.enums import EndpointState
from gateway.model.messages import EndpointLocal, Stats
from gateway.runtimes.attestation import Confidence
from gateway.runtimes.compare import Mismatch, Verdict
from tests.unit.control.rollout_rig import rollout_policy

FOUND = Mismatch("weights", "int4", "bf16", Confidence.REPORTED, "policy says int4, the runtime reports bf16")


def view(pool: str, state: EndpointState) -> EndpointView:
    known = EndpointView(pool, f"{pool}/0", "http://x", "vllm", enforce=True)
    if state is EndpointState.QUARANTINED:
        known = replace(known, health=EndpointState.READY, verdict=Verdict.MISMATCH, mismatches=(FOUND,))
    else:
        known = replace(known, health=state)
    assert known.state is state
    return known


def test_a_pool_is_ready_once_an_endpoint_is_probed_and_serves() -> None:
    """Unknown and quarantined endpoints do not count."""
    views = [view("a", EndpointState.UNKNOWN), view("b", EndpointState.READY), view("c", EndpointState.QUARANTINED)]
    world = World(lambda: None, lambda: views, dict)
    assert [world.ready(pool) for pool in ("a", "b", "c", "d")] == [False, True, False, False]


def test_a_pool_is_away_once_no_worker_offers_its_endpoints_anything(stats: Callable[..., Stats]) -> None:
    """Withdrawn by their checks, or ejected by all workers; unknown ones are offered. Each endpoint is named."""
    views = [
        replace(view("a", EndpointState.UNHEALTHY), health_reason="refused"),
        view("b", EndpointState.UNKNOWN),
        view("c", EndpointState.READY),
    ]
    seen = {
        number: stats(number, endpoints=[EndpointLocal("c/0", state, 0, 0), EndpointLocal("a/0", "unhealthy", 0, 0)])
        for number, state in enumerate(("ejected", "ready"))
    }
    world = World(lambda: None, lambda: views, lambda: seen)
    assert [world.absence(pool) for pool in ("a", "b", "c", "d")] == ["a/0 is unhealthy (refused)", "", "", ""]
    seen[1] = seen[0]
    assert world.absence("c") == "c/0 is ejected, for its answers fail"


def test_head_room_comes_from_requests_in_flight_and_the_limit(stats: Callable[..., Stats]) -> None:
    """Over all workers; nothing is claimed before anything is known."""
    table = rollout_policy()
    plan = table.rollouts[0]
    known = {0: stats(0, inflight={"int4": 30, "bf16": 50}), 1: stats(1, inflight={"int4": 10, "bf16": 45})}
    room = World(lambda: table, list, lambda: known).headroom(plan, 0.5)
    assert room is not None
    assert (room.moved, room.used, room.limit, room.overflow) == (20.0, 95.0, 100, 15.0)
    assert World(lambda: table, list, dict).headroom(plan, 0.5) is None
    assert World(lambda: None, list, lambda: known).headroom(plan, 0.5) is None


def test_edges_are_told_once_each_way() -> None:
    """A failed reload and its mend; a quarantine and its end."""
    views: list[EndpointView] = [view("a", EndpointState.READY)]
    reports: list[ReloadReport | None] = [None]
    edges = Edges(lambda: views, lambda: reports[0])
    assert list(edges.news(1.0)) == []
    reports[0] = ReloadReport(ReloadResult.REJECTED, 1.0, "broken", ())
    views[0] = view("a", EndpointState.QUARANTINED)
    news = list(edges.news(2.0))
    assert [(one.event, one.resolved) for one in news] == [("quarantine", False), ("reload_failed", False)]
    assert FOUND.reason in news[0].summary
    assert list(edges.news(3.0)) == []
    reports[0] = ReloadReport(ReloadResult.APPLIED, 4.0, "fine", ())
    views.clear()
    assert [(one.event, one.resolved) for one in edges.news(4.0)] == [("quarantine", True), ("reload_failed", True)]
