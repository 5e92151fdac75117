"""Teacher-forced scoring, sans I/O: what to ask a runtime so that it scores a given answer, and how to read its reply.

Owns the requests and replies of each runtime that can do it. Must not send anything: `score_answer` is a generator that
yields a `Call`, is sent the `Reply`, and returns `TokenScores` or raises `ScoringError`. Driven by the shadow legs.

Three capabilities, by the name of what the runtime offers:

- ``prompt_logprobs`` (vLLM): the answer is sent as the open last message; one prefill, one call.
- ``input_token_logprobs`` (SGLang): its chat API gives no prompt scores, its ``/generate`` takes token ids: two calls
  of ``/tokenize`` and one prefill.
- ``forced_decoding`` (llama.cpp): the server has no prompt scores ("Only no echo is supported"), but a grammar of token
  numbers makes it decode exactly the answer's tokens, and ``n_probs`` reports the probabilities before the grammar.
  Costs one decode step per token. Tokens that are only part of a character are not reported. (A grammar of text would
  let each pool choose its own cut of the text, and a rare cut looks like a rare answer.)
"""

import math
from collections.abc import Generator, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final

import msgspec
import orjson

from gateway.core.assemble.exact_json import JsonProblemError, parse_envelope
from gateway.core.assemble.parts import as_list, as_object, as_text
from gateway.core.comparison.likelihood import FLOOR_NATS, TokenScores
from gateway.core.comparison.spelling import Token, find_answer, shared_length, trust_tail
from gateway.core.comparison.text import joined

SCORED_CHARS: Final = 32_768
"""Characters of an answer that are scored by prefill."""

DECODED_CHARS: Final = 4_096
"""Characters that are scored where each token costs a decode step."""

_KEPT_FIELDS: Final = ("messages", "tools", "chat_template_kwargs", "documents")


class Scoring(StrEnum):
    """How a runtime can score a given answer."""

    PROMPT_LOGPROBS = "prompt_logprobs"
    INPUT_TOKEN_LOGPROBS = "input_token_logprobs"  # noqa: S105 (the runtime's own field name, no secret)
    FORCED_DECODING = "forced_decoding"
    NONE = "none"


class ScoringProblem(StrEnum):
    """Why an answer was not scored."""

    UNSUPPORTED_RUNTIME = "unsupported_runtime"
    UNSUPPORTED_REQUEST = "unsupported_request"  # not chat or text completion, or not all text
    NO_TEXT = "no_text"  # the answer is only tool calls, or empty
    REFUSED = "refused"  # the runtime answered with an error; vLLM does so when its own numbers are NaN
    UNREADABLE = "unreadable"
    MISALIGNED = "misaligned"  # the scored tokens do not spell the answer


class ScoringError(Exception):
    """An answer could not be scored; ``problem`` is the label."""

    def __init__(self, problem: ScoringProblem, detail: str = "") -> None:
        super().__init__(f"{problem}: {detail}" if detail else str(problem))
        self.problem = problem


class Call(msgspec.Struct, frozen=True):
    """A POST to make: path below the endpoint's base URL, JSON body."""

    path: str
    body: bytes


class Reply(msgspec.Struct, frozen=True):
    """What came back, whole."""

    status: int
    body: bytes


Steps = Generator[Call, Reply, TokenScores]

_CAPABILITIES: Final[Mapping[str, Scoring]] = MappingProxyType(
    {
        "vllm": Scoring.PROMPT_LOGPROBS,
        "sglang": Scoring.INPUT_TOKEN_LOGPROBS,
        "llama.cpp": Scoring.FORCED_DECODING,
    }
)


def scoring_of(runtime: str) -> Scoring:
    """What a runtime (policy spelling) can do; the others have no way that was verified."""
    return _CAPABILITIES.get(runtime, Scoring.NONE)


def score_answer(scoring: Scoring, request: Mapping[str, Any], answer: str, model: str) -> Steps:
    """Score ``answer`` as the answer to ``request`` (a chat or text completion body) under one pool.

    ``model`` is what the pool calls the model. Only the text is scored: reasoning is left out of the context on both
    pools alike, tool calls cannot be continued by a template. Raises `ScoringError` before the first call where the
    request or the runtime rules it out.
    """
    steps = _STEPS.get(scoring)
    if steps is None:
        raise ScoringError(ScoringProblem.UNSUPPORTED_RUNTIME)
    text = joined(answer)[: DECODED_CHARS if scoring is Scoring.FORCED_DECODING else SCORED_CHARS]
    if not text.strip():
        raise ScoringError(ScoringProblem.NO_TEXT)
    chat = isinstance(request.get("messages"), list)
    if not chat and not isinstance(request.get("prompt"), str):
        raise ScoringError(ScoringProblem.UNSUPPORTED_REQUEST)
    if scoring is not Scoring.PROMPT_LOGPROBS and not all(
        _is_text(message) for message in as_list(request.get("messages"))
    ):
        raise ScoringError(ScoringProblem.UNSUPPORTED_REQUEST, "a message holds more than text")
    return (yield from steps(request, text, model))


def _score_by_prompt_logprobs(request: Mapping[str, Any], answer: str, model: str) -> Steps:
    common = {
        "model": model,
        "max_tokens": 1,  # vLLM refuses 0 in chat
        "temperature": 0,
        "prompt_logprobs": 0,  # 0 = no alternatives, only the tokens that are there
        "return_token_ids": True,
        "stream": False,
    }
    if "messages" in request:
        body = _template_fields(request) | common
        body["messages"] = [*request["messages"], {"role": "assistant", "content": answer}]
        body |= {"add_generation_prompt": False, "continue_final_message": True}
        found = _read((yield _call("/v1/chat/completions", body)))
        before = _template_fields(request) | {"model": model}
    else:
        body = common | {"prompt": request["prompt"] + answer}
        reply = _read((yield _call("/v1/completions", body)))
        found = as_object(next(iter(as_list(reply.get("choices"))), None))
        before = {"model": model, "prompt": request["prompt"]}
    tokens = _prompt_logprobs(as_list(found.get("prompt_logprobs")), as_list(found.get("prompt_token_ids")))
    scores = find_answer(tokens, answer)
    if scores is None:  # a character cut into several tokens: the text does not show where the answer starts
        ids = as_list(_read((yield _call("/tokenize", before))).get("tokens"))
        start = shared_length([str(number) for number in ids[1:]], [str(token.id) for token in tokens])
        scores = trust_tail(tokens[start:], answer)
    return _found(scores)


def _prompt_logprobs(entries: list[Any], ids: list[Any]) -> list[Token]:
    """vLLM: a list of None or {token id: {logprob, rank, decoded_token}}, the prompt's own token first."""
    found: list[Token] = []
    for at, entry in enumerate(entries):
        options = as_object(entry)
        if not options:
            continue  # the first token has no context, so no probability
        own = str(ids[at]) if at < len(ids) and str(ids[at]) in options else next(iter(options))
        option = as_object(options[own])
        found.append(Token(as_text(option.get("decoded_token")), _logprob(option.get("logprob")), _token_id(own)))
    return found


def _score_by_input_token_logprobs(request: Mapping[str, Any], answer: str, model: str) -> Steps:
    if "messages" in request:
        fields = _template_fields(request) | {"model": model}
        final = {"role": "assistant", "content": answer}
        whole = fields | {"messages": [*request["messages"], final], "continue_final_message": True}
    else:
        fields = {"model": model, "prompt": request["prompt"]}
        whole = fields | {"prompt": request["prompt"] + answer}
    before = as_list(_read((yield _call("/tokenize", fields))).get("tokens"))
    ids = as_list(_read((yield _call("/tokenize", whole))).get("tokens"))
    shared = shared_length(before, ids)
    if not ids or shared == len(ids):
        raise ScoringError(ScoringProblem.MISALIGNED, "the tokenizer adds nothing for the answer")
    body = {
        "input_ids": ids,
        "sampling_params": {"max_new_tokens": 1, "temperature": 0},
        "return_logprob": True,
        "return_text_in_logprobs": True,
        "logprob_start_len": max(shared - 1, 0),  # the entry at the start itself is always null
        "stream": False,
    }
    meta = as_object(_read((yield _call("/generate", body))).get("meta_info"))
    tokens: list[Token] = []
    for entry in as_list(meta.get("input_token_logprobs")):
        logprob, number, text = (*as_list(entry), None, None, None)[:3]
        if logprob is not None:
            tokens.append(Token(as_text(text), _logprob(logprob), _token_id(number)))
    return _found(find_answer(tokens, answer) or trust_tail(tokens, answer))


def _score_by_forced_decoding(request: Mapping[str, Any], answer: str, model: str) -> Steps:
    if "messages" in request:
        rendered = _read((yield _call("/apply-template", _template_fields(request) | {"model": model})))
        prompt = as_text(rendered.get("prompt"))
    else:
        prompt = as_text(request["prompt"])
    fields = {"add_special": True, "parse_special": True}
    before = as_list(_read((yield _call("/tokenize", fields | {"content": prompt}))).get("tokens"))
    ids = as_list(_read((yield _call("/tokenize", fields | {"content": prompt + answer}))).get("tokens"))
    shared = shared_length(before, ids)
    forced = [_token_id(number) for number in ids[shared:]]
    if not forced or min(forced) < 0:
        raise ScoringError(ScoringProblem.MISALIGNED, "the tokenizer adds nothing for the answer")
    body = {
        "prompt": ids[:shared],
        "grammar": "root ::= " + " ".join(f"<[{number}]>" for number in forced),
        "n_predict": len(forced) + 1,  # one more for the end of text
        "temperature": 0,
        "n_probs": 1,
        "post_sampling_probs": False,
        "stream": False,
    }
    found = _read((yield _call("/completion", body)))
    return _decoded(as_list(found.get("completion_probabilities")), answer)


def _decoded(probabilities: list[Any], answer: str) -> TokenScores:
    """llama.cpp: a list of {id, token, bytes, logprob}; the bytes of a cut character stand at its last token."""
    pieces: list[bytes] = []
    logprobs: list[float] = []
    ids: list[int] = []
    for entry in map(as_object, probabilities):
        piece = _bytes(entry.get("bytes"), entry.get("token"))
        if piece:  # the end-of-text token spells nothing
            pieces.append(piece)
            logprobs.append(_logprob(entry.get("logprob")))
            ids.append(_token_id(entry.get("id")))
    if not pieces or not answer.encode().endswith(b"".join(pieces)):
        raise ScoringError(ScoringProblem.MISALIGNED, "the pool did not decode the given text")
    return TokenScores(tuple(pieces), tuple(logprobs), tuple(ids))


_STEPS: Final = {
    Scoring.PROMPT_LOGPROBS: _score_by_prompt_logprobs,
    Scoring.INPUT_TOKEN_LOGPROBS: _score_by_input_token_logprobs,
    Scoring.FORCED_DECODING: _score_by_forced_decoding,
}


def _found(scores: TokenScores | None) -> TokenScores:
    if scores is None:
        raise ScoringError(ScoringProblem.MISALIGNED, "the scored tokens do not spell the answer")
    return scores


def _template_fields(request: Mapping[str, Any]) -> dict[str, Any]:
    """What decides the rendered prompt. Tools are rendered, but none may be called."""
    fields = {name: request[name] for name in _KEPT_FIELDS if name in request}
    return fields | {"tool_choice": "none"} if fields.get("tools") else fields


def _is_text(message: Any) -> bool:
    content = as_object(message).get("content")
    return not isinstance(content, list) or all(as_object(part).get("type") == "text" for part in content)


def _call(path: str, body: dict[str, Any]) -> Call:
    try:
        return Call(path, orjson.dumps(body))
    except TypeError:  # a lone surrogate or an integer beyond 64 bits in the request
        raise ScoringError(ScoringProblem.UNSUPPORTED_REQUEST, "the request cannot be spelled as JSON") from None


def _read(reply: Reply) -> dict[str, Any]:
    if reply.status != 200:
        raise ScoringError(ScoringProblem.REFUSED, f"HTTP {reply.status}")
    try:
        found = parse_envelope(reply.body)
    except JsonProblemError:
        raise ScoringError(ScoringProblem.UNREADABLE) from None
    return as_object(found)


def _logprob(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ScoringError(ScoringProblem.UNREADABLE, "a log-probability is no number")
    number = float(value)
    return FLOOR_NATS if math.isnan(number) else max(number, FLOOR_NATS)  # NaN: the pool has no opinion left


def _token_id(value: Any) -> int:
    text = str(value)
    return int(text) if text.isdecimal() and len(text) < 12 else -1


def _bytes(value: Any, text: Any) -> bytes:
    if isinstance(value, list) and all(isinstance(item, int) and 0 <= item < 256 for item in value):
        return bytes(value)
    return joined(as_text(text)).encode()
