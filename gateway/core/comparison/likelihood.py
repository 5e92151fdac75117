"""One answer, scored token by token under two pools: how much less likely does the other pool find it?

Owns the log-likelihood gap, mean and worst span. Must not ask any runtime (the scores come from `scoring`) and must not
scale the gap for the judge (that is `evidence.pairs.GapScale`). Called for shadow pairs and replays.

Teacher-forced scores compare the pools on the same context at every position, so no sampling noise enters; comparing
two samples compares mostly luck. Logarithms are natural, so a gap is in nats per token.
"""

from collections.abc import Sequence
from itertools import accumulate
from typing import Final

import msgspec

WORST_SPAN_TOKENS: Final = 8
"""Length of the window whose mean gap is reported as the worst: about a name, a number or a call's argument."""

FLOOR_NATS: Final = -30.0
"""Log-probabilities below this count as this. Runtimes write -9999 or -inf for "impossible"; one such token would drown
the mean of a thousand others, and 1e-13 is impossible enough."""


class TokenScores(msgspec.Struct, frozen=True):
    """One answer's tokens as a pool's tokenizer cuts them, with the pool's log-probability of each in its context.

    ``pieces`` are the tokens' bytes and join to the answer. ``ids`` are the vocabulary numbers where the runtime tells
    them, else empty.
    """

    pieces: tuple[bytes, ...]
    logprobs: tuple[float, ...]
    ids: tuple[int, ...] = ()


class Gap(msgspec.Struct, frozen=True):
    """How much less likely an answer is under the other pool than under its own; > 0 = less likely.

    ``mean_nats`` per token; ``worst_mean_nats`` over the worst window of ``worst_tokens`` tokens, which starts at token
    ``worst_start``.
    """

    mean_nats: float
    tokens: int
    worst_mean_nats: float
    worst_start: int
    worst_tokens: int


def likelihood_gap(own: TokenScores, other: TokenScores, window_tokens: int = WORST_SPAN_TOKENS) -> Gap | None:
    """Gap of one answer between the pool it came from (``own``) and another one.

    The pools may cut the text differently: then gaps are taken between the byte positions that both cuts share, and
    spread evenly over the own tokens in between. None where the scores cover no common text.
    """
    if not own.logprobs or not other.logprobs or window_tokens < 1:
        return None
    gaps = _token_gaps(own, other)
    if gaps is None:
        return None
    width = min(window_tokens, len(gaps))
    sums = [0.0, *accumulate(gaps)]
    start = max(range(len(gaps) - width + 1), key=lambda at: sums[at + width] - sums[at])
    return Gap(
        mean_nats=sums[-1] / len(gaps),
        tokens=len(gaps),
        worst_mean_nats=(sums[start + width] - sums[start]) / width,
        worst_start=start,
        worst_tokens=width,
    )


def _token_gaps(own: TokenScores, other: TokenScores) -> list[float] | None:
    """One gap per own token."""
    ours, theirs = _floored(own.logprobs), _floored(other.logprobs)
    if (own.ids and own.ids == other.ids) or own.pieces == other.pieces:
        return [one - two for one, two in zip(ours, theirs, strict=True)]
    our_ends = list(accumulate(len(piece) for piece in own.pieces))
    their_ends = list(accumulate(len(piece) for piece in other.pieces))
    if not our_ends or our_ends[-1] == 0 or b"".join(own.pieces) != b"".join(other.pieces):
        return None
    shared = set(our_ends) & set(their_ends)
    their_sums = dict(zip(their_ends, accumulate(theirs), strict=True))  # a zero-width token adds to its position
    gaps: list[float] = []
    first, our_sum, their_sum = 0, 0.0, 0.0
    for at, end in enumerate(our_ends):
        our_sum += ours[at]
        last_here = at + 1 == len(our_ends) or our_ends[at + 1] != end
        if end in shared and last_here:
            count = at + 1 - first
            gaps.extend([(our_sum - (their_sums[end] - their_sum)) / count] * count)
            first, our_sum, their_sum = at + 1, 0.0, their_sums[end]
    return gaps


def _floored(logprobs: Sequence[float]) -> list[float]:
    """NaN counts as impossible: a pool that computes it has no opinion left."""
    return [value if value > FLOOR_NATS else FLOOR_NATS for value in logprobs]
