"""The key under which decisions are remembered."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.core.decide import decide, explain, settle
from gateway.errors import ApiError
from gateway.policy.compile import table_of
from gateway.policy.schema import Policy
from gateway.policy.secret import unresolved


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_a_remembered_decision_is_the_decision(data: Any, policies: Any, strategies: Any) -> None:
    """For any rules: what the memo answers is what a fresh look at the request gives."""
    policy = Policy.model_validate(policies.data(lambda base: base.update(data.draw(strategies["rules"]))))
    table = table_of(policy, "", 1, {}, unresolved)
    for profile in data.draw(st.lists(strategies["profiles"], min_size=2, max_size=12)):
        told = explain(table, profile)
        if told.refusal is None:
            assert settle(table, profile, decide(table, profile)) == told.decision
        else:
            with pytest.raises(ApiError):
                settle(table, profile, decide(table, profile))


def test_only_what_rules_look_at_is_in_the_key(policies: Any, profile: Any) -> None:
    """Tenants, exact token counts and sampling that no rule names share a decision."""
    table = policies.table()
    same = profile(tenant="beta", tier="default", context_tokens=601, prompt_tokens=7, turns=9, stream=True, bucket="x")
    assert table.memo_key(profile()) == table.memo_key(same)
    assert table.memo_key(profile(context_tokens=32_767)) != table.memo_key(profile(context_tokens=32_768))
    assert table.memo_key(profile(privilege="high")) != table.memo_key(profile())


def test_windows_are_steps_too(policies: Any, profile: Any) -> None:
    """One token more than a pool's window is another request."""
    table = policies.table()
    assert table.token_steps == (32_768, 65_537, 131_073)
    assert table.memo_key(profile(context_tokens=65_536)) != table.memo_key(profile(context_tokens=65_537))


def test_sampling_is_ranked_by_its_steps(policies: Any, profile: Any) -> None:
    """A client's many temperatures are few keys; one not given counts as 1."""
    from gateway.model.facts import Sampling

    when = {"sampling": {"temperature": {"gt": 0.5}, "top_p": {"lt": 0.9}, "n": {"gt": 1}}, "turns": {"gte": 3}}
    table = policies.table(lambda data: data["constraints"][0].update(when=when))

    def key(**sampling: Any) -> object:
        return table.memo_key(profile(sampling=Sampling(**sampling)))

    assert key(temperature=0.6) == key(temperature=1.9) == key()
    assert key(temperature=0.5) == key(temperature=0.0) != key()
    assert key(top_p=0.5) != key() == key(top_p=0.95)
    assert key(n=2) != key()
    assert table.memo_key(profile(turns=3)) != table.memo_key(profile(turns=2))
