"""Which requests are mirrored: stable by conversation, fair between rules, and never against a constraint."""

import dataclasses
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.mirror import (
    Event,
    chosen,
    keeps_out,
    matching,
    permitted,
    sampled,
    shadow_body,
    share_of_worker,
)
from gateway.model.enums import GENERATING, Api
from gateway.model.facts import Facts
from gateway.model.proving import Shadow
from gateway.model.table import Adapter, Constraint, Model, Table
from tests.unit.core.test_decide import CLASSIFIER, PROFILE, Settings, always, pool

BASE = Shadow("s", always, "always", 0.5, "m", "int4", "bf16")


def rule(name: str = "s", **fields: Any) -> Shadow:
    return msgspec.structs.replace(BASE, name=name, **fields)


def table(*constraints: Constraint, **int4: Any) -> Table:
    pools = (pool("bf16"), pool("int4", "int4", **int4))
    models = {"m": Model("m", adapters={"a": Adapter("a")})}
    return Table(1, "d", models, {p.name: p for p in pools}, {}, {}, None, {}, CLASSIFIER, constraints, (), Settings())


@given(st.binary(min_size=1, max_size=32), st.floats(0.0, 1.0), st.text(max_size=70))
def test_a_share_is_stable_and_grows_with_itself(key: bytes, share: float, name: str) -> None:
    """Equal keys share their fate; a larger share holds all that a smaller one held; 0 is nothing and 1 is all."""
    found = sampled(name, "sample", key, share)
    assert sampled(name, "sample", key, share) is found
    assert sampled(name, "sample", key, 1.0)
    assert not sampled(name, "sample", key, 0.0)
    if found:
        assert sampled(name, "sample", key, min(1.0, share * 1.5))


def test_shares_are_what_they_say_and_draws_are_independent() -> None:
    """Of 20,000 conversations 20 % within four standard errors; rules and purposes draw apart, long names too."""
    keys = [number.to_bytes(4, "big") for number in range(20_000)]
    long = "x" * 60
    first = [sampled(long + "-one", "sample", key, 0.2) for key in keys]
    second = [sampled(long + "-two", "sample", key, 0.2) for key in keys]
    noise = [sampled(long + "-one", "noise", key, 0.2) for key in keys]
    for drawn in (first, second, noise):
        assert abs(sum(drawn) / len(keys) - 0.2) < 4 * (0.16 / len(keys)) ** 0.5
    for other in (second, noise):
        both = sum(a and b for a, b in zip(first, other, strict=True))
        assert abs(both / len(keys) - 0.04) < 4 * (0.0384 / len(keys)) ** 0.5


def test_no_rule_starves_another() -> None:
    """Two rules that both want everything get about half each, by conversation."""
    rules = (rule("a", sample=1.0), rule("b", sample=1.0))
    firsts = [chosen(rules, number.to_bytes(4, "big"))[0].name for number in range(4_000)]
    assert 0.45 < firsts.count("a") / len(firsts) < 0.55
    assert chosen(rules, b"key") == chosen(rules, b"key")
    assert chosen((rule("a", sample=0.0),), b"key") == []


@pytest.mark.parametrize("api", list(Api))
def test_only_generating_apis_of_the_rules_model_match(api: Api) -> None:
    """Embeddings and their like have nothing to compare; another model's requests are no business of the rule."""
    assert bool(matching((BASE,), PROFILE, api)) is (api in GENERATING)
    assert matching((rule(model="n"),), PROFILE, Api.CHAT) == []
    assert matching((rule(matches=lambda _: False),), PROFILE, Api.CHAT) == []


def test_what_keeps_a_request_out() -> None:
    """The tenant's word first, then effects on the server."""
    acting = Facts(Api.RESPONSES, "m", server_state=True)
    assert keeps_out(acting, tenant_agrees=False) is Event.OPTED_OUT
    assert keeps_out(acting, tenant_agrees=True) is Event.SERVER_STATE
    assert keeps_out(Facts(Api.CHAT, "m"), tenant_agrees=True) is None


def test_constraints_hold_for_copies_unless_they_wait_for_this_evidence() -> None:
    """A constraint keeps a copy off the candidate as it keeps the request; one that says ``unless_measured`` is there
    to be measured. What the candidate cannot serve is not sent to it."""
    binding = Constraint("c", always, lambda p: p.name == "bf16", "the reference")
    waiting = dataclasses.replace(binding, unless_measured="quality")
    elsewhere = dataclasses.replace(binding, matches=lambda _: False)
    assert permitted(table(), BASE, PROFILE)
    assert not permitted(table(binding), BASE, PROFILE)
    assert permitted(table(waiting), BASE, PROFILE)
    assert permitted(table(elsewhere), BASE, PROFILE)
    assert not permitted(table(waiting, binding), BASE, PROFILE)
    assert not permitted(table(context_window=50), BASE, PROFILE)
    adapted = dataclasses.replace(PROFILE, adapter="a")
    assert not permitted(table(), BASE, adapted)
    assert permitted(table(adapters={"a": "a"}), BASE, adapted)


def test_permission_is_remembered_by_what_rules_can_tell_apart() -> None:
    """The second request of a kind costs a look-up, and an answer of no is remembered as well."""
    asked = []
    binding = Constraint("c", always, lambda p: bool(asked.append(p.name)), "nothing")
    made = table(binding)
    assert not permitted(made, BASE, PROFILE)
    assert not permitted(made, BASE, PROFILE)
    assert asked == ["int4"]


@given(st.integers(0, 1000), st.integers(1, 64))
def test_the_parts_of_a_limit_add_up(limit: int, workers: int) -> None:
    """No worker rounds a limit up: over all of them it is what the policy says."""
    parts = [share_of_worker(limit, worker, workers) for worker in range(workers)]
    assert sum(parts) == limit
    assert max(parts) - min(parts) <= 1


_NAMES = ("user", "metadata", "prompt_cache_key", "safety_identifier", "store", "messages", "seed", "role")
_VALUES: st.SearchStrategy[Any] = (
    st.none() | st.text(max_size=8) | st.dictionaries(st.sampled_from(_NAMES), st.text(max_size=4))
)


@given(st.dictionaries(st.sampled_from(_NAMES), _VALUES), st.booleans(), st.sampled_from([Api.CHAT, Api.RESPONSES]))
def test_private_members_are_blanked_and_nothing_else(body: dict[str, Any], ascii_: bool, api: Api) -> None:
    """On top, whatever names or bills somebody is null and nothing is stored; deeper members and texts stay."""
    found = json.loads(shadow_body(json.dumps(body, ensure_ascii=ascii_).encode(), api))
    wanted = {key: None if key in _NAMES[:4] else value for key, value in body.items()}
    if "store" in body or api is Api.RESPONSES:
        wanted["store"] = False
    assert found == wanted


def test_an_oddly_spelled_key_is_blanked_too() -> None:
    """JSON may write a letter as an escape; a runtime reads the same key."""
    assert json.loads(shadow_body(b'{"\\u0075ser":"me","x":"\\u0041"}', Api.CHAT)) == {"user": None, "x": "A"}


def test_a_body_without_private_members_is_passed_as_it_is() -> None:
    """No copy where there is nothing to do: a role called user is no member called user."""
    body = b'{"messages":[{"role":"user","content":"hi"}],"seed":1}'
    assert shadow_body(body, Api.CHAT) is body
