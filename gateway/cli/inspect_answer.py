"""``quantgate inspect``: hold one stored answer against all quality checks and say what they found.

Owns reading the two files, the words and the JSON that a person sees, and the exit code. Must not judge: that is
`gateway.core.quality`. Exit status: 0 nothing failed, 1 a check failed, 2 bad input.
"""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
import orjson
import typer

from gateway.core.assemble import JsonProblemError, looks_like_stream, parse_envelope
from gateway.core.assemble.exact_json import line_and_column
from gateway.core.quality import CLASS_OF, Finding, Inspection, Verdict, inspect
from gateway.errors import PolicyError

NOTHING_FAILED, SOMETHING_FAILED, BAD_INPUT = 0, 1, 2

_MARKS: Final = {Verdict.FAIL: "FAIL", Verdict.SKIP: "skip", Verdict.PASS: "pass"}
_REQUEST_MEND: Final = "give a request body as it was sent to /v1/chat/completions or its kin"
_ANSWER_MEND: Final = "give the pool's answer as it came: a whole JSON body or the raw event stream"


class BadInputError(Exception):
    """A file that cannot be used; ``finding`` says where and how to mend it."""

    def __init__(self, finding: PolicyError) -> None:
        super().__init__(str(finding))
        self.finding = finding


def inspect_answer(
    request: Annotated[Path, typer.Argument(help="The request body, JSON.")],
    answer: Annotated[Path, typer.Argument(help="The answer: JSON body or raw SSE.")],
    as_json: Annotated[bool, typer.Option("--json", help="The same as JSON.")] = False,
) -> None:
    """Run every quality check on an answer: what each found, and why. Exit status 1 if one failed."""
    raise typer.Exit(run(request, answer, as_json))


def run(request_path: Path, answer_path: Path, as_json: bool) -> int:
    """Inspect one answer and print the result.

    ``answer_path`` holds a JSON body or a raw event stream, told apart by content. Returns 0 if nothing failed, 1 if a
    check failed, 2 if a file cannot be used (then the reason is on stderr).
    """
    try:
        request = _read_object(request_path, _REQUEST_MEND)
        answer = _read_answer(answer_path)
    except BadInputError as error:
        print(error, file=sys.stderr)
        return BAD_INPUT
    found = inspect(request, answer, snippets=True)
    print(_as_json(found) if as_json else _in_words(found))
    return NOTHING_FAILED if found.ok else SOMETHING_FAILED


def _read(path: Path, mend: str) -> bytes:
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise _bad(path, 1, 1, error.strerror or str(error), "give the path of a file that can be read") from None
    if not raw.strip():
        raise _bad(path, 1, 1, "the file is empty", mend)
    return raw


def _read_object(path: Path, mend: str) -> dict[str, Any]:
    raw = _read(path, mend)
    try:
        value = parse_envelope(raw, exact=True)
    except JsonProblemError as problem:
        line, column = line_and_column(raw.decode("utf-8-sig", "replace"), problem.position)
        raise _bad(path, line, column, f"not JSON: {problem.message}", mend) from None
    if not isinstance(value, dict):
        raise _bad(path, 1, 1, "this is JSON, but no object", mend)
    return value


def _read_answer(path: Path) -> bytes:
    raw = _read(path, _ANSWER_MEND)
    if not looks_like_stream(raw):
        _read_object(path, _ANSWER_MEND)
    return raw


def _bad(path: Path, line: int, column: int, message: str, mend: str) -> BadInputError:
    return BadInputError(PolicyError(str(path), line, column, message, mend))


def _as_json(found: Inspection) -> str:
    value = msgspec.to_builtins(found) | {"ok": found.ok}
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()


def _in_words(found: Inspection) -> str:
    framing = "event stream" if found.streamed else "JSON body"
    choices = "1 choice" if found.choices == 1 else f"{found.choices} choices"
    lines = [f"{found.api} answer, {framing}, {choices}, {found.characters} characters of text", ""]
    for verdict in _MARKS:
        lines += [_line(finding, found.choices) for finding in found.findings if finding.verdict == verdict]
    idle = _names(finding for finding in found.findings if finding.verdict == Verdict.NOT_APPLICABLE)
    lines += ["", f"nothing to judge for: {idle}"] if idle else []
    counted = ", ".join(found.failures) or "nothing failed"
    return "\n".join([*lines, "", f"counts as: {counted}; score {found.score:.2f}"])


def _line(finding: Finding, choices: int) -> str:
    words = f"{_MARKS[finding.verdict]}  {finding.check:<15} {finding.detail}"
    if choices > 1:
        words += f" [choice {finding.choice}]"
    if finding.verdict != Verdict.FAIL:
        return words
    place = f"in {finding.where}" + (f", at character {finding.start}" if finding.start >= 0 else "")
    words += f"\n      {place}; counts as {CLASS_OF[finding.check]}"
    return words + (f"\n      {finding.snippet!r}" if finding.snippet else "")


def _names(findings: Iterable[Finding]) -> str:
    return ", ".join(dict.fromkeys(finding.check.value for finding in findings))
