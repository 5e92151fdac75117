"""A request from a file or a policy test, taken as far as the decision without any socket.

The same steps as the data plane takes: read, size, classify, decide. Called by ``explain`` and ``policy_test``.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
import orjson

from gateway.core import openai
from gateway.core.classify import classify
from gateway.core.decide import Explanation, explain
from gateway.core.tokens import Correction, Estimate, bounds_of, plan
from gateway.model.enums import Api
from gateway.model.facts import Principal, Reading
from gateway.model.table import Table, Tenant
from gateway.policy.tokenizer_files import load_tokenizer

_PATHS = (
    ("/v1/chat/completions", frozenset({"messages"})),
    ("/v1/rerank", frozenset({"query", "documents"})),
    ("/v1/score", frozenset({"text_1", "text_2"})),
    ("/v1/score", frozenset({"data_1", "data_2"})),
    ("/detokenize", frozenset({"tokens"})),
    ("/v1/audio/speech", frozenset({"input", "voice"})),
    ("/v1/embeddings", frozenset({"input", "encoding_format"})),
    ("/v1/embeddings", frozenset({"input", "dimensions"})),
    ("/v1/responses", frozenset({"input"})),
    ("/v1/completions", frozenset({"prompt"})),
)


class UnusableError(Exception):
    """The request cannot be looked at; the message says why and what to do."""


class Ask(msgspec.Struct, frozen=True):
    """One request. Header names are lower case."""

    path: str
    headers: Mapping[str, str]
    body: bytes


class Answer(msgspec.Struct, frozen=True):
    """What became of it: its facts and size, and the decision with all reasons."""

    ask: Ask
    reading: Reading
    tenant: Tenant
    estimate: Estimate
    explanation: Explanation


def ask_of(content: bytes) -> Ask:
    """A request file: a bare body, or an object with ``body`` and optionally ``path`` and ``headers``."""
    try:
        data = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise UnusableError(f"the request is not JSON: {error}") from None
    if not isinstance(data, dict):
        raise UnusableError('the request is not a JSON object; give the body, or {"path", "headers", "body"}')
    if not isinstance(data.get("body"), dict) or not data.keys() <= {"path", "headers", "body", "method"}:
        return Ask(guessed_path(data), {}, content)
    headers = data.get("headers") or {}
    if not isinstance(headers, dict) or not isinstance(data.get("path", ""), str):
        raise UnusableError("path must be text and headers an object of texts")
    return make_ask(data.get("path"), {str(name): str(value) for name, value in headers.items()}, data["body"])


def make_ask(path: str | None, headers: Mapping[str, str], body: dict[str, Any]) -> Ask:
    """A request of its parts; without a path it is guessed."""
    lowered = {name.lower(): value for name, value in headers.items()}
    return Ask((path or guessed_path(body)).partition("?")[0], lowered, orjson.dumps(body))


def guessed_path(body: Mapping[str, Any]) -> str:
    """The path that a body was most likely sent to, by its fields."""
    tools = body.get("tools")
    anthropic = isinstance(tools, list) and any(isinstance(tool, dict) and "input_schema" in tool for tool in tools)
    if "messages" in body and ("system" in body or anthropic):
        return "/v1/messages"
    for path, fields in _PATHS:
        if fields <= body.keys():
            return path
    raise UnusableError('the body does not tell its API; wrap it: {"path": "/v1/chat/completions", "body": {…}}')


def tenant_of(table: Table, name: str | None) -> Tenant:
    """The caller: as named, else anonymous if allowed, else the only tenant there is."""
    if name is not None:
        if name not in table.tenants:
            known = ", ".join(table.tenants) or "none"
            raise UnusableError(f"there is no tenant {name!r} that may call; known: {known}")
        return table.tenants[name]
    if table.anonymous is not None:
        return table.anonymous
    if len(table.tenants) == 1:
        return next(iter(table.tenants.values()))
    raise UnusableError(f"say who calls: --tenant {' | '.join(table.tenants) or '(the policy has none)'}")


def answer(table: Table, ask: Ask, tenant: Tenant, tokens: int | None = None) -> Answer:
    """The decision on ``ask``. ``tokens`` replaces the count of its prompt.

    Raises ``ApiError`` as the gateway would.
    """
    api = openai.api_of("POST", ask.path)
    if api is None or api is Api.MODELS:
        raise UnusableError(f"POST {ask.path} is not an API path of the gateway")
    session = ask.headers.get("x-quantgate-session")
    content_type = ask.headers.get("content-type", "application/json")
    reading = openai.read(api, ask.body, content_type, session=session.encode() if session else None)
    estimate = _estimate(table, reading) if tokens is None else Estimate(tokens, True, True, tokens, "given")
    principal = Principal(tenant.name, tenant.tier, tenant.grants, tenant.slot, tenant.trusted)
    hint = ask.headers.get("x-quantgate-task") if tenant.trusted else None
    profile = classify(
        table, reading.facts, reading.texts, principal, estimate.tokens, least_tokens=estimate.least(), hint=hint
    )
    return Answer(ask, reading, tenant, estimate, explain(table, profile))


def _estimate(table: Table, reading: Reading) -> Estimate:
    named = table.names.get(reading.facts.model)
    if named is None:
        return Estimate(0, False)  # classification answers that the model is unknown
    try:
        tokenizer = load_tokenizer(table.models[named[0]].tokenizer)
    except ValueError as error:
        raise UnusableError(str(error)) from None
    return plan(
        reading.facts,
        reading.texts,
        bounds_of(table),
        tokenizer,
        Correction.fresh(table.models[named[0]].tokenizer),
        default_output_tokens=table.classifier.default_output_tokens,
    )
