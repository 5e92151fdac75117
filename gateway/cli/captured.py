"""Requests and answers that somebody captured in files, as ``compare`` and ``inspect`` take them.

Owns reading them and the faults of a file: its place, what is wrong, how to mend it. What an answer must be beyond that
is the command's own.
"""

from pathlib import Path
from typing import Any

from gateway.core.assemble import JsonProblemError, parse_envelope
from gateway.core.assemble.exact_json import line_and_column
from gateway.errors import PolicyError

REQUEST_MEND = "give a request body as it was sent to /v1/chat/completions or its kin"
ANSWER_MEND = "give the pool's answer as it came: a whole JSON body or the raw event stream"


class BadInputError(Exception):
    """A file that cannot be used; ``finding`` says where and how to mend it."""

    def __init__(self, finding: PolicyError) -> None:
        super().__init__(str(finding))
        self.finding = finding


def bad(path: Path, message: str, mend: str, line: int = 1, column: int = 1) -> BadInputError:
    """What is wrong with a file, to be raised."""
    return BadInputError(PolicyError(str(path), line, column, message, mend))


def no_json(path: Path, raw: bytes, problem: JsonProblemError, mend: str) -> BadInputError:
    """That a file holds no JSON from some place on, to be raised."""
    line, column = line_and_column(raw.decode("utf-8-sig", "replace"), problem.position)
    return bad(path, f"no JSON: {problem.message}", mend, line, column)


def read_bytes(path: Path) -> bytes:
    """The file as it is. Raises ``BadInputError``."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise bad(path, f"cannot be read: {error.strerror or error}", "give the path of a file") from None


def read_object(path: Path, mend: str) -> dict[str, Any]:
    """The JSON object in a file. Raises ``BadInputError`` with ``mend``, which says what the file should be."""
    raw = read_bytes(path)
    if not raw.strip():
        raise bad(path, "the file is empty", mend)
    try:
        value = parse_envelope(raw, exact=True)
    except JsonProblemError as problem:
        raise no_json(path, raw, problem, mend) from None
    if not isinstance(value, dict):
        raise bad(path, "this is JSON, but no object", mend)
    return value
