"""Two answers to one request in, one agreement out.

Owns the way from parts to the score: which parts apply, their weighted mean, the caps of flips, the mean over choices.
Must never raise, whatever the answers hold: an observer may not break what it observes (B21, B107). Called by the
scorer for shadow pairs and replays, and by `quantgate compare`.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from gateway.core.assemble.answer import Answer
from gateway.core.assemble.exact_json import canonical_text
from gateway.core.comparison.calls import compare_calls
from gateway.core.comparison.language import same_language
from gateway.core.comparison.legs import LegState, loss_of_triple, missing
from gateway.core.comparison.marks import overlap
from gateway.core.comparison.opinions import Opinion, OpinionFailedError, blend, rate_all
from gateway.core.comparison.parts import (
    CAPS,
    STRUCTURED_TEXT_WEIGHTS,
    WEIGHTS,
    Agreement,
    Kind,
    Part,
    Unscored,
    Verdict,
)
from gateway.core.comparison.reading import Legible, Reading, read
from gateway.core.comparison.structure import json_similarity
from gateway.core.comparison.text import length_ratio, similarity, word_similarity
from gateway.core.evidence.pairs import PairLoss
from gateway.core.quality.asked import Asked
from gateway.model.enums import Structured

Leg = Answer | LegState

_KIND_OF_TASK: Final = {
    "code": Kind.CODE,
    "rag": Kind.RAG,
    "extraction": Kind.STRUCTURED,
    "json": Kind.STRUCTURED,
    "structured": Kind.STRUCTURED,
    "agent": Kind.TOOLS,
    "tools": Kind.TOOLS,
}
_JSON_FORMS: Final = frozenset({Structured.JSON_OBJECT, Structured.JSON_SCHEMA})
_FREE_TEXT: Final = frozenset({Kind.CHAT, Kind.CODE, Kind.RAG})


class Triple(NamedTuple):
    """Three legs compared: candidate against baseline, baseline against itself, and the judge's value (None = the noise
    leg was not asked for)."""

    agreement: Agreement | LegState
    noise: Agreement | LegState
    loss: PairLoss | None


class _Unscored(Exception):  # noqa: N818 (carries a reason out of a walk; never seen by a caller)
    def __init__(self, reason: Unscored) -> None:
        super().__init__(reason)
        self.reason = reason


class _Scored(NamedTuple):
    """One choice."""

    score: float
    parts: Mapping[Part, float]
    capped_by: Part | None


def compare(
    reference: Answer, other: Answer, asked: Asked, task: str = "chat", *, opinions: Sequence[Opinion] = ()
) -> Agreement:
    """Compare two answers to one request. Never raises; what cannot be scored says so.

    ``asked`` is the request as `quality.asked.read_request` reads it, ``task`` the profile's. Symmetric but for the
    names of the failed legs (plug-ins may be asymmetric), and 1 for an answer against itself.
    """
    return _compare(read(asked, reference), read(asked, other), kind_of(task, asked), opinions)


def compare_legs(
    reference: Leg, other: Leg, asked: Asked, task: str = "chat", *, opinions: Sequence[Opinion] = ()
) -> Agreement | LegState:
    """The same for legs that may not have answered. `LegState.NOT_ASKED` stays what it is."""
    return _compare_legs(_read_leg(asked, reference), _read_leg(asked, other), kind_of(task, asked), opinions)


def excess(
    baseline: Leg, candidate: Leg, baseline2: Leg, asked: Asked, task: str = "chat", *, opinions: Sequence[Opinion] = ()
) -> Triple:
    """Excess difference of the candidate over the baseline's own noise: agreement(b, b') - agreement(b, c)."""
    kind = kind_of(task, asked)
    base = _read_leg(asked, baseline)
    agreement = _compare_legs(base, _read_leg(asked, candidate), kind, opinions)
    noise = _compare_legs(base, _read_leg(asked, baseline2), kind, opinions)
    return Triple(agreement, noise, loss_of_triple(noise, agreement))


def kind_of(task: str, asked: Asked) -> Kind:
    """What kind of comparison a request calls for: its requested structure first, then its task's name."""
    if asked.structured is not Structured.NONE:
        return Kind.STRUCTURED
    return _KIND_OF_TASK.get(task, Kind.CHAT)


def _read_leg(asked: Asked, leg: Leg) -> Legible | LegState:
    if isinstance(leg, Answer):
        return read(asked, leg)
    return Legible(failed=True, choices={}) if leg is LegState.FAILED else leg


def _compare_legs(
    reference: Legible | LegState, other: Legible | LegState, kind: Kind, opinions: Sequence[Opinion]
) -> Agreement | LegState:
    if isinstance(reference, Legible) and isinstance(other, Legible):
        return _compare(reference, other, kind, opinions)
    return LegState.NOT_ASKED if LegState.NOT_ASKED in (reference, other) else missing(kind)


def _compare(reference: Legible, other: Legible, kind: Kind, opinions: Sequence[Opinion]) -> Agreement:
    states = reference.failed, other.failed
    if any(states):
        return Agreement(_FAILED[states], kind, score=0.0)
    try:
        return _compare_choices(reference.choices, other.choices, kind, opinions)
    except _Unscored as gave_up:
        return Agreement(Verdict.UNSCORED, kind, unscored=gave_up.reason)
    except OpinionFailedError:
        return Agreement(Verdict.UNSCORED, kind, unscored=Unscored.OPINION_FAILED)
    except Exception:  # a fault of ours on a stranger's bytes: counted as unscored, never passed on
        return Agreement(Verdict.UNSCORED, kind, unscored=Unscored.COMPARATOR_ERROR)


_FAILED: Final = {
    (True, True): Verdict.BOTH_FAILED,
    (True, False): Verdict.REFERENCE_FAILED,
    (False, True): Verdict.OTHER_FAILED,
}


def _compare_choices(
    left: Mapping[int, Reading], right: Mapping[int, Reading], kind: Kind, opinions: Sequence[Opinion]
) -> Agreement:
    calls = any(reading.choice.tool_calls for reading in (*left.values(), *right.values()))
    if calls:
        kind = Kind.TOOLS
    elif kind is Kind.TOOLS:
        kind = Kind.CHAT  # nobody called anything: what there is to compare is text
    scored = [
        _compare_choice(left[index], right[index], kind, opinions) if index in left and index in right else _LOST
        for index in sorted({*left, *right})
    ]
    totals: dict[Part, list[float]] = {}
    for choice in scored:
        for part, value in choice.parts.items():
            totals.setdefault(part, []).append(value)
    return Agreement(
        Verdict.COMPARED,
        kind,
        score=sum(choice.score for choice in scored) / len(scored),
        parts=tuple((part, sum(totals[part]) / len(totals[part])) for part in Part if part in totals),
        capped_by=next((choice.capped_by for choice in scored if choice.capped_by is not None), None),
    )


_LOST: Final = _Scored(0.0, {}, None)  # a choice that only one side gave


def _compare_choice(left: Reading, right: Reading, kind: Kind, opinions: Sequence[Opinion]) -> _Scored:
    parts: dict[Part, float] = {}
    weights = WEIGHTS[kind]
    if kind is Kind.TOOLS:
        _add_calls(parts, left, right)
    if kind is Kind.STRUCTURED:
        _add_structure(parts, left, right)
        if Part.JSON not in parts:
            weights = STRUCTURED_TEXT_WEIGHTS
    if kind is not Kind.STRUCTURED or Part.JSON not in parts:  # of JSON the leaves say all
        _add_text(parts, left, right)
        _add_flips(parts, left, right)
    parts[Part.FINISH] = float(left.ending == right.ending)
    parts[Part.EXACT] = float(_exact(parts, left, right))
    total = sum(weight for part, weight in weights.items() if part in parts)
    score = sum(weight * parts[part] for part, weight in weights.items() if part in parts) / total
    if opinions and kind in _FREE_TEXT:
        rated = rate_all(opinions, left.asked, left.text, right.text)
        parts.update({part: value for part, value, _ in rated})
        score = blend(score, rated)
    capped_by = min((part for part in CAPS if parts.get(part) == 0.0), key=CAPS.__getitem__, default=None)
    if capped_by is not None and CAPS[capped_by] < score:
        return _Scored(CAPS[capped_by], parts, capped_by)
    return _Scored(min(1.0, score), parts, None)


def _add_calls(parts: dict[Part, float], left: Reading, right: Reading) -> None:
    if not left.choice.tool_calls and not right.choice.tool_calls:
        return
    found = compare_calls(left.choice.tool_calls, right.choice.tool_calls)
    if found.too_deep:
        raise _Unscored(Unscored.TOO_DEEP)
    parts[Part.TOOLS] = found.names
    parts[Part.ARGUMENTS] = found.arguments


def _add_structure(parts: dict[Part, float], left: Reading, right: Reading) -> None:
    """JSON and schema; absent where neither text is JSON. A choice of words counts as one JSON value.

    Where the API was asked for JSON its client parses the whole text: JSON inside a fence or prose is then no JSON.
    """
    if left.asked.words:
        parts[Part.JSON] = float(left.plain == right.plain)
    elif left.text == right.text:
        if left.json.found:
            parts[Part.JSON] = 1.0
    elif left.json.too_deep or right.json.too_deep:
        raise _Unscored(Unscored.TOO_DEEP)
    elif left.asked.structured in _JSON_FORMS and left.json.whole != right.json.whole:
        parts[Part.JSON] = 0.0
    elif left.json.found and right.json.found:
        parts[Part.JSON] = json_similarity(left.json.value, right.json.value)
    elif left.json.found or right.json.found:
        parts[Part.JSON] = 0.0
    if left.fits_schema is not None and right.fits_schema is not None:
        parts[Part.SCHEMA] = float(left.fits_schema == right.fits_schema)


def _add_text(parts: dict[Part, float], left: Reading, right: Reading) -> None:
    if not left.plain and not right.plain:
        return
    same = left.text == right.text
    parts[Part.TEXT] = 1.0 if same else _text_similarity(left, right)
    parts[Part.LENGTH] = 1.0 if same else length_ratio(len(left.words), len(right.words))
    one, two = left.marks, left.marks if same else right.marks
    for part, mine, theirs in (
        (Part.NUMBERS, one.numbers, two.numbers),
        (Part.CITATIONS, one.citations, two.citations),
        (Part.SYMBOLS, one.symbols, two.symbols),
    ):
        if mine or theirs:
            parts[part] = overlap(mine, theirs)


def _text_similarity(left: Reading, right: Reading) -> float:
    if left.words or right.words:
        return word_similarity(left.words, right.words)
    return similarity(left.plain, right.plain)


def _add_flips(parts: dict[Part, float], left: Reading, right: Reading) -> None:
    if not left.plain or not right.plain:
        return
    same = left.text == right.text
    parts[Part.REFUSAL] = float(left.refuses == right.refuses)
    parts[Part.DEGENERATE] = 1.0 if same else float(left.degenerate == right.degenerate)
    parts[Part.LANGUAGE] = 1.0 if same else float(same_language(left.language, right.language))


def _exact(parts: Mapping[Part, float], left: Reading, right: Reading) -> bool:
    calls = parts.get(Part.TOOLS, 1.0) == 1.0 and parts.get(Part.ARGUMENTS, 1.0) == 1.0
    if Part.JSON not in parts or left.asked.words:
        return calls and left.plain == right.plain
    if left.text == right.text:
        return True
    return parts[Part.JSON] == 1.0 and canonical_text(left.text) == canonical_text(right.text)
