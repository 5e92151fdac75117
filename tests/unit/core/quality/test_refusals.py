"""Refusals, and answers that sound like one."""

import pytest

from gateway.core.assemble import Answer, Choice, ToolCall
from gateway.core.quality.asked import Asked
from gateway.core.quality.finding import Verdict
from gateway.core.quality.refusals import check_refusal
from gateway.core.quality.view import view_of


def verdict(choice: Choice) -> Verdict:
    """The verdict on one choice."""
    return check_refusal(view_of(Asked(), Answer(choices=(choice,), done=True), choice)).verdict


@pytest.mark.parametrize(
    "text",
    [
        "I'm sorry, but I can't help with that.",
        "I cannot provide this.",
        "I must decline.",
        "As an AI, I am not able to.",
        "抱歉，我无法提供帮助。",
        "我不能帮您写。",
        "恕我无法回答。",
    ],
)
def test_refusals(text: str) -> None:
    """Both languages, with and without apology."""
    assert verdict(Choice(text=text, finish_reason="stop")) == Verdict.FAIL


@pytest.mark.parametrize(
    "text",
    [
        "I'm sorry to hear that.",
        "I can't recommend it enough.",
        "The documents do not say, so I cannot answer.",
        "抱歉让您久等了。",
        "从资料中无法确定。",
        "“抱歉，我不能帮你。”她说。",
        "I'd be glad to help!",
    ],
)
def test_no_refusals(text: str) -> None:
    """Sympathy, idiom, abstention, quotation and help."""
    assert verdict(Choice(text=text, finish_reason="stop")) == Verdict.PASS


def test_the_api_may_say_it() -> None:
    """The refusal field and the refusal stop reason count without any words."""
    assert verdict(Choice(refusal="no")) == Verdict.FAIL
    assert verdict(Choice(finish_reason="refusal")) == Verdict.FAIL


def test_a_call_is_no_refusal_and_a_long_answer_helps() -> None:
    """Words of refusal far into a long helpful answer do not count."""
    assert verdict(Choice(text="I cannot provide this.", tool_calls=(ToolCall("f"),))) == Verdict.PASS
    assert (
        verdict(
            Choice(text="Here is the full guide you wanted. " * 4 + "I cannot provide this. " + "More help. " * 100)
        )
        == Verdict.PASS
    )
    assert verdict(Choice()) == Verdict.NOT_APPLICABLE
