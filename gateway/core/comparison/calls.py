"""Tool calls of two answers, compared as what they would do.

Owns the pairing of calls (parallel calls have no order) and the agreement of names and arguments. Arguments are
compared as JSON values: key order and white space do not count, ``""`` equals ``{}`` (B32), digits are exact (B106).
Must not know the tools' schemas. Called by `agree` and `explain`.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

from gateway.core.assemble.answer import ToolCall
from gateway.core.assemble.exact_json import canonical_text
from gateway.core.comparison.structure import json_similarity, read_arguments
from gateway.core.comparison.text import MOST_CHARS, plain, similarity

MOST_CALLS: Final = 64
"""Calls per answer that are compared; a model that calls more loops."""

_MOST_PAIRINGS: Final = 64  # candidates per name that are tried against each other; more are paired in order


class CallsAgreement(NamedTuple):
    """``names``: F1 of the tools called, with repeats. ``arguments``: mean agreement over the larger number of calls,
    a call without partner counting 0. ``too_deep``: some arguments nest beyond what is read."""

    names: float
    arguments: float
    too_deep: bool = False


class Pairing(NamedTuple):
    """Two calls that were held against each other; None = no partner."""

    left: ToolCall | None
    right: ToolCall | None
    arguments: float


def compare_calls(left: Sequence[ToolCall], right: Sequence[ToolCall]) -> CallsAgreement:
    """Compare the calls of two answers, in any order. Symmetric; two answers without calls agree."""
    left, right = left[:MOST_CALLS], right[:MOST_CALLS]
    if not left and not right:
        return CallsAgreement(1.0, 1.0)
    left_names, right_names = Counter(call.name for call in left), Counter(call.name for call in right)
    common = (left_names & right_names).total()
    pairings = pair_calls(left, right)
    total = sum(pairing.arguments for pairing in pairings)
    deep = any(
        pairing.arguments < 1.0 and call is not None and not call.custom and read_arguments(call.arguments).too_deep
        for pairing in pairings
        for call in (pairing.left, pairing.right)
    )
    return CallsAgreement(2 * common / (len(left) + len(right)), total / max(len(left), len(right)), deep)


def pair_calls(left: Sequence[ToolCall], right: Sequence[ToolCall]) -> list[Pairing]:
    """Pair calls of the same tool: equal arguments first, then the most similar ones; the rest stays alone."""
    found: list[Pairing] = []
    rest_left, rest_right = list(left[:MOST_CALLS]), list(right[:MOST_CALLS])
    keys = {id(call): _key(call) for call in (*rest_left, *rest_right)}
    for call in list(rest_left):
        partner = next((other for other in rest_right if keys[id(other)] == keys[id(call)]), None)
        if partner is not None:
            found.append(Pairing(call, partner, 1.0))
            rest_left.remove(call)
            rest_right.remove(partner)
    for name in dict.fromkeys(call.name for call in rest_left):
        lefts = [call for call in rest_left if call.name == name]
        rights = [call for call in rest_right if call.name == name]
        for one, two, value in _most_similar(lefts, rights):
            found.append(Pairing(one, two, value))
            rest_left = [call for call in rest_left if call is not one]
            rest_right = [call for call in rest_right if call is not two]
    found.extend(Pairing(call, None, 0.0) for call in rest_left)
    found.extend(Pairing(None, call, 0.0) for call in rest_right)
    return found


def _key(call: ToolCall) -> tuple[str, str]:
    return call.name, call.arguments if call.custom else canonical_text(call.arguments)


def _most_similar(lefts: list[ToolCall], rights: list[ToolCall]) -> list[tuple[ToolCall, ToolCall, float]]:
    if len(lefts) * len(rights) > _MOST_PAIRINGS:
        return [(one, two, _argument_similarity(one, two)) for one, two in zip(lefts, rights, strict=False)]
    ranked = sorted(
        ((_argument_similarity(one, two), i, j) for i, one in enumerate(lefts) for j, two in enumerate(rights)),
        key=lambda found: (-found[0], found[1] + found[2], abs(found[1] - found[2]), found[1]),
    )
    taken: list[tuple[ToolCall, ToolCall, float]] = []
    used_left: set[int] = set()
    used_right: set[int] = set()
    for value, i, j in ranked:
        if i not in used_left and j not in used_right:
            used_left.add(i)
            used_right.add(j)
            taken.append((lefts[i], rights[j], value))
    return taken


def _argument_similarity(left: ToolCall, right: ToolCall) -> float:
    """Leaves in common; free text of a custom tool by words; arguments that are no JSON agree only when equal."""
    if left.custom or right.custom:
        return similarity(plain(left.arguments), plain(right.arguments)) if left.custom and right.custom else 0.0
    one, two = read_arguments(left.arguments[:MOST_CHARS]), read_arguments(right.arguments[:MOST_CHARS])
    if not one.found or not two.found:
        return float(left.arguments == right.arguments)
    return json_similarity(one.value, two.value)
