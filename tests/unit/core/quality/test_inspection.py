"""Running all checks: bytes in, one small value out, no text in it unless asked."""

import json
import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.quality import CHECKS, Check, FailureClass, Inspection, Verdict, inspect, inspect_packed
from gateway.core.quality.finding import SNIPPET_CHARS
from gateway.core.quality.inspection import MAX_CHOICES, inspect_assembled

SECRET = "xylophone-secret-4711"
REQUEST = {
    "messages": [{"role": "user", "content": f"Only JSON about {SECRET}, please."}],
    "tools": [
        {"type": "function", "function": {"name": SECRET, "parameters": {"type": "object", "required": [SECRET]}}}
    ],
    "response_format": {"type": "json_object"},
}


def body(text: str | None, finish: str = "stop", **message: Any) -> bytes:
    """A chat answer."""
    return json.dumps(
        {"choices": [{"index": 0, "message": {"content": text, **message}, "finish_reason": finish}]}
    ).encode()


def test_every_check_says_something() -> None:
    """One finding per check, in the order of the enum."""
    found = inspect(REQUEST, body('{"a": 1}'))
    assert list(Check) == [finding.check for finding in found.findings] == list(CHECKS)
    assert found.ok
    assert found.score == 1.0


def test_failures_are_classes_without_repeats() -> None:
    """Two broken fences are one code error; the score falls."""
    found = inspect({}, body("```python\nx = = 1\n```\n```json\n{a}\n```"))
    assert found.failures == (FailureClass.CODE_ERROR,)
    assert found.score == 0.5


BAD = [
    body(f"{{'{SECRET}': 1"),
    body(None, "tool_calls", tool_calls=[{"function": {"name": SECRET + "x", "arguments": f'{{"{SECRET}'}}]),
    body(None, "tool_calls", tool_calls=[{"function": {"name": SECRET, "arguments": f'{{"a": "{SECRET}"}}'}}]),
    body(f"<tool_call>{SECRET}</tool_call> " + f"{SECRET} " * 40),
    json.dumps({"error": {"message": SECRET}}).encode(),
]


@pytest.mark.parametrize("answer", BAD)
def test_no_text_leaves_without_being_asked_for(answer: bytes) -> None:
    """Neither the request's nor the answer's words are in an inspection; with snippets they are bounded."""
    found = inspect(REQUEST, answer)
    assert found.failures
    assert SECRET.encode() not in msgspec.msgpack.encode(found)
    shown = inspect(REQUEST, answer, snippets=True)
    assert SECRET in "".join(finding.snippet for finding in shown.findings)
    assert all(len(finding.snippet) <= SNIPPET_CHARS for finding in shown.findings)


def test_evidence_of_every_failure_is_inside_its_text() -> None:
    """Offsets never point beyond the text they name."""
    text = "I cannot help. " + "!" * 40 + " <|im_end|> ```py\nx"
    for finding in inspect(REQUEST, body(text)).findings:
        if finding.verdict == Verdict.FAIL and finding.where == "text":
            assert -1 <= finding.start <= len(text)
            assert finding.end <= len(text)


def test_each_choice_is_judged_and_the_worst_counts() -> None:
    """Findings carry the index of their choice; too many choices are bounded."""
    choices = [
        {"index": n, "message": {"content": "" if n == 3 else "fine"}, "finish_reason": "stop"} for n in range(20)
    ]
    found = inspect({"n": 20, "messages": []}, json.dumps({"choices": choices}).encode())
    assert found.verdict(Check.EMPTY) == Verdict.FAIL
    assert {3} == {finding.choice for finding in found.findings if finding.verdict == Verdict.FAIL}
    assert len({finding.choice for finding in found.findings}) == MAX_CHOICES


def test_a_check_that_fails_itself_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Our own fault never counts against a pool, and never hides the other checks."""

    def explode(_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setitem(CHECKS, Check.JSON, explode)  # type: ignore[arg-type]
    found = inspect(REQUEST, body('{"a": 1}'))
    assert found.verdict(Check.JSON) == Verdict.SKIP
    assert found.verdict(Check.EMPTY) == Verdict.PASS


def test_unreadable_request_asks_for_nothing() -> None:
    """A request that is no JSON leaves the checks that need none."""
    assert inspect(b"{", body("hi")).verdict(Check.JSON) == Verdict.NOT_APPLICABLE
    assert inspect(b"[]", body("hi")).verdict(Check.EMPTY) == Verdict.PASS


def test_packed_result_crosses_processes() -> None:
    """A process pool takes bytes and gives bytes; the value also pickles."""
    request = json.dumps(REQUEST).encode()
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        packed = pool.submit(inspect_packed, request, body("[1]")).result()
    found = msgspec.msgpack.decode(packed, type=Inspection)
    assert inspect(request, body("[1]")) == found
    assert found == pickle.loads(pickle.dumps(found))  # noqa: S301 - our own value
    assert len(packed) < 4096


def test_assembled_answers_are_taken_too() -> None:
    """Who has assembled already does not pay twice."""
    from gateway.core.assemble import assemble
    from gateway.core.quality import read_request

    answer = body("[1]")
    assert inspect(REQUEST, answer) == inspect_assembled(read_request(REQUEST), assemble(REQUEST, answer))


@given(st.binary(max_size=120), st.binary(max_size=300))
def test_any_bytes_give_an_inspection(request_body: bytes, answer: bytes) -> None:
    """Nothing raises, whatever request and answer are."""
    assert 0.0 <= inspect(request_body, answer).score <= 1.0


@given(st.text(max_size=400), st.sampled_from(["stop", "length", "tool_calls"]))
def test_no_check_fails_itself(text: str, finish: str) -> None:
    """On arbitrary text no check ends in its own exception."""
    request = {
        **REQUEST,
        "messages": [{"role": "user", "content": "Answer only from the documents. [1] 5 [2] 7 " + text}],
    }
    found = inspect(request, body(text, finish))
    assert not [finding for finding in found.findings if "check itself failed" in finding.detail]
