"""The choice of faults."""

from typing import get_args

import msgspec
import pytest

from gateway.simulator.fault import QUALITY, TRANSPORT, Armed, Fault, Kind, Subject, When, applies, choose, matches
from tests.unit.simulator.rig import PAY, ask, chat

SUBJECT = Subject("chat", "sim", 100, 2, "chat", False, False, True, "about whales", False, False)


def test_every_kind_has_a_family() -> None:
    """Each kind of fault is either of the transport or of the quality."""
    assert set(get_args(Kind)) == TRANSPORT | QUALITY
    assert not TRANSPORT & QUALITY


@pytest.mark.parametrize(
    ("when", "expected"),
    [
        (When(), True),
        (When(min_prompt_tokens=100, max_prompt_tokens=100), True),
        (When(min_prompt_tokens=101), False),
        (When(max_prompt_tokens=99), False),
        (When(min_turns=3), False),
        (When(tasks=("code", "chat")), True),
        (When(tasks=("code",)), False),
        (When(apis=("embeddings",)), False),
        (When(models=("other",)), False),
        (When(tools=False, stream=True, structured=False), True),
        (When(tools=True), False),
        (When(stream=False), False),
        (When(contains="whales"), True),
        (When(contains="sharks"), False),
    ],
)
def test_every_condition_counts(when: When, expected: bool) -> None:
    """A condition holds only if every given field does."""
    assert matches(when, SUBJECT) is expected


def test_faults_strike_only_where_they_can_show() -> None:
    """A wrong tool needs a tool call, broken JSON a structured answer, a wrong citation a source."""
    calling = ask(**chat(tools=[PAY])).subject
    assert applies("wrong_tool", calling)
    assert not applies("wrong_tool", SUBJECT)
    assert not applies("broken_json", SUBJECT)
    assert not applies("wrong_citation", SUBJECT)
    assert applies("garbage", SUBJECT)


def test_first_drawn_of_each_family() -> None:
    """One transport and one quality fault at most, the first that is drawn; strikes are counted."""
    armed = [
        Armed(Fault("garbage", probability=0.1), 0),
        Armed(Fault("empty"), 0),
        Armed(Fault("status", probability=0.5), 0),
        Armed(Fault("hang"), 0),
    ]
    transport, quality = choose(armed, SUBJECT, 1.0, [0.2] * 4, [0.4] * 4)
    assert (transport and transport.kind, quality and quality.kind) == ("status", "empty")
    assert [entry.strikes for entry in armed] == [0, 1, 1, 0]


def test_quality_goes_by_request_and_transport_by_sequence() -> None:
    """Equal requests share the fate of a quality fault, unless the draw is set otherwise."""
    assert Fault("garbage").by_request
    assert not Fault("status").by_request
    assert not Fault("garbage", draw="sequence").by_request
    armed = [Armed(Fault("garbage", probability=0.5), 0)]
    assert choose(armed, SUBJECT, 0, [0.6], [0.1])[1] is None
    assert choose(armed, SUBJECT, 0, [0.1], [0.6])[1] is not None


def test_times_and_duration_end_a_fault() -> None:
    """A fault stops after its strikes and after its time."""
    few = Armed(Fault("empty", times=2), 0)
    assert [choose([few], SUBJECT, 0, [0], [0])[1] is not None for _ in range(3)] == [True, True, False]
    brief = Armed(Fault("empty", for_s=5), 10)
    assert brief.live(14.9)
    assert not brief.live(15.0)


@pytest.mark.parametrize(
    "given_fault",
    [
        {"kind": "nonsense"},
        {"kind": "status", "probability": 2},
        {"kind": "status", "status": 200},
        {"kind": "slow", "factor": 0},
        {"kind": "cut", "after_tokens": -1},
        {"kind": "crash", "probability": 0.5},
        {"kind": "refuse", "when": {"stream": True}},
        {"kind": "empty", "often": True},
        {"kind": "empty", "when": {"task": ["chat"]}},
    ],
)
def test_nonsense_is_refused(given_fault: dict[str, object]) -> None:
    """What is no fault is said when it is read."""
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(given_fault, Fault)
