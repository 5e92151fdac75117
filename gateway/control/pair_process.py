"""What runs in a scorer process for shadow pairs: texts in, scores out. Imported there and called by name."""

import msgspec

from gateway.core.assemble import JsonProblemError, assemble, parse_envelope
from gateway.core.assemble.parts import as_object
from gateway.core.comparison import Agreement, Kind, LegState, compare_legs, excess
from gateway.core.comparison import Leg as ComparedLeg
from gateway.core.comparison.legs import missing
from gateway.core.evidence.pairs import PairLoss
from gateway.core.quality import read_request
from gateway.model.pair import Leg, Pair


class PairScores(msgspec.Struct, frozen=True, array_like=True):
    """What a pair came to. ``noise`` None = no second run of the baseline; then there is no ``loss`` either."""

    agreement: Agreement
    noise: Agreement | None
    loss: PairLoss | None


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(list[PairScores])
_PAIRS = msgspec.msgpack.Decoder(list[Pair])


def score_pairs(pairs: bytes) -> bytes:
    """Compare each pair; msgpack of ``list[Pair]`` in, msgpack for ``decode`` out."""
    return _ENCODER.encode([_score(pair) for pair in _PAIRS.decode(pairs)])


def decode(data: bytes) -> list[PairScores]:
    """What ``score_pairs`` sent back."""
    return _DECODER.decode(data)


def _score(pair: Pair) -> PairScores:
    try:
        body = as_object(parse_envelope(pair.request))
    except JsonProblemError:
        body = {}
    asked = read_request(body)

    def leg(run: Leg) -> ComparedLeg:
        return LegState.FAILED if run.failure else assemble(body, run.answer)

    baseline, candidate = leg(pair.baseline), leg(pair.candidate)
    if pair.noise is None:
        return PairScores(_agreement(compare_legs(baseline, candidate, asked, pair.task)), None, None)
    triple = excess(baseline, candidate, leg(pair.noise), asked, pair.task)
    return PairScores(_agreement(triple.agreement), _agreement(triple.noise), triple.loss)


def _agreement(found: Agreement | LegState) -> Agreement:
    return found if isinstance(found, Agreement) else missing(Kind.CHAT)
