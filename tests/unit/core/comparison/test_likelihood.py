"""The log-likelihood gap of one answer between two pools."""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.comparison.likelihood import FLOOR_NATS, Gap, TokenScores, likelihood_gap

LOGPROBS = st.floats(-20.0, 0.0)


def scores(*tokens: tuple[str, float], ids: tuple[int, ...] = ()) -> TokenScores:
    return TokenScores(tuple(piece.encode() for piece, _ in tokens), tuple(value for _, value in tokens), ids)


def test_gap_is_the_mean_difference_per_token() -> None:
    """Positive = the other pool finds the answer less likely; the worst window is where it does most."""
    own = scores(("The", -1.0), (" cat", -1.0), (" sat", -1.0), (".", -1.0))
    other = scores(("The", -1.0), (" cat", -5.0), (" sat", -3.0), (".", -0.5))
    gap = likelihood_gap(own, other, window_tokens=2)
    assert gap == Gap(mean_nats=pytest.approx(1.375), tokens=4, worst_mean_nats=3.0, worst_start=1, worst_tokens=2)


@given(st.lists(LOGPROBS, min_size=1, max_size=30), st.integers(1, 40))
def test_a_pool_against_itself_has_no_gap(values: list[float], window: int) -> None:
    """The same scores give exactly zero, in the mean and in the worst window."""
    own = scores(*((f"t{i}", value) for i, value in enumerate(values)))
    gap = likelihood_gap(own, own, window)
    assert gap is not None
    assert (gap.mean_nats, gap.worst_mean_nats, gap.worst_tokens) == (0.0, 0.0, min(window, len(values)))


@given(st.lists(st.tuples(LOGPROBS, LOGPROBS), min_size=1, max_size=40))
def test_exchanging_the_pools_turns_the_sign(pairs: list[tuple[float, float]]) -> None:
    """On the same cut the gap one way is minus the gap the other way, and the worst window is the worst of all."""
    one = scores(*((f"t{i}", own) for i, (own, _) in enumerate(pairs)))
    two = scores(*((f"t{i}", other) for i, (_, other) in enumerate(pairs)))
    there, back = likelihood_gap(one, two), likelihood_gap(two, one)
    assert there is not None and back is not None
    assert there.mean_nats == pytest.approx(-back.mean_nats, abs=1e-9)
    gaps = [own - other for own, other in pairs]
    width = there.worst_tokens
    every = [sum(gaps[at : at + width]) / width for at in range(len(gaps) - width + 1)]
    assert there.worst_mean_nats == pytest.approx(max(every), abs=1e-9)
    assert every[there.worst_start] == pytest.approx(max(every), abs=1e-9)


@given(st.text(alphabet="ab é中", min_size=1, max_size=20), st.data())
def test_another_cut_of_the_text_keeps_the_total(text: str, data: st.DataObject) -> None:
    """Tokenizers may cut the same text differently: the sums are compared where the cuts meet, nothing is lost."""
    cuts = [
        [
            0,
            *sorted(data.draw(st.sets(st.integers(1, len(text) - 1), max_size=6) if len(text) > 1 else st.just(set()))),
            len(text),
        ]
        for _ in range(2)
    ]
    own, other = (scores(*((text[a:b], data.draw(LOGPROBS)) for a, b in pairwise(cut))) for cut in cuts)
    gap = likelihood_gap(own, other)
    assert gap is not None
    assert gap.tokens == len(own.logprobs)
    assert gap.mean_nats * gap.tokens == pytest.approx(sum(own.logprobs) - sum(other.logprobs), abs=1e-9)


def test_gaps_are_local_between_shared_cuts() -> None:
    """Where the cuts meet again, what came before does not spill over."""
    own = scores(("ab", -1.0), ("c", -1.0), ("d", -1.0))
    other = scores(("a", -1.0), ("bc", -4.0), ("d", -1.0))
    gap = likelihood_gap(own, other, window_tokens=1)
    assert gap is not None
    assert (gap.worst_mean_nats, gap.worst_start) == (1.5, 0)
    assert gap.mean_nats == 1.0


def test_equal_ids_need_no_equal_spelling() -> None:
    """Fragments of a character are spelled U+FFFD; the vocabulary numbers tell that the cut is the same."""
    own = scores(("\ufffd", -1.0), ("\ufffd", -2.0), ids=(5, 6))
    other = scores(("", -1.5), ("é", -2.5), ids=(5, 6))
    gap = likelihood_gap(own, other)
    assert gap is not None and gap.mean_nats == 0.5


def test_other_text_is_no_pair() -> None:
    """Scores of different texts, or of none, have no gap."""
    assert likelihood_gap(scores(("a", -1.0)), scores(("b", -1.0))) is None
    assert likelihood_gap(scores(), scores(("b", -1.0))) is None


@pytest.mark.parametrize("impossible", [-9999.0, -math.inf, math.nan])
def test_one_impossible_token_does_not_drown_the_rest(impossible: float) -> None:
    """Runtimes spell "impossible" as -9999, -inf or NaN; it counts as the floor."""
    own = scores(*((f"t{i}", 0.0) for i in range(10)))
    other = TokenScores(own.pieces, (impossible, *([0.0] * 9)))
    gap = likelihood_gap(own, other)
    assert gap is not None and gap.mean_nats == -FLOOR_NATS / 10
