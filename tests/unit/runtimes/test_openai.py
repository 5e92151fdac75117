"""Any OpenAI-compatible server: names only."""

from collections.abc import Callable

from gateway.runtimes.adapter import Answer, Answers
from gateway.runtimes.openai import ADAPTER


def test_health(answers: Callable[..., Answers]) -> None:
    """The list of models stands for health, and refused credentials are named as such."""
    assert ADAPTER.health(answers({"/v1/models": {"data": []}})).ready
    assert "credentials" in ADAPTER.health(answers({"/v1/models": Answer(401, b'{"error":"Unauthorized"}')})).reason


def test_attestation(answers: Callable[..., Answers]) -> None:
    """Names are known, precision is not."""
    found = ADAPTER.attest(answers({"/v1/models": {"data": [{"id": "gpt-4o"}]}}))
    assert [model.name for model in found.models] == ["gpt-4o"]
    assert found.unattested == ("weights", "activations", "kv_cache")
    assert ADAPTER.load(answers({}), 0.0) is None
