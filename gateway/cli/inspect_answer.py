"""``quantgate inspect``: hold one stored answer against all quality checks and say what they found.

Owns the words and the JSON that a person sees, and the exit code. Must not judge: that is
`gateway.core.quality`. Exit status: 0 nothing failed, 1 a check failed, 2 bad input.
"""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Final

import msgspec
import typer

from gateway.cli.captured import ANSWER_MEND, REQUEST_MEND, BadInputError, read_bytes, read_object
from gateway.cli.telling import print_json
from gateway.core.assemble import looks_like_stream
from gateway.core.quality import CLASS_OF, Finding, Inspection, Verdict, inspect

NOTHING_FAILED, SOMETHING_FAILED, BAD_INPUT = 0, 1, 2

_MARKS: Final = {Verdict.FAIL: "FAIL", Verdict.SKIP: "skip", Verdict.PASS: "pass"}


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
        request = read_object(request_path, REQUEST_MEND)
        answer = _read_answer(answer_path)
    except BadInputError as error:
        print(error, file=sys.stderr)
        return BAD_INPUT
    found = inspect(request, answer, snippets=True)
    if as_json:
        print_json(msgspec.to_builtins(found) | {"ok": found.ok})
    else:
        print(_in_words(found))
    return NOTHING_FAILED if found.ok else SOMETHING_FAILED


def _read_answer(path: Path) -> bytes:
    raw = read_bytes(path)
    if not looks_like_stream(raw):
        read_object(path, ANSWER_MEND)
    return raw


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
