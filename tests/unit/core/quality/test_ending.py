"""Arrived whole, and labelled as what it is."""

import pytest

from gateway.core.assemble import Answer, AnswerError, Choice, ToolCall
from gateway.core.quality.asked import Asked, Tool
from gateway.core.quality.ending import (
    check_choices,
    check_empty,
    check_error_object,
    check_finish_reason,
    check_truncation,
)
from gateway.core.quality.finding import Verdict
from gateway.core.quality.view import View, view_of
from gateway.model.enums import ToolUse


def view(choice: Choice, answer: Answer | None = None, asked: Asked | None = None) -> View:
    """A view of one choice; the answer holds it unless given."""
    return view_of(asked or Asked(), answer or Answer(choices=(choice,), done=True), choice)


def test_truncation_is_no_fault_of_form_and_not_without_terminator() -> None:
    """The limit, a lost stream and an abort are truncation; a missing [DONE] alone is not."""
    assert check_truncation(view(Choice(text="a", finish_reason="length"))).verdict == Verdict.FAIL
    assert check_truncation(view(Choice(text="a", finish_reason="abort"))).verdict == Verdict.FAIL
    lost = Choice(text="a")
    assert check_truncation(view(lost, Answer(choices=(lost,), streamed=True))).verdict == Verdict.FAIL
    finished = Choice(text="a", finish_reason="stop")
    found = check_truncation(view(finished, Answer(choices=(finished,), streamed=True)))
    assert found.verdict == Verdict.PASS
    assert "terminator" in found.detail
    error = Answer(choices=(lost,), streamed=True, errors=(AnswerError(),))
    assert check_truncation(view(lost, error)).verdict == Verdict.SKIP


def test_error_objects_and_unreadable_answers() -> None:
    """An error object, an unreadable body and unreadable events fail; a cut body is truncation instead."""
    choice = Choice()
    assert check_error_object(view(choice, Answer(errors=(AnswerError("503", "m"),)))).verdict == Verdict.FAIL
    assert check_error_object(view(choice, Answer(problem="no JSON"))).verdict == Verdict.FAIL
    assert check_error_object(view(choice, Answer(broken_events=1))).verdict == Verdict.FAIL
    assert check_error_object(view(choice, Answer(problem="no JSON", broken_tail=True))).verdict == Verdict.PASS


@pytest.mark.parametrize("text", ["", " \n", "...", "。。", "-", "“”"])
def test_nothing_said_is_empty(text: str) -> None:
    """Blank text and bare punctuation say nothing."""
    assert check_empty(view(Choice(text=text, finish_reason="stop"))).verdict == Verdict.FAIL


@pytest.mark.parametrize("text", ["4", "是", "👍", "{}", "[]", "$", "ok"])
def test_little_said_is_not_empty(text: str) -> None:
    """One letter, digit, symbol or an empty JSON container is an answer."""
    assert check_empty(view(Choice(text=text, finish_reason="stop"))).verdict == Verdict.PASS


def test_emptiness_and_what_excuses_it() -> None:
    """A call, a refusal or audio is an answer; a cut one is not judged; reasoning alone is none."""
    assert check_empty(view(Choice(tool_calls=(ToolCall("f"),)))).verdict == Verdict.PASS
    assert check_empty(view(Choice(refusal="no"))).verdict == Verdict.PASS
    assert check_empty(view(Choice(other_output=True))).verdict == Verdict.PASS
    assert check_empty(view(Choice(finish_reason="length"))).verdict == Verdict.SKIP
    reasoned = check_empty(view(Choice(reasoning="hm", finish_reason="stop")))
    assert (reasoned.verdict, reasoned.where) == (Verdict.FAIL, "reasoning")


def test_fewer_choices_than_asked() -> None:
    """n=3 answered by one is an answer missing; n=1 is not."""
    choice = Choice(text="a", finish_reason="stop")
    assert check_choices(view(choice, asked=Asked(n=3))).verdict == Verdict.FAIL
    assert check_choices(view(choice)).verdict == Verdict.NOT_APPLICABLE


def test_finish_reason_against_content() -> None:
    """B35: judged by the calls that are there; a function forced by name may end with stop."""
    calls = (ToolCall("f"),)
    assert check_finish_reason(view(Choice(text="a", finish_reason="tool_calls"))).verdict == Verdict.FAIL
    assert check_finish_reason(view(Choice(tool_calls=calls, finish_reason="stop"))).verdict == Verdict.FAIL
    assert check_finish_reason(view(Choice(tool_calls=calls, finish_reason="tool_calls"))).verdict == Verdict.PASS
    forced = Asked(tools=(Tool("f"),), tool_use=ToolUse.FORCED, forced="f")
    assert (
        check_finish_reason(view(Choice(tool_calls=calls, finish_reason="stop"), asked=forced)).verdict == Verdict.PASS
    )
    assert check_finish_reason(view(Choice(text="a"))).verdict == Verdict.FAIL
    assert check_finish_reason(view(Choice(text="a", finish_reason="stop", after_finish=True))).verdict == Verdict.FAIL
    lost = Choice(text="a")
    assert check_finish_reason(view(lost, Answer(choices=(lost,), streamed=True))).verdict == Verdict.SKIP
