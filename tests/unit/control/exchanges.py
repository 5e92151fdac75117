"""Texts of exchanges, outcomes and inspections for tests of the evidence pipeline."""

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from gateway.control import frames
from gateway.control.scoring import Scored
from gateway.core.batch import Batch, Kinds
from gateway.core.consequence import Call, Result, Trace
from gateway.core.quality import Check, FailureClass, Finding, Inspection, Verdict
from gateway.model.messages import Outcomes
from gateway.model.outcome import Capture, Outcome
from tests.unit.control.conftest import outcome
from tests.unit.dataplane.outcome_values import batches, sent

SECRET = "marmalade-5512-is-nowhere"


def request(text: str = "Give me JSON.", **fields: Any) -> bytes:
    """A chat request that asks for a JSON object."""
    body = {"model": "m", "messages": [{"role": "user", "content": text}], "response_format": {"type": "json_object"}}
    return json.dumps(body | fields).encode()


def answer(text: str, finish_reason: str = "stop", **message: Any) -> bytes:
    """A whole chat answer."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text, **message}, "finish_reason": finish_reason}
    return json.dumps({"object": "chat.completion", "model": "m", "choices": [choice]}).encode()


def captured(request_id: str, text: str = '{"a": 1}', *, cut: bool = False, **fields: Any) -> Outcome:
    """An outcome whose texts came along."""
    return outcome(request_id=request_id, capture=Capture(request(), answer(text), cut), **fields)


KINDS = Kinds()


def batch(*outcomes: Outcome) -> Batch:
    """As the recorder hands them on."""
    return KINDS.batch([msgspec.msgpack.encode(made) for made in batches(outcomes)])


def arrived(*outcomes: Outcome, dropped: int = 0, captures_dropped: int = 0, worker: int = 0) -> Outcomes:
    """As control reads a worker's message."""
    message = Outcomes(worker, dropped, sent(*outcomes), captures_dropped)
    found = frames.decode_to_control(frames.encode(message)[frames.HEAD_BYTES :])
    assert isinstance(found, Outcomes)
    return found


def inspection(*failed: Check) -> Inspection:
    """What the checks found: JSON passed, and these failed."""
    findings = [Finding(Check.JSON, Verdict.PASS, ""), Finding(Check.SQL, Verdict.NOT_APPLICABLE, "")]
    findings = [finding for finding in findings if finding.check not in failed]
    findings += [Finding(check, Verdict.FAIL, "") for check in failed]
    classes = (FailureClass.FORMAT_ERROR,) if failed else ()
    return Inspection("chat", False, 1, 8, tuple(findings), classes, 0.2 if failed else 1.0)


def scored(request_id: str = "req-1", *failed: Check, trace: Trace | None = None, **fields: Any) -> Scored:
    """A checked outcome."""
    return Scored(outcome(request_id=request_id, **fields), inspection(*failed), trace or Trace())


def called(call_id: str, digest: bytes = b"d") -> Trace:
    """An answer that called a tool."""
    return Trace(calls=(Call(call_id, digest),))


def told(call_id: str, failed: bool, digest: bytes | None = None) -> Trace:
    """A turn that brings a tool's result, and perhaps calls again."""
    calls = (Call("next", digest),) if digest is not None else ()
    return Trace(calls=calls, results=(Result(call_id, failed),))


class Ear:
    """A subscriber that remembers, and can be waited for."""

    def __init__(self) -> None:
        self.heard: list[Scored] = []

    def __call__(self, found: Sequence[Scored]) -> None:
        self.heard += found

    async def reach(self, count: int, within_s: float = 120.0) -> list[Scored]:
        """Until so many were heard."""
        await until(lambda: len(self.heard) >= count, within_s)
        return self.heard

    @property
    def checked(self) -> set[str]:
        """Request ids that were checked."""
        return {found.outcome.request_id for found in self.heard if found.inspection is not None}


async def until(condition: Callable[[], bool], within_s: float = 60.0) -> None:
    """Let the loop turn until it holds."""
    async with asyncio.timeout(within_s):
        while not condition():
            await asyncio.sleep(0.01)
