"""Regions in words."""

from typing import Any

import pytest

from gateway.policy.conditions import condition_of
from gateway.policy.schema.rules import When
from gateway.policy.space import Space
from gateway.policy.words import describe


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"api": "chat", "task": ["code", "rag"]}, "api chat, task code or rag"),
        ({"tenant": "acme"}, "tenant acme"),
        ({"tier": ["gold", "free"]}, "tenant acme or anonymous"),
        ({"adapter": "legal"}, "model qwen:legal"),
        ({"tools": {"use": "loop"}}, "tool use loop"),
        ({"tools": {"privilege": ["low", "high"]}}, "tool privilege low or high"),
        ({"tools": {"use": "loop", "privilege": "high"}}, "tools loop with privilege high"),
        ({"stream": True, "images": "absent"}, "stream, no images"),
        ({"length": "short"}, "length short"),
        ({"context_tokens": {"gte": 100, "lt": 200}}, "context tokens 100 to 199"),
        ({"context_tokens": {"gte": 100, "lte": 100}}, "context tokens 100"),
        ({"turns": {"gt": 3}}, "turns ≥ 4"),
        ({"prompt_tokens": {"lt": 5}}, "prompt tokens < 5"),
        ({"not": {"turns": {"gte": 2, "lt": 4}}}, "turns < 2 or ≥ 4"),
        ({"not": {"stream": True, "task": "chat"}}, "task code or rag; or task chat, no stream"),
    ],
)
def test_a_region_is_said_as_a_person_would(given: Any, said: str, policies: Any) -> None:
    """Only what differs from everything is said; a length class says its tokens."""
    condition = condition_of(When.model_validate(given))
    space = Space(policies.table(), [condition])
    assert describe(space, space.within(space.everything, condition)) == said


def test_everything_and_nothing(policies: Any) -> None:
    """The two ends have words of their own."""
    space = Space(policies.table(), [])
    assert describe(space, space.everything) == "every request"
    assert describe(space, []) == "no request"


def test_long_lists_are_cut(policies: Any) -> None:
    """Three alternatives, then how many more."""
    conditions = [
        condition_of(When.model_validate({"not": {"turns": {"gte": n}, "task": "chat"}})) for n in range(1, 7)
    ]
    space = Space(policies.table(), conditions)
    odd = [{"task": "chat", "turns": {"gte": n, "lt": n + 1}, "stream": n % 2 == 0} for n in range(1, 6)]
    region = [box for given in odd for box in space.within(space.everything, condition_of(When.model_validate(given)))]
    assert describe(space, region).endswith("more") or "; or " in describe(space, region)
