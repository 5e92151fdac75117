"""Facts and texts to a ``Profile``: canonical model, length class, task, tool privilege, bucket label.

The profile is finite except for token counts, so decisions can be tabulated over it. Called once per request by the
data plane and by ``quantgate explain``; it never sees a socket or a clock. Results that depend on closed sets only
(privilege of a tool list, bucket labels) are remembered in the table's memo, within bounds.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from operator import itemgetter
from typing import Final

from rapidfuzz import fuzz, process

from gateway.errors import ApiError
from gateway.model.enums import Privilege, Structured
from gateway.model.facts import Facts, Principal, Profile, Texts
from gateway.model.table import Classifier, Table, Tenant, TextSet

OTHER: Final = "other"
"""Bucket label of everything over ``Classifier.bucket_most``."""

_MEMO_MOST: Final = 4_096
_TOOLS_CHARS_MOST: Final = 4_096  # of all names of a list
_TOOLS_MEMO_MOST: Final = 64  # longer tool lists are evaluated each time rather than kept alive
_NAME_MOST: Final = 128
_MATCH_SCORE: Final = 60
_RANK: Final = {Privilege.NONE.value: 0, Privilege.LOW.value: 1, Privilege.HIGH.value: 2}
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._:@+-]+")
_NO_PRIVILEGE: Final = Privilege.NONE.value
_JSON_SCHEMA: Final = Structured.JSON_SCHEMA
_PRIVILEGE_OF: Final = object()  # keeps these memo keys apart from those of decisions

# Profile fields in order, as far as a bucket may be made of them. The policy's word "tools" means their privilege.
_FIELDS: Final = (
    *("api", "model", "adapter", "length", "task", "tool_use", "privilege"),
    *("structured", "tenant", "tier", "stream", "images"),
)
_SPELLINGS: Final = {"tools": "privilege"}


def classify(
    table: Table,
    facts: Facts,
    texts: Texts,
    principal: Principal,
    prompt_tokens: int,
    *,
    least_tokens: int | None = None,
    hint: str | None = None,
    at_least: str | None = None,
) -> Profile:
    """The profile of one request.

    ``hint`` is a task named by a header; it and the body's own hint count only for trusted callers and known tasks.
    ``least_tokens``: what the prompt has even if the estimate errs; by default it is exact.
    ``at_least`` is a length class the conversation already reached. ``ApiError`` 404 when the model is unknown or not
    for this tenant: the two look the same from outside.
    """
    tenant = table.tenants.get(principal.tenant)
    named = table.names.get(facts.model)
    if named is None or not _may_use(table, tenant, facts.model, named):
        raise _unknown_model(table, tenant, facts.model)
    model, adapter = named
    classifier = table.classifier
    context_tokens = _context_tokens(facts, prompt_tokens, classifier.default_output_tokens)
    length = _length(classifier, context_tokens, at_least)
    task = _task(classifier, facts, texts, hint if hint is not None else facts.task_hint, principal.trusted)
    privilege = _privilege(table, facts.tools, tenant) if facts.tools else _NO_PRIVILEGE
    api, use, structured, stream, images = facts.api, facts.tool_use, facts.structured, facts.stream, facts.images > 0
    caller, tier = principal.tenant, principal.tier
    finite = (api, model, adapter, length, task, use, privilege, structured, caller, tier, stream, images)
    bucket = table.labels.get(finite)
    if bucket is None:
        bucket = _bucket(table, finite)
    return Profile(
        api,
        model,
        adapter,
        length,
        task,
        use,
        privilege,
        structured,
        caller,
        tier,
        stream,
        images,
        facts.sampling,
        prompt_tokens,
        context_tokens,
        facts.turns,
        bucket,
        0 if facts.truncates else _share(facts, prompt_tokens if least_tokens is None else least_tokens),
    )


def visible_names(table: Table, tenant: Tenant | None) -> list[str]:
    """Every model name this tenant may send, in the table's order. ``None``: no tenant restricts the view.

    A tenant may use a model with all that belongs to it where its list has the model's own name, and what another name
    stands for (an alias the model without its adapters, an adapter that adapter) by every name of it.
    """
    if tenant is None or tenant.models is None:
        return list(table.names)
    meant = _meant(table, tenant.models)
    return [name for name, named in table.names.items() if named[0] in tenant.models or named in meant]


def _may_use(table: Table, tenant: Tenant | None, name: str, named: tuple[str, str | None]) -> bool:
    """Whether ``name`` is among ``visible_names``. Most requests are told by the first comparisons."""
    if tenant is None or tenant.models is None:
        return True
    models = tenant.models
    return named[0] in models or name in models or named in _meant(table, models)


def _meant(table: Table, names: frozenset[str]) -> set[tuple[str, str | None]]:
    return {table.names[name] for name in names if name in table.names}


def _unknown_model(table: Table, tenant: Tenant | None, asked: str) -> ApiError:
    """Names close ones among those the tenant may use, and no others."""
    shown = asked if len(asked) <= _NAME_MOST else asked[:_NAME_MOST] + "…"
    close = process.extract(shown, visible_names(table, tenant), scorer=fuzz.ratio, limit=3, score_cutoff=_MATCH_SCORE)
    mend = (
        f" Did you mean {', '.join(repr(name) for name, _, _ in close)}?" if close else " GET /v1/models lists yours."
    )
    return ApiError(404, "model_not_found", f"The model {shown!r} does not exist.{mend}", param="model")


def _context_tokens(facts: Facts, prompt_tokens: int, default_output_tokens: int) -> int:
    """Tokens one context must hold: the prompt, or its largest independent input, and the reserved output."""
    reserved = facts.max_output_tokens
    return _share(facts, prompt_tokens) + (default_output_tokens if reserved is None else reserved)


def _share(facts: Facts, prompt_tokens: int) -> int:
    """Of all prompt tokens those of the largest independent input."""
    if 0 < facts.longest_bytes < facts.text_bytes:
        return -(-prompt_tokens * facts.longest_bytes // facts.text_bytes)
    return prompt_tokens


def _length(classifier: Classifier, context_tokens: int, at_least: str | None) -> str:
    """The first class that holds the context, but none below ``at_least``; a class the policy lacks binds nothing."""
    reached = at_least is None or not (
        at_least == classifier.over or any(name == at_least for name, _ in classifier.lengths)
    )
    for name, bound in classifier.lengths:
        reached = reached or name == at_least
        if reached and context_tokens <= bound:
            return name
    return classifier.over


def _task(classifier: Classifier, facts: Facts, texts: Texts, hint: str | None, trusted: bool) -> str:
    if trusted and hint is not None and hint in classifier.hint_tasks:
        return hint
    user: list[int] | None = None
    system: list[int] | None = None
    marks = -1
    for rule in classifier.tasks:
        if rule.apis and facts.api not in rule.apis:
            continue
        if not (rule.text or rule.system or rule.marks):
            return rule.task
        if rule.marks:
            if marks < 0:
                marks = _marks(facts)
            if marks & rule.marks:
                return rule.task
        if rule.text:
            if user is None:
                user = _hits(classifier.user_patterns, texts.user)
            if user and _any_of(rule.text, user):
                return rule.task
        if rule.system:
            if system is None:
                system = _hits(classifier.system_patterns, texts.system)
            if system and _any_of(rule.system, system):
                return rule.task
    return classifier.default_task


def _hits(patterns: TextSet | None, text: str) -> list[int]:
    return patterns.search(text) if patterns is not None and text else []


def _any_of(wanted: tuple[int, ...], found: list[int]) -> bool:
    for index in wanted:  # noqa: SIM110 - compiled, a generator costs more than the loop
        if index in found:
            return True
    return False


def _marks(facts: Facts) -> int:
    """What the request's structure shows, in the order of ``model.table.MARKS``."""
    return (
        (1 if facts.code_fence else 0)
        | (2 if facts.table else 0)
        | (4 if facts.citations else 0)
        | (8 if facts.structured is _JSON_SCHEMA else 0)
        | (16 if facts.images > 0 else 0)
        | (32 if facts.tools else 0)
    )


def _privilege(table: Table, tools: tuple[str, ...], tenant: Tenant | None) -> str:
    """The highest privilege among declared tools: one privileged tool makes the request privileged."""
    key = (_PRIVILEGE_OF, tenant.name if tenant is not None else None, tools)
    known = table.memo.get(key)
    if known is not None:
        return str(known)
    highest = Privilege.NONE.value
    for tool in tools:
        found = table.classifier.privilege(tool, tenant)
        if _RANK[found] > _RANK[highest]:
            highest = found
            if found == Privilege.HIGH.value:
                break
    if len(tools) <= _TOOLS_MEMO_MOST and len(table.memo) < _MEMO_MOST:
        chars = 0  # names are the client's text: what is remembered must not grow with what it sends
        for tool in tools:
            chars += len(tool)
        if chars <= _TOOLS_CHARS_MOST:
            table.memo[key] = highest
    return highest


@lru_cache(maxsize=64)
def _picker(bucket_by: tuple[str, ...]) -> Callable[[tuple[object, ...]], tuple[object, ...]]:
    """Takes the fields of ``bucket_by`` out of the values in ``_FIELDS`` order."""
    places = [_FIELDS.index(_SPELLINGS.get(field, field)) for field in bucket_by]
    if len(places) > 1:
        return itemgetter(*places)
    return lambda values: tuple(values[place] for place in places)


def _bucket(table: Table, finite: tuple[object, ...]) -> str:
    """The label of these finite fields, by those that buckets are made of; remembered for all of them."""
    chosen = _picker(table.classifier.bucket_by)(finite)
    label = table.buckets.get(chosen)
    if label is None:
        label = _label(table, chosen)
    if len(table.labels) >= _MEMO_MOST:
        table.labels.clear()
    table.labels[finite] = label
    return label


def _label(table: Table, chosen: tuple[object, ...]) -> str:
    """A new bucket's label, or ``OTHER`` once there are as many as the policy allows."""
    if len(table.buckets) >= table.classifier.bucket_most:
        return OTHER
    label = "/".join(_word(value) for value in chosen) or "all"
    table.buckets[chosen] = label
    return label


def _word(value: object) -> str:
    if value is None:
        return "-"
    if value is True or value is False:
        return "yes" if value else "no"
    return _UNSAFE.sub("_", str(value)) or "-"
