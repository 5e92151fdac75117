"""The part of a policy that makes profiles, compiled: pattern sets, privilege of tools, length classes. Pure.

Called by ``compile``.
"""

from collections.abc import Callable

import re2

from gateway.model.enums import Privilege
from gateway.model.table import Classifier, TaskRule, Tenant, marks_of
from gateway.policy.patterns import pattern_set, wildcards
from gateway.policy.schema.pattern import quiet_options
from gateway.policy.schema.rules import Classify, ToolNames

# The words of ``buckets.by`` that are not the name of a profile's field.
BUCKET_ATTRIBUTES = {"tools": "privilege"}
_REMEMBERED_MOST = 4096
_NAME_MOST_CHARS = 256  # names are the client's text: what is remembered must not grow with what it sends


def classifier_of(classify: Classify) -> Classifier:
    """Compile the ``classify`` section."""
    user: list[str] = []
    system: list[str] = []
    rules = []
    for rule in classify.tasks:
        rules.append(
            TaskRule(
                task=rule.task,
                text=_indexes(rule.text, user),
                system=_indexes(rule.system, system),
                marks=marks_of(rule.marks or ()),
                apis=frozenset(rule.api or ()),
            )
        )
    words = classify.task_words()
    return Classifier(
        lengths=tuple(classify.lengths.items()),
        over=classify.over,
        tasks=tuple(rules),
        default_task=classify.default_task,
        hint_tasks=frozenset(words if classify.hints is None else classify.hints),
        user_patterns=pattern_set(user),
        system_patterns=pattern_set(system, again=True),
        privilege=privilege_of(classify.tools),
        bucket_by=tuple(BUCKET_ATTRIBUTES.get(field, field) for field in classify.buckets.by),
        bucket_most=classify.buckets.most,
        default_output_tokens=classify.output_tokens,
    )


def _indexes(patterns: list[str] | None, known: list[str]) -> tuple[int, ...]:
    """Indexes of ``patterns`` in ``known``, which grows by the new ones."""
    known += [pattern for pattern in patterns or () if pattern not in known]
    return tuple(known.index(pattern) for pattern in patterns or ())


def privilege_of(names: ToolNames) -> Callable[[str, Tenant | None], str]:
    """Privilege of a tool by its name and the caller's grants. A name that no pattern knows is ``low``."""
    privileged = _matcher(names.privileged)
    harmless = _matcher(names.harmless)
    granted = {grant: _matcher(patterns) for grant, patterns in names.grants.items()}
    remembered: dict[tuple[str, frozenset[str]], str] = {}

    def judge(tool: str, grants: frozenset[str]) -> str:
        if privileged(tool) or any(granted[grant](tool) for grant in grants if grant in granted):
            return Privilege.HIGH.value
        return Privilege.NONE.value if harmless(tool) else Privilege.LOW.value

    def privilege(tool: str, tenant: Tenant | None) -> str:
        key = (tool, tenant.grants if tenant is not None else frozenset())
        found = remembered.get(key)
        if found is None:
            if len(remembered) >= _REMEMBERED_MOST:
                remembered.clear()
            found = judge(*key)
            if len(tool) <= _NAME_MOST_CHARS:
                remembered[key] = found
        return found

    return privilege


def _matcher(patterns: list[str]) -> Callable[[str], bool]:
    if not patterns:
        return lambda tool: False
    compiled = re2.compile(wildcards(patterns), quiet_options())
    return lambda tool: compiled.fullmatch(tool) is not None
