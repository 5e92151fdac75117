"""Run every check over every choice of an answer.

Owns the order of the checks, the bound on choices, and the guard that one check's own fault costs only that check.
Must not judge by itself. Called by control's scorer processes (`inspect_packed`), by the comparison of shadow pairs
(`inspect_assembled`) and by `quantgate inspect` (`inspect`).
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from gateway.core.assemble import JsonProblemError, assemble, parse_envelope
from gateway.core.assemble.answer import Answer, Choice
from gateway.core.assemble.parts import as_object
from gateway.core.quality.asked import Asked, read_request
from gateway.core.quality.citations import check_citations
from gateway.core.quality.code import check_fences, check_json_fence, check_python, check_sql
from gateway.core.quality.ending import (
    check_choices,
    check_empty,
    check_error_object,
    check_finish_reason,
    check_truncation,
)
from gateway.core.quality.finding import (
    SNIPPET_CHARS,
    Check,
    Finding,
    Inspection,
    Verdict,
    failure_classes,
    score,
    skipped,
)
from gateway.core.quality.garbage import check_garbage
from gateway.core.quality.grounding import check_numbers
from gateway.core.quality.leaks import check_tool_leak
from gateway.core.quality.loops import check_repetition
from gateway.core.quality.refusals import check_refusal
from gateway.core.quality.scripts import check_script
from gateway.core.quality.structure import check_json, check_schema
from gateway.core.quality.tools import check_tool_arguments, check_tool_choice, check_tool_names, check_tool_schema
from gateway.core.quality.view import View, view_of

MAX_CHOICES: Final = 8
"""Choices that are judged; further ones of a large n are not."""

CHECKS: Final[Mapping[Check, Callable[[View], Finding]]] = {
    Check.ERROR_OBJECT: check_error_object,
    Check.TRUNCATION: check_truncation,
    Check.EMPTY: check_empty,
    Check.FINISH_REASON: check_finish_reason,
    Check.JSON: check_json,
    Check.SCHEMA: check_schema,
    Check.TOOL_NAMES: check_tool_names,
    Check.TOOL_ARGUMENTS: check_tool_arguments,
    Check.TOOL_SCHEMA: check_tool_schema,
    Check.TOOL_CHOICE: check_tool_choice,
    Check.TOOL_LEAK: check_tool_leak,
    Check.FENCES: check_fences,
    Check.PYTHON: check_python,
    Check.JSON_FENCE: check_json_fence,
    Check.SQL: check_sql,
    Check.REPETITION: check_repetition,
    Check.GARBAGE: check_garbage,
    Check.SCRIPT: check_script,
    Check.REFUSAL: check_refusal,
    Check.CITATIONS: check_citations,
    Check.NUMBERS: check_numbers,
}
"""Every check and its function, in the order in which a person reads them."""

_CALL_TEXT: Final = re.compile(r"arguments\[(\d+)\]")
_ENCODER: Final = msgspec.msgpack.Encoder()


def inspect(request: bytes | Mapping[str, Any], answer: bytes, *, snippets: bool = False) -> Inspection:
    """Judge the answer to a request. Never raises; a request that cannot be read asks for nothing.

    ``snippets`` adds at most 80 characters of evidence to each failed finding; without it no text of the request or
    the answer is in the result.
    """
    body = _request_body(request)
    return inspect_assembled(read_request(body), assemble(body, answer), snippets=snippets)


def inspect_packed(request: bytes, answer: bytes) -> bytes:
    """`inspect` for another process: bytes in, the `Inspection` as msgpack out (`msgspec.msgpack`, type Inspection)."""
    return _ENCODER.encode(inspect(request, answer))


def inspect_assembled(asked: Asked, answer: Answer, *, snippets: bool = False) -> Inspection:
    """Judge an answer that is assembled already."""
    findings: list[Finding] = []
    for choice in (answer.choices or (Choice(),))[:MAX_CHOICES]:
        view = view_of(asked, answer, choice)
        for check, judge in CHECKS.items():
            finding = _run(check, judge, view)
            findings.append(_settled(finding, choice, snippets))
        if choice is (answer.choices or (choice,))[0]:
            missing = check_choices(view)
            if missing.verdict == Verdict.FAIL:
                findings.append(missing)
    failures = failure_classes(findings)
    return Inspection(
        api=answer.api.value,
        streamed=answer.streamed,
        choices=len(answer.choices),
        characters=sum(len(choice.text) for choice in answer.choices),
        findings=tuple(findings),
        failures=failures,
        score=score(failures),
    )


def _request_body(request: bytes | Mapping[str, Any]) -> Mapping[str, Any]:
    if not isinstance(request, bytes):
        return request
    try:
        return as_object(parse_envelope(request))
    except JsonProblemError:
        return {}


def _run(check: Check, judge: Callable[[View], Finding], view: View) -> Finding:
    try:
        return judge(view)
    except Exception as error:  # a fault of ours must not hide the other checks, nor count against a pool
        return skipped(check, f"the check itself failed ({type(error).__name__})")


def _settled(finding: Finding, choice: Choice, snippets: bool) -> Finding:
    """Put the choice's index in, and the evidence's text in or out."""
    snippet = ""
    if snippets and finding.verdict == Verdict.FAIL:
        snippet = finding.snippet or _evidence(finding, choice)
    if snippet == finding.snippet and choice.index == finding.choice:
        return finding
    return msgspec.structs.replace(finding, choice=choice.index, snippet=snippet)


def _evidence(finding: Finding, choice: Choice) -> str:
    if finding.start < 0:
        return ""
    text = {"text": choice.text, "reasoning": choice.reasoning}.get(finding.where, "")
    call = _CALL_TEXT.fullmatch(finding.where)
    if call and int(call[1]) < len(choice.tool_calls):
        text = choice.tool_calls[int(call[1])].arguments
    end = finding.end if finding.end > finding.start else finding.start + SNIPPET_CHARS // 2
    start = finding.start if finding.end > finding.start else max(finding.start - SNIPPET_CHARS // 2, 0)
    return text[start : min(end, start + SNIPPET_CHARS)]
