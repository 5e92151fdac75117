"""What runs in a scorer process: texts in, verdicts and digests out, and never a text."""

import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.control.scorer_process import NICE, decode, score_batch
from gateway.core.quality import Check, Verdict
from tests.unit.control.exchanges import SECRET, answer, request


def test_each_exchange_is_judged_by_its_own_request() -> None:
    """In order; what holds JSON passes, what does not fails."""
    good, bad = decode(score_batch([(request(), answer('{"a": 1}')), (request(), answer("no json"))]))
    assert good.inspection.verdict(Check.JSON) is Verdict.PASS
    assert bad.inspection.verdict(Check.JSON) is Verdict.FAIL


def test_nothing_of_the_texts_leaves_the_process() -> None:
    """Neither request nor answer, also where something failed."""
    tool = {"id": SECRET, "type": "function", "function": {"name": SECRET, "arguments": f'{{"{SECRET}": 1'}}
    packed = score_batch(
        [
            (request(SECRET), answer(SECRET)),
            (request(SECRET, tools=[{"type": "function", "function": {"name": SECRET}}]), answer(f"{SECRET} " * 300)),
        ]
    )
    assert SECRET.encode() not in packed
    (with_call,) = decode(score_batch([(request(), answer("", "tool_calls", tool_calls=[tool]))]))
    assert SECRET.encode() not in b"".join(call.digest for call in with_call.trace.calls)


@given(st.lists(st.tuples(st.binary(max_size=60), st.binary(max_size=60)), max_size=4))
def test_any_bytes_give_a_score(texts: list[tuple[bytes, bytes]]) -> None:
    """Bodies that no gateway would have taken and answers of any shape: one result each, no fault."""
    assert len(decode(score_batch(texts))) == len(texts)


@pytest.mark.parametrize("depth", [10, 5000])
def test_deep_nesting_is_survived(depth: int) -> None:
    """A body nested deeper than the reader goes is data."""
    deep = b'{"messages":' + b"[" * depth + b"]" * depth + b"}"
    assert len(decode(score_batch([(deep, deep)]))) == 1


def test_checks_yield_to_everything_that_serves() -> None:
    """The process lowers its own priority when it starts."""
    code = "import os; from gateway.control.scorer_process import start; start(); print(os.nice(0))"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(told.stdout) == min(19, os.nice(0) + NICE)
