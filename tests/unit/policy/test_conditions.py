"""Conditions on requests: what each key means, and how it is said."""

from typing import Any

import pytest

from gateway.model.enums import Structured, ToolUse
from gateway.model.facts import Sampling
from gateway.policy.conditions import ALWAYS, condition_of, condition_of_buckets, either, limited_to_models
from gateway.policy.schema.proving import BucketSelection
from gateway.policy.schema.rules import When


def when(**given: Any) -> Any:
    return condition_of(When.model_validate(given))


@pytest.mark.parametrize(
    ("given", "holds", "fails"),
    [
        ({"api": ["chat", "responses"]}, {}, {"api": "embeddings"}),
        ({"model": "qwen"}, {}, {"model": "other"}),
        ({"task": "chat"}, {}, {"task": "code"}),
        ({"length": ["short", "medium"]}, {}, {"length": "long"}),
        ({"tenant": "acme"}, {}, {"tenant": "beta"}),
        ({"tier": "gold"}, {}, {"tier": "free"}),
        ({"adapter": "absent"}, {}, {"adapter": "legal"}),
        ({"adapter": "present"}, {"adapter": "legal"}, {}),
        ({"adapter": "legal"}, {"adapter": "legal"}, {"adapter": "other"}),
        ({"adapter": ["legal", "absent"]}, {}, {"adapter": "other"}),
        ({"tools": {"use": ["forced", "loop"]}}, {"tool_use": ToolUse.LOOP}, {"tool_use": ToolUse.DECLARED}),
        ({"tools": {"privilege": "high"}}, {"privilege": "high"}, {"privilege": "low"}),
        ({"tools": "present"}, {"tool_use": ToolUse.DECLARED}, {}),
        ({"tools": "absent"}, {}, {"tool_use": ToolUse.LOOP}),
        ({"structured": "present"}, {"structured": Structured.GRAMMAR}, {}),
        ({"structured": "absent"}, {}, {"structured": Structured.JSON_OBJECT}),
        ({"structured": "json_schema"}, {"structured": Structured.JSON_SCHEMA}, {"structured": Structured.JSON_OBJECT}),
        ({"sampling": {"seed": "present"}}, {"sampling": Sampling(seed=True)}, {}),
        ({"sampling": {"logprobs": False}}, {}, {"sampling": Sampling(logprobs=True)}),
        ({"sampling": {"temperature": {"gt": 0.5}}}, {}, {"sampling": Sampling(temperature=0.5)}),
        ({"sampling": {"temperature": {"lte": 0}}}, {"sampling": Sampling(temperature=0.0)}, {}),
        ({"sampling": {"top_p": {"lt": 0.9}}}, {"sampling": Sampling(top_p=0.1)}, {}),
        ({"sampling": {"n": {"gt": 1}}}, {"sampling": Sampling(n=2)}, {}),
        ({"context_tokens": {"gte": "32k"}}, {"context_tokens": 32_768}, {"context_tokens": 32_767}),
        ({"context_tokens": {"gt": "32k"}}, {"context_tokens": 32_769}, {"context_tokens": 32_768}),
        ({"prompt_tokens": {"lt": 100}}, {"prompt_tokens": 99}, {"prompt_tokens": 100}),
        ({"prompt_tokens": {"gte": 10, "lte": 100}}, {"prompt_tokens": 100}, {"prompt_tokens": 101}),
        ({"turns": {"gte": 2}}, {"turns": 2}, {"turns": 1}),
        ({"stream": True}, {"stream": True}, {}),
        ({"stream": False}, {}, {"stream": True}),
        ({"images": "present"}, {"images": True}, {}),
        ({"not": {"task": "code"}}, {}, {"task": "code"}),
        ({"not": [{"task": "code"}, {"stream": True}]}, {}, {"stream": True}),
        ({"not": {"task": "code", "stream": True}}, {"task": "code"}, {"task": "code", "stream": True}),
        ({"task": "chat", "stream": True}, {"stream": True}, {"task": "code", "stream": True}),
    ],
)
def test_each_key_means_what_the_reference_says(given: Any, holds: Any, fails: Any, profile: Any) -> None:
    """Keys are joined by and, lists by or; a temperature or top_p that is not given counts as 1."""
    condition = when(**given)
    assert condition(profile(**holds))
    assert not condition(profile(**fails))


def test_without_when_every_request_matches(profile: Any) -> None:
    """A rule without a condition is a rule for all."""
    assert condition_of(None) is ALWAYS
    assert ALWAYS(profile())


def test_a_condition_is_said_in_words() -> None:
    """``explain`` can repeat it to a person."""
    condition = when(
        task=["chat", "code"], context_tokens={"gte": "32k", "lt": "64k"}, stream=False, **{"not": {"tier": "gold"}}
    )
    expected = "task is chat or code and context tokens ≥ 32,768 and < 65,536 and no stream and not (tier is gold)"
    assert condition.words == expected
    assert either(["a", "b", "c"]) == "a, b or c"


def test_steps_lie_where_a_test_changes_its_mind() -> None:
    """The memo key needs them exactly: one step per bound, on the far side of an inclusive upper bound."""
    bounds = {"gte": 10, "lte": 20}
    assert when(turns=bounds).steps == (("turns", 10), ("turns", 21))
    (step,) = when(sampling={"temperature": {"gt": 0.5}}).steps
    assert step[1] > 0.5 and step[1] - 0.5 < 1e-12
    assert when(**{"not": {"context_tokens": {"gt": 5, "lt": 9}}}).steps == (
        ("context_tokens", 6),
        ("context_tokens", 9),
    )


def test_dimensions_name_everything_a_condition_looks_at() -> None:
    """Also what stands under ``not``."""
    assert set(when(task="chat", **{"not": {"tools": {"use": "loop"}}}).dimensions()) == {"task", "tools"}


def test_a_route_can_be_limited_to_models_without_other_words(profile: Any) -> None:
    """The limit follows from the route's pools and is not repeated to the reader."""
    condition = limited_to_models(when(task="chat"), frozenset({"other"}))
    assert not condition(profile())
    assert condition(profile(model="other"))
    assert condition.words == "task is chat"


def test_a_rollouts_buckets_are_a_condition(profile: Any) -> None:
    """Over the fields that buckets are made of; ``tools`` there is the privilege."""
    given = {
        "task": "chat",
        "tools": ["none", "low"],
        "tool_use": "none",
        "stream": True,
        "tier": "gold",
        "tenant": "acme",
    }
    condition = condition_of_buckets(BucketSelection.model_validate(given))
    assert condition(profile(stream=True))
    assert not condition(profile(stream=True, privilege="high"))
    assert not condition(profile(stream=True, tenant="beta"))
