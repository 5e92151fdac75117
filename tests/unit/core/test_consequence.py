"""Consequences count against the request that caused them, in bounded memory, and never on a guess about persons."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.assemble import Answer, Choice, ToolCall
from gateway.core.consequence import RE_ASK_S, Call, Kind, Result, Subject, Trace, Tracker, trace


def subject(name: str, at: float = 0.0, pool: str = "int4") -> Subject:
    return Subject(name, at, "acme", "m/short", pool)


def called(*calls: tuple[str, str, str]) -> Answer:
    return Answer(choices=(Choice(tool_calls=tuple(ToolCall(n, a, i) for i, n, a in calls)),))


def kinds(found: list[Any]) -> list[tuple[Kind, str]]:
    return [(one.kind, one.subject.request_id) for one in found]


def test_a_failed_tool_counts_against_the_answer_that_asked_for_it() -> None:
    """The next turn may be served elsewhere; the fault is the producer's, once, and only within the same tenant."""
    tracker = Tracker()
    tracker.see(subject("r1"), "c", trace({"messages": []}, called(("t1", "f", "{}"))))
    other = Subject("x", 1.0, "other-tenant", "b", "p")
    assert tracker.see(other, "c", Trace(results=(Result("t1", True),))) == []
    after = Trace(results=(Result("t1", True),))
    assert kinds(tracker.see(subject("r2", 1.0, "bf16"), "c", after)) == [(Kind.TOOL_ERROR, "r1")]
    assert tracker.see(subject("r3", 2.0), "c", after) == []


def test_parallel_calls_that_failed_are_one_bad_turn() -> None:
    """Of each answer that made some, whether the rest worked or not; and each of them is told once."""
    tracker = Tracker()
    tracker.see(subject("r1"), "c", Trace(calls=tuple(Call(f"a{number}", b"") for number in range(45))))
    tracker.see(subject("r2"), "c", Trace(calls=(Call("b", b""),)))
    names = [*(f"a{number}" for number in range(45)), "b"]
    results = tuple(Result(name, name != "a44") for name in names)
    found = tracker.see(subject("r3", 1.0), "c", Trace(results=results))
    assert kinds(found) == [(Kind.TOOL_ERROR, "r1"), (Kind.TOOL_ERROR, "r2")]
    assert tracker.see(subject("r4", 2.0), "c", Trace(results=results)) == []


def test_equal_ids_of_calls_in_two_conversations_are_two_calls() -> None:
    """Runtimes that number a conversation's calls give the same ids in each."""
    tracker = Tracker()
    call = Trace(calls=(Call("functions.search:0", b""),))
    for name in ("mine", "other"):
        tracker.see(subject(name), f"talk of {name}", call)
    found = tracker.see(subject("r", 1.0), "talk of mine", Trace(results=(Result("functions.search:0", True),)))
    assert kinds(found) == [(Kind.TOOL_ERROR, "mine")]


def test_a_tool_that_worked_is_no_consequence() -> None:
    """Success is silent, and an old call is forgotten."""
    tracker = Tracker(remember_s=10.0)
    tracker.see(subject("r1"), "c", Trace(calls=(Call("t1", b"1"), Call("t2", b"2"))))
    assert tracker.see(subject("r2", 1.0), "c", Trace(results=(Result("t1", False),))) == []
    assert tracker.see(subject("r3", 11.0), "c", Trace(results=(Result("t2", True),))) == []


def test_the_same_call_again_counts_against_the_repeater() -> None:
    """A model that calls the same tool with the same arguments after its result came is looping."""
    tracker = Tracker()
    first = trace({"messages": []}, called(("a", "f", '{"x": 1, "y": 2}')))
    again = trace(
        {"messages": [{"role": "assistant"}, {"role": "tool", "tool_call_id": "a", "content": "ok"}]},
        called(("b", "f", '{"y":2,"x":1}')),
    )
    tracker.see(subject("r1"), "c", first)
    assert kinds(tracker.see(subject("r2", 1.0), "c", again)) == [(Kind.REPEATED_CALL, "r2")]
    assert tracker.see(subject("r3", 1.0), "another conversation", again) == []


def test_asking_the_same_again_soon_counts_against_the_first_answer() -> None:
    """Within two minutes, in a dialogue, the same question: the earlier answer was no good."""
    tracker = Tracker()
    asked = Trace(question=b"q", dialogue=True)
    tracker.see(subject("r1"), "c", asked)
    assert kinds(tracker.see(subject("r2", 30.0), "c", asked)) == [(Kind.RE_ASK, "r1")]
    assert tracker.see(subject("r3", 31.0 + RE_ASK_S), "c", asked) == []
    assert tracker.see(subject("r4", 32.0 + RE_ASK_S), "c", Trace(question=b"other", dialogue=True)) == []


def test_equal_first_questions_of_strangers_are_not_re_asks() -> None:
    """Many people ask the same first question; without a session or earlier turns nothing is concluded."""
    tracker = Tracker()
    body = {"messages": [{"role": "user", "content": "hello"}]}
    assert tracker.see(subject("r1"), "c", trace(body, Answer())) == []
    assert tracker.see(subject("r2", 1.0), "c", trace(body, Answer())) == []


@pytest.mark.parametrize(
    ("content", "failed"),
    [
        ("Error: no such file", True),
        ('{"error": "not found"}', True),
        ('{"ok": false, "reason": "x"}', True),
        ('{"status":"failed"}', True),
        ("Traceback (most recent call last):", True),
        ("错误: 文件不存在", True),
        ('{"error": null, "value": 3}', False),
        ("The error rate fell to 2 %.", False),
        ("42", False),
        ('{"success": true}', False),
        ("", False),
    ],
)
def test_how_tools_say_that_they_failed(content: str, failed: bool) -> None:
    """A failing tool says so first or in a field; text that only mentions errors does not count."""
    body = {"messages": [{"role": "assistant"}, {"role": "tool", "tool_call_id": "t", "content": content}]}
    assert trace(body, Answer()).results == (Result("t", failed),)


def test_anthropic_results_carry_their_own_flag() -> None:
    """tool_result blocks with is_error, as the Messages API has them."""
    block = {"type": "tool_result", "tool_use_id": "t", "is_error": True, "content": [{"type": "text", "text": "no"}]}
    body = {"messages": [{"role": "user", "content": [block]}]}
    assert trace(body, Answer()).results == (Result("t", True),)


def test_memory_is_bounded() -> None:
    """However many conversations, no more than the bound is remembered."""
    tracker = Tracker(most=10)
    for index in range(1000):
        seen = Trace(calls=(Call(f"t{index}", b"d"),), question=b"q", dialogue=True)
        tracker.see(subject(f"r{index}"), f"c{index}", seen)
    assert len(tracker) <= 30


KEYS = st.sampled_from(["role", "content", "type", "text", "tool_call_id"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.sampled_from(["messages", "user", "model"]), JSON, max_size=3))
def test_any_body_can_be_traced(body: dict[str, Any]) -> None:
    """Bodies come from clients: whatever they hold, tracing gives a value."""
    assert isinstance(trace(body, Answer()), Trace)
