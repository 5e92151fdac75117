"""Answers as a function of request and seed, within the limits."""

import json
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.simulator.compose import compose, token_limit, uniforms
from gateway.simulator.config import Config
from gateway.simulator.latency import Distribution
from tests.unit.simulator.rig import PAY, PERSON, WEATHER, ask, chat, json_schema


@settings(deadline=None)
@given(st.text(max_size=200), st.integers(0, 5))
def test_same_request_same_answer(text: str, seed: int) -> None:
    """The answer depends on the request and the seed alone: not on stream, model name or when it is asked."""
    config = Config(seed=seed)
    first = compose(ask(**chat(text)), config)
    assert compose(ask(**chat(text, stream=True, model="alias", user="u")), config) == first


def test_another_seed_another_answer() -> None:
    """Both the server's seed and the request's make a difference."""
    plain = compose(ask(), Config()).choices
    assert compose(ask(), Config(seed=1)).choices != plain
    assert compose(ask(**chat(seed=5)), Config()).choices != plain


@pytest.mark.parametrize("body", [chat(), chat(tools=[WEATHER]), chat(response_format=json_schema(PERSON)), chat(n=3)])
def test_usage_is_consistent(body: dict[str, Any]) -> None:
    """Completion tokens are the pieces of all choices; the prompt's are the ask's."""
    answer = compose(ask(**body), Config(reasoning_tokens=5))
    assert answer.completion_tokens == sum(choice.tokens for choice in answer.choices)
    assert answer.prompt_tokens == ask(**body).prompt_tokens
    assert answer.reasoning_tokens == 5 * len(answer.choices)
    assert answer.steps == max(choice.tokens for choice in answer.choices)


@settings(deadline=None)
@given(st.integers(1, 40), st.sampled_from(["plain", "tools", "schema"]))
def test_max_tokens_holds(limit: int, kind: str) -> None:
    """No choice is longer than the limit, and one that was cut says "length"."""
    kinds: dict[str, dict[str, Any]] = {
        "plain": {},
        "tools": {"tools": [WEATHER]},
        "schema": {"response_format": json_schema(PERSON)},
    }
    extra = kinds[kind]
    uncut = compose(ask(**chat(**extra)), Config()).choices[0]
    choice = compose(ask(**chat(max_tokens=limit, **extra)), Config()).choices[0]
    assert choice.tokens <= limit
    assert (choice.finish == "length") == (uncut.tokens > limit)


def test_limits_of_operator_and_context() -> None:
    """The operator's limit and what the context leaves bound the answer too."""
    body = chat("x" * 400)
    assert token_limit(ask(**body), Config(max_output_tokens=10)) == 10
    assert token_limit(ask(**body), Config(context_length=110)) == 6


def test_ignore_eos_fills_up() -> None:
    """Benchmarks that ignore the end of text get exactly max_tokens."""
    choice = compose(
        ask(**chat(ignore_eos=True, max_tokens=300)), Config(output_tokens=Distribution(constant=20))
    ).choices[0]
    assert (choice.tokens, choice.finish) == (300, "length")


def test_stop_string_cuts() -> None:
    """Text ends before a stop string, with finish_reason stop."""
    whole = compose(ask(), Config()).choices[0].text
    stop = whole.split()[5]
    choice = compose(ask(**chat(stop=[stop])), Config()).choices[0]
    assert choice.text == whole[: whole.index(stop)]
    assert choice.finish == "stop"


def test_structured_answers_are_valid() -> None:
    """A schema gives an instance, json_object an object, a choice one of the options."""
    jsonschema.validate(
        json.loads(compose(ask(**chat(response_format=json_schema(PERSON))), Config()).choices[0].text), PERSON
    )
    any_object = compose(ask(**chat(response_format={"type": "json_object"})), Config()).choices[0].text
    assert isinstance(json.loads(any_object), dict)
    assert compose(ask(**chat(structured_outputs={"choice": ["yes", "no"]})), Config()).choices[0].text in ("yes", "no")


def test_choices_differ_from_each_other() -> None:
    """n answers are n different ones."""
    answer = compose(ask(**chat(n=3)), Config())
    assert len({choice.text for choice in answer.choices}) == 3


def test_uniforms_belong_to_the_request() -> None:
    """Draws by request are the same for equal requests only."""
    assert uniforms(ask(), 0, 3) == uniforms(ask(**chat(stream=True)), 0, 3)
    assert uniforms(ask(), 0, 3) != uniforms(ask(), 1, 3)
    assert uniforms(ask(), 0, 3) != uniforms(ask(**chat("other")), 0, 3)
    assert all(0 <= value < 1 for value in uniforms(ask(), 0, 20))


def test_forced_calls() -> None:
    """Required and named choices call, whatever the call rate."""
    quiet = Config(tool_call_rate=0.0)
    assert compose(ask(**chat(tools=[WEATHER])), quiet).choices[0].calls == ()
    assert compose(ask(**chat(tools=[WEATHER], tool_choice="required")), quiet).choices[0].calls
    named = {"type": "function", "function": {"name": "pay"}}
    called = compose(ask(**chat(tools=[WEATHER, PAY], tool_choice=named)), quiet).choices[0].calls
    assert [call.name for call in called] == ["pay"]
