"""The one entrance: whatever arrives, the answer is a reading or a 400, and facts never depend on the layout."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.core.openai import read
from gateway.errors import ApiError
from gateway.model.enums import Api

_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["user", "system", "tool", "text", "function", "x", "", "tool_result", "function_call_output"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["role", "content", "type", "text", "name", "function", "tool_calls", "tool_call_id", "output", "mode"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
_FIELDS = [
    *("messages", "input", "prompt", "instructions", "system", "query", "documents", "text_1", "text_2", "tokens"),
    *("stream", "stream_options", "max_tokens", "max_completion_tokens", "max_output_tokens", "temperature", "top_p"),
    *("n", "seed", "logprobs", "tools", "functions", "tool_choice", "function_call", "response_format", "text"),
    *("user", "prompt_cache_key", "metadata", "previous_response_id", "conversation", "store", "structured_outputs"),
]
_APIS = [api for api in Api if api not in (Api.MODELS, Api.OTHER)]


@settings(max_examples=600)
@given(st.sampled_from(_APIS), st.dictionaries(st.sampled_from(_FIELDS), _JSON, max_size=5))
def test_any_json_gives_a_reading_or_a_400(api: Api, fields: dict[str, Any]) -> None:
    """No shape of any field makes the reader crash: an internal error would be the client's to trigger."""
    try:
        reading = read(api, json.dumps({"model": "m", **fields}).encode())
    except ApiError as error:
        assert error.status == 400
        assert error.message
        return
    facts = reading.facts
    assert facts.model == "m"
    assert facts.text_bytes >= sum(len(part.encode()) for part in reading.texts.parts)
    hash((facts.tools, facts.forced_tool, facts.conversation))


@given(st.sampled_from(_APIS), st.binary(max_size=60))
def test_any_bytes_give_a_reading_or_a_400(api: Api, body: bytes) -> None:
    """Nor does any run of bytes."""
    with pytest.raises(ApiError):
        read(api, body)
    with pytest.raises(ApiError):
        read(Api.AUDIO, body, "multipart/form-data; boundary=x")


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=40), st.booleans(), st.sampled_from([None, 2]))
def test_facts_do_not_depend_on_spelling(text: str, ascii_only: bool, indent: int | None) -> None:
    """Escapes and whitespace are the client's taste; facts and texts are the same for all of them."""
    body = {"model": "m", "messages": [{"role": "user", "content": text}], "temperature": 0.5}
    plain = read(Api.CHAT, json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode())
    other = read(Api.CHAT, json.dumps(body, ensure_ascii=ascii_only, indent=indent).encode())
    assert (plain.facts, plain.texts) == (other.facts, other.texts)


def test_models_has_no_body() -> None:
    """GET /v1/models reads as empty facts."""
    assert read(Api.MODELS, b"").facts.api is Api.MODELS


def test_a_form_where_json_is_needed() -> None:
    """415 says what to send."""
    with pytest.raises(ApiError) as caught:
        read(Api.CHAT, b"--x--", "multipart/form-data; boundary=x")
    assert caught.value.status == 415


@pytest.mark.parametrize("content", ["x" * 8_000_000, "é" * 1_000_000])
def test_large_bodies(content: str) -> None:
    """Megabytes are read whole, counted in bytes, sliced for the classifier."""
    reading = read(Api.CHAT, json.dumps({"model": "m", "messages": [{"role": "user", "content": content}]}).encode())
    assert reading.facts.text_bytes == len(content.encode())
    assert len(reading.texts.user) < 21_000
    assert reading.texts.parts == (content,)
