"""What runs in a scorer process for shadow pairs: texts in, scores out. Imported there and called by name."""

import msgspec

from gateway.control import opinion_plugins
from gateway.core.assemble import JsonProblemError, assemble, parse_envelope
from gateway.core.assemble.parts import as_object
from gateway.core.comparison import Agreement, Kind, LegState, Unscored, Verdict, compare_legs, excess
from gateway.core.comparison import Leg as ComparedLeg
from gateway.core.comparison.legs import missing
from gateway.core.evidence.pairs import WORST_LOSS, PairLoss
from gateway.core.quality import Inspection, inspect_assembled, read_request
from gateway.model.pair import Leg, Pair


class PairScores(msgspec.Struct, frozen=True, array_like=True):
    """What a pair came to. ``noise`` None = no second run of the baseline; then there is no ``loss`` either.

    ``baseline`` and ``candidate`` are what the checks found in each answer, where there was one.
    """

    agreement: Agreement
    noise: Agreement | None
    loss: PairLoss | None
    baseline: Inspection | None = None
    candidate: Inspection | None = None


class Work(msgspec.Struct, frozen=True, array_like=True):
    """Pairs to compare, and for each the opinions that its rule asks for."""

    pairs: list[Pair]
    opinions: list[tuple[str, ...]]


class Texts(msgspec.Struct, frozen=True, array_like=True):
    """The plain texts that a pair's answers consist of; empty where there is none, or where it is not all."""

    baseline: str
    candidate: str


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(list[PairScores])
_WORK = msgspec.msgpack.Decoder(Work)
_PAIR = msgspec.msgpack.Decoder(Pair)
_TEXTS = msgspec.msgpack.Decoder(Texts)


def score_pairs(work: bytes) -> bytes:
    """Compare each pair; msgpack of ``Work`` in, msgpack for ``decode`` out."""
    found = _WORK.decode(work)
    return _ENCODER.encode([_score(pair, names) for pair, names in zip(found.pairs, found.opinions, strict=True)])


def decode(data: bytes) -> list[PairScores]:
    """What ``score_pairs`` sent back."""
    return _DECODER.decode(data)


def answer_texts(pair: bytes) -> bytes:
    """The texts of a pair's two answers, for teacher-forced scoring; msgpack for ``decode_texts`` out."""
    found = _PAIR.decode(pair)
    body = _body(found)
    return _ENCODER.encode(Texts(_text(body, found.baseline), _text(body, found.candidate)))


def decode_texts(data: bytes) -> Texts:
    """What ``answer_texts`` sent back."""
    return _TEXTS.decode(data)


def unscored(pair: Pair) -> PairScores:
    """What a pair counts as whose comparison broke: missing, and the worst for promotion."""
    nothing = Agreement(Verdict.UNSCORED, Kind.CHAT, unscored=Unscored.COMPARATOR_ERROR)
    if pair.noise is None:
        return PairScores(nothing, None, None)
    return PairScores(nothing, nothing, PairLoss(None, WORST_LOSS, unscored=True))


def _score(pair: Pair, names: tuple[str, ...]) -> PairScores:
    opinions = [opinion for name in names if (opinion := opinion_plugins.load(name)) is not None]
    body = _body(pair)
    asked = read_request(body)

    def leg(run: Leg) -> ComparedLeg:
        if run.failure:
            return LegState.MISSING if run.missing else LegState.FAILED
        return assemble(body, run.answer)

    baseline, candidate = leg(pair.baseline), leg(pair.candidate)
    checks = [
        None if isinstance(found, LegState) else inspect_assembled(asked, found) for found in (baseline, candidate)
    ]
    if pair.noise is None:
        agreement = _agreement(compare_legs(baseline, candidate, asked, pair.task, opinions=opinions))
        return PairScores(agreement, None, None, *checks)
    triple = excess(baseline, candidate, leg(pair.noise), asked, pair.task, opinions=opinions)
    return PairScores(_agreement(triple.agreement), _agreement(triple.noise), triple.loss, *checks)


def _agreement(found: Agreement | LegState) -> Agreement:
    return found if isinstance(found, Agreement) else missing(Kind.CHAT)


def _body(pair: Pair) -> dict[str, object]:
    try:
        return as_object(parse_envelope(pair.request))
    except JsonProblemError:
        return {}


def _text(body: dict[str, object], leg: Leg) -> str:
    """Of several choices the first; an answer that also calls tools is no text that a template could continue."""
    if leg.failure:
        return ""
    choices = assemble(body, leg.answer).choices
    first = min(choices, key=lambda choice: choice.index, default=None)
    return "" if first is None or first.tool_calls else first.text
