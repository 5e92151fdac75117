"""Each quality fault is wrong in exactly the way its name says."""

import json
import re
from random import Random
from typing import Any

import jsonschema
import pytest

from gateway.simulator.answer import Choice, good_choice
from gateway.simulator.ask import Ask
from gateway.simulator.config import Config
from gateway.simulator.defect import spoiled
from gateway.simulator.fault import QUALITY
from tests.unit.simulator.rig import DOCUMENTS, PAY, PERSON, WEATHER, ask, chat, json_schema

TOOLS = ask(**chat("weather in Paris", tools=[WEATHER, PAY]))
SCHEMA = ask(**chat(response_format=json_schema(PERSON)))
TEXT = ask()
RAG = ask(messages=[{"role": "system", "content": DOCUMENTS}, {"role": "user", "content": "Where does the cat sleep?"}])
PARAMETERS: Any = WEATHER["function"]["parameters"]
SEEDS = range(40)


def _pair(asked: Ask, kind: str, seed: int, limit: int = 1000) -> tuple[Choice, Choice]:
    good = good_choice(asked, Config(), Random(seed))
    return good, spoiled(good, asked, kind, limit, Random(seed))


@pytest.mark.parametrize("seed", SEEDS)
def test_broken_json_does_not_parse(seed: int) -> None:
    """Neither structured text nor arguments parse."""
    for text in (_pair(SCHEMA, "broken_json", seed)[1].text, _pair(TOOLS, "broken_json", seed)[1].calls[0].text):
        with pytest.raises(json.JSONDecodeError):
            json.loads(text)


@pytest.mark.parametrize("seed", SEEDS)
def test_schema_violation_parses_and_violates(seed: int) -> None:
    """The JSON is well-formed and the schema refuses it."""
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(json.loads(_pair(SCHEMA, "schema_violation", seed)[1].text), PERSON)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(json.loads(_pair(TOOLS, "schema_violation", seed)[1].calls[0].text), PARAMETERS)


def test_schema_violation_where_everything_is_allowed() -> None:
    """A schema that accepts anything cannot be violated: the answer stays."""
    free = ask(**chat(response_format=json_schema({})))
    good, bad = _pair(free, "schema_violation", 1)
    assert json.loads(bad.text) == json.loads(good.text)
    assert (
        spoiled(
            Choice(("yes",), structured=True),
            ask(**chat(structured_outputs={"choice": ["yes"]})),
            "schema_violation",
            9,
            Random(1),
        ).text
        == "other"
    )


def test_wrong_tool_is_another() -> None:
    """Another declared tool where there is one, else one that does not exist."""
    assert _pair(TOOLS, "wrong_tool", 1)[1].calls[0].name == "pay"
    single = ask(**chat(tools=[PAY]))
    assert _pair(single, "wrong_tool", 1)[1].calls[0].name == "pay_v2"


@pytest.mark.parametrize("seed", SEEDS)
def test_wrong_arguments_are_other_values(seed: int) -> None:
    """Same tool, well-formed arguments, other values; also where there is nothing to draw."""
    good, bad = _pair(TOOLS, "wrong_arguments", seed)
    assert bad.calls[0].name == good.calls[0].name
    assert json.loads(bad.calls[0].text) != json.loads(good.calls[0].text)
    fixed = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
    assert json.loads(_pair(ask(**chat(tools=[fixed])), "wrong_arguments", seed)[1].calls[0].text) != {}


def test_leaked_call_is_text() -> None:
    """The call appears in the content, in the model's own markup, and the list of calls is empty."""
    good, bad = _pair(TOOLS, "leaked_tool_call", 1)
    assert bad.calls == ()
    assert bad.finish == "stop"
    assert "<tool_call>" in bad.text
    assert good.calls[0].name in bad.text


def test_repetition_repeats() -> None:
    """A phrase comes again and again; at the token limit the finish reason is length."""
    _, bad = _pair(TEXT, "repetition", 1)
    assert len(bad.pieces) > 200
    assert len(set(bad.pieces[-100:])) < 12
    assert _pair(TEXT, "repetition", 1, limit=100)[1].finish == "length"


@pytest.mark.parametrize("seed", SEEDS)
def test_garbage_is_no_text(seed: int) -> None:
    """Exclamation marks or mixed scripts, nothing a reader could use."""
    _, bad = _pair(TEXT, "garbage", seed)
    assert bad.text
    assert not re.search(r"[a-z]{4}", bad.text.replace("неи", ""))


def test_empty_and_truncated() -> None:
    """Nothing at all, or less than half with finish_reason length."""
    assert _pair(TEXT, "empty", 1)[1].text == ""
    assert _pair(TOOLS, "empty", 1)[1].calls == ()
    good, bad = _pair(TEXT, "truncated", 1)
    assert good.text.startswith(bad.text)
    assert (len(bad.pieces) < len(good.pieces) // 2, bad.finish) == (True, "length")
    with pytest.raises(json.JSONDecodeError):
        json.loads(_pair(TOOLS, "truncated", 1)[1].calls[0].text)


def test_wrong_citation_does_not_exist() -> None:
    """Every marker is one the prompt does not have; the words stay."""
    good, bad = _pair(RAG, "wrong_citation", 1)
    markers = set(re.findall(r"\[\d+\]", bad.text))
    assert markers
    assert not markers & {"[1]", "[2]"}
    assert re.sub(r"\[\d+\]", "", bad.text) == re.sub(r"\[\d+\]", "", good.text)


def test_wrong_number_changes_digits_only() -> None:
    """Every number is another; everything else stays."""
    asked = ask(**chat("| name | price |\n|---|---|\n| pear | 7.25 |\nprice of pear?"))
    good, bad = _pair(asked, "wrong_number", 1)
    assert bad.text != good.text
    assert re.sub(r"\d", "", bad.text) == re.sub(r"\d", "", good.text)


def test_reword_is_harmless() -> None:
    """Other words of the same kind; structured answers and calls stay."""
    good, bad = _pair(TEXT, "reword", 1)
    assert bad.text != good.text
    assert len(bad.pieces) == len(good.pieces)
    assert _pair(SCHEMA, "reword", 1)[0] == _pair(SCHEMA, "reword", 1)[1]


@pytest.mark.parametrize("kind", sorted(QUALITY))
@pytest.mark.parametrize("asked", [TEXT, TOOLS, SCHEMA, RAG], ids=["text", "tools", "schema", "rag"])
def test_every_fault_meets_every_answer(kind: str, asked: Ask) -> None:
    """A fault on an answer where it cannot show leaves it alone and never raises."""
    for seed in range(5):
        _, bad = _pair(asked, kind, seed)
        assert bad.tokens >= 1
