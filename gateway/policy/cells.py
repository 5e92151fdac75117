"""The decision table of a policy: for every request it can tell apart, the route and the pools. Exact, and small.

A cell is a region of requests with one route, one model and adapter, and one list of eligible pools. Called by
``reach`` (what is wrong with the policy) and ``analysis`` (what it does, for people).
"""

from collections.abc import Sequence

import msgspec

from gateway.core.decide import NO_ROUTE, objections, window_of
from gateway.model.enums import Api, Structured, ToolUse
from gateway.model.facts import Profile, Sampling
from gateway.model.table import Pool, Predicate, Route, Table
from gateway.policy.conditions import Condition
from gateway.policy.space import Region, Space, TooFineError

CELLS_MOST = 20_000

# Regions by what is left of the pools, and by what took the others away.
_Parts = dict[tuple[tuple[str, ...], tuple[str, ...]], Region]


class Cell(msgspec.Struct, frozen=True):
    """Requests that are decided alike. ``by``: the constraints that took pools away, and ``context_window``.

    ``pools`` in order; empty = refused. ``rule`` is ``none`` where no route matches.
    """

    rule: str
    model: str
    adapter: str | None
    pools: tuple[str, ...]
    by: tuple[str, ...]
    region: tuple[tuple[int, ...], ...]


class Reached(msgspec.Struct, frozen=True):
    """A route, the requests that reach it, and those it would match if it stood first."""

    route: Route
    region: Region
    alone: Region


def space_of(table: Table) -> Space:
    """The space that the rules of ``table`` cut."""
    predicates = [
        *(constraint.matches for constraint in table.constraints),
        *(route.matches for route in table.routes),
        *(rollout.matches for rollout in table.rollouts),
        *(shadow.matches for shadow in table.shadows),
    ]
    return Space(table, [compiled(predicate) for predicate in predicates])


def compiled(predicate: Predicate) -> Condition:
    """A rule's predicate as the condition it was compiled from."""
    if not isinstance(predicate, Condition):
        raise TypeError("the table was not compiled from a policy")
    return predicate


def reached_routes(table: Table, space: Space) -> tuple[list[Reached], Region]:
    """What reaches each route, and what reaches none."""
    rest = space.everything
    found = []
    for route in table.routes:
        holds = compiled(route.matches)
        found.append(Reached(route, space.within(rest, holds), space.within(space.everything, holds)))
        rest = space.without(rest, holds)
    return found, rest


def cells_of(table: Table, space: Space) -> list[Cell]:
    """All cells, in the order of the routes. Raises ``TooFineError``."""
    routes, rest = reached_routes(table, space)
    cells: list[Cell] = []
    for reached in routes:
        for model, adapter in space.present(reached.region, "served"):
            region = space.pinned(reached.region, "served", (model, adapter))
            cells += _cells_of_route(table, space, reached.route, (model, adapter), region)
    for model, adapter in space.present(rest, "served"):
        region = space.pinned(rest, "served", (model, adapter))
        cells.append(Cell(NO_ROUTE, model, adapter, (), (), tuple(region)))
    return cells


def _cells_of_route(
    table: Table, space: Space, route: Route, served: tuple[str, str | None], region: Region
) -> list[Cell]:
    model, adapter = served
    carriers = [table.pools[name] for name in route.pools if carries(table, table.pools[name], model, adapter)]
    without_adapter = [table.pools[name] for name in route.pools if table.pools[name].model == model]
    start = ("adapter",) if len(without_adapter) > len(carriers) else ()
    parts: _Parts = {(tuple(pool.name for pool in carriers), start): region}
    for name, cut, removed in _cuts(table, carriers):
        split: _Parts = {}
        for (pools, by), part in parts.items():
            left = tuple(pool for pool in pools if pool not in removed)
            inside = space.within(part, cut) if left != pools else []
            _gather(split, left, (*by, name), inside)
            _gather(split, pools, by, space.without(part, cut) if inside else part)
        parts = split
        if sum(len(part) for part in parts.values()) > CELLS_MOST:
            raise TooFineError
    return [Cell(route.name, model, adapter, pools, by, tuple(part)) for (pools, by), part in parts.items()]


def _gather(parts: _Parts, pools: tuple[str, ...], by: tuple[str, ...], region: Region) -> None:
    if region:
        by = tuple(dict.fromkeys(by))
        parts[pools, by] = parts.get((pools, by), []) + region


def _cuts(table: Table, pools: Sequence[Pool]) -> list[tuple[str, Condition, frozenset[str]]]:
    """Everything that takes pools away from some requests: (name, when, which)."""
    windows = [(pool.name, window_of(table.models.get(pool.model), pool)) for pool in pools]
    cuts = [("context_window", beyond(window), frozenset((name,))) for name, window in windows if window is not None]
    for constraint in table.constraints:
        removed = frozenset(pool.name for pool in pools if not constraint.permits(pool))
        if removed:
            cuts.append((constraint.name, compiled(constraint.matches), removed))
    return cuts


def beyond(window: int) -> Condition:
    """Requests with more context tokens than ``window``."""
    return Condition(f"context tokens > {window:,}", (("context_tokens", lambda tokens: tokens > window),))


def carries(table: Table, pool: Pool, model: str, adapter: str | None) -> bool:
    """Whether ``pool`` serves the model with the adapter, leaving windows and constraints aside."""
    profile = Profile(
        api=Api.CHAT,
        model=model,
        adapter=adapter,
        length="",
        task="",
        tool_use=ToolUse.NONE,
        privilege="none",
        structured=Structured.NONE,
        tenant="",
        tier="",
        stream=False,
        images=False,
        sampling=Sampling(),
        prompt_tokens=0,
        context_tokens=0,
        turns=0,
        bucket="",
    )
    return next(objections(table.models.get(pool.model), pool, profile, ()), None) is None
