"""A request taken as far as the decision, without a socket."""

from pathlib import Path
from typing import Any

import pytest

from gateway.cli.ask import UnusableError, answer, ask_of, guessed_path, make_ask, tenant_of
from gateway.errors import ApiError
from gateway.model.table import Table
from gateway.policy.compile import compile_table
from gateway.policy.load import load
from gateway.policy.secret import unresolved

BODY = {"model": "gpt-4o", "messages": [{"role": "user", "content": "hi"}]}


@pytest.fixture(scope="module")
def table() -> Table:
    return compile_table(load(Path("routing_policies")).document, 0, {}, unresolved)


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"messages": []}, "/v1/chat/completions"),
        ({"messages": [], "system": "x"}, "/v1/messages"),
        ({"messages": [], "tools": [{"name": "t", "input_schema": {}}]}, "/v1/messages"),
        ({"prompt": "x"}, "/v1/completions"),
        ({"input": "x"}, "/v1/responses"),
        ({"input": "x", "dimensions": 8}, "/v1/embeddings"),
        ({"input": "x", "voice": "a"}, "/v1/audio/speech"),
        ({"query": "x", "documents": []}, "/v1/rerank"),
        ({"text_1": "x", "text_2": "y"}, "/v1/score"),
        ({"tokens": [1]}, "/detokenize"),
    ],
)
def test_a_bare_body_tells_its_api(body: dict[str, Any], path: str) -> None:
    """By the fields that only one of them has."""
    assert guessed_path(body) == path


def test_a_body_that_does_not_tell_is_asked_to() -> None:
    """No guess is made out of nothing."""
    with pytest.raises(UnusableError, match="wrap it"):
        guessed_path({"model": "m"})


def test_a_request_file_is_a_body_or_a_whole_request() -> None:
    """Header names do not depend on case, a query is no part of the path, a bare body's bytes are kept."""
    bare = ask_of(b'{"messages": [],  "model": "m"}')
    assert (bare.path, bare.body) == ("/v1/chat/completions", b'{"messages": [],  "model": "m"}')
    whole = ask_of(b'{"path": "/v1/responses?x=1", "headers": {"X-Quantgate-Task": "rag"}, "body": {"input": "x"}}')
    assert (whole.path, whole.headers) == ("/v1/responses", {"x-quantgate-task": "rag"})


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{", b'{"path": 5, "body": {}}', b'{"headers": [], "body": {}, "path": "/x"}']
)
def test_what_is_no_request_is_said(content: bytes) -> None:
    """Broken JSON and wrong shapes give a sentence."""
    if content == b'{"headers": [], "body": {}, "path": "/x"}':
        assert ask_of(content).headers == {}
        return
    with pytest.raises(UnusableError):
        ask_of(content)


def test_who_calls(table: Table) -> None:
    """As named, else the only tenant; an unknown one is an error that lists those there are."""
    assert tenant_of(table, None).name == tenant_of(table, "acme").name == "acme"
    with pytest.raises(UnusableError, match="known: acme"):
        tenant_of(table, "acne")


def test_the_same_steps_as_the_data_plane(table: Table) -> None:
    """Read, sized, classified, decided; a trusted hint counts, a given size replaces the count."""
    acme = tenant_of(table, None)
    found = answer(table, make_ask(None, {"X-Quantgate-Task": "rag"}, BODY), acme)
    assert found.explanation.profile.task == "rag"
    assert 0 < found.estimate.tokens < 100
    assert answer(table, make_ask(None, {}, BODY), acme, 40_000).explanation.profile.length == "huge"


def test_what_the_gateway_would_refuse_is_refused(table: Table) -> None:
    """An unknown model and a broken body are the API's own errors; an unknown path is the caller's mistake."""
    acme = tenant_of(table, None)
    with pytest.raises(ApiError) as caught:
        answer(table, make_ask(None, {}, {**BODY, "model": "gone"}), acme)
    assert caught.value.code == "model_not_found"
    with pytest.raises(ApiError):
        answer(table, make_ask(None, {}, {"messages": "x", "model": "gpt-4o"}), acme)
    with pytest.raises(UnusableError, match="not an API path"):
        answer(table, make_ask("/v1/chat", {}, BODY), acme)
