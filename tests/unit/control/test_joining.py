"""What became of answers later: joined to the answer it is about, and only its own tenant may judge it."""

from typing import Any

import pytest

from gateway.control import joining as module
from gateway.control.joining import WAIT_S, WORDS_MOST, Joining
from gateway.core.consequence import Kind, Subject
from gateway.model.messages import Feedback
from gateway.store.aftermath import Answered, Consequence
from tests.unit.control.conftest import outcome
from tests.unit.control.exchanges import batch, called, scored, told

AT = 1_700_000_000.25


class Heard:
    """A joiner with everything it passes on."""

    def __init__(self, most: int = 100) -> None:
        self.kept: list[Consequence] = []
        self.badness: list[tuple[Kind, str, float]] = []
        self.joining = Joining(self.kept.append, most)
        self.joining.subscribe(lambda found, bad: self.badness.append((found.kind, found.subject.request_id, bad)))

    def answers(self, *ids: str, **fields: Any) -> None:
        self.joining.take_batch(batch(*(outcome(request_id=name, **fields) for name in ids)))

    def says(self, request_id: str, score: float = 0.0, tenant: str = "acme", label: str = "", at: float = AT) -> None:
        self.joining.take_feedback(Feedback(0, at, tenant, request_id, label, score))

    @property
    def ignored(self) -> dict[str, float]:
        return {key[0]: row[0] for key, row in self.joining.ignored.rows.items()}


def test_feedback_counts_for_the_pool_that_answered() -> None:
    """A low score is bad, a high one good; a label alone is kept and judges nothing."""
    heard = Heard()
    heard.answers("a", "b", "c", pool="int4")
    heard.says("a", 0.2, label="rude")
    heard.says("b", 0.5)
    heard.says("c", -1.0, label="odd")
    assert heard.badness == [(Kind.FEEDBACK, "a", 1.0), (Kind.FEEDBACK, "b", 0.0)]
    assert [(found.request_id, found.pool, found.label, found.score) for found in heard.kept] == [
        ("a", "int4", "rude", 0.2),
        ("b", "int4", "", 0.5),
        ("c", "int4", "odd", None),
    ]
    counted = {key[3]: row[0] for key, row in heard.joining.counted.rows.items()}
    assert counted == {"bad": 1, "good": 1, "none": 1}


def test_another_tenants_feedback_is_ignored_and_counted() -> None:
    """Who guesses a request id cannot roll a pool back."""
    heard = Heard()
    heard.answers("a")
    heard.says("a", tenant="mallory")
    assert (heard.kept, heard.badness, heard.ignored) == ([], [], {"other_tenant": 1})


def test_the_same_word_again_outvotes_nobody() -> None:
    """One answer counts once as bad and once as good, however often it is said; the memory of it is bounded."""
    heard = Heard(most=2)
    heard.answers("a")
    for _ in range(50):
        heard.says("a", 0.0, label="rude")
        heard.says("a", 0.1)
        heard.says("a", 1.0)
    assert heard.badness == [(Kind.FEEDBACK, "a", 1.0), (Kind.FEEDBACK, "a", 0.0)]
    assert heard.ignored == {"repeated": 148}
    for number in range(50):
        heard.says("a", -1.0, label=f"word-{number}")
    assert len(heard.kept) == WORDS_MOST
    heard.answers("b", "c")
    assert heard.joining._said == {}


def test_feedback_may_come_before_its_outcome() -> None:
    """An application can be quicker than the worker's next batch; then it waits, also for the check of its tenant."""
    heard = Heard()
    heard.says("a", 0.0)
    heard.says("b", 0.0, tenant="mallory")
    assert heard.kept == []
    heard.answers("a", "b")
    assert [found.request_id for found in heard.kept] == ["a"]
    assert heard.ignored == {"other_tenant": 1}


def test_feedback_knows_the_conversation_of_its_answer() -> None:
    """Guards on feedback let each conversation vote once, so its words must not look like many conversations'.

    And its rollout: what was not part of one is no evidence for it.
    """
    heard = Heard()
    talks: list[tuple[str, str]] = []
    heard.joining.subscribe(lambda found, _bad: talks.append((found.subject.conversation, found.subject.rollout)))
    heard.answers("a", "b", conversation="talk", rollout="int4-all")
    heard.says("a")
    heard.says("b")
    heard.says("c")
    heard.joining.recall([Answered(Subject("c", AT, "acme", "b", "p", "talk", "int4-all"))])
    assert talks == [("talk", "int4-all")] * 3


def test_everything_said_before_the_answer_is_known_counts() -> None:
    """Two words about one answer wait together; a flood of them does not."""
    heard = Heard()
    heard.says("a", 0.0)
    heard.says("a", -1.0, label="rude")
    for _ in range(WORDS_MOST):
        heard.says("a", 1.0)
    assert heard.joining.waiting == 1
    assert heard.ignored == {"unknown_request": 2}
    heard.answers("a")
    assert [(found.label, found.score) for found in heard.kept] == [("", 0.0), ("rude", None), ("", 1.0)]
    assert heard.joining.waiting == 0


def test_answers_on_record_are_judged_as_if_remembered() -> None:
    """Of before a restart or of another gateway: their own tenant only, and no verdict that is on record already."""
    heard = Heard()
    heard.says("old", 0.0)
    heard.says("old", 1.0)
    heard.says("other", 0.0)
    assert heard.joining.unknown(AT - 1) == []
    assert heard.joining.unknown(AT) == ["old", "other"]
    old = Answered(Subject("old", AT - 900, "acme", "m/short", "int4"), (("", 0.1), ("odd", None)))
    other, unasked = (Answered(Subject(name, AT, "mallory", "b", "p")) for name in ("other", "unasked"))
    heard.joining.recall([old, other, unasked])
    assert [(found.request_id, found.pool, found.score) for found in heard.kept] == [("old", "int4", 1.0)]
    assert heard.ignored == {"repeated": 1, "other_tenant": 1}
    heard.says("old", 1.0)
    heard.says("old", -1.0, label="odd")
    assert heard.ignored["repeated"] == 3
    assert heard.joining.waiting == 0


def test_memory_of_answers_on_record_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """With what was said of them."""
    monkeypatch.setattr(module, "RECALLED_MOST", 2)
    heard = Heard()
    for name in "abc":
        heard.says(name)
        heard.joining.recall([Answered(Subject(name, AT, "acme", "b", "p"))])
    assert list(heard.joining._said) == ["b", "c"]
    heard.says("a")
    assert heard.joining.unknown(AT) == ["a"]


def test_feedback_on_nothing_is_given_up_after_a_while() -> None:
    """A wrong id, a request that failed, one from long ago: counted as unknown, and forgotten."""
    heard = Heard()
    heard.answers("failed", result="upstream_error")
    heard.says("failed")
    heard.says("never")
    assert heard.ignored == {}
    heard.answers("later", at=AT + WAIT_S + 1)
    assert heard.ignored == {"unknown_request": 2}
    heard.answers("never", at=AT + WAIT_S + 2)
    assert heard.kept == []


def test_feedback_of_a_clock_that_was_ahead_holds_up_no_other() -> None:
    """What was said in the future is given up, or all that comes behind it would wait until then."""
    heard = Heard()
    heard.says("ahead", at=AT + 7_200)
    heard.says("never")
    heard.answers("later", at=AT + WAIT_S + 1)
    assert heard.ignored == {"unknown_request": 2}


def test_memory_of_answers_is_bounded() -> None:
    """The oldest are forgotten."""
    heard = Heard(most=3)
    for name in "abcde":
        heard.answers(name)
    for name in "abcde":
        heard.says(name)
    assert [found.request_id for found in heard.kept] == ["c", "d", "e"]


def test_a_failed_tool_counts_against_the_answer_that_called_it() -> None:
    """Not against the pool that happened to serve the turn with the result."""
    heard = Heard()
    heard.joining.take_scored([scored("first", trace=called("call-1"), pool="int4")])
    heard.joining.take_scored([scored("second", trace=told("call-1", True), pool="bf16")])
    assert heard.badness == [(Kind.TOOL_ERROR, "first", 1.0)]
    assert [(found.pool, found.by_request_id) for found in heard.kept] == [("int4", "second")]


def test_tenants_cannot_touch_each_others_calls() -> None:
    """The same call id of another tenant joins nothing."""
    heard = Heard()
    heard.joining.take_scored([scored("first", trace=called("call-1"))])
    heard.joining.take_scored([scored("second", trace=told("call-1", True), tenant="mallory")])
    assert heard.kept == []


def test_a_repeated_call_counts_against_the_answer_that_repeats() -> None:
    """The model saw the result and asked the same again."""
    heard = Heard()
    heard.joining.take_scored([scored("first", trace=called("call-1", b"same"))])
    heard.joining.take_scored([scored("second", trace=told("call-1", False, b"same"))])
    assert heard.badness == [(Kind.REPEATED_CALL, "second", 1.0)]


def test_the_policys_bounds_reach_the_joiner() -> None:
    """After its time a call is forgotten."""
    heard = Heard()
    heard.joining.configure(100, 10.0)
    heard.joining.take_scored([scored("first", trace=called("call-1"), at=AT)])
    heard.joining.take_scored([scored("second", trace=told("call-1", True), at=AT + 11)])
    assert heard.kept == []
