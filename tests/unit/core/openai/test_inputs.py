"""APIs with independent inputs: their sum, their largest, token ids in place of text."""

from typing import Any

import orjson
import pytest

from gateway.core.openai import read
from gateway.errors import ApiError
from gateway.model.enums import Api, Structured
from gateway.model.facts import Reading


def reading(api: Api, **fields: Any) -> Reading:
    """A request, read."""
    return read(api, orjson.dumps({"model": "m", **fields}))


@pytest.mark.parametrize(
    ("given", "sizes"),
    [
        ("héllo", (6, 0, 1)),
        (["one", "three"], (8, 5, 2)),
        ([1, 2, 3, 4], (4, 0, 1)),
        ([[1, 2], [3, 4, 5]], (5, 3, 2)),
        (["text", [1, 2]], (6, 4, 2)),
        ([], (0, 0, 0)),
        ("", (0, 0, 1)),
    ],
)
@pytest.mark.parametrize(("api", "key"), [(Api.COMPLETIONS, "prompt"), (Api.EMBEDDINGS, "input")])
def test_four_forms(api: Api, key: str, given: Any, sizes: tuple[int, int, int]) -> None:
    """Text, texts, ids, lists of ids: each input must fit a context alone, all of them count for the limits."""
    facts = reading(api, **{key: given}).facts
    assert facts.api is api
    assert (facts.text_bytes, facts.longest_bytes, facts.messages) == sizes


@pytest.mark.parametrize("given", [3, True, [3, "x"], [[1, "x"]], [None], [1, 2.5], [[True]]])
def test_mixed_forms_are_refused(given: Any) -> None:
    """What is neither text nor token ids is a 400 that names the field."""
    with pytest.raises(ApiError) as caught:
        reading(Api.COMPLETIONS, prompt=given)
    assert str(caught.value.param).startswith("prompt")


@pytest.mark.parametrize(
    ("api", "param"),
    [(Api.COMPLETIONS, "prompt"), (Api.EMBEDDINGS, "input"), (Api.RERANK, "query"), (Api.SCORE, "queries")],
)
def test_the_input_is_needed(api: Api, param: str) -> None:
    """A missing input is told apart from a mistyped one."""
    with pytest.raises(ApiError) as caught:
        reading(api)
    assert (caught.value.code, caught.value.param) == (f"missing_{param}", param)


def test_completions() -> None:
    """Sampling, structure, stream and reserved output as in chat."""
    found = reading(
        Api.COMPLETIONS,
        prompt=["a", "def f(): ```"],
        stream=True,
        stream_options={"include_usage": True},
        max_tokens=4,
        logprobs=2,
        guided_regex="a+",
    )
    facts = found.facts
    assert (facts.stream, facts.usage_in_stream, facts.max_output_tokens, facts.sampling.logprobs) == (
        True,
        True,
        4,
        True,
    )
    assert (facts.structured, facts.code_fence, found.texts.user) == (Structured.GRAMMAR, True, "def f(): ```")


def test_embeddings_reserve_no_output() -> None:
    """They generate nothing, so their context is the prompt."""
    assert reading(Api.EMBEDDINGS, input="x").facts.max_output_tokens == 0


@pytest.mark.parametrize("api", [Api.EMBEDDINGS, Api.TOKENIZE])
def test_conversations_in_place_of_text(api: Api) -> None:
    """vLLM takes messages there too."""
    found = reading(api, messages=[{"role": "user", "content": "hi"}], tools=[{"name": "f"}])
    assert (found.facts.api, found.texts.user, found.facts.tools) == (api, "hi", ("f",))
    assert (found.facts.max_output_tokens, found.facts.stream) == (0, False)


def test_tokens_of_anthropics_messages() -> None:
    """/v1/messages/count_tokens: the system text stands beside the messages, and counts."""
    result = {"type": "tool_result", "tool_use_id": "t", "content": "found"}
    messages = [{"role": "user", "content": "hi"}, {"role": "user", "content": [result]}]
    found = reading(Api.TOKENIZE, system="be brief", messages=messages, tools=[{"name": "f", "input_schema": {}}])
    assert (found.facts.api, found.texts.system, found.texts.user) == (Api.TOKENIZE, "be brief", "hi")
    assert found.facts.tools == ("f",)
    assert {"be brief", "hi", "found"} <= set(found.texts.parts)


def test_rerank() -> None:
    """A context holds the query and one document."""
    found = reading(Api.RERANK, query="which?", documents=["short", {"text": "a longer one"}, {"image": "data:"}])
    facts = found.facts
    assert found.texts.parts == ("which?", "short", "a longer one")
    assert (facts.text_bytes, facts.longest_bytes, facts.images) == (23, 6 + 12, 1)
    assert found.texts.user == "which?"
    parts = [{"type": "text", "text": "short"}, {"type": "image_url", "image_url": {"url": "data:"}}]
    facts = reading(Api.RERANK, query={"content": parts[:1]}, documents={"content": parts}).facts
    assert (facts.text_bytes, facts.longest_bytes, facts.images) == (10, 5 + 5, 1)
    with pytest.raises(ApiError):
        reading(Api.RERANK, query="which?", documents="short")


@pytest.mark.parametrize(
    "fields",
    [
        {"text_1": "ab", "text_2": ["c", "def"]},
        {"queries": ["ab"], "documents": ["c", "def"]},
        {"query": "ab", "items": ["c", "def"]},
        {"data_1": "ab", "data_2": {"content": [{"type": "text", "text": "c"}, {"type": "text", "text": "def"}]}},
    ],
)
def test_score_spellings(fields: dict[str, Any]) -> None:
    """Old and new names of the two sides."""
    facts = reading(Api.SCORE, **fields).facts
    assert (facts.text_bytes, facts.longest_bytes) == (6, 2 + 3)


def test_multimodal_inputs() -> None:
    """Objects with content blocks hold text and images."""
    found = reading(
        Api.EMBEDDINGS, input=[{"content": [{"type": "text", "text": "abc"}, {"type": "image_url", "image_url": {}}]}]
    )
    assert (found.facts.text_bytes, found.facts.images) == (3, 1)
    with pytest.raises(ApiError):
        reading(Api.EMBEDDINGS, input=[{"content": [3]}])


def test_tokenize_and_detokenize() -> None:
    """Prompt (vLLM), content (llama.cpp), tokens; all may be missing, which is the runtime's to judge."""
    assert reading(Api.TOKENIZE, prompt="abc").facts.text_bytes == 3
    assert reading(Api.TOKENIZE, content="abcd").facts.text_bytes == 4
    assert reading(Api.DETOKENIZE, tokens=[1, 2]).facts.text_bytes == 2
    assert reading(Api.DETOKENIZE).facts.text_bytes == 0
    with pytest.raises(ApiError):
        reading(Api.DETOKENIZE, tokens="x")
    with pytest.raises(ApiError):
        reading(Api.DETOKENIZE, tokens=[3, "x"])


def test_every_input_api_needs_a_model() -> None:
    """None of them routes without a name."""
    for api in (Api.COMPLETIONS, Api.EMBEDDINGS, Api.RERANK, Api.SCORE, Api.TOKENIZE, Api.DETOKENIZE):
        with pytest.raises(ApiError) as caught:
            read(api, b"{}")
        assert caught.value.code == "missing_model"


def test_counting_a_responses_request() -> None:
    """/v1/responses/input_tokens: instructions stand beside the input, and count."""
    found = reading(Api.TOKENIZE, instructions="be brief", input=[{"role": "user", "content": "hi"}], stream=True)
    assert (found.facts.api, found.facts.text_bytes, found.facts.stream) == (Api.TOKENIZE, 10, False)


@pytest.mark.parametrize(
    ("api", "fields", "wanted"),
    [
        (Api.EMBEDDINGS, {"input": "x", "truncate_prompt_tokens": 512}, True),
        (Api.EMBEDDINGS, {"input": "x", "truncate_prompt_tokens": None}, False),
        (Api.EMBEDDINGS, {"input": "x"}, False),
        (Api.RERANK, {"query": "q", "documents": ["x"], "max_tokens_per_doc": 100}, True),
        (Api.RESPONSES, {"input": "x", "truncation": "auto"}, True),
        (Api.RESPONSES, {"input": "x", "truncation": "disabled"}, False),
    ],
)
def test_runtimes_that_are_asked_to_cut(api: Api, fields: dict[str, Any], wanted: bool) -> None:
    """vLLM's field, its rerank's, and the Responses API's."""
    assert reading(api, **fields).facts.truncates is wanted
