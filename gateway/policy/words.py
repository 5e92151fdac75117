"""A region of requests in a person's words. Called by ``reach`` and ``analysis``."""

from typing import Any

from gateway.policy.conditions import NUMERIC, either
from gateway.policy.space import Box, Region, Space, TooFineError, compact, intersect, subtract

_LABELS = {
    "api": "api",
    "served": "model",
    "task": "task",
    "length": "length",
    "caller": "tenant",
    "tools": "tools",
    "structured": "structured output",
    "context_tokens": "context tokens",
    "prompt_tokens": "prompt tokens",
}
_CLAUSES_MOST = 3
_HULL_BOXES_MOST = 400


def describe(space: Space, region: Region, skip: tuple[str, ...] = ()) -> str:
    """``region`` as alternatives of conditions; "every request" for all of it. ``skip`` leaves dimensions out."""
    boxes = compact(_hull(space, region) or [_widened(space, box) for box in compact(region)])
    clauses = list(dict.fromkeys(_clause(space, box, skip) for box in boxes))
    if not clauses:
        return "no request"
    if "" in clauses:
        return "every request"
    shown = clauses[:_CLAUSES_MOST]
    more = len(clauses) - len(shown)
    return "; or ".join(shown) + (f"; and {more} more" if more else "")


def _clause(space: Space, box: Box, skip: tuple[str, ...]) -> str:
    parts = []
    for dimension, mask, full in zip(space.dimensions, box, space.full, strict=True):
        if mask == full or dimension in skip:
            continue
        atoms = space.atoms[dimension]
        chosen = [position for position in range(len(atoms)) if mask >> position & 1]
        parts.append(_part(dimension, atoms, chosen))
    return ", ".join(parts)


def _hull(space: Space, region: Region) -> Region:
    """The one box that holds exactly the possible requests of ``region``, bounded by as little as that takes.

    Or nothing.
    """
    if not region or len(region) > _HULL_BOXES_MOST:
        return []
    hull = region[0]
    for box in region[1:]:
        hull = tuple(mine | other for mine, other in zip(hull, box, strict=True))
    if not _covers(space, region, hull):
        return []
    for index, mask in enumerate(space.full):
        wider = (*hull[:index], mask, *hull[index + 1 :])
        if wider != hull and _covers(space, region, wider):
            hull = wider
    return [hull]


def _covers(space: Space, region: Region, box: Box) -> bool:
    """Whether every possible request in ``box`` belongs to ``region``."""
    rest = intersect(space.everything, box)
    try:
        for part in region:
            rest = subtract(rest, part)
    except TooFineError:
        return False
    return not rest


def _widened(space: Space, box: Box) -> Box:
    """``box`` without the bounds of tokens that its length classes imply anyway."""
    lengths, tokens = space.dimensions.index("length"), space.dimensions.index("context_tokens")
    possible = 0
    for part in space.everything:
        if part[lengths] & box[lengths]:
            possible |= part[tokens]
    if box[tokens] & possible != possible:
        return box
    return (*box[:tokens], space.full[tokens], *box[tokens + 1 :])


def _part(dimension: str, atoms: list[Any], chosen: list[int]) -> str:
    label = _LABELS.get(dimension, dimension)
    if dimension in NUMERIC:
        return f"{label} {_ranges(atoms, chosen)}"
    values = [atoms[position] for position in chosen]
    if isinstance(values[0], bool):
        return label if values[0] else f"no {label}"
    if dimension == "served":
        return f"{label} {either(model if adapter is None else f'{model}:{adapter}' for model, adapter in values)}"
    if dimension == "caller":
        return f"{label} {either(tenant for tenant, _ in values)}"
    if dimension == "tools":
        return _tools(atoms, values)
    return f"{label} {either(values)}"


def _tools(atoms: list[Any], values: list[Any]) -> str:
    """Privilege alone, use alone, or the pairs."""
    uses = dict.fromkeys(use for use, _ in values)
    privileges = dict.fromkeys(privilege for _, privilege in values)
    if values == [atom for atom in atoms if atom[1] in privileges]:
        return f"tool privilege {either(privileges)}"
    if values == [atom for atom in atoms if atom[0] in uses]:
        return f"tool use {either(uses)}"
    return f"tools {either(f'{use} with privilege {privilege}' for use, privilege in values)}"


def _ranges(atoms: list[Any], chosen: list[int]) -> str:
    """``< 32,768``, ``≥ 32,768``, ``2,049 to 8,192``; the numbers are the steps of the rules."""
    said = []
    start = 0
    for index, position in enumerate(chosen):
        if index + 1 < len(chosen) and chosen[index + 1] == position + 1:
            continue
        low = atoms[chosen[start]] if chosen[start] else None
        high = atoms[position + 1] if position + 1 < len(atoms) else None
        said.append(_range(low, high))
        start = index + 1
    return either(said)


def _range(low: float | None, high: float | None) -> str:
    if high is None:
        return f"≥ {_figure(low or 0)}"
    if low is None:
        return f"< {_figure(high)}"
    if high == low + 1:
        return _figure(low)
    return (
        f"{_figure(low)} to {_figure(high - 1)}" if high >= 2 and float(high).is_integer() else f"{low:g} to < {high:g}"
    )


def _figure(value: float) -> str:
    return f"{int(value):,}" if float(value).is_integer() else f"{value:g}"
