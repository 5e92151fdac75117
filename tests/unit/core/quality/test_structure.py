"""Requested form: JSON, schema, words; and truncation kept apart from invalid."""

import json
from typing import Any

import pytest

from gateway.core.assemble import Answer, Choice, ToolCall
from gateway.core.quality.asked import Asked
from gateway.core.quality.finding import Verdict
from gateway.core.quality.structure import check_json, check_schema
from gateway.core.quality.view import JSON_CHARS, View, view_of
from gateway.model.enums import Structured

OBJECT = Asked(structured=Structured.JSON_OBJECT)
SCHEMA = Asked(structured=Structured.JSON_SCHEMA, schema={"type": "object", "required": ["a"]})


def view(text: str, asked: Asked, finish: str | None = "stop", **fields: Any) -> View:
    """A view of one text."""
    choice = Choice(text=text, finish_reason=finish, **fields)
    return view_of(asked, Answer(choices=(choice,), done=True), choice)


@pytest.mark.parametrize("text", ['{"a":1}', ' \n{"a": [1, 2]}\n', '{"a":12345678901234567890123}'])
def test_json_passes(text: str) -> None:
    """White space around and long numbers inside are fine."""
    assert check_json(view(text, OBJECT)).verdict == Verdict.PASS


@pytest.mark.parametrize("text", ["{'a':1}", '{"a":1', "Sure! {}", '```json\n{"a":1}\n```', "[1]", "nul", '{"a":NaN}'])
def test_json_fails(text: str) -> None:
    """Whatever JSON.parse would refuse, and values that are no object, fail."""
    assert check_json(view(text, OBJECT)).verdict == Verdict.FAIL


def test_evidence_points_at_the_fault() -> None:
    """The offset is where the parser stopped."""
    assert check_json(view('{"a": 1 "b": 2}', OBJECT)).start == 8


def test_cut_text_is_skipped_unless_it_was_wrong_before() -> None:
    """A correct beginning is only truncated; a fault before the cut is a fault."""
    assert check_json(view('{"a": "b', OBJECT, "length")).verdict == Verdict.SKIP
    assert check_json(view('{"a": b, "c', OBJECT, "length")).verdict == Verdict.FAIL


def test_words_ask_for_json_only_when_the_answer_starts_like_it() -> None:
    """Prose in answer to 'only JSON' is not decidable; a broken object is."""
    for user in ("Return only JSON.", "Answer with JSON, nothing else", "只返回JSON对象", "请以JSON格式返回"):
        asked = Asked(user=user)
        assert check_json(view('{"a": 1', asked)).verdict == Verdict.FAIL
        assert check_json(view("I need more details.", asked)).verdict == Verdict.NOT_APPLICABLE
    assert check_json(view('{"a": 1', Asked(user="What is JSON?"))).verdict == Verdict.NOT_APPLICABLE


def test_calls_refusals_and_nothing_are_not_judged() -> None:
    """A tool call, a refusal and an empty text have no form."""
    assert check_json(view("", OBJECT, tool_calls=(ToolCall("f"),))).verdict == Verdict.NOT_APPLICABLE
    assert check_json(view("", OBJECT, refusal="no")).verdict == Verdict.NOT_APPLICABLE
    assert check_json(view("", OBJECT)).verdict == Verdict.NOT_APPLICABLE


def test_prefill_is_part_of_the_answer() -> None:
    """An answer that continues the request's own beginning is judged with it, and passes alone too."""
    asked = Asked(structured=Structured.JSON_OBJECT, prefill='{"a":')
    assert check_json(view("1}", asked)).verdict == Verdict.PASS
    assert check_json(view('{"a":1}', asked)).verdict == Verdict.PASS
    assert check_json(view("1", asked)).verdict == Verdict.FAIL


def test_schema_verdicts() -> None:
    """Match, mismatch, text that does not parse, and a schema that cannot be used."""
    assert check_schema(view('{"a":1}', SCHEMA)).verdict == Verdict.PASS
    found = check_schema(view('{"b":"secret"}', SCHEMA))
    assert found.verdict == Verdict.FAIL
    assert "secret" not in found.detail
    assert check_schema(view("{", SCHEMA)).verdict == Verdict.SKIP
    endless = Asked(structured=Structured.JSON_SCHEMA, schema={"$ref": "#"})
    assert check_schema(view("{}", endless)).verdict == Verdict.SKIP
    assert check_schema(view("{}", OBJECT)).verdict == Verdict.NOT_APPLICABLE


def test_schema_given_as_text() -> None:
    """SGLang takes the schema as a JSON string."""
    asked = Asked(structured=Structured.JSON_SCHEMA, schema=json.dumps(SCHEMA.schema))
    assert check_schema(view('{"b":1}', asked)).verdict == Verdict.FAIL
    assert check_schema(view("{}", Asked(structured=Structured.JSON_SCHEMA, schema="{"))).verdict == Verdict.SKIP


def test_numbers_of_thousands_of_digits_are_not_judged() -> None:
    """Such a number is neither integer nor float to the validator."""
    assert check_schema(view('{"a":' + "9" * 5000 + "}", SCHEMA)).verdict == Verdict.SKIP


def test_words_and_expressions() -> None:
    """guided_choice and guided_regex, and an expression that RE2 does not know."""
    words = Asked(structured=Structured.GRAMMAR, words=("yes", "no"))
    assert check_schema(view("yes", words)).verdict == Verdict.PASS
    assert check_schema(view("yes.", words)).verdict == Verdict.FAIL
    assert check_schema(view("ye", words, "length")).verdict == Verdict.SKIP
    pattern = Asked(structured=Structured.GRAMMAR, pattern=r"\d{4}")
    assert check_schema(view("20245", pattern)).verdict == Verdict.FAIL
    assert check_schema(view("x", Asked(structured=Structured.GRAMMAR, pattern="(?=x)"))).verdict == Verdict.SKIP


def test_oversized_text_is_skipped() -> None:
    """Over a megabyte nothing is parsed."""
    assert check_json(view(" " * (JSON_CHARS + 1) + "{}", OBJECT)).verdict == Verdict.SKIP
