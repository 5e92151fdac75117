"""Code in fences: does each fence close, and does labelled Python, JSON and SQL parse?

Owns four structural checks of fenced code. Parses, never runs. Code that the token limit cut is not judged. Must not
guess languages: only what the fence's own label claims is held against it. Called by `inspect`.
"""

import ast
import re
import textwrap
import warnings
from collections.abc import Callable
from typing import Final

from gateway.core.assemble.exact_json import JsonProblemError, parse_exact
from gateway.core.quality.finding import Check, Finding, absent, failed, passed, skipped
from gateway.core.quality.markdown import Fence
from gateway.core.quality.sql import sql_problem
from gateway.core.quality.view import View

MAX_PYTHON_CHARS: Final = 32_768
_MAX_BRACKETS: Final = 90  # nesting; CPython's own parser gives up near 200
_MAX_OPERATOR_RUN: Final = re.compile(r"(?:[-+~]\s*|not\s+|\(\s*|\[\s*|\{\s*){90}")

_PYTHON: Final = frozenset({"python", "py", "python3"})
_JSON: Final = frozenset({"json"})
_SQL: Final = frozenset({"sql", "mysql", "postgresql", "postgres", "sqlite", "psql", "tsql"})
_NEWER_PYTHON: Final = re.compile(
    r"^\s*(?:type\s+\w+.*=|(?:async\s+)?def\s+\w+\s*\[|class\s+\w+\s*\[|except\s+[\w.]+\s*,)|\b[rR]?t[\"']",
    re.MULTILINE,
)
_SHELL_LINE: Final = re.compile(r"^[ \t]*[!%?][^\n]*$", re.MULTILINE)
_PYTHON_2: Final = re.compile(r"python\s?2", re.IGNORECASE)
_JSON_COMMENT_ASKED: Final = re.compile(r"jsonc|json5|comment|注释", re.IGNORECASE)


def check_fences(view: View) -> Finding:
    """Fail when a code fence is opened and never closed, although nothing cut the answer off."""
    if not view.fences:
        return absent(Check.FENCES, "no code fence")
    last = view.fences[-1]
    if last.closed:
        return passed(Check.FENCES, "every code fence closes")
    if view.cut:
        return skipped(Check.FENCES, "cut off inside a code fence")
    if view.over_cap:
        return skipped(Check.FENCES, "longer than the checks read")
    return failed(Check.FENCES, "a code fence never closes", start=last.start, end=last.body_start)


def check_python(view: View) -> Finding:
    """Fail when a fence labelled Python does not parse as Python 3."""
    if _PYTHON_2.search(view.asked.user[-2048:]):
        return absent(Check.PYTHON, "the request is about Python 2")
    return _check_fenced(view, Check.PYTHON, _PYTHON, _python_problem)


def check_json_fence(view: View) -> Finding:
    """Fail when a fence labelled JSON is neither JSON nor JSON lines."""
    if _JSON_COMMENT_ASKED.search(view.asked.user[-2048:]):
        return absent(Check.JSON_FENCE, "the request asks for comments, which JSON has not")
    return _check_fenced(view, Check.JSON_FENCE, _JSON, _json_problem)


def check_sql(view: View) -> Finding:
    """Fail when a fence labelled SQL is structurally broken: brackets, quotes, order of clauses, dangling ends."""
    return _check_fenced(view, Check.SQL, _SQL, sql_problem)


_Problem = Callable[[str], tuple[str, int] | None]


def _check_fenced(view: View, check: Check, languages: frozenset[str], problem: _Problem) -> Finding:
    """Apply ``problem`` to every closed fence of these languages. It returns (what is wrong, offset), or None."""
    judged = False
    for fence in view.fences:
        if fence.language not in languages:
            continue
        if not fence.closed:
            # an open fence is the fences check's matter; its code may go on where it stops
            return skipped(check, "the fence is open")
        code = view.text[fence.body_start : fence.body_end]
        if not code.strip():
            continue
        found = problem(code)
        if found == _UNDECIDED:
            return skipped(check, "too large, too nested or newer syntax than this parser knows")
        if found is not None:
            what, at = found
            start = _inside(fence, at)
            return failed(check, f"does not parse: {what}", start=start, end=start)
        judged = True
    return passed(check, "parses") if judged else absent(check, "no such code fence")


_UNDECIDED: Final = ("", -1)


def _inside(fence: Fence, at: int) -> int:
    return min(max(fence.body_start + at, fence.body_start), fence.body_end)


def _python_problem(code: str) -> tuple[str, int] | None:
    if len(code) > MAX_PYTHON_CHARS or _nesting(code) > _MAX_BRACKETS or _MAX_OPERATOR_RUN.search(code):
        return _UNDECIDED
    if code.lstrip().startswith(">>>"):
        return None  # a session, not a program
    source = _SHELL_LINE.sub("", textwrap.dedent(code))  # notebook commands
    flags = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # odd escapes are the author's matter, not this process's log
            compile(source, "<fence>", "exec", flags=flags, dont_inherit=True)
    except SyntaxError as error:
        if (error.msg or "").startswith("f-string") or _NEWER_PYTHON.search(source):
            return _UNDECIDED
        line = (error.lineno or 1) - 1
        return error.msg or "invalid syntax", sum(len(text) + 1 for text in code.split("\n")[:line])
    except (ValueError, MemoryError, RecursionError, OverflowError):
        return _UNDECIDED
    return None


def _nesting(code: str) -> int:
    """Deepest nesting of brackets, strings not told apart: an upper bound is enough here."""
    depth = deepest = 0
    for character in code:
        if character in "([{":
            depth += 1
            deepest = max(deepest, depth)
        elif character in ")]}":
            depth = max(depth - 1, 0)
    return deepest


def _json_problem(code: str) -> tuple[str, int] | None:
    try:
        parse_exact(code)
    except JsonProblemError as problem:
        lines = [line for line in code.split("\n") if line.strip()]
        if len(lines) > 1 and all(map(_parses, lines)):
            return None  # JSON lines
        return problem.message, problem.position
    return None


def _parses(line: str) -> bool:
    try:
        parse_exact(line)
    except JsonProblemError:
        return False
    return True
