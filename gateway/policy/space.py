"""The finite space of requests that one policy can tell apart, and exact set algebra on it.

Every dimension of a condition has finitely many representatives (a numeric one has one per step), so a condition is a
box of bit masks minus other boxes, and a region is a list of disjoint boxes. Questions such as "is this route ever
reached" are answered exactly, not by sampling. Correlated dimensions (a length class and the tokens in it) are cut to
what can occur. Pure. Called by ``cells``.
"""

from collections.abc import Iterable
from typing import Any

from gateway.model.enums import Api, Privilege, Structured, ToolUse
from gateway.model.table import Table
from gateway.policy.conditions import ATTRIBUTES, NUMERIC, Condition

Box = tuple[int, ...]
Region = list[Box]

BOXES_MOST = 20_000
_LEAST = {"n": 1.0}
_NOT_ROUTED = (Api.MODELS, Api.OTHER)


class TooFineError(Exception):
    """The rules cut the space into more pieces than are worth looking at."""


class Space:
    """Representatives by dimension, and regions over them."""

    def __init__(self, table: Table, conditions: Iterable[Condition]) -> None:
        self.dimensions = tuple(ATTRIBUTES)
        self.atoms: dict[str, list[Any]] = _words(table)
        steps = _steps(table, conditions)
        for dimension in NUMERIC:
            least = _LEAST.get(dimension, 0.0)
            self.atoms[dimension] = [least, *sorted(step for step in steps[dimension] if step > least)]
        self.full: Box = tuple((1 << len(self.atoms[dimension])) - 1 for dimension in self.dimensions)
        self._boxes: dict[int, tuple[Condition, Box]] = {}
        self.everything: Region = self._possible(table)

    def _possible(self, table: Table) -> Region:
        """Everything without tokens above the bound of their length class.

        Below is possible: a class sticks in a conversation.
        """
        region = [self.full]
        for length, bound in table.classifier.lengths:
            tokens = [atom > bound for atom in self.atoms["context_tokens"]]
            region = subtract(
                region,
                self._replaced(
                    self.full,
                    length=_mask(atom == length for atom in self.atoms["length"]),
                    context_tokens=_mask(tokens),
                ),
            )
        return region

    def _replaced(self, box: Box, **masks: int) -> Box:
        return tuple(masks.get(dimension, mask) for dimension, mask in zip(self.dimensions, box, strict=True))

    def pinned(self, region: Region, dimension: str, atom: Any) -> Region:
        """The part of ``region`` where ``dimension`` has this representative."""
        bit = 1 << self.atoms[dimension].index(atom)
        return intersect(region, self._replaced(self.full, **{dimension: bit}))

    def box_of(self, condition: Condition) -> Box:
        """The box of a condition's own tests, without what it excludes."""
        known = self._boxes.get(id(condition))
        if known is None:
            masks = dict(zip(self.dimensions, self.full, strict=True))
            for dimension, test in condition.tests:
                masks[dimension] &= _mask(test(atom) for atom in self.atoms[dimension])
            # The condition is kept beside its box so that its id stays taken.
            known = self._boxes[id(condition)] = (condition, tuple(masks.values()))
        return known[1]

    def within(self, region: Region, condition: Condition) -> Region:
        """The part of ``region`` where ``condition`` holds."""
        inside = intersect(region, self.box_of(condition))
        for excluded in condition.nots:
            inside = self.without(inside, excluded)
        return inside

    def without(self, region: Region, condition: Condition) -> Region:
        """The part of ``region`` where ``condition`` does not hold."""
        box = self.box_of(condition)
        outside = subtract(region, box)
        inside = intersect(region, box)
        for excluded in condition.nots:
            outside = outside + self.within(inside, excluded)
            inside = self.without(inside, excluded)
        return outside

    def present(self, region: Region, dimension: str) -> list[Any]:
        """The representatives of ``dimension`` that occur in ``region``."""
        index = self.dimensions.index(dimension)
        mask = 0
        for box in region:
            mask |= box[index]
        return [atom for position, atom in enumerate(self.atoms[dimension]) if mask >> position & 1]


def intersect(region: Region, box: Box) -> Region:
    """The part of ``region`` inside ``box``."""
    cut = (tuple(mine & other for mine, other in zip(part, box, strict=True)) for part in region)
    return [part for part in cut if all(part)]


def subtract(region: Region, box: Box) -> Region:
    """The part of ``region`` outside ``box``, in disjoint boxes. Raises ``TooFineError``."""
    rest: Region = []
    for part in region:
        common = tuple(mine & other for mine, other in zip(part, box, strict=True))
        if not all(common):
            rest.append(part)
            continue
        remaining = list(part)
        for index, mask in enumerate(common):
            outside = remaining[index] & ~mask
            if outside:
                rest.append((*remaining[:index], outside, *remaining[index + 1 :]))
                remaining[index] = mask
    if len(rest) > BOXES_MOST:
        raise TooFineError
    return rest


def compact(region: Region) -> Region:
    """The same region in fewer boxes: boxes that differ in one dimension only become one."""
    boxes = list(dict.fromkeys(region))
    for index in range(len(boxes[0]) if boxes else 0):
        groups: dict[tuple[Box, Box], int] = {}
        for box in boxes:
            key = (box[:index], box[index + 1 :])
            groups[key] = groups.get(key, 0) | box[index]
        boxes = [(*before, mask, *after) for (before, after), mask in groups.items()]
    return boxes


def _mask(flags: Iterable[bool]) -> int:
    return sum(1 << position for position, flag in enumerate(flags) if flag)


def _words(table: Table) -> dict[str, list[Any]]:
    classifier = table.classifier
    callers = [(tenant.name, tenant.tier) for tenant in table.tenants.values()] or [("anonymous", "default")]
    tasks = dict.fromkeys(
        [*(rule.task for rule in classifier.tasks), classifier.default_task, *sorted(classifier.hint_tasks)]
    )
    privileges = [privilege.value for privilege in Privilege]
    used = [use for use in ToolUse if use is not ToolUse.NONE]
    return {
        "api": [api for api in Api if api not in _NOT_ROUTED],
        "served": [(model.name, adapter) for model in table.models.values() for adapter in (None, *model.adapters)],
        "task": list(tasks),
        "length": [*(length for length, _ in classifier.lengths), classifier.over],
        "caller": callers,
        "tools": [
            (ToolUse.NONE, Privilege.NONE.value),
            *((use, privilege) for use in used for privilege in privileges),
        ],
        "structured": list(Structured),
        "seed": [False, True],
        "logprobs": [False, True],
        "stream": [False, True],
        "images": [False, True],
    }


def _steps(table: Table, conditions: Iterable[Condition]) -> dict[str, set[float]]:
    steps: dict[str, set[float]] = {dimension: set() for dimension in NUMERIC}
    for condition in conditions:
        for dimension, step in condition.steps:
            steps[dimension].add(step)
    steps["context_tokens"] |= {bound + 1 for _, bound in table.classifier.lengths}
    steps["context_tokens"] |= set(table.token_steps)
    return steps
