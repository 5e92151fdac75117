"""The part of the policy that makes profiles."""

import tracemalloc
from typing import Any

from gateway.model.table import Tenant, marks_of
from gateway.policy.classifier import classifier_of, privilege_of
from gateway.policy.schema.rules import Classify, ToolNames


def test_privilege_by_name_and_grant() -> None:
    """Privileged wins over harmless; a grant makes further tools privileged for those who hold it; the rest is low."""
    given = {"privileged": ["pay_*", "clock_set"], "harmless": ["clock*"], "grants": {"payments": ["refund*"]}}
    privilege = privilege_of(ToolNames.model_validate(given))
    holder, other = Tenant("a", grants=frozenset({"payments", "unknown"})), Tenant("b")
    for _ in range(2):  # the second time from memory
        assert [privilege(tool, other) for tool in ("pay_x", "clock", "clock_set", "refund", "else")] == [
            *("high", "none", "high", "low", "low")
        ]
        assert privilege("refund_all", holder) == "high"
        assert privilege("refund_all", None) == "low"


def test_remembered_privileges_are_bounded() -> None:
    """A client that invents tool names does not fill the memory, and is still judged right."""
    privilege = privilege_of(ToolNames(privileged=["pay_*"]))
    assert {privilege(f"pay_{n}", None) for n in range(10_000)} == {"high"}


def test_long_names_are_judged_and_forgotten() -> None:
    """Names are the client's text, and a worker must not keep megabytes of it."""
    privilege = privilege_of(ToolNames(privileged=["pay_*"]))
    tracemalloc.start()
    try:
        for number in range(20):
            assert privilege(f"pay_{number}" + "x" * 1_000_000, None) == "high"
        assert tracemalloc.get_traced_memory()[0] < 3_000_000
    finally:
        tracemalloc.stop()


def test_without_patterns_every_tool_is_low() -> None:
    """A policy that names no tools still knows that tools are used."""
    assert privilege_of(ToolNames())("anything", None) == "low"


def test_task_rules_share_their_patterns(policies: Any) -> None:
    """Each pattern is in its set once; rules point to it."""
    tasks = [
        {"task": "a", "text": ["x", "y"], "marks": "table"},
        {"task": "b", "text": ["y"], "system": ["s"], "api": "chat"},
    ]
    found = classifier_of(Classify.model_validate({"tasks": tasks, "hints": ["c"]}))
    assert [(rule.task, rule.text, rule.system) for rule in found.tasks] == [("a", (0, 1), ()), ("b", (1,), (0,))]
    assert (found.tasks[0].marks, found.tasks[1].apis) == (marks_of(("table",)), frozenset({"chat"}))
    assert found.hint_tasks == frozenset({"c"})
    assert found.user_patterns is not None
    assert found.user_patterns.search("y") == [1]


def test_lengths_ascend_and_buckets_name_profile_fields() -> None:
    """However they are written."""
    found = classifier_of(
        Classify.model_validate({"lengths": {"b": "8k", "a": "2k"}, "buckets": {"by": ["tools", "task"]}})
    )
    assert found.lengths == (("a", 2048), ("b", 8192))
    assert found.bucket_by == ("privilege", "task")
    assert found.over == "over"
