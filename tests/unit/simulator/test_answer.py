"""What a good model answers."""

import json
from random import Random

import jsonschema

from gateway.simulator.answer import good_choice
from gateway.simulator.config import Config
from tests.unit.simulator.rig import DOCUMENTS, PAY, WEATHER, ask, chat


def test_calls_have_valid_arguments() -> None:
    """Arguments are an instance of the tool's parameters, for every draw."""
    for seed in range(40):
        call = good_choice(ask(**chat("weather in Paris", tools=[PAY, WEATHER])), Config(), Random(seed)).calls[0]
        assert call.name == "get_weather", "the words of the question choose the tool"
        jsonschema.validate(json.loads(call.text), WEATHER["function"]["parameters"])


def test_several_tools_named_are_several_calls() -> None:
    """A prompt that names two tools gets a call of each."""
    choice = good_choice(ask(**chat("first get_weather, then pay", tools=[PAY, WEATHER])), Config(), Random(1))
    assert {call.name for call in choice.calls} == {"pay", "get_weather"}
    assert len({call.id for call in choice.calls}) == 2


def test_answer_to_a_tool_result_uses_it() -> None:
    """After a tool's result the text holds it."""
    messages = [{"role": "user", "content": "go"}, {"role": "tool", "tool_call_id": "c", "content": "42 degrees"}]
    choice = good_choice(ask(messages=messages, tools=[WEATHER]), Config(), Random(1))
    assert "42 degrees" in choice.text
    assert choice.finish == "stop"


def test_cited_answers_cite_what_exists() -> None:
    """Citations are markers of the prompt."""
    messages = [{"role": "system", "content": DOCUMENTS}, {"role": "user", "content": "Where does the cat sleep?"}]
    text = good_choice(ask(messages=messages), Config(), Random(1)).text
    assert "[1]" in text
    assert "[3]" not in text


def test_tokens_count_every_piece() -> None:
    """A call costs its pieces and one for its frame; an empty answer its end-of-text."""
    choice = good_choice(ask(**chat(tools=[PAY])), Config(), Random(1))
    assert choice.tokens == len(choice.calls[0].arguments) + 1
