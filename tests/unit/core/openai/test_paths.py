"""Paths and methods map to APIs whole, never by guessed prefixes."""

import pytest

from gateway.core.openai.paths import allowed_method, api_of
from gateway.model.enums import Api


@pytest.mark.parametrize(
    ("path", "api"),
    [
        ("/v1/chat/completions", Api.CHAT),
        ("/v1/completions", Api.COMPLETIONS),
        ("/v1/embeddings", Api.EMBEDDINGS),
        ("/v1/responses", Api.RESPONSES),
        ("/v1/messages", Api.MESSAGES),
        ("/v1/messages/count_tokens", Api.TOKENIZE),
        ("/v1/responses/input_tokens", Api.TOKENIZE),
        ("/v1/rerank", Api.RERANK),
        ("/v1/score", Api.SCORE),
        ("/tokenize", Api.TOKENIZE),
        ("/detokenize", Api.DETOKENIZE),
        ("/v1/audio/transcriptions", Api.AUDIO),
        ("/v1/audio/translations", Api.AUDIO),
        ("/v1/audio/speech", Api.AUDIO),
    ],
)
def test_served_paths(path: str, api: Api) -> None:
    """Every served path means its API with POST, and is named as POST-only otherwise."""
    assert api_of("POST", path) is api
    assert api_of("GET", path) is None
    assert allowed_method(path) == "POST"


@pytest.mark.parametrize("path", ["/v1/models", "/v1/models/org/name:q4", "/v1/models/org%2Fname%3Aq4"])
def test_models_are_listed_and_fetched(path: str) -> None:
    """A model's id may hold slashes (B83), so everything below /v1/models is that API."""
    assert api_of("GET", path) is Api.MODELS
    assert api_of("HEAD", path) is Api.MODELS
    assert api_of("POST", path) is None
    assert allowed_method(path) == "GET, HEAD"


@pytest.mark.parametrize("path", ["/", "/v1/chat", "/v1/chat/completions/", "/v1/chat/completions/x", "/v1/modelsx"])
def test_unknown_paths(path: str) -> None:
    """A path that merely resembles a served one is unknown: 404, not a guess."""
    assert api_of("POST", path) is None
    assert api_of("GET", path) is None
    assert allowed_method(path) is None
