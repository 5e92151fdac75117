"""Teacher-forced scoring without I/O: the calls that are made and the replies that are read.

The shapes of the replies are those of vLLM 0.32.0, SGLang 0.5.23 and llama.cpp b11549.
"""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.comparison.likelihood import FLOOR_NATS, TokenScores
from gateway.core.comparison.scoring import (
    Call,
    Reply,
    Scoring,
    ScoringError,
    ScoringProblem,
    score_answer,
    scoring_of,
)

CHAT = {"model": "alias", "messages": [{"role": "user", "content": "Capital?"}], "temperature": 0.7, "stream": True}
PROMPT = {"model": "alias", "prompt": "Capital? "}

Server = Callable[[Call], dict[str, Any]]


def drive(scoring: Scoring, request: dict[str, Any], answer: str, server: Server) -> tuple[list[Call], TokenScores]:
    """Run the steps against a runtime that answers from a function."""
    steps = score_answer(scoring, request, answer, "served-name")
    calls = [next(steps)]
    try:
        while True:
            calls.append(steps.send(Reply(200, json.dumps(server(calls[-1])).encode())))
    except StopIteration as done:
        return calls, done.value


def problem(scoring: Scoring, request: dict[str, Any], answer: str, *replies: Reply) -> ScoringProblem:
    """The problem that the steps end in."""
    with pytest.raises(ScoringError) as caught:
        steps = score_answer(scoring, request, answer, "m")
        next(steps)
        for reply in replies:
            steps.send(reply)
    return caught.value.problem


def test_capabilities_are_named_per_runtime() -> None:
    """What a runtime can do is known by its policy word; the others can do nothing that was verified."""
    assert [scoring_of(name) for name in ("vllm", "sglang", "llama.cpp", "tensorrt-llm", "openai")] == [
        Scoring.PROMPT_LOGPROBS, Scoring.INPUT_TOKEN_LOGPROBS, Scoring.FORCED_DECODING, Scoring.NONE, Scoring.NONE,
    ]  # fmt: skip


# vLLM


def _vllm_entry(token: int, logprob: float, text: str, **others: float) -> dict[str, Any]:
    entry = {str(token): {"logprob": logprob, "rank": 1, "decoded_token": text}}
    return entry | {number: {"logprob": value, "rank": 2, "decoded_token": "?"} for number, value in others.items()}


def test_vllm_scores_the_open_last_message() -> None:
    """One call: the answer as an unfinished assistant message, no alternatives, nothing generated that matters."""

    def server(call: Call) -> dict[str, Any]:
        return {
            "choices": [{"index": 0, "message": {"content": "."}, "finish_reason": "length"}],
            "prompt_logprobs": [
                None,
                _vllm_entry(10, -9.0, "Capital?"),
                _vllm_entry(11, -0.5, "assistant\n"),
                _vllm_entry(12, -0.25, "Par", **{"99": -0.1}),
                _vllm_entry(13, -0.75, "is"),
            ],
            "prompt_token_ids": [9, 10, 11, 12, 13],
        }

    (call,), scores = drive(Scoring.PROMPT_LOGPROBS, CHAT, "Paris", server)
    body = json.loads(call.body)
    assert call.path == "/v1/chat/completions"
    assert body["messages"] == [*CHAT["messages"], {"role": "assistant", "content": "Paris"}]  # type: ignore[misc]
    assert (body["model"], body["add_generation_prompt"], body["continue_final_message"]) == (
        "served-name",
        False,
        True,
    )
    assert (body["prompt_logprobs"], body["max_tokens"], body["stream"], body["temperature"]) == (0, 1, False, 0)
    assert scores == TokenScores((b"Par", b"is"), (-0.25, -0.75), (12, 13))


def test_vllm_scores_text_completions_in_the_choice() -> None:
    """For /v1/completions the scores stand in the choice, and the answer follows the prompt."""

    def server(call: Call) -> dict[str, Any]:
        logprobs = [None, _vllm_entry(2, -3.0, "? "), _vllm_entry(3, -0.5, "Paris")]
        return {"choices": [{"text": "x", "prompt_logprobs": logprobs, "prompt_token_ids": [1, 2, 3]}]}

    (call,), scores = drive(Scoring.PROMPT_LOGPROBS, PROMPT, "Paris", server)
    assert (call.path, json.loads(call.body)["prompt"]) == ("/v1/completions", "Capital? Paris")
    assert scores == TokenScores((b"Paris",), (-0.5,), (3,))


def test_vllm_finds_a_cut_character_by_token_numbers() -> None:
    """Where an emoji is cut into tokens the text does not tell the start, so the prompt is tokenized alone."""

    def server(call: Call) -> dict[str, Any]:
        if call.path == "/tokenize":
            return {"tokens": [1, 2], "count": 2}
        entries = [
            None,
            _vllm_entry(2, -3.0, "assistant\n"),
            _vllm_entry(3, -0.5, "Hi \ufffd"),
            _vllm_entry(4, -0.25, "\ufffd"),
        ]
        return {"choices": [], "prompt_logprobs": entries, "prompt_token_ids": [1, 2, 3, 4]}

    calls, scores = drive(Scoring.PROMPT_LOGPROBS, CHAT, "Hi 😀", server)
    assert [call.path for call in calls] == ["/v1/chat/completions", "/tokenize"]
    assert json.loads(calls[1].body)["messages"] == CHAT["messages"]
    assert (scores.logprobs, scores.ids) == ((-0.5, -0.25), (3, 4))


def test_tools_shape_the_prompt_and_are_not_called() -> None:
    """The template must see the tools, or the context would be another one; no call may be made."""
    tools = [{"type": "function", "function": {"name": "f"}}]

    def server(call: Call) -> dict[str, Any]:
        return {"prompt_logprobs": [None, _vllm_entry(1, -1.0, "ok")]}

    (call,), _ = drive(Scoring.PROMPT_LOGPROBS, {**CHAT, "tools": tools, "tool_choice": "required"}, "ok", server)
    assert (json.loads(call.body)["tools"], json.loads(call.body)["tool_choice"]) == (tools, "none")


# SGLang


def test_sglang_tokenizes_and_prefills() -> None:
    """Prompt and prompt-with-answer are tokenized; scores are asked from the last shared token on."""

    def server(call: Call) -> dict[str, Any]:
        body = json.loads(call.body)
        if call.path == "/tokenize":
            return {"tokens": [1, 2, 3] if len(body["messages"]) == 1 else [1, 2, 3, 4, 5], "count": 3}
        entries = [[None, 3, "assistant\n"], [-0.25, 4, "Par"], [-0.75, 5, "is"]]
        return {"text": ".", "meta_info": {"input_token_logprobs": entries, "prompt_tokens": 5}}

    calls, scores = drive(Scoring.INPUT_TOKEN_LOGPROBS, CHAT, "Paris", server)
    assert [call.path for call in calls] == ["/tokenize", "/tokenize", "/generate"]
    whole, generate = json.loads(calls[1].body), json.loads(calls[2].body)
    assert whole["messages"][-1] == {"role": "assistant", "content": "Paris"}
    assert whole["continue_final_message"] is True
    assert (generate["input_ids"], generate["logprob_start_len"]) == ([1, 2, 3, 4, 5], 2)
    assert (generate["return_logprob"], generate["return_text_in_logprobs"]) == (True, True)
    assert scores == TokenScores((b"Par", b"is"), (-0.25, -0.75), (4, 5))


def test_sglang_spells_fragments_and_is_trusted_by_place() -> None:
    """A character cut into tokens comes as U+FFFD; the place is known from the token numbers."""

    def server(call: Call) -> dict[str, Any]:
        if call.path == "/tokenize":
            return {"tokens": [1] if len(json.loads(call.body)["messages"]) == 1 else [1, 2, 3, 4]}
        entries = [[None, 1, "x"], [-1.0, 2, " \ufffd"], [-2.0, 3, "\ufffd"], [-3.0, 4, "<|im_end|>"]]
        return {"meta_info": {"input_token_logprobs": entries}}

    _, scores = drive(Scoring.INPUT_TOKEN_LOGPROBS, CHAT, " 😀", server)
    assert (scores.logprobs, scores.ids) == ((-1.0, -2.0), (2, 3))


# llama.cpp


def test_llama_cpp_decodes_the_answers_tokens() -> None:
    """The server renders and tokenizes; a grammar of token numbers leaves no choice; probabilities are before it."""

    def server(call: Call) -> dict[str, Any]:
        sent = json.loads(call.body)
        if call.path == "/apply-template":
            return {"prompt": "<|im_start|>assistant\n"}
        if call.path == "/tokenize":
            return {"tokens": [1, 520, 198] if sent["content"].endswith("\n") else [1, 520, 198, 12, 13, 14]}
        probabilities = [
            {"id": 12, "token": 'a "', "bytes": [97, 32, 34], "logprob": -0.5, "top_logprobs": []},
            {"id": 14, "token": "é", "bytes": [195, 169], "logprob": -0.125},
            {"id": 2, "token": "", "bytes": [], "logprob": -0.01},
        ]
        return {"content": 'a "é', "completion_probabilities": probabilities}

    calls, scores = drive(Scoring.FORCED_DECODING, CHAT, 'a "é', server)
    assert [call.path for call in calls] == ["/apply-template", "/tokenize", "/tokenize", "/completion"]
    body = json.loads(calls[3].body)
    assert (body["prompt"], body["grammar"]) == ([1, 520, 198], "root ::= <[12]> <[13]> <[14]>")
    assert (body["n_probs"], body["temperature"], body["n_predict"], body["post_sampling_probs"]) == (1, 0, 4, False)
    assert scores == TokenScores((b'a "', b"\xc3\xa9"), (-0.5, -0.125), (12, 14))


def test_llama_cpp_takes_a_plain_prompt_as_it_is() -> None:
    """A text completion has no template."""

    def server(call: Call) -> dict[str, Any]:
        if call.path == "/tokenize":
            return {"tokens": [5] if json.loads(call.body)["content"] == PROMPT["prompt"] else [5, 6]}
        return {"completion_probabilities": [{"id": 6, "token": "Paris", "logprob": -0.5}]}

    calls, scores = drive(Scoring.FORCED_DECODING, PROMPT, "Paris", server)
    assert [call.path for call in calls] == ["/tokenize", "/tokenize", "/completion"]
    assert scores == TokenScores((b"Paris",), (-0.5,), (6,))


# What goes wrong


def test_what_cannot_be_scored_is_said_before_the_first_call() -> None:
    """Runtimes without the capability, answers without text, and requests no template can continue."""
    assert problem(Scoring.NONE, CHAT, "x") is ScoringProblem.UNSUPPORTED_RUNTIME
    assert problem(Scoring.PROMPT_LOGPROBS, CHAT, " \n") is ScoringProblem.NO_TEXT
    assert problem(Scoring.PROMPT_LOGPROBS, {"input": "x"}, "x") is ScoringProblem.UNSUPPORTED_REQUEST
    image = {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:"}}]}]}
    assert problem(Scoring.FORCED_DECODING, image, "x") is ScoringProblem.UNSUPPORTED_REQUEST
    assert problem(Scoring.PROMPT_LOGPROBS, {**PROMPT, "prompt": "\ud83d"}, "x") is ScoringProblem.UNSUPPORTED_REQUEST


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (
            Reply(400, b'{"error": {"message": "Out of range float values are not JSON compliant"}}'),
            ScoringProblem.REFUSED,
        ),
        (Reply(200, b"<html>"), ScoringProblem.UNREADABLE),
        (
            Reply(200, b'{"prompt_logprobs": [null, {"1": {"logprob": "x", "decoded_token": "Paris"}}]}'),
            ScoringProblem.UNREADABLE,
        ),
    ],
)
def test_bad_replies_have_names(reply: Reply, expected: ScoringProblem) -> None:
    """A refusal (vLLM: its own numbers are NaN) and an unreadable reply are told apart."""
    assert problem(Scoring.PROMPT_LOGPROBS, CHAT, "Paris", reply) is expected


def test_scores_of_another_text_are_misaligned() -> None:
    """Tokens that do not spell the answer are never taken for it."""
    other = Reply(200, json.dumps({"prompt_logprobs": [None, _vllm_entry(1, -1.0, "Rome")]}).encode())
    assert problem(Scoring.PROMPT_LOGPROBS, CHAT, "Paris", other, Reply(200, b"{}")) is ScoringProblem.MISALIGNED
    same = Reply(200, b'{"tokens": [1, 2]}')
    assert problem(Scoring.INPUT_TOKEN_LOGPROBS, CHAT, "Paris", same, same) is ScoringProblem.MISALIGNED
    decoded = Reply(200, b'{"completion_probabilities": [{"id": 1, "token": "Rome", "logprob": -1.0}]}')
    tokens = Reply(200, b'{"tokens": [1]}'), Reply(200, b'{"tokens": [1, 2]}')
    assert problem(Scoring.FORCED_DECODING, PROMPT, "Paris", *tokens, decoded) is ScoringProblem.MISALIGNED
    assert problem(Scoring.FORCED_DECODING, PROMPT, "Paris", *tokens[:1] * 2) is ScoringProblem.MISALIGNED


def test_impossible_tokens_are_floored() -> None:
    """vLLM clamps -inf to -9999, others may write NaN: both are the floor."""

    def server(call: Call) -> dict[str, Any]:
        return {"prompt_logprobs": [None, _vllm_entry(1, -9999.0, "Par"), _vllm_entry(2, float("nan"), "is")]}

    _, scores = drive(Scoring.PROMPT_LOGPROBS, CHAT, "Paris", server)
    assert scores.logprobs == (FLOOR_NATS, FLOOR_NATS)


@given(st.binary(max_size=80), st.sampled_from(list(Scoring)), st.booleans())
def test_no_reply_breaks_the_steps(reply: bytes, scoring: Scoring, chat: bool) -> None:
    """Whatever a runtime sends back, the steps end in scores or in a named problem."""
    steps = score_answer(scoring, CHAT if chat else PROMPT, "Paris", "m")
    try:
        next(steps)
        for _ in range(5):
            steps.send(Reply(200, reply))
    except (ScoringError, StopIteration):
        return
    pytest.fail("the steps never ended")
