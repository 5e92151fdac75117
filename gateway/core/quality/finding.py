"""What a check says: closed enums, one finding, and the inspection of a whole answer.

Owns the vocabulary (its values are metric labels and column values) and the mapping from checks to failure classes.
Must not judge. Built by the checks, read by control, the store, the report and `quantgate inspect`.

No answer text is in a finding unless its caller asked for snippets: details are written by the checks alone, and
evidence is an offset.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import Final

import msgspec

SNIPPET_CHARS: Final = 80


class Check(StrEnum):
    """One question put to an answer. The value is the label; `docs/checks.md` explains each."""

    ERROR_OBJECT = "error_object"
    TRUNCATION = "truncation"
    EMPTY = "empty"
    FINISH_REASON = "finish_reason"
    JSON = "json"
    SCHEMA = "schema"
    TOOL_NAMES = "tool_names"
    TOOL_ARGUMENTS = "tool_arguments"
    TOOL_SCHEMA = "tool_schema"
    TOOL_CHOICE = "tool_choice"
    TOOL_LEAK = "tool_leak"
    FENCES = "fences"
    PYTHON = "python"
    JSON_FENCE = "json_fence"
    SQL = "sql"
    REPETITION = "repetition"
    GARBAGE = "garbage"
    SCRIPT = "script"
    REFUSAL = "refusal"
    CITATIONS = "citations"
    NUMBERS = "numbers"


class Verdict(StrEnum):
    """``fail``: the fault is there. ``pass``: the check applies and holds. ``skip``: it applies, but cannot be judged
    (cut off, over a cap, unusable schema). ``not_applicable``: the request or answer gives it nothing to judge."""

    PASS = "pass"  # noqa: S105 - a verdict, no password
    FAIL = "fail"
    SKIP = "skip"
    NOT_APPLICABLE = "not_applicable"


class FailureClass(StrEnum):
    """What a failed check counts as. The value is the label of metrics and guards."""

    UPSTREAM_ERROR = "upstream_error"
    TRUNCATED = "truncated"
    EMPTY = "empty"
    PROTOCOL = "protocol"  # the labels of the answer contradict its content
    FORMAT_ERROR = "format_error"
    TOOL_FAILURE = "tool_failure"
    CODE_ERROR = "code_error"
    DEGENERATE = "degenerate"
    REFUSAL = "refusal"
    UNGROUNDED = "ungrounded"


STRUCTURAL: Final = frozenset(
    {
        Check.ERROR_OBJECT,
        Check.TRUNCATION,
        Check.EMPTY,
        Check.FINISH_REASON,
        Check.JSON,
        Check.SCHEMA,
        Check.TOOL_NAMES,
        Check.TOOL_ARGUMENTS,
        Check.TOOL_SCHEMA,
        Check.TOOL_CHOICE,
        Check.TOOL_LEAK,
        Check.FENCES,
        Check.PYTHON,
        Check.JSON_FENCE,
        Check.SQL,
    }
)
"""Checks that decide by grammar; the rest weigh evidence and are wrong now and then."""

CLASS_OF: Final = {
    Check.ERROR_OBJECT: FailureClass.UPSTREAM_ERROR,
    Check.TRUNCATION: FailureClass.TRUNCATED,
    Check.EMPTY: FailureClass.EMPTY,
    Check.FINISH_REASON: FailureClass.PROTOCOL,
    Check.JSON: FailureClass.FORMAT_ERROR,
    Check.SCHEMA: FailureClass.FORMAT_ERROR,
    Check.TOOL_NAMES: FailureClass.TOOL_FAILURE,
    Check.TOOL_ARGUMENTS: FailureClass.TOOL_FAILURE,
    Check.TOOL_SCHEMA: FailureClass.TOOL_FAILURE,
    Check.TOOL_CHOICE: FailureClass.TOOL_FAILURE,
    Check.TOOL_LEAK: FailureClass.TOOL_FAILURE,
    Check.FENCES: FailureClass.CODE_ERROR,
    Check.PYTHON: FailureClass.CODE_ERROR,
    Check.JSON_FENCE: FailureClass.CODE_ERROR,
    Check.SQL: FailureClass.CODE_ERROR,
    Check.REPETITION: FailureClass.DEGENERATE,
    Check.GARBAGE: FailureClass.DEGENERATE,
    Check.SCRIPT: FailureClass.DEGENERATE,
    Check.REFUSAL: FailureClass.REFUSAL,
    Check.CITATIONS: FailureClass.UNGROUNDED,
    Check.NUMBERS: FailureClass.UNGROUNDED,
}

_KEPT: Final = {
    FailureClass.UPSTREAM_ERROR: 0.0,
    FailureClass.EMPTY: 0.0,
    FailureClass.DEGENERATE: 0.2,
    FailureClass.FORMAT_ERROR: 0.2,
    FailureClass.TOOL_FAILURE: 0.2,
    FailureClass.CODE_ERROR: 0.5,
    FailureClass.UNGROUNDED: 0.5,
    FailureClass.TRUNCATED: 0.7,
    FailureClass.REFUSAL: 0.7,
    FailureClass.PROTOCOL: 0.9,
}
_SEVERITY: Final = {Verdict.FAIL: 3, Verdict.SKIP: 2, Verdict.PASS: 1, Verdict.NOT_APPLICABLE: 0}


class Finding(msgspec.Struct, frozen=True):
    """What one check says about one choice.

    ``where`` names the text that ``start`` and ``end`` (characters, -1 = none) point into: ``text``, ``reasoning``,
    ``arguments[k]`` of the k-th tool call, or ``answer``. ``snippet`` is filled only on request, 80 characters at
    most; the rest of a finding holds no text of the answer.
    """

    check: Check
    verdict: Verdict
    detail: str
    where: str = "text"
    start: int = -1
    end: int = -1
    choice: int = 0
    snippet: str = ""


class Inspection(msgspec.Struct, frozen=True):
    """Everything the checks found in one answer. Small enough to cross a process border for every request.

    ``failures`` are the failure classes of all failed checks, without repeats, in the enum's order. ``score`` is 1 for
    an answer without a failure and falls to 0; it orders answers and is no probability.
    """

    api: str
    streamed: bool
    choices: int
    characters: int
    findings: tuple[Finding, ...]
    failures: tuple[FailureClass, ...]
    score: float

    def verdict(self, check: Check) -> Verdict:
        """The worst verdict of a check over all choices: fail, then skip, then pass, then not applicable."""
        return worst(finding.verdict for finding in self.findings if finding.check == check)

    @property
    def ok(self) -> bool:
        """Nothing failed."""
        return not self.failures


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The gravest of some verdicts; not applicable when there is none."""
    return max(verdicts, key=_SEVERITY.__getitem__, default=Verdict.NOT_APPLICABLE)


def failure_classes(findings: Iterable[Finding]) -> tuple[FailureClass, ...]:
    """The classes of all failed findings, each once, in the enum's order."""
    found = {CLASS_OF[finding.check] for finding in findings if finding.verdict == Verdict.FAIL}
    return tuple(kind for kind in FailureClass if kind in found)


def score(failures: Iterable[FailureClass]) -> float:
    """Product of what each failure class leaves of an answer's worth, in [0, 1]."""
    value = 1.0
    for failure in failures:
        value *= _KEPT[failure]
    return value


def passed(check: Check, detail: str) -> Finding:
    """The check applies and holds."""
    return Finding(check, Verdict.PASS, detail)


def skipped(check: Check, detail: str) -> Finding:
    """The check applies, but cannot be judged."""
    return Finding(check, Verdict.SKIP, detail)


def absent(check: Check, detail: str) -> Finding:
    """The check has nothing to judge here."""
    return Finding(check, Verdict.NOT_APPLICABLE, detail)


def failed(
    check: Check, detail: str, *, where: str = "text", start: int = -1, end: int = -1, snippet: str = ""
) -> Finding:
    """The fault is there. ``snippet`` is dropped later unless the caller asked for snippets."""
    return Finding(check, Verdict.FAIL, detail, where, start, end, 0, snippet[:SNIPPET_CHARS])
