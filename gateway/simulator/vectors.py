"""Embeddings, rerank and score: numbers that follow from the words, so similar texts come out similar.

Owns those three APIs' JSON. Pure. ``routes`` calls it.
"""

import base64
import re
from collections.abc import Mapping
from math import sqrt
from struct import pack
from typing import Any
from zlib import crc32

import orjson

from gateway.simulator.ask import BadAskError

_WORDS = re.compile(r"\w+")
_WORDS_SEEN = 4096


def embedding(text: str, dimensions: int) -> list[float]:
    """A unit vector: each word adds to three places that its hash picks."""
    vector = [0.0] * dimensions
    for word in _WORDS.findall(text.lower())[:_WORDS_SEEN] or [text]:
        code = crc32(word.encode("utf-8", "surrogatepass"))
        for turn in range(3):
            sign = 1.0 if code >> (turn + 28) & 1 else -1.0
            vector[(code >> (8 * turn)) % dimensions] += sign
    norm = sqrt(sum(value * value for value in vector)) or 1.0
    return [value / norm for value in vector]


def similarity(first: str, second: str) -> float:
    """0..1: how many of the first text's words the second holds, with a little for nearness in length."""
    left, right = set(_WORDS.findall(first.lower())), set(_WORDS.findall(second.lower()))
    shared = len(left & right) / len(left) if left else 0.0
    return round(0.05 + 0.9 * shared + 0.05 / (1 + abs(len(left) - len(right))), 6)


def _inputs(value: object, field: str) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, list) and value:
        if all(isinstance(item, int) for item in value):
            return [" ".join(map(str, value))]
        texts = [item.get("text") if isinstance(item, dict) else item for item in value]
        return [text if isinstance(text, str) else " ".join(map(str, text or ())) for text in texts]
    raise BadAskError(f"Field required: {field}", field)


def _tokens(texts: list[str], bytes_per_token: int) -> int:
    return sum(-(-len(text.encode("utf-8", "surrogatepass")) // bytes_per_token) for text in texts)


def embeddings(
    body: Mapping[str, Any], frame_id: str, created: int, dimensions: int, per_token: int
) -> tuple[bytes, int]:
    """(body, prompt tokens) of an embeddings answer, as floats or base64 of little-endian float32."""
    texts = _inputs(body.get("input"), "input")
    wanted = body.get("dimensions")
    size = wanted if isinstance(wanted, int) and 0 < wanted <= dimensions else dimensions
    tokens = _tokens(texts, per_token)
    data: list[dict[str, Any]] = []
    for index, text in enumerate(texts):
        vector: list[float] | str = embedding(text, size)
        if body.get("encoding_format") == "base64":
            vector = base64.b64encode(pack(f"<{size}f", *vector)).decode()
        data.append({"index": index, "object": "embedding", "embedding": vector})
    usage = {"prompt_tokens": tokens, "total_tokens": tokens, "completion_tokens": 0, "prompt_tokens_details": None}
    answer = {
        "id": f"embd-{frame_id}",
        "object": "list",
        "created": created,
        "model": body.get("model"),
        "data": data,
        "usage": usage,
    }
    return orjson.dumps(answer), tokens


def rerank(body: Mapping[str, Any], frame_id: str, per_token: int) -> tuple[bytes, int]:
    """(body, prompt tokens) of a rerank answer: best first, ``top_n`` of them."""
    query = _inputs(body.get("query"), "query")[0]
    documents = _inputs(body.get("documents"), "documents")
    tokens = _tokens([query, *documents], per_token)
    ranked = sorted(((similarity(query, text), -index) for index, text in enumerate(documents)), reverse=True)
    top = body.get("top_n")
    kept = ranked[:top] if isinstance(top, int) and top > 0 else ranked
    results = [
        {"index": -index, "document": {"text": documents[-index], "multi_modal": None}, "relevance_score": score}
        for score, index in kept
    ]
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return orjson.dumps(
        {"id": f"rerank-{frame_id}", "model": body.get("model"), "usage": usage, "results": results}
    ), tokens


def score(body: Mapping[str, Any], frame_id: str, created: int, per_token: int) -> tuple[bytes, int]:
    """(body, prompt tokens) of a score answer; one text against many, or pair by pair."""
    first = _inputs(body.get("text_1", body.get("queries", body.get("data_1"))), "text_1")
    second = _inputs(body.get("text_2", body.get("documents", body.get("data_2"))), "text_2")
    if len(first) == 1:
        first = first * len(second)
    if len(first) != len(second):
        raise BadAskError("Input lengths must be either 1:1, 1:N or N:N", "text_1")
    tokens = _tokens([*first, *second], per_token)
    data = [
        {"index": index, "object": "score", "score": similarity(*pair)}
        for index, pair in enumerate(zip(first, second, strict=True))
    ]
    usage = {"prompt_tokens": tokens, "total_tokens": tokens, "completion_tokens": 0, "prompt_tokens_details": None}
    answer = {
        "id": f"score-{frame_id}",
        "object": "list",
        "created": created,
        "model": body.get("model"),
        "data": data,
        "usage": usage,
    }
    return orjson.dumps(answer), tokens
