"""Addresses in a policy: what nobody could connect to is refused, and nothing that may be a secret is repeated."""

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from gateway.policy.schema.urls import DatabaseUrl, EndpointUrl, Origin, WebhookUrl, database_fault, webhook_fault


def read(kind: Any, value: str) -> str:
    return str(TypeAdapter(kind).validate_python(value))


def fault(kind: Any, value: str) -> str:
    with pytest.raises(ValidationError) as caught:
        read(kind, value)
    return caught.value.errors()[0]["msg"]


@pytest.mark.parametrize(
    ("written", "read_as"),
    [
        ("http://host:8000/v1", "http://host:8000"),
        ("HTTP://Host/", "http://Host"),
        ("http://[::1]:8000", "http://[::1]:8000"),
        ("https://10.0.0.255/llm/v1/", "https://10.0.0.255/llm"),
        ("http://vllm_fp8:1/rerank", "http://vllm_fp8:1/rerank"),
        ("http://1-2.3:80", "http://1-2.3:80"),
    ],
)
def test_an_endpoint_is_a_base_url(written: str, read_as: str) -> None:
    """Whatever people copy from elsewhere leads to the same runtime."""
    assert read(EndpointUrl, written) == read_as


@pytest.mark.parametrize(
    "written",
    [
        *("host:8000", "host", "grpc://host", "http://", "http://u:p@host", "http://host?a=1", "http://host#a"),
        *("http://host:0", "http://host:", "http://host:99999", "http://host:http", "http://::1:8000", "http://[::1"),
        *("http://10.0.0.256:1", "http://10.0.0:1", "http://ho st", "http://host ", "http://höst", "http://host\n"),
        *("http://host/v1/models", "http://host/v1/chat/completions"),
        *("http://vllm-{0..3}:8000", "http://*.svc:8000", "http://${HOST}:8000", "http://a,b:8000"),
    ],
)
def test_what_no_runtime_answers_at_is_no_endpoint(written: str) -> None:
    """Better said when the policy is read than by an endpoint that is never healthy."""
    assert fault(EndpointUrl, written)


@pytest.mark.parametrize(
    "written", ["https://h:0/k", "https://h:k/", "https://h/\r\nk: v", "hooks.example/k", "ftp://k"]
)
def test_a_webhook_that_can_reach_nobody_is_refused_without_repeating_it(written: str) -> None:
    """It would be missed in the first incident; its path is often a secret."""
    assert "k" not in fault(WebhookUrl, written).replace("webhook", "").replace("like", "")
    assert webhook_fault(written)


def test_webhooks_of_any_path_are_taken(written: str = "https://höoks.example/services/a b?c=d#e") -> None:
    """The client that sends writes them as the network needs them."""
    assert read(WebhookUrl, written) == written
    assert read(WebhookUrl, "env:HOOK") == "env:HOOK"


def test_a_password_in_a_databases_url_is_refused_wherever_it_stands() -> None:
    """As a part of the address, and as a parameter."""
    for written in ("postgresql://u:s3cret@h/x", "postgresql://u@h/x?password=s3cret"):
        assert "s3cret" not in fault(DatabaseUrl, written)
    assert read(DatabaseUrl, "postgresql://u@h:5432/x?sslmode=require").startswith("postgresql")
    assert read(DatabaseUrl, "sqlite:///[odd] name.db") == "sqlite:///[odd] name.db"
    assert fault(DatabaseUrl, "postgresql://u@h:99999/x")
    assert fault(DatabaseUrl, "postgresql://[u@h/x")


def test_a_resolved_database_may_have_any_password() -> None:
    """Its driver reads a password that a URL's grammar would cut in two."""
    assert database_fault("postgresql://u:p#a?b/c@h:5432/x") == ""
    assert database_fault("postgres://u@h/x") == ""
    assert database_fault("mysql://u@h/x") and database_fault("h/x")


def test_an_origin_is_what_browsers_send() -> None:
    """No path, lower case, and only a port that is not the usual one; anything else is equal to none that is sent."""
    for sent in ("https://app.example:8443", "http://localhost:3000", "https://a.example:80", "*", "null", "tauri://x"):
        assert read(Origin, sent) == sent
    for never in ("https://app.example/", "https://*.example", "https://a.example:443", "http://a:80", "https://höst"):
        assert fault(Origin, never)
