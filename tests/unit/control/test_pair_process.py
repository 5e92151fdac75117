"""What a scorer process makes of pairs: missing legs as the table of losses says, and no text in what comes back."""

import msgspec
import pytest

from gateway.control import opinion_plugins, pair_process
from gateway.control.pair_process import Work
from gateway.core.comparison import Part, Unscored, Verdict
from gateway.model.pair import Leg, Pair
from tests.unit.dataplane.pair_values import chat_answer, make_leg, make_pair

GOOD = make_leg()
OTHER = make_leg(answer=chat_answer("something else entirely, 42"))
FAILED = make_leg(failure="status_5xx", answer=b"")
MISSING = make_leg(failure="shed", answer=b"")


def scored(*pairs: Pair, opinions: tuple[str, ...] = ()) -> list[pair_process.PairScores]:
    work = Work(list(pairs), [opinions] * len(pairs))
    return pair_process.decode(pair_process.score_pairs(msgspec.msgpack.encode(work)))


@pytest.mark.parametrize(
    ("baseline", "noise", "candidate", "verdict", "trip", "promotion"),
    [
        (GOOD, GOOD, GOOD, Verdict.COMPARED, 0.0, 0.0),
        (GOOD, GOOD, FAILED, Verdict.OTHER_FAILED, 1.0, 1.0),
        (GOOD, FAILED, GOOD, Verdict.COMPARED, -1.0, -1.0),
        (GOOD, FAILED, FAILED, Verdict.OTHER_FAILED, 0.0, 0.0),
        (FAILED, GOOD, GOOD, Verdict.REFERENCE_FAILED, 0.0, 0.0),
        (FAILED, FAILED, FAILED, Verdict.BOTH_FAILED, 0.0, 0.0),
        (GOOD, GOOD, MISSING, Verdict.UNSCORED, None, 1.0),
        (GOOD, MISSING, GOOD, Verdict.COMPARED, None, 1.0),
        (FAILED, GOOD, MISSING, Verdict.UNSCORED, None, 1.0),
    ],
)
def test_every_combination_of_legs(
    baseline: Leg, noise: Leg, candidate: Leg, verdict: Verdict, trip: float | None, promotion: float
) -> None:
    """Failed legs are values and never left out; one of which nothing is known stakes nothing and promotes nothing."""
    (found,) = scored(make_pair(baseline=baseline, noise=noise, candidate=candidate))
    assert found.agreement.verdict is verdict
    assert found.loss is not None
    assert (found.loss.trip, found.loss.promotion) == (trip, promotion)
    assert found.loss.unscored is (trip is None)
    assert found.loss.both_failed is ((baseline, noise, candidate) == (FAILED, FAILED, FAILED))


def test_without_a_second_run_there_is_no_loss() -> None:
    """Agreement alone would take sampling noise for a difference."""
    (found,) = scored(make_pair(noise=None, candidate=OTHER))
    assert (found.noise, found.loss) == (None, None)
    assert found.agreement.score is not None
    assert found.agreement.score < 0.5


def test_a_real_difference_is_excess() -> None:
    """The baseline agrees with itself and not with the candidate."""
    (found,) = scored(make_pair(candidate=OTHER))
    assert found.loss is not None
    assert found.loss.trip is not None
    assert found.loss.trip > 0.5


def test_what_goes_back_holds_no_text() -> None:
    """Only numbers and closed words leave the process."""
    secret = make_leg(answer=chat_answer("xylophone marmalade 7731"))
    data = pair_process.score_pairs(msgspec.msgpack.encode(Work([make_pair(baseline=secret, candidate=OTHER)], [()])))
    assert b"xylophone" not in data
    assert b"7731" not in data


def test_bytes_of_any_kind_are_scored_as_something() -> None:
    """Request and answers may be anything: the process must not fall over a stranger's bytes."""
    for noise in (b"\xff\xfe", b"{", b"[1]", b"data: {\n\n", b""):
        (found,) = scored(make_pair(request=noise, baseline=make_leg(answer=noise), candidate=make_leg(answer=noise)))
        assert found.loss is not None


def test_texts_for_scoring() -> None:
    """The first choice's text; nothing where a leg failed or calls tools, which no template continues."""
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    message = {"role": "assistant", "content": "well", "tool_calls": [call]}
    calling = msgspec.json.encode({"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]})
    pairs = [make_pair(), make_pair(candidate=FAILED), make_pair(candidate=make_leg(answer=calling))]
    found = [pair_process.decode_texts(pair_process.answer_texts(msgspec.msgpack.encode(pair))) for pair in pairs]
    assert [text.candidate for text in found] == ["the answer", "", ""]
    assert {text.baseline for text in found} == {"the answer"}


def test_a_broken_comparison_counts_as_missing() -> None:
    """With a noise leg the judge hears that something is missing; without one there is nothing to judge."""
    assert pair_process.unscored(make_pair()).loss is not None
    assert pair_process.unscored(make_pair()).agreement.unscored is Unscored.COMPARATOR_ERROR
    assert pair_process.unscored(make_pair(noise=None)).loss is None


class Alike:
    """An opinion that finds everything half alike."""

    part = Part.EMBEDDING
    weight = 0.5

    def rate(self, asked: object, reference: str, other: str) -> float:
        return 0.5


def test_a_rules_opinion_is_part_of_the_score(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a rule asks for one that is installed, it is among the parts and weighs; elsewhere nothing changes."""
    pair = make_pair(candidate=OTHER)
    (without,) = scored(pair)
    monkeypatch.setattr(opinion_plugins, "load", {"embedding": Alike()}.get)
    (with_it,) = scored(pair, opinions=("embedding", "judge"))
    assert dict(with_it.agreement.parts)[Part.EMBEDDING] == 0.5
    assert with_it.agreement.score != without.agreement.score
    assert scored(pair) == [without]
