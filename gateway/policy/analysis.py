"""What a policy does, for people: its decision table, what hangs on one pool, what never happens.

Built on ``cells``; every statement holds for all requests, not for a sample. Called by ``quantgate check``.
"""

from collections.abc import Iterator
from itertools import product
from typing import Any

import msgspec

from gateway.model.table import Table
from gateway.policy.cells import Cell, cells_of, compiled, space_of
from gateway.policy.space import Region, Space
from gateway.policy.words import describe

BUCKETS_MOST = 20_000
# Where a word of ``buckets.by`` (as a profile's field) is found: the dimension, and the part of its value.
_BUCKET_FIELDS: dict[str, tuple[str, int | None]] = {
    "api": ("api", None),
    "model": ("served", 0),
    "adapter": ("served", 1),
    "length": ("length", None),
    "task": ("task", None),
    "tool_use": ("tools", 0),
    "privilege": ("tools", 1),
    "structured": ("structured", None),
    "tenant": ("caller", 0),
    "tier": ("caller", 1),
    "stream": ("stream", None),
}

Bucket = tuple[Any, ...]


class Row(msgspec.Struct, frozen=True):
    """One line of the decision table.

    ``requests`` in words; ``buckets``: how many it touches; ``pools`` empty = refused.

    ``failover``: pools (others are left) | endpoints (only within the one pool) | none | refused.
    """

    rule: str
    model: str
    adapter: str | None
    requests: str
    pools: tuple[str, ...]
    by: tuple[str, ...]
    buckets: int
    failover: str


class BucketLine(msgspec.Struct, frozen=True):
    """One bucket: its fields, and the lists of pools that its requests can get, with the route of each."""

    fields: dict[str, str]
    outcomes: tuple[tuple[str, tuple[str, ...]], ...]


class Report(msgspec.Struct, frozen=True):
    """Everything ``quantgate check`` tells about a valid policy.

    ``without``: by pool, the requests that are refused once it is gone, in words with their number of buckets.
    ``never``: rules that change nothing, with the reason. ``buckets`` is empty if there are too many to list.
    """

    rows: tuple[Row, ...]
    without: dict[str, tuple[str, ...]]
    never: tuple[str, ...]
    bucket_count: int
    bucket_most: int
    buckets: tuple[BucketLine, ...]


def analyse(table: Table) -> Report:
    """The report on a compiled policy. Raises ``TooFineError`` if its rules cut too finely."""
    space = space_of(table)
    cells = cells_of(table, space)
    projection = _Projection(table, space)
    return Report(
        rows=tuple(_row(table, space, projection, cell) for cell in cells),
        without={name: _without(space, projection, cells, name) for name in table.pools},
        never=tuple(_never(table, space, cells)),
        bucket_count=bucket_count(table, space),
        bucket_most=table.classifier.bucket_most,
        buckets=_buckets(projection, cells),
    )


def bucket_count(table: Table, space: Space) -> int:
    """Buckets that requests can fall into; counting stops beyond ``BUCKETS_MOST``."""
    return len(_Projection(table, space).buckets(space.everything))


def _row(table: Table, space: Space, projection: "_Projection", cell: Cell) -> Row:
    return Row(
        rule=cell.rule,
        model=cell.model,
        adapter=cell.adapter,
        requests=describe(space, list(cell.region), ("served",)),
        pools=cell.pools,
        by=cell.by,
        buckets=len(projection.buckets(list(cell.region))),
        failover=_failover(table, cell.pools),
    )


def _failover(table: Table, pools: tuple[str, ...]) -> str:
    if not pools:
        return "refused"
    if len(pools) > 1:
        return "pools"
    return "endpoints" if len(table.pools[pools[0]].endpoints) > 1 else "none"


def _without(space: Space, projection: "_Projection", cells: list[Cell], pool: str) -> tuple[str, ...]:
    """What only ``pool`` serves, one sentence per model and adapter."""
    lost: dict[str, Region] = {}
    for cell in cells:
        if cell.pools == (pool,):
            who = cell.model if cell.adapter is None else f"{cell.model}:{cell.adapter}"
            lost.setdefault(who, []).extend(cell.region)
    sentences = []
    for who, region in lost.items():
        count = len(projection.buckets(region))
        plural = "bucket" if count == 1 else "buckets"
        sentences.append(f"{who}: {describe(space, region, ('served',))} ({count} {plural})")
    return tuple(sentences)


def _never(table: Table, space: Space, cells: list[Cell]) -> Iterator[str]:
    reached: Region = [box for cell in cells for box in cell.region]
    fired = {name for cell in cells for name in cell.by}
    for constraint in table.constraints:
        if not space.within(reached, compiled(constraint.matches)):
            yield f"constraint {constraint.name}: no request that reaches a route matches it"
        elif constraint.name not in fired:
            yield f"constraint {constraint.name}: it never takes a pool away that another rule has left"
    used = {pool for cell in cells for pool in cell.pools} | {shadow.candidate for shadow in table.shadows}
    for route in table.routes:
        if not any(cell.pools for cell in cells if cell.rule == route.name):
            yield f"route {route.name}: every request it matches is refused"
    for pool in table.pools:
        if pool not in used:
            yield f"pool {pool}: no request can get it"


class _Projection:
    """Boxes seen as buckets: only the fields of ``buckets.by``, each combination once."""

    def __init__(self, table: Table, space: Space) -> None:
        self.names = table.classifier.bucket_by
        self._space = space
        self._wanted: dict[str, list[tuple[int, int | None]]] = {}
        for position, name in enumerate(self.names):
            dimension, part = _BUCKET_FIELDS[name]
            self._wanted.setdefault(dimension, []).append((position, part))
        self._indexes = [space.dimensions.index(dimension) for dimension in self._wanted]
        self._choices: dict[tuple[str, int], list[Bucket]] = {}

    def buckets(self, region: Region) -> set[Bucket]:
        """The buckets that requests of ``region`` fall into; stops beyond ``BUCKETS_MOST``."""
        found: set[Bucket] = set()
        places = [position for wanted in self._wanted.values() for position, _ in wanted]
        order = [places.index(position) for position in range(len(places))]
        for masks in {tuple(box[index] for index in self._indexes) for box in region}:
            parts = [self._values(*pair) for pair in zip(self._wanted, masks, strict=True)]
            for chosen in product(*parts):
                flat = [value for part in chosen for value in part]
                found.add(tuple(flat[place] for place in order))
                if len(found) > BUCKETS_MOST:
                    return found
        return found

    def _values(self, dimension: str, mask: int) -> list[Bucket]:
        """The distinct values of the wanted parts of a dimension."""
        known = self._choices.get((dimension, mask))
        if known is None:
            atoms = [atom for position, atom in enumerate(self._space.atoms[dimension]) if mask >> position & 1]
            parts = [part for _, part in self._wanted[dimension]]
            known = list(dict.fromkeys(tuple(atom if part is None else atom[part] for part in parts) for atom in atoms))
            self._choices[dimension, mask] = known
        return known


def _buckets(projection: _Projection, cells: list[Cell]) -> tuple[BucketLine, ...]:
    outcomes: dict[Bucket, dict[tuple[str, tuple[str, ...]], None]] = {}
    for cell in cells:
        for bucket in projection.buckets(list(cell.region)):
            outcomes.setdefault(bucket, {})[cell.rule, cell.pools] = None
    if len(outcomes) > BUCKETS_MOST:
        return ()
    return tuple(
        BucketLine({name: _word(value) for name, value in zip(projection.names, bucket, strict=True)}, tuple(found))
        for bucket, found in outcomes.items()
    )


def _word(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "-" if value is None else str(value)
