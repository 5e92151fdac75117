"""The responses API, whole and streamed."""

import json

import pytest

from gateway.simulator import responses
from tests.unit.simulator.rig import BODIES, FRAME, answered, assert_same_said


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("fault", [None, "empty", "truncated"])
def test_stream_and_whole_say_the_same(name: str, fault: str | None) -> None:
    """A client gets the same answer streamed and unstreamed, good or bad."""
    assert_same_said(responses, BODIES[name], fault)


def test_cut_answers_say_so() -> None:
    """An answer at the token limit is marked as such, whole and streamed."""
    asked, answer = answered(BODIES["one-token"])
    assert json.loads(responses.whole(answer, asked, FRAME))["status"] == "incomplete"
    assert b"event: response.incomplete" in b"".join(responses.events(answer, asked, FRAME))


def test_events_are_numbered() -> None:
    """Every event carries its name and the next sequence number."""
    asked, answer = answered(BODIES["tools"])
    stream = b"".join(responses.events(answer, asked, FRAME)).decode()
    payloads = [json.loads(line[6:]) for line in stream.splitlines() if line.startswith("data: ")]
    names = [line[7:] for line in stream.splitlines() if line.startswith("event: ")]
    assert [payload["sequence_number"] for payload in payloads] == list(range(len(payloads)))
    assert [payload["type"] for payload in payloads] == names
    assert names[-1] == "response.completed"
