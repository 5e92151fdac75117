"""Profiles: names resolve or are refused alike, lengths stick, tasks follow the rules' order, buckets stay bounded."""

import dataclasses
from typing import Any

import pytest

from gateway.core.classify import OTHER, classify, visible_names
from gateway.errors import ApiError
from gateway.model.enums import Api, Structured, ToolUse
from gateway.model.facts import Facts, Principal, Profile, Texts
from gateway.model.table import Classifier, Settings, Table, TaskRule, Tenant, marks_of

NAMES = {
    "qwen": ("qwen", None),
    "gpt-4o": ("qwen", None),
    "legal": ("qwen", "legal"),
    "qwen:legal": ("qwen", "legal"),
    "secret-model": ("secret-model", None),
}
CALLER = Principal("acme", tier="gold")


class Words:
    """A pattern set that finds plain words, and counts how often it was asked."""

    def __init__(self, *words: str) -> None:
        self.words = words
        self.asked = 0

    def search(self, text: str) -> list[int]:
        """Indexes of the words in ``text``."""
        self.asked += 1
        return [index for index, word in enumerate(self.words) if word in text]


def table(*tasks: TaskRule, tenants: tuple[Tenant, ...] = (), names: dict[str, Any] = NAMES, **fields: Any) -> Table:
    """A table with this classifier."""
    defaults: dict[str, Any] = {
        "lengths": (("short", 1000), ("medium", 2000), ("long", 4000)),
        "over": "huge",
        "tasks": tasks,
        "default_task": "chat",
        "hint_tasks": frozenset({"code", "chat"}),
        "user_patterns": Words("def ", "translate"),
        "system_patterns": Words("only from the documents"),
        "privilege": lambda tool, tenant: "high" if tool.startswith("pay") else "none" if tool == "clock" else "low",
        "bucket_by": ("model", "length", "task", "privilege", "adapter", "tier"),
        "bucket_most": 200,
        "default_output_tokens": 500,
    }
    return Table(
        generation=1,
        digest="",
        models={},
        pools={},
        tenants={tenant.name: tenant for tenant in (Tenant("acme"), *tenants)},
        keys={},
        anonymous=None,
        names=names,
        classifier=Classifier(**{**defaults, **fields}),
        constraints=(),
        routes=(),
        settings=Settings(),
    )


def profile(
    policy: Table | None = None, caller: Principal = CALLER, texts: Texts | None = None, **fields: Any
) -> Profile:
    """The profile of a request with these facts. ``prompt_tokens`` and what ``classify`` asks by name are taken out."""
    tokens = fields.pop("prompt_tokens", 100)
    asked = {key: fields.pop(key) for key in ("hint", "at_least", "least_tokens") if key in fields}
    facts = Facts(**{"api": Api.CHAT, "model": "qwen", **fields})
    return classify(policy or table(), facts, texts or Texts(), caller, tokens, **asked)


def test_every_field_in_its_place() -> None:
    """Profiles are built by position for speed; this pins each value to its field."""
    found = profile(
        model="qwen:legal",
        stream=True,
        images=2,
        turns=3,
        tools=("clock", "pay_out"),
        tool_use=ToolUse.FORCED,
        structured=Structured.JSON_OBJECT,
        max_output_tokens=7,
    )
    assert {field.name: getattr(found, field.name) for field in dataclasses.fields(Profile)} == {
        "api": Api.CHAT,
        "model": "qwen",
        "adapter": "legal",
        "length": "short",
        "task": "chat",
        "tool_use": ToolUse.FORCED,
        "privilege": "high",
        "structured": Structured.JSON_OBJECT,
        "tenant": "acme",
        "tier": "gold",
        "stream": True,
        "images": True,
        "sampling": Facts(Api.CHAT, "m").sampling,
        "prompt_tokens": 100,
        "context_tokens": 107,
        "turns": 3,
        "bucket": "qwen/short/chat/high/legal/gold",
        "least_tokens": 100,
    }


@pytest.mark.parametrize(
    ("fields", "least"), [({}, 60), ({"truncates": True}, 0), ({"text_bytes": 900, "longest_bytes": 300}, 20)]
)
def test_what_a_prompt_has_without_doubt(fields: dict[str, Any], least: int) -> None:
    """Of the largest input, as the context is; nothing where the runtime is asked to cut."""
    assert profile(least_tokens=60, **fields).least_tokens == least
    assert profile(**fields).prompt_tokens == 100


@pytest.mark.parametrize(
    ("name", "model", "adapter"),
    [("qwen", "qwen", None), ("gpt-4o", "qwen", None), ("legal", "qwen", "legal"), ("qwen:legal", "qwen", "legal")],
)
def test_names_resolve(name: str, model: str, adapter: str | None) -> None:
    """Model, alias, adapter alone and base:adapter."""
    found = profile(model=name)
    assert (found.model, found.adapter) == (model, adapter)


def test_an_unknown_model_is_a_404_with_a_mend() -> None:
    """The answer names close ones."""
    with pytest.raises(ApiError) as caught:
        profile(model="gpt-40")
    error = caught.value
    assert (error.status, error.code, error.param) == (404, "model_not_found", "model")
    assert "'gpt-4o'" in error.message
    with pytest.raises(ApiError) as caught:
        profile(model="zzzzzz")
    assert "/v1/models" in caught.value.message


def test_a_model_of_others_looks_unknown() -> None:
    """For a tenant without it a model does not exist: the same code, and never offered as a close match."""
    policy = table(tenants=(Tenant("guest", models=frozenset({"qwen"})),))
    guest = Principal("guest")
    assert profile(policy, guest, model="gpt-4o").model == "qwen"
    errors = []
    for name in ("secret-model", "secret-mode1"):
        with pytest.raises(ApiError) as caught:
            profile(policy, guest, model=name)
        errors.append((caught.value.status, caught.value.code, caught.value.message.replace(name, "?")))
    assert errors[0] == errors[1]
    assert visible_names(policy, policy.tenants["guest"]) == ["qwen", "gpt-4o", "legal", "qwen:legal"]
    assert visible_names(policy, None) == list(NAMES)


@pytest.mark.parametrize(
    ("listed", "names"),
    [
        ("legal", ["legal", "qwen:legal"]),
        ("qwen:legal", ["legal", "qwen:legal"]),
        ("gpt-4o", ["qwen", "gpt-4o"]),
        ("qwen", ["qwen", "gpt-4o", "legal", "qwen:legal"]),
        ("gone", []),
    ],
)
def test_a_tenant_may_use_what_a_name_stands_for(listed: str, names: list[str]) -> None:
    """By any name of it: an adapter alone, a model by its alias, or a model with all its adapters."""
    guest = Tenant("guest", models=frozenset({listed}))
    policy = table(tenants=(guest,))
    assert visible_names(policy, guest) == names
    for name in policy.names:
        if name in names:
            assert profile(policy, Principal("guest"), model=name).model == "qwen"
        else:
            with pytest.raises(ApiError):
                profile(policy, Principal("guest"), model=name)


def test_long_names_are_cut_in_the_answer() -> None:
    """An answer never repeats more of a client's string than it needs."""
    with pytest.raises(ApiError) as caught:
        profile(model="x" * 100_000)
    assert len(caught.value.message) < 400


@pytest.mark.parametrize(
    ("prompt", "reserved", "length"),
    [
        (1000, 0, "short"),
        (1001, 0, "medium"),
        (500, None, "short"),
        (501, None, "medium"),
        (0, 4000, "long"),
        (1, 4000, "huge"),
        (10**9, 0, "huge"),
    ],
)
def test_length_counts_prompt_and_reserved_output(prompt: int, reserved: int | None, length: str) -> None:
    """Bounds are inclusive; without max_tokens the policy's default is reserved."""
    assert profile(prompt_tokens=prompt, max_output_tokens=reserved).length == length


@pytest.mark.parametrize(
    ("tokens", "at_least", "length"),
    [
        (10, None, "short"),
        (10, "short", "short"),
        (10, "long", "long"),
        (10, "huge", "huge"),
        (3000, "medium", "long"),
        (9000, "short", "huge"),
        (10, "a class the policy no longer has", "short"),
    ],
)
def test_length_sticks_upwards(tokens: int, at_least: str | None, length: str) -> None:
    """A conversation never falls below the class it has reached, and rises freely."""
    assert profile(prompt_tokens=tokens, max_output_tokens=0, at_least=at_least).length == length


def test_independent_inputs_need_one_context_each() -> None:
    """A batch of embeddings is as long as its longest input, though all of it counts as prompt."""
    found = profile(prompt_tokens=10_000, max_output_tokens=0, text_bytes=40_000, longest_bytes=400)
    assert (found.prompt_tokens, found.context_tokens, found.length) == (10_000, 100, "short")


RULES = (
    TaskRule("code", text=(0,), marks=marks_of(("code_fence",))),
    TaskRule("translate", text=(1,)),
    TaskRule("rag", system=(0,), marks=marks_of(("citations",))),
    TaskRule("extract", marks=marks_of(("json_schema",)), apis=frozenset({"chat"})),
    TaskRule("embed", apis=frozenset({"embeddings"})),
)


@pytest.mark.parametrize(
    ("texts", "fields", "task"),
    [
        (Texts(), {}, "chat"),
        (Texts(user="def x"), {}, "code"),
        (Texts(user="hello"), {"code_fence": True}, "code"),
        (Texts(user="translate def "), {}, "code"),
        (Texts(user="translate"), {}, "translate"),
        (Texts(system="only from the documents"), {}, "rag"),
        (Texts(user="only from the documents"), {}, "chat"),
        (Texts(), {"citations": True}, "rag"),
        (Texts(), {"structured": Structured.JSON_SCHEMA}, "extract"),
        (Texts(), {"structured": Structured.JSON_SCHEMA, "api": Api.RESPONSES}, "chat"),
        (Texts(), {"api": Api.EMBEDDINGS}, "embed"),
    ],
)
def test_tasks_in_order(texts: Texts, fields: dict[str, Any], task: str) -> None:
    """The first rule wins; patterns and marks are alternatives, apis a condition, and a rule of apis alone matches."""
    assert profile(table(*RULES), texts=texts, **fields).task == task


@pytest.mark.parametrize("mark", ["code_fence", "table", "citations"])
def test_marks_of_texts(mark: str) -> None:
    """Every structure mark of a text can make a task."""
    policy = table(TaskRule("marked", marks=marks_of((mark,))))
    assert profile(policy, **{mark: True}).task == "marked"
    assert profile(policy).task == "chat"


def test_marks_of_requests() -> None:
    """Images and tools can make one, too."""
    assert profile(table(TaskRule("see", marks=marks_of(("images",)))), images=1).task == "see"
    assert profile(table(TaskRule("act", marks=marks_of(("tools",)))), tools=("clock",)).task == "act"


def test_each_text_is_searched_at_most_once() -> None:
    """Pattern sets are one pass each, however many rules use them, and none where there is nothing to search."""
    user, system = Words("def ", "translate"), Words("only")
    policy = table(*RULES, user_patterns=user, system_patterns=system)
    profile(policy, texts=Texts(user="hello", system="you are"))
    assert (user.asked, system.asked) == (1, 1)
    profile(policy)
    assert (user.asked, system.asked) == (1, 1)


@pytest.mark.parametrize(
    ("trusted", "hint", "body_hint", "task"),
    [
        (True, "code", None, "code"),
        (True, None, "code", "code"),
        (True, "chat", "code", "chat"),
        (True, "unknown", None, "translate"),
        (False, "code", "code", "translate"),
        (True, None, None, "translate"),
    ],
)
def test_hints_count_for_trusted_callers_only(
    trusted: bool, hint: str | None, body_hint: str | None, task: str
) -> None:
    """Header before body; a task the policy does not list is ignored."""
    caller = Principal("acme", trusted=trusted)
    texts = Texts(user="translate")
    assert profile(table(*RULES), caller, texts, hint=hint, task_hint=body_hint).task == task


@pytest.mark.parametrize(
    ("tools", "privilege"),
    [((), "none"), (("clock",), "none"), (("clock", "search"), "low"), (("search", "pay", "clock"), "high")],
)
def test_the_most_privileged_tool_decides(tools: tuple[str, ...], privilege: str) -> None:
    """One privileged tool among many makes the request privileged; asking again gives the same."""
    policy = table()
    assert profile(policy, tools=tools).privilege == privilege
    assert profile(policy, tools=tools).privilege == privilege


def test_privilege_depends_on_the_tenant() -> None:
    """A tenant's grants may privilege a tool; what is remembered for one tenant is not another's."""
    policy = table(
        tenants=(Tenant("bank", grants=frozenset({"payments"})),),
        privilege=lambda tool, tenant: "high" if tenant is not None and "payments" in tenant.grants else "low",
    )
    assert profile(policy, tools=("transfer",)).privilege == "low"
    assert profile(policy, Principal("bank"), tools=("transfer",)).privilege == "high"


def test_long_tool_lists_are_not_remembered() -> None:
    """The memo holds short lists only, and a bounded number of them."""
    policy = table()
    assert profile(policy, tools=tuple(f"t{index}" for index in range(100))).privilege == "low"
    assert not policy.memo
    for index in range(5_000):
        profile(policy, tools=(f"t{index}",))
    assert len(policy.memo) <= 4_096


@pytest.mark.parametrize(
    ("bucket_by", "bucket"),
    [
        (("tier",), "gold"),
        (("task", "length"), "chat/short"),
        (("adapter", "tools", "stream", "images"), "-/none/no/no"),
        (("api", "structured", "tool_use", "tenant"), "chat/none/none/acme"),
        ((), "all"),
    ],
)
def test_bucket_fields(bucket_by: tuple[str, ...], bucket: str) -> None:
    """Labels are the chosen fields in the policy's order; "tools" means their privilege."""
    assert profile(table(bucket_by=bucket_by)).bucket == bucket


def test_bucket_characters_are_safe() -> None:
    """Slashes and spaces of a model's name cannot pass for separators or break a label."""
    policy = table(names={"x": ("org/my model:1", None)}, bucket_by=("model", "task"))
    assert profile(policy, model="x").bucket == "org_my_model:1/chat"


def test_buckets_are_bounded() -> None:
    """Over the policy's number every new bucket is "other"; those known keep their label."""
    names = {f"m{index}": (f"m{index}", None) for index in range(9)}
    policy = table(names=names, bucket_by=("model",), bucket_most=3)
    labels = [profile(policy, model=name).bucket for name in names]
    assert labels == ["m0", "m1", "m2"] + [OTHER] * 6
    assert profile(policy, model="m1").bucket == "m1"
    assert len(policy.buckets) == 3


def test_long_tool_names_are_judged_and_forgotten() -> None:
    """What is remembered for all requests of a table does not grow with what a client sends."""
    policy = table()
    known = len(policy.memo)
    for tools in (("x" * 5_000,), tuple("n" * 100 + str(number) for number in range(60))):
        assert profile(policy, tools=tools).privilege == profile(policy, tools=("short",)).privilege
    assert [key for key in policy.memo if isinstance(key, tuple) and any(map(_long, key))] == []
    assert len(policy.memo) <= known + 3


def _long(part: object) -> bool:
    return isinstance(part, tuple) and sum(map(len, map(str, part))) > 4_096
