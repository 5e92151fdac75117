"""Chat completions and completions, as bodies and as chunks."""

import json
from typing import Any

import pytest

from gateway.core.assemble import assemble
from gateway.model.enums import Api
from tests.unit.core.assemble.streams import FIN, USER, assembled, chunk


def test_text_reasoning_usage_and_end_of_a_stream() -> None:
    """Deltas join; reasoning is read under both names; the usage chunk and [DONE] are noticed."""
    usage = {
        "choices": [],
        "usage": {"prompt_tokens": 3, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 2}},
    }
    answer = assembled(
        chunk({"role": "assistant", "content": None}),
        chunk({"reasoning": "th"}),
        chunk({"reasoning_content": "ink"}),
        chunk({"content": "hel"}),
        chunk({"content": "lo"}),
        FIN,
        usage,
    )
    choice = answer.choices[0]
    assert (choice.text, choice.reasoning, choice.finish_reason) == ("hello", "think", "stop")
    assert answer.usage is not None
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens, answer.usage.cached_tokens) == (3, 5, 2)
    assert answer.done
    assert not answer.truncated
    assert answer.streamed


@pytest.mark.parametrize("extra", [{"choices": []}, {"choices": None}, {}])
def test_usage_chunk_without_choices(extra: dict[str, Any]) -> None:
    """B22: empty, null or absent choices in the usage chunk are all the same."""
    answer = assembled(chunk({"content": "a"}), FIN, {**extra, "usage": {"completion_tokens": 1}})
    assert answer.choices[0].text == "a"
    assert answer.usage is not None
    assert answer.usage.completion_tokens == 1


def test_choices_keep_their_index() -> None:
    """B37: interleaved choices stay apart and in order of index."""
    answer = assembled(
        chunk({"content": "be"}, index=1),
        chunk({"content": "al"}),
        chunk({"content": "ta"}, "stop", 1),
        chunk({"content": "pha"}, "stop"),
    )
    assert [choice.text for choice in answer.choices] == ["alpha", "beta"]


def test_content_after_finish_is_noticed() -> None:
    """Text that follows finish_reason marks the choice; an empty delta does not."""
    assert assembled(chunk({"content": "a"}), FIN, chunk({"content": "b"})).choices[0].after_finish
    assert not assembled(chunk({"content": "a"}), FIN, chunk({"content": ""})).choices[0].after_finish


def test_body_of_chat_and_completions() -> None:
    """Whole bodies of both APIs."""
    body = {
        "choices": [
            {
                "index": 0,
                "message": {"content": "hi", "reasoning": "r"},
                "finish_reason": "stop",
                "logprobs": {"content": []},
            }
        ]
    }
    choice = assemble(USER, json.dumps(body).encode()).choices[0]
    assert (choice.text, choice.reasoning, choice.finish_reason, choice.logprobs) == ("hi", "r", "stop", True)
    old = {"object": "text_completion", "choices": [{"index": 0, "text": "hi", "finish_reason": "length"}]}
    answer = assemble({"prompt": "x"}, json.dumps(old).encode())
    assert (answer.api, answer.choices[0].text, answer.choices[0].finish_reason) == (Api.COMPLETIONS, "hi", "length")


def test_minus_infinity_in_logprobs() -> None:
    """B40: -Infinity does not lose the body."""
    assert (
        assemble(USER, b'{"choices":[{"index":0,"message":{"content":"a"},"logprobs":{"x":-Infinity}}]}')
        .choices[0]
        .text
        == "a"
    )
