"""Which pools may serve a request. Tables are built by hand here; policies are compiled in ``tests/unit/policy``."""

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core import decide as module
from gateway.core.decide import decide, explain, objections, settle, window_of
from gateway.errors import ApiError
from gateway.model.decision import Decision
from gateway.model.enums import Api, Structured, ToolUse
from gateway.model.facts import Profile, Sampling
from gateway.model.precision import Precision
from gateway.model.proving import Rollout
from gateway.model.table import Adapter, Classifier, Constraint, Model, Pool, Route, Settings, Table

PROFILE = Profile(
    api=Api.CHAT,
    model="m",
    adapter=None,
    length="short",
    task="chat",
    tool_use=ToolUse.NONE,
    privilege="none",
    structured=Structured.NONE,
    tenant="t",
    tier="default",
    stream=False,
    images=False,
    sampling=Sampling(),
    prompt_tokens=10,
    context_tokens=100,
    turns=1,
    bucket="b",
)
CLASSIFIER = Classifier((), "over", (), "chat", frozenset(), None, None, lambda tool, tenant: "low", ("task",), 10)


def pool(name: str, weights: str = "bf16", **more: Any) -> Pool:
    return Pool(name, more.pop("model", "m"), "vllm", Precision(weights), (), **more)


POOLS = (
    pool("bf16", adapters={"a": "a", "b": "b"}),
    pool("fp8", "fp8", adapters={"a": "a"}, context_window=1000),
    pool("int4", "int4", adapters={"a": "a"}),
    pool("other", model="n"),
)


def always(profile: Profile) -> bool:
    return True


def stays_16_bit(matches: Callable[[Profile], bool] = always, name: str = "16-bit") -> Constraint:
    return Constraint(
        name,
        matches,
        lambda pool: pool.precision.weights == "bf16",
        "weights bf16",
        objection=lambda pool: "" if pool.precision.weights == "bf16" else f"weights {pool.precision.weights}",
    )


def table(*constraints: Constraint, routes: tuple[Route, ...] | None = None, **more: Any) -> Table:
    adapters = {"a": Adapter("a", frozenset({"bf16", "fp8"})), "b": Adapter("b")}
    return Table(
        generation=1,
        digest="",
        models={"m": Model("m", context_window=2000, adapters=adapters)},
        pools=more.pop("pools", {pool.name: pool for pool in POOLS}),
        tenants={},
        keys={},
        anonymous=None,
        names={},
        classifier=CLASSIFIER,
        constraints=constraints,
        routes=routes or (Route("all", always, ("int4", "fp8", "bf16", "other")),),
        settings=Settings(),
        **more,
    )


def having(**fields: Any) -> Profile:
    """``PROFILE`` with other values; its prompt is counted, not guessed, unless they say so."""
    least = {"least_tokens": fields["prompt_tokens"]} if "prompt_tokens" in fields else {}
    return dataclasses.replace(PROFILE, **least | fields)


def reasons(profile: Profile, found: Table) -> dict[str, str]:
    return {exclusion.pool: exclusion.by for exclusion in decide(found, profile).exclusions}


def test_pools_come_in_the_order_of_the_first_route_that_matches() -> None:
    """Later routes say nothing; pools of other models are none of this request's business."""
    routes = (
        Route("code", lambda profile: profile.task == "code", ("bf16",)),
        Route("all", always, ("int4", "other", "bf16")),
        Route("late", always, ("fp8",)),
    )
    found = decide(table(routes=routes), PROFILE)
    assert (found.rule, found.pools, found.exclusions) == ("all", ("int4", "bf16"), ())
    assert decide(table(routes=routes), having(task="code")).rule == "code"


def test_a_constraint_takes_pools_away_and_says_so() -> None:
    """The exclusion names the constraint and what the pool has."""
    found = decide(table(stays_16_bit()), PROFILE)
    assert found.pools == ("bf16",)
    assert [(out.pool, out.by, out.reason) for out in found.exclusions] == [
        ("int4", "16-bit", "weights int4"),
        ("fp8", "16-bit", "weights fp8"),
    ]
    assert found.constraints == ("16-bit",)


def test_a_constraint_that_does_not_match_is_not_listed() -> None:
    """Only what applied is in the decision."""
    found = decide(table(stays_16_bit(lambda profile: profile.privilege == "high")), PROFILE)
    assert (found.pools, found.constraints) == (("int4", "fp8", "bf16"), ())


def test_an_adapter_counts_only_where_it_is_loaded_and_validated() -> None:
    """Not carried, not validated, and validated anywhere are three things; an unknown adapter is nowhere."""
    assert reasons(having(adapter="a"), table()) == {"int4": "adapter"}
    assert decide(table(), having(adapter="a")).pools == ("fp8", "bf16")
    assert decide(table(), having(adapter="b")).pools == ("bf16",)
    assert decide(table(), having(adapter="unknown")).pools == ()


@pytest.mark.parametrize(("tokens", "pools"), [(1000, 3), (1001, 2), (2000, 2), (2001, 0)])
def test_context_must_fit_the_smaller_window(tokens: int, pools: int) -> None:
    """The model's window bounds every pool; a pool's own bounds it alone; the bound itself fits."""
    assert len(decide(table(), having(context_tokens=tokens)).pools) == pools


def test_no_window_bounds_nothing() -> None:
    """What nobody declared is not assumed."""
    assert window_of(None, pool("p")) is None
    assert window_of(Model("m"), pool("p", context_window=5)) == 5


def test_without_a_route_nothing_is_eligible() -> None:
    """The answer is a refusal, not a guess; applying constraints are still told."""
    found = decide(table(stays_16_bit(), routes=(Route("never", lambda profile: False, ("bf16",)),)), PROFILE)
    assert (found.rule, found.pools, found.constraints) == ("none", (), ("16-bit",))


def test_nothing_eligible_is_an_empty_decision_with_reasons() -> None:
    """Constraints fail closed."""
    impossible = Constraint("none", always, lambda pool: False, "the impossible")
    found = decide(table(impossible), PROFILE)
    assert found.pools == ()
    assert {out.reason for out in found.exclusions} == {"requires the impossible"}


def test_a_request_takes_part_in_a_rollout_only_if_its_candidate_may_serve() -> None:
    """The first that matches; without candidate or baseline there is nothing to roll out."""

    def rollout(name: str, candidate: str, matches: Callable[[Profile], bool] = always) -> Rollout:
        return Rollout(name, "", "m", candidate, "bf16", matches, "", (), ())

    found = table(rollouts=(rollout("x", "int4", lambda profile: False), rollout("y", "other"), rollout("z", "int4")))
    assert decide(found, PROFILE).rollout == "z"
    narrowed = table(stays_16_bit(), rollouts=(rollout("z", "int4"),))
    assert decide(narrowed, PROFILE).rollout is None


def test_decisions_are_remembered_under_the_tables_key() -> None:
    """Equal keys give the very same decision without looking at the rules again."""
    asked = []
    found = table(stays_16_bit(lambda profile: bool(asked.append(1)) or True), memo_key=lambda profile: profile.task)
    first = decide(found, PROFILE)
    assert decide(found, having(context_tokens=5)) is first
    assert len(asked) == 1
    assert decide(found, having(task="code")) is not first


def test_the_memo_is_bounded() -> None:
    """Odd requests cannot fill a worker's memory."""
    found = table()
    for tokens in range(module.MEMO_MOST + 100):
        decide(found, having(context_tokens=tokens))
    assert 0 < len(found.memo) <= module.MEMO_MOST


def test_tables_do_not_share_their_memory() -> None:
    """A new generation starts with nothing remembered."""
    assert decide(table(), PROFILE).pools != decide(table(stays_16_bit()), PROFILE).pools


@given(st.sampled_from([None, "a", "b"]), st.integers(0, 3000), st.booleans(), st.permutations(["int4", "fp8", "bf16"]))
def test_what_is_chosen_has_no_objection_and_what_is_not_has_one(
    adapter: str | None, tokens: int, constrained: bool, order: list[str]
) -> None:
    """Choices and exclusions share the route's pools between them, in its order."""
    constraints = (stays_16_bit(),) if constrained else ()
    found = table(*constraints, routes=(Route("r", always, tuple(order)),))
    profile = having(adapter=adapter, context_tokens=tokens)
    decision = decide(found, profile)
    against = {name: list(objections(found.models["m"], found.pools[name], profile, constraints)) for name in order}
    assert list(decision.pools) == [name for name in order if not against[name]]
    assert [out.pool for out in decision.exclusions] == [name for name in order if against[name]]


def test_an_explanation_tells_the_whole_story() -> None:
    """Every constraint, route and pool of the model, and the same decision."""
    found = table(
        stays_16_bit(lambda profile: profile.task == "chat"),
        stays_16_bit(lambda profile: False, "idle"),
        routes=(Route("code", lambda profile: False, ("bf16",)), Route("all", always, ("int4", "bf16"))),
    )
    told = explain(found, PROFILE)
    assert told.decision == decide(found, PROFILE)
    assert [(effect.name, effect.applies, effect.excludes) for effect in told.constraints] == [
        ("16-bit", True, (("fp8", "weights fp8"), ("int4", "weights int4"))),
        ("idle", False, ()),
    ]
    assert [(step.name, step.matches, step.models) for step in told.routes] == [
        ("code", False, ("m",)),
        ("all", True, ("m",)),
    ]
    assert [(verdict.pool, verdict.place, verdict.reasons) for verdict in told.pools] == [
        ("bf16", 1, ()),
        ("fp8", 0, ("16-bit: weights fp8", "route all does not name it")),
        ("int4", 0, ("16-bit: weights int4",)),
    ]


def test_an_explanation_gives_every_reason_and_remembers_nothing() -> None:
    """A person wants all objections to a pool, the hot path needs one."""
    found = table(stays_16_bit(), routes=(Route("never", lambda profile: False, ("bf16",)),))
    told = explain(found, having(adapter="b", context_tokens=5000))
    (fp8,) = [verdict for verdict in told.pools if verdict.pool == "fp8"]
    assert [reason.split(":")[0] for reason in fp8.reasons] == [
        "adapter",
        "context_window",
        "16-bit",
        "no route matches",
    ]
    assert not found.memo


def test_reasons_hold_no_number_of_the_request() -> None:
    """One remembered decision serves many requests: its words must be true for all of them."""
    found = table()
    reason = decide(found, having(context_tokens=2345)).exclusions[0].reason
    assert "2,345" not in reason
    assert "2,000" in reason
    assert next(objections(None, POOLS[3], PROFILE, ())).by == "model"


def settled(built: Table, profile: Profile) -> Decision:
    """What the data plane makes of it."""
    return settle(built, profile, decide(built, profile))


def windows(*constraints: Constraint) -> Table:
    """Two pools of 1,000 and 2,000 tokens."""
    pools = {"small": pool("small", context_window=1000), "large": pool("large", "int4", context_window=2000)}
    return table(*constraints, routes=(Route("all", always, ("small", "large")),), pools=pools)


def test_a_context_that_fits_nowhere_by_estimate_may_still_be_tried() -> None:
    """Only the window speaks against it and the prompt itself may fit: the largest window gets the last word."""
    profile = having(prompt_tokens=1900, context_tokens=2412)
    assert decide(windows(), profile).pools == ()
    found = settled(windows(), profile)
    assert (found.rule, found.pools) == ("all", ("large",))
    assert [exclusion.pool for exclusion in found.exclusions] == ["small"]


def test_what_fits_somewhere_is_left_alone() -> None:
    """The smaller pool stays out while the larger one has room."""
    profile = having(prompt_tokens=1000, context_tokens=1500)
    assert settled(windows(), profile) == decide(windows(), profile)
    assert settled(windows(), profile).pools == ("large",)


@pytest.mark.parametrize(
    ("api", "param"),
    [
        (Api.CHAT, "messages"),
        (Api.MESSAGES, "messages"),
        (Api.RESPONSES, "input"),
        (Api.EMBEDDINGS, "input"),
        (Api.COMPLETIONS, "prompt"),
    ],
)
def test_a_prompt_that_is_too_long_itself_is_the_callers_to_mend(api: Api, param: str) -> None:
    """400, and ``param`` names the field of that API."""
    with pytest.raises(ApiError) as refused:
        settled(windows(), having(api=api, prompt_tokens=3500, context_tokens=4012))
    assert (refused.value.status, refused.value.code, refused.value.param) == (400, "context_length_exceeded", param)


def test_the_last_resort_lifts_no_other_objection() -> None:
    """A pool that a constraint rules out stays out, however large its window, and the refusal names the constraint."""
    large = pool("large", "int4", context_window=2000)
    built = table(stays_16_bit(), routes=(Route("all", always, ("large",)),), pools={"large": large})
    found = settled(built, having(prompt_tokens=1900, context_tokens=2412))
    assert found.pools == ()
    assert {exclusion.by for exclusion in found.exclusions} == {"context_window", "16-bit"}
    assert settled(windows(stays_16_bit()), having(prompt_tokens=900, context_tokens=2412)).pools == ("small",)


@pytest.mark.parametrize("adapter", ["a", "b"])
def test_pools_that_do_not_serve_the_adapter_leave_a_long_request_to_the_others(adapter: str) -> None:
    """Not carried, or not validated there: the pool could not have served a short one either. So a long request for an
    adapter is tried where it is served, or is the caller's to mend: no 503 that a client tries again for nothing."""
    pools = {one.name: one for one in (pool("bf16", adapters={adapter: adapter}), POOLS[2], pool("bare"))}
    built = table(routes=(Route("all", always, tuple(pools)),), pools=pools)
    profile = having(adapter=adapter, prompt_tokens=10, context_tokens=9000)
    assert {exclusion.by for exclusion in decide(built, profile).exclusions} == {"context_window", "adapter"}
    assert settled(built, profile).pools == ("bf16",)
    with pytest.raises(ApiError, match="maximum context length is 2000 tokens"):
        settled(built, dataclasses.replace(profile, least_tokens=3500))


def test_a_prompt_that_the_runtime_is_to_cut_is_never_too_long() -> None:
    """It goes to the largest window, where least is cut; constraints hold."""
    profile = having(prompt_tokens=50_000, context_tokens=50_512, least_tokens=0)
    assert settled(windows(), profile).pools == ("large",)
    assert settled(windows(stays_16_bit()), profile).pools == ("small",)


@pytest.mark.parametrize(
    ("api", "words"),
    [
        (Api.CHAT, "This model's maximum context length is 2000 tokens. However, your prompt has about 9000 tokens."),
        (Api.MESSAGES, "prompt is too long: about 9000 tokens > 2000 maximum"),
    ],
)
def test_too_long_is_said_in_the_words_that_clients_know(api: Api, words: str) -> None:
    """Frameworks tell a full context from other bad requests by these, and shorten the prompt."""
    with pytest.raises(ApiError) as caught:
        settled(windows(), having(api=api, prompt_tokens=9000, context_tokens=9000))
    assert (caught.value.code, caught.value.message) == ("context_length_exceeded", words)


@pytest.mark.parametrize("api", [Api.TOKENIZE, Api.DETOKENIZE])
@pytest.mark.parametrize("tokens", [100, 1500, 2412, 1_000_000])
def test_counting_needs_no_context(api: Api, tokens: int) -> None:
    """However long the text, the pools are those of a short one; constraints hold."""
    profile = having(api=api, prompt_tokens=tokens, context_tokens=tokens)
    assert settled(windows(), profile).pools == ("small", "large")
    assert settled(windows(stays_16_bit()), profile).pools == ("small",)


def test_an_explanation_is_what_the_gateway_does_with_long_requests() -> None:
    """The last resort has its place and its reason; what is too long has the refusal."""
    told = explain(windows(), having(prompt_tokens=1900, context_tokens=2412))
    assert told.decision.pools == ("large",)
    assert [(verdict.pool, verdict.place) for verdict in told.pools] == [("large", 1), ("small", 0)]
    assert all("exceed its context window" in verdict.reasons[0] for verdict in told.pools)
    assert all(len(verdict.reasons) == 1 for verdict in told.pools)
    refused = explain(windows(), having(prompt_tokens=3500, context_tokens=4012))
    assert refused.refusal is not None
    assert (refused.refusal.status, refused.refusal.code) == (400, "context_length_exceeded")
    assert refused.decision.pools == ()
