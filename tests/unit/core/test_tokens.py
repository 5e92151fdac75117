"""Estimates are as exact as the bounds need; corrections learn and stay within bounds."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.classify import classify
from gateway.core.tokens import (
    IMAGE_TOKENS,
    INLINE_TEXT_BYTES,
    SLICE_CHARS,
    Correction,
    Estimate,
    bounds_of,
    plan,
)
from gateway.model.enums import Api
from gateway.model.facts import Facts, Principal, Texts
from gateway.model.table import Classifier, Settings, Table

BOUNDS = (2_000, 8_000, 32_000, 128_000)


class Words:
    """Counts words, so that every test knows the truth; remembers the pieces it was given."""

    def __init__(self) -> None:
        self.pieces: list[str] = []

    def count(self, text: str) -> int:
        """Words of ``text``."""
        self.pieces.append(text)
        return len(text.split())

    @property
    def chars(self) -> int:
        """Characters seen."""
        return sum(map(len, self.pieces))


class Pairs(Words):
    """Counts pairs of characters, spaces or not."""

    def count(self, text: str) -> int:
        """Half the characters of ``text``."""
        self.pieces.append(text)
        return len(text) // 2

    def counted(self, text: str) -> str:
        """What was counted after the samples were taken, if it is as long as ``text``."""
        found = "".join(self.pieces)
        return found[-len(text) :]


def planned(*parts: str, tokenizer: Words | None = None, **fields: Any) -> Estimate:
    """The estimate for a chat of these texts, with no output reserved."""
    asked = {key: fields.pop(key) for key in ("inline", "default_output_tokens") if key in fields}
    bounds = fields.pop("bounds", BOUNDS)
    correction = fields.pop("correction", None) or Correction()
    text_bytes = sum(len(part.encode()) for part in parts)
    facts = Facts(**{"api": Api.CHAT, "model": "m", "text_bytes": text_bytes, "max_output_tokens": 0, **fields})
    return plan(facts, Texts(parts=parts), bounds, tokenizer or Words(), correction, **asked)


def test_short_texts_are_decided_by_their_bytes() -> None:
    """A byte-level tokenizer never gives more tokens than bytes: below the first bound nothing is tokenised."""
    words = Words()
    found = planned("word " * 300, tokenizer=words)
    assert not words.pieces
    assert (found.by, found.exact, found.settled) == ("bytes", False, True)
    assert 300 < found.tokens < 600


def test_reserved_output_counts_towards_the_bound() -> None:
    """The bound is on the context, so a large reserve ends the shortcut; without one the policy's default counts."""
    assert planned("word " * 300, max_output_tokens=600).by != "bytes"
    assert planned("word " * 300, max_output_tokens=None, default_output_tokens=600).by != "bytes"
    assert planned("word " * 300, max_output_tokens=None, default_output_tokens=0).by == "bytes"


def test_no_bounds_no_work() -> None:
    """A policy without bounds needs no tokens."""
    assert planned("word " * 100_000, bounds=()).by == "bytes"


def test_even_texts_are_sampled() -> None:
    """Far from any bound a few short slices suffice, whatever the length."""
    for count in (3_000, 14_000, 300_000):
        words = Words()
        found = planned("word " * count, tokenizer=words)
        assert (found.by, found.settled, found.exact) == ("sample", True, False)
        assert abs(found.tokens - count) < count * 0.1
        assert words.chars < 10_000


def test_a_bound_in_doubt_is_counted() -> None:
    """Close to a bound the whole text is counted, in slices, exactly."""
    words = Words()
    found = planned("word " * 7_990, tokenizer=words, messages=0)
    assert (found.by, found.exact, found.settled) == ("count", True, True)
    assert found.raw == 7_990 + 4
    assert max(map(len, words.pieces)) <= SLICE_CHARS


def test_uneven_texts_are_counted() -> None:
    """Slices that disagree widen the doubt: a dense half cannot hide behind a thin one."""
    thin, dense = "abcdefghijklmnopqrst" * 1_000 + " ", "a " * 6_000
    found = planned(thin, dense)
    assert found.exact
    assert 6_000 < found.raw < 6_050


def test_counting_stops_at_the_highest_bound() -> None:
    """Over the last bound the exact number decides nothing, so it is not counted."""
    words = Words()
    text = "x" * 100_000 + "a " * 200_000 + "x" * 1_000_000
    found = planned(text, tokenizer=words)
    assert found.tokens > BOUNDS[-1]
    assert words.chars < len(text) / 2


@given(
    st.lists(st.sampled_from(["word ", "a ", "long-winded-word ", "é ", "\n\n"]), min_size=1, max_size=4),
    st.integers(1, 9_000),
    st.integers(1, 4),
)
def test_settled_estimates_stand_on_the_right_side(words: list[str], count: int, messages: int) -> None:
    """Where an estimate claims to be settled, the true count lies between the same two bounds."""
    text = "".join(words) * count
    truth = len(text.split()) + 4 + 4 * messages
    found = planned(text, messages=messages)
    assert found.settled
    if found.by != "bytes":
        assert sum(bound <= found.tokens for bound in BOUNDS) == sum(bound <= truth for bound in BOUNDS)
    else:
        assert truth < BOUNDS[0]


def test_inline_never_counts_long_texts() -> None:
    """On an event loop a long text in doubt comes back unsettled and on the safe side; in a thread it is counted."""
    text = "word " * 7_900
    words = Words()
    assert len(text) > INLINE_TEXT_BYTES
    found = planned(text, tokenizer=words, inline=True)
    assert (found.settled, found.by) == (False, "sample")
    assert found.tokens > 7_900
    assert words.chars < INLINE_TEXT_BYTES
    assert planned(text).exact
    assert planned("word " * 1_990, inline=True).exact


@pytest.mark.parametrize("run", ["^" * 100_000, "a" * 100_000 + " tail", "字" * 50_000])
def test_runs_without_spaces_are_cut_small(run: str) -> None:
    """A long run of one character costs more than linear time in a BPE, so it never reaches one whole (B101)."""
    pairs = Pairs()
    assert planned(run, tokenizer=pairs, bounds=(1, len(run) // 2 + 1_000)).exact
    assert max(map(len, pairs.pieces)) <= 1_024
    assert pairs.counted(run) == run


def test_slices_end_before_spaces() -> None:
    """Tokens begin with their space, so a cut before one changes no count."""
    words = Words()
    text = "word " * 7_990
    planned(text, tokenizer=words)
    counted = [piece for piece in words.pieces if len(piece) > 1_000]
    assert "".join(counted) == text
    assert all(piece.startswith(" ") for piece in counted[1:])


def test_slices_without_a_space_near_the_cut() -> None:
    """A text without spaces is still cut, and whole."""
    pairs = Pairs()
    text = ("x" * 300 + "\n") * 200
    assert planned(text, tokenizer=pairs, bounds=(1, len(text) // 2 + 1_000)).exact
    assert max(map(len, pairs.pieces)) == SLICE_CHARS
    assert pairs.counted(text) == text


def test_samples_reach_every_part() -> None:
    """Many small messages are sampled like one long text, empty ones skipped."""
    found = planned(*(["word " * 20, ""] * 200))
    assert abs(found.tokens - 4_000) < 400


def test_several_inputs_are_placed_by_their_longest() -> None:
    """A batch is as long as its longest input; its tokens are still those of all."""
    texts = ["word " * 200] * 50
    found = planned(*texts, longest_bytes=1_000)
    assert (found.by, found.settled) == ("bytes", True)
    long = planned("word " * 7_900, *texts, longest_bytes=5 * 7_900)
    assert long.exact
    assert long.raw == 7_900 + 10_000 + 4


def test_token_ids_are_exact() -> None:
    """A prompt of token ids needs no tokenizer."""
    words = Words()
    found = planned(tokenizer=words, text_bytes=5_000)
    assert (found.tokens, found.exact, words.pieces) == (5_000, True, [])


def test_nothing_but_an_image() -> None:
    """Images count by a stand-in; a prompt of nothing is still a prompt."""
    assert planned(images=2).tokens == 2 * IMAGE_TOKENS + 4
    assert planned(audio=True).tokens > 700
    assert planned(bounds=()).tokens >= 1


def test_bounds_of_a_table() -> None:
    """Length classes and everything else that may change its mind by tokens, ascending and once each."""
    classifier = Classifier(
        lengths=(("short", 2_000), ("medium", 8_000)),
        over="long",
        tasks=(),
        default_task="chat",
        hint_tasks=frozenset(),
        user_patterns=None,
        system_patterns=None,
        privilege=lambda tool, tenant: "low",
        bucket_by=("length",),
        bucket_most=10,
    )
    policy = Table(
        generation=1,
        digest="",
        models={},
        pools={},
        tenants={},
        keys={},
        anonymous=None,
        names={"m": ("m", None)},
        classifier=classifier,
        constraints=(),
        routes=(),
        settings=Settings(),
        token_steps=(8_000, 4_096),
    )
    assert bounds_of(policy) == (2_000, 4_096, 8_000)
    estimate = planned("word " * 7_000, bounds=bounds_of(policy))
    facts = Facts(Api.CHAT, "m", max_output_tokens=0)
    assert classify(policy, facts, Texts(), Principal("x"), estimate.tokens).length == "medium"


def test_correction_learns_the_ratio() -> None:
    """Reports that are steadily twice the estimate double it; the estimate's raw value stays its own."""
    correction = Correction()
    for _ in range(300):
        found = planned("word " * 3_000, correction=correction)
        correction.observe(found, reported=6_000)
    assert correction.ratio == pytest.approx(2.0, rel=0.05)
    assert planned("word " * 3_000, correction=correction).tokens == pytest.approx(6_000, rel=0.06)


def test_correction_learns_the_density() -> None:
    """Where nothing is tokenised, tokens per byte are learnt."""
    correction = Correction()
    text = "字" * 300
    for _ in range(300):
        correction.observe(planned(text, correction=correction), reported=304)
    assert planned(text, correction=correction).tokens == pytest.approx(304, rel=0.05)


def test_a_learnt_ratio_widens_the_shortcut_by_bytes() -> None:
    """A tokenizer that gives more than ours may give more than bytes, too: the shortcut keeps its distance."""
    correction = Correction()
    correction.ratio = 3.0
    assert planned("word " * 300, correction=correction).by != "bytes"


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["bytes", "sample", "count", "ids"]), st.integers(-5, 10**12), st.integers(-1, 10**12)
        ),
        max_size=30,
    )
)
def test_corrections_stay_within_bounds(reports: list[tuple[str, int, int]]) -> None:
    """No report, however odd, makes an estimate useless."""
    correction = Correction()
    for by, reported, cached in reports:
        correction.observe(Estimate(100, False, True, 100.0, by, 400), reported, cached)
    assert 0.25 <= correction.ratio <= 4.0
    assert 1 / 16 <= correction.density <= 1.0


@pytest.mark.parametrize(
    ("estimate", "reported", "cached"),
    [
        (Estimate(1_000, False, True, 1_000.0, "sample", 4_000), 0, -1),
        (Estimate(1_000, False, True, 1_000.0, "sample", 4_000), -1, -1),
        (Estimate(1_000, False, True, 1_000.0, "sample", 4_000), 100, 900),
        (Estimate(1_000, False, True, 1_000.0, "sample", 4_000), 400, 400),
        (Estimate(10, False, True, 8.0, "bytes", 8), 30, -1),
        (Estimate(1_000, True, True, 1_000.0, "ids", 1_000), 2_000, -1),
        (Estimate(93, True, True, 93.0, "count", 400), 40, 0),
    ],
)
def test_reports_that_teach_nothing(estimate: Estimate, reported: int, cached: int) -> None:
    """Missing reports, ones that leave out what was cached, texts too short to tell, token ids."""
    correction = Correction()
    correction.observe(estimate, reported, cached)
    assert (correction.ratio, correction.density) == (1.0, 0.27)


def test_texts_without_any_token() -> None:
    """A text that gives no tokens at all is no division by zero."""
    assert planned(" " * 20_000).tokens >= 1
