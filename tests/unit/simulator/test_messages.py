"""The messages API, whole and streamed."""

import json

import pytest

from gateway.simulator import messages
from tests.unit.simulator.rig import BODIES, FRAME, answered, assert_same_said


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("fault", [None, "empty", "truncated"])
def test_stream_and_whole_say_the_same(name: str, fault: str | None) -> None:
    """A client gets the same answer streamed and unstreamed, good or bad."""
    assert_same_said(messages, BODIES[name], fault)


def test_cut_answers_say_so() -> None:
    """An answer at the token limit is marked as such, whole and streamed."""
    asked, answer = answered(BODIES["one-token"])
    assert json.loads(messages.whole(answer, asked, FRAME))["stop_reason"] == "max_tokens"
    assert b'"stop_reason":"max_tokens"' in b"".join(messages.events(answer, asked, FRAME))


def test_broken_arguments_stay_text_for_messages() -> None:
    """Arguments that are no JSON cannot become an object; they stay visible."""
    asked, answer = answered(BODIES["tools"], "broken_json")
    assert isinstance(json.loads(messages.whole(answer, asked, FRAME))["content"][0]["input"], str)
