"""Structured output: does the text parse, and does it match what was asked for?

Owns the two checks of requested form. A text that the token limit or the transport cut off is not invalid: if what is
there is a correct beginning, both skip. Must not look at tools. Called by `inspect`.
"""

import re
from typing import Any, Final, NamedTuple

import re2

from gateway.core.assemble.exact_json import JsonProblemError, parse_exact
from gateway.core.quality.finding import Check, Finding, absent, failed, passed, skipped
from gateway.core.quality.schema import SchemaUnusableError, first_mismatch
from gateway.core.quality.view import JSON_CHARS, View
from gateway.model.enums import Structured

_ASKED_IN_WORDS: Final = re.compile(
    r"\b(?:only|just|nothing but|solely|exclusively)\b[^.\n]{0,40}\bJSON\b"
    r"|\bJSON\b[^.\n]{0,40}\b(?:only|nothing else)\b"
    r"|\b(?:respond|reply|answer|return|output)\b[^.\n]{0,30}\b(?:in|with|as|a|valid)\b[^.\n]{0,15}\bJSON\b"
    r"|(?:只|仅|仅仅|严格)[^。\n]{0,12}JSON|以\s?JSON[^。\n]{0,8}(?:格式)?(?:返回|输出|回答|回复)",
    re.IGNORECASE,
)
_MANY_DIGITS: Final = re.compile(r"\d{4001}")


class _Parsed(NamedTuple):
    """Outcome of reading the text as JSON: the value, or why not."""

    value: Any = None
    problem: JsonProblemError | None = None


def check_json(view: View) -> Finding:
    """Fail when JSON was requested (by response_format or its kin, or in words) and the text is not JSON.

    In words, only a text that starts like an object or array is judged: whether prose was meant is not decidable.
    """
    by_field = view.asked.structured in {Structured.JSON_OBJECT, Structured.JSON_SCHEMA}
    reason = _nothing_to_judge(view, by_field)
    if reason:
        return absent(Check.JSON, reason)
    text = view.choice.text
    if len(text) > JSON_CHARS:
        return skipped(Check.JSON, f"longer than {JSON_CHARS} characters")
    parsed = _parse(view)
    if parsed.problem is None:
        if view.asked.structured == Structured.JSON_OBJECT and not isinstance(parsed.value, dict):
            return failed(
                Check.JSON, "a JSON object was asked for, the text is another JSON value", start=0, end=len(text)
            )
        return passed(Check.JSON, "the text is JSON")
    problem = parsed.problem
    if problem.cut and view.cut:
        return skipped(Check.JSON, "cut off; what is there is the correct beginning of a JSON text")
    start = min(problem.position, len(text))
    if text.lstrip().startswith("```"):
        return failed(Check.JSON, "the JSON is wrapped in a code fence", start=0, end=len(text))
    ended = " (the text ends too early, but nothing cut it off)" if problem.cut else ""
    return failed(Check.JSON, f"not JSON: {problem.message}{ended}", start=start, end=start)


def check_schema(view: View) -> Finding:
    """Fail when the answer breaks the requested schema, choice of words or regular expression."""
    asked = view.asked
    if asked.structured == Structured.GRAMMAR:
        return _check_words(view)
    if asked.structured != Structured.JSON_SCHEMA or asked.schema is None:
        return absent(Check.SCHEMA, "no schema was requested")
    reason = _nothing_to_judge(view, True)
    if reason:
        return absent(Check.SCHEMA, reason)
    if len(view.choice.text) > JSON_CHARS:
        return skipped(Check.SCHEMA, f"longer than {JSON_CHARS} characters")
    parsed = _parse(view)
    if parsed.problem is not None:
        return skipped(Check.SCHEMA, "the text does not parse; see the json check")
    if _MANY_DIGITS.search(view.choice.text):
        return skipped(Check.SCHEMA, "a number has more than 4,000 digits")
    schema = asked.schema
    if isinstance(schema, str):  # SGLang and vLLM take the schema as JSON text too
        try:
            schema = parse_exact(schema)
        except JsonProblemError:
            return skipped(Check.SCHEMA, "the requested schema is not JSON")
    try:
        mismatch = first_mismatch(schema, parsed.value)
    except SchemaUnusableError as error:
        return skipped(Check.SCHEMA, str(error))
    if mismatch is None:
        return passed(Check.SCHEMA, "the text matches the requested schema")
    return failed(
        Check.SCHEMA,
        f"breaks the schema's keyword {mismatch.keyword!r}",
        start=0,
        end=len(view.choice.text),
        snippet=f"{mismatch.path}: {mismatch.message}",
    )


def _check_words(view: View) -> Finding:
    asked, text = view.asked, view.text
    reason = _nothing_to_judge(view, True)
    if reason:
        return absent(Check.SCHEMA, reason)
    if view.cut:
        return skipped(Check.SCHEMA, "cut off")
    if asked.words and text not in asked.words:
        return failed(Check.SCHEMA, "the text is none of the words asked for", start=0, end=len(text))
    if asked.pattern:
        try:
            matches = re2.fullmatch(asked.pattern, text) is not None
        except re2.error:
            return skipped(Check.SCHEMA, "the requested expression is no RE2 expression")
        if not matches:
            return failed(Check.SCHEMA, "the text does not match the requested expression", start=0, end=len(text))
    return passed(Check.SCHEMA, "the text has the requested form")


def _nothing_to_judge(view: View, by_field: bool) -> str:
    choice = view.choice
    if choice.tool_calls or choice.refusal or choice.other_output:
        return "the answer is a tool call, a refusal or no text"
    if view.answer.errors or view.answer.problem:
        return "there is no answer"
    if not choice.text.strip():
        return "there is no text; see the empty check"
    if by_field:
        return ""
    starts = choice.text.lstrip()[:1] in {"{", "["}
    asked = starts and (
        _ASKED_IN_WORDS.search(view.asked.user[-4096:]) or _ASKED_IN_WORDS.search(view.asked.system[-4096:])
    )
    return "" if asked else "no JSON was requested"


def _parse(view: View) -> _Parsed:
    """Read the text, and failing that the text behind the request's own prefill, which the answer continues."""
    text = view.choice.text
    try:
        return _Parsed(parse_exact(text))
    except JsonProblemError as problem:
        if view.asked.prefill:
            try:
                return _Parsed(parse_exact(view.asked.prefill + text))
            except JsonProblemError as joined:
                return _Parsed(None, joined)
        return _Parsed(None, problem)
