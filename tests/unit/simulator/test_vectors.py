"""Embeddings, rerank, score."""

import base64
import json
from struct import unpack
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.simulator.ask import BadAskError
from gateway.simulator.vectors import embedding, embeddings, rerank, score, similarity


def _dot(first: str, second: str) -> float:
    return sum(a * b for a, b in zip(embedding(first, 128), embedding(second, 128), strict=True))


@given(st.text(max_size=100))
def test_embeddings_are_unit_vectors(text: str) -> None:
    """Length one, and the same for the same text."""
    vector = embedding(text, 64)
    assert sum(value * value for value in vector) == pytest.approx(1.0)
    assert embedding(text, 64) == vector


def test_similar_texts_are_near() -> None:
    """Shared words bring vectors and scores together."""
    assert _dot("the cat sleeps", "a cat sleeps") > _dot("the cat sleeps", "stock prices fell")
    assert similarity("cat sleeps", "the cat sleeps") > similarity("cat sleeps", "prices fell")
    assert 0 <= similarity("", "x") <= 1


def test_both_encodings_hold_the_same_numbers() -> None:
    """base64 is little-endian float32 of the floats; dimensions shortens both."""
    body: dict[str, Any] = {"model": "m", "input": ["hello world"], "dimensions": 32}
    plain = json.loads(embeddings(body, "1", 1, 64, 4)[0])["data"][0]["embedding"]
    packed = json.loads(embeddings({**body, "encoding_format": "base64"}, "1", 1, 64, 4)[0])["data"][0]["embedding"]
    assert unpack("<32f", base64.b64decode(packed)) == pytest.approx(plain, rel=1e-6)


def test_usage_is_of_all_inputs() -> None:
    """Tokens of every text, by the one rule."""
    body, tokens = embeddings({"input": ["x" * 8, "y" * 4]}, "1", 1, 8, 4)
    assert (tokens, json.loads(body)["usage"]["prompt_tokens"]) == (3, 3)
    assert embeddings({"input": [1, 2, 3]}, "1", 1, 8, 4)[1] > 0


def test_rerank_puts_the_best_first() -> None:
    """Results are sorted by relevance, keep their index, and are cut to top_n."""
    body = {"query": "cat", "documents": ["prices fell", "the cat sleeps", {"text": "a cat"}], "top_n": 2}
    results = json.loads(rerank(body, "1", 4)[0])["results"]
    assert {result["index"] for result in results} == {1, 2}
    assert results[0]["relevance_score"] >= results[1]["relevance_score"]


def test_score_pairs() -> None:
    """One against many, or pair by pair; other lengths are refused."""
    one = json.loads(score({"text_1": "cat", "text_2": ["cat", "dog"]}, "1", 1, 4)[0])["data"]
    assert one[0]["score"] > one[1]["score"]
    assert len(json.loads(score({"text_1": ["a", "b"], "text_2": ["a", "b"]}, "1", 1, 4)[0])["data"]) == 2
    with pytest.raises(BadAskError):
        score({"text_1": ["a", "b"], "text_2": ["a", "b", "c"]}, "1", 1, 4)
    with pytest.raises(BadAskError):
        embeddings({}, "1", 1, 8, 4)
