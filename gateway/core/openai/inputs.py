"""APIs whose prompt is not a conversation: completions, embeddings, rerank, score, tokenize, detokenize, speech.

Many of them carry several independent inputs. ``Facts.longest_bytes`` is the largest of them, because each must fit
into the context on its own, while ``text_bytes`` is their sum, which is what rate limits count. Token ids that a client
sends instead of text count as one byte each, so that bytes stay an upper bound of tokens.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

from gateway.core.openai import gather, output
from gateway.core.openai.chat import read_chat
from gateway.core.openai.fields import flag, items, model_of, wrong
from gateway.core.openai.messages import read_messages
from gateway.core.openai.parse import Json
from gateway.core.openai.responses import read_responses
from gateway.errors import ApiError
from gateway.model.enums import Api, Structured
from gateway.model.facts import Facts, Reading, Texts


class _Inputs:
    """Independent inputs: their texts, sizes, and how many token ids came in place of text."""

    __slots__ = ("count", "ids", "images", "longest", "parts")

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.ids = 0
        self.longest = 0
        self.count = 0
        self.images = 0

    def take(self, value: Any, param: str) -> None:
        """A string, an array of strings, of token ids, or of arrays of token ids; objects with text or images."""
        if type(value) is list:
            if value and type(value[0]) is int:
                self._add_ids(value, param)
                return
            for index, item in enumerate(value):
                if type(item) is list:
                    self._add_ids(item, f"{param}[{index}]")
                else:
                    self._add(item, f"{param}[{index}]")
        elif value is not None:
            self._add(value, param)

    def _add(self, value: Any, param: str) -> None:
        self.count += 1
        if type(value) is str:
            self._add_text(value)
        elif type(value) is dict:
            self._add_object(value, param)
        else:
            raise wrong(param, "a string, an object with text, or an array of token ids")

    def _add_text(self, value: str) -> None:
        self.parts.append(value)
        self.longest = max(self.longest, gather.size_bytes([value]))

    def _add_object(self, value: Json, param: str) -> None:
        content = value.get("content")
        for block in content if type(content) is list else [value]:
            if type(block) is not dict:
                raise wrong(param, "a string or an object")
            text = block.get("text")
            if type(text) is str:
                self._add_text(text)
            elif "image" in block or "image_url" in block:
                self.images += 1

    def _add_ids(self, value: list[Any], param: str) -> None:
        if set(map(type, value)) - {int}:
            raise wrong(param, "an array of whole numbers")
        self.count += 1
        self.ids += len(value)
        self.longest = max(self.longest, len(value))


def _reading(
    api: Api,
    body: Json,
    inputs: _Inputs,
    session: bytes | None,
    *,
    user: str,
    system: str = "",
    shared_bytes: int = 0,
    output_tokens: int | None = None,
    usage: bool | None = None,
    structured: Structured = Structured.NONE,
    streams: bool = False,
) -> Reading:
    model = body["model"]
    clipped = gather.clip(user)
    fence, table, cited = gather.marks(clipped)
    digest, named = gather.conversation_of(
        session, body.get("prompt_cache_key"), body.get("user"), model=model, system="", first=user
    )
    facts = Facts(
        api=api,
        model=model,
        stream=flag(body, "stream") or streams,
        usage_in_stream=usage,
        max_output_tokens=output_tokens,
        text_bytes=gather.size_bytes(inputs.parts) + inputs.ids,
        messages=inputs.count,
        turns=1,
        structured=structured,
        sampling=output.sampling_of(body),
        images=inputs.images,
        code_fence=fence,
        table=table,
        citations=cited,
        task_hint=output.task_hint(body),
        conversation=digest,
        session=named,
        longest_bytes=inputs.longest + shared_bytes if inputs.count > 1 else 0,
        truncates=output.truncates(body),
    )
    return Reading(facts, Texts(gather.join([system]) if system else "", clipped, tuple(inputs.parts)))


def read_completions(body: Json, session: bytes | None) -> Reading:
    """``prompt`` in its four forms."""
    model_of(body)
    inputs = _needed(body, "prompt")
    return _reading(
        Api.COMPLETIONS,
        body,
        inputs,
        session,
        user=inputs.parts[-1] if inputs.parts else "",
        output_tokens=output.reserved(body, "max_tokens"),
        usage=output.usage_in_stream(body),
        structured=output.structured_of(body),
    )


def read_embeddings(body: Json, session: bytes | None) -> Reading:
    """``input`` in its four forms, or ``messages`` as vLLM takes them."""
    model_of(body)
    if body.get("input") is None and body.get("messages") is not None:
        return _as_conversation(Api.EMBEDDINGS, read_chat, body, session)
    inputs = _needed(body, "input")
    return _reading(
        Api.EMBEDDINGS, body, inputs, session, user=inputs.parts[0] if inputs.parts else "", output_tokens=0
    )


def read_rerank(body: Json, session: bytes | None) -> Reading:
    """``query`` against each of ``documents``, or of one object's content parts: every pair is one context."""
    model_of(body)
    query = _needed(body, "query")
    given = body.get("documents")
    documents = given if type(given) is dict else items(body, "documents")
    query_bytes = query.longest
    query.take(documents, "documents")
    return _reading(
        Api.RERANK,
        body,
        query,
        session,
        user=query.parts[0] if query.parts else "",
        shared_bytes=query_bytes,
        output_tokens=0,
    )


def read_score(body: Json, session: bytes | None) -> Reading:
    """``text_1`` against ``text_2``; in newer runtimes also ``data_1`` against ``data_2``, and ``queries`` against
    ``items`` or ``documents``."""
    model_of(body)
    left, right = ("text_1", "text_2") if "text_1" in body else ("queries", "documents")
    if "data_1" in body:
        left, right = "data_1", "data_2"
    if "query" in body:
        left = "query"
    if "items" in body:
        right = "items"
    inputs = _needed(body, left)
    left_bytes = inputs.longest
    inputs.take(body.get(right), right)
    user = inputs.parts[0] if inputs.parts else ""
    return _reading(Api.SCORE, body, inputs, session, user=user, shared_bytes=left_bytes, output_tokens=0)


def read_tokenize(body: Json, session: bytes | None) -> Reading:
    """``prompt`` (vLLM), ``content`` (llama.cpp) or ``messages``; with ``system`` beside them they are Anthropic's.
    ``input``: a Responses request."""
    model_of(body)
    if body.get("input") is not None:
        return _as_conversation(Api.TOKENIZE, read_responses, body, session)
    if body.get("messages") is not None:
        return _as_conversation(Api.TOKENIZE, read_messages if "system" in body else read_chat, body, session)
    inputs = _Inputs()
    inputs.take(body.get("prompt"), "prompt")
    inputs.take(body.get("content"), "content")
    return _reading(Api.TOKENIZE, body, inputs, session, user="", output_tokens=0)


def read_detokenize(body: Json, session: bytes | None) -> Reading:
    """``tokens``: token ids."""
    model_of(body)
    inputs = _Inputs()
    inputs.take(items(body, "tokens"), "tokens")
    return _reading(Api.DETOKENIZE, body, inputs, session, user="", output_tokens=0)


def read_speech(body: Json, session: bytes | None) -> Reading:
    """``/v1/audio/speech``: text in, audio out; as events where ``stream_format`` asks for them."""
    model_of(body)
    inputs = _Inputs()
    inputs.take(body.get("input"), "input")
    streams = body.get("stream_format") == "sse"
    return _reading(Api.AUDIO, body, inputs, session, user="", output_tokens=0, streams=streams)


def _as_conversation(
    api: Api, read: Callable[[Json, bytes | None], Reading], body: Json, session: bytes | None
) -> Reading:
    reading = read(body, session)
    facts = dataclasses.replace(reading.facts, api=api, stream=False, max_output_tokens=0)
    return Reading(facts, reading.texts)


def _needed(body: Json, key: str) -> _Inputs:
    inputs = _Inputs()
    value = body.get(key)
    if value is None:
        raise ApiError(400, f"missing_{key}", f"The request has no '{key}'.", param=key)
    inputs.take(value, key)
    return inputs
