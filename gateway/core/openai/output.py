"""What a request says about its output: structure, sampling, reserved length, usage in the stream.

Runtimes spell structured output in many ways besides ``response_format``; all that one of them may act on are read.
"""

from typing import Any, Final

from gateway.core.openai.fields import flag, members, number, whole, wrong
from gateway.core.openai.parse import Json
from gateway.model.enums import Structured
from gateway.model.facts import PLAIN, Sampling

_FORMATS: Final = {
    "text": Structured.NONE,
    "json_object": Structured.JSON_OBJECT,
    "json": Structured.JSON_OBJECT,
    "json_schema": Structured.JSON_SCHEMA,
}
# Top-level fields of vLLM, SGLang, llama.cpp and LightLLM.
_GUIDES: Final = {
    "guided_json": Structured.JSON_SCHEMA,
    "json_schema": Structured.JSON_SCHEMA,
    "guided_regex": Structured.GRAMMAR,
    "guided_choice": Structured.GRAMMAR,
    "guided_grammar": Structured.GRAMMAR,
    "grammar": Structured.GRAMMAR,
    "regex": Structured.GRAMMAR,
    "ebnf": Structured.GRAMMAR,
    "structured_outputs": Structured.GRAMMAR,
}
_GUIDE_KEYS: Final[tuple[str, ...]] = tuple(_GUIDES)
_UNGUIDED: Final = Structured.NONE
_SAMPLING_KEYS: Final[tuple[str, ...]] = ("seed", "temperature", "top_p", "n", "logprobs", "top_logprobs")
# vLLM's, its rerank's, and the Responses API's.
_TRUNCATION_KEYS: Final[tuple[str, ...]] = ("truncate_prompt_tokens", "max_tokens_per_doc", "truncation")


def _names(body: Json, keys: tuple[str, ...]) -> bool:
    """Whether the body has one of these fields. Nearly always it has not, and this asks cheaper than ``isdisjoint``."""
    for key in keys:  # noqa: SIM110 - a generator costs more than the keys
        if key in body:
            return True
    return False


def structured_of(body: Json) -> Structured:
    """The structure asked for by ``response_format`` or by a runtime's own field."""
    found = _UNGUIDED
    chosen = body.get("response_format")
    if chosen is not None:
        found = format_of(chosen, "response_format")
    if found is _UNGUIDED and _names(body, _GUIDE_KEYS):
        for key, structured in _GUIDES.items():
            value = body.get(key)
            if value is None:
                continue
            if key == "structured_outputs" and type(value) is dict and value.get("json") is not None:
                return Structured.JSON_SCHEMA
            return structured
    return found


def format_of(chosen: Any, param: str) -> Structured:
    """The structure of one ``{"type": …}`` object. Unknown types are grammars of some kind."""
    if type(chosen) is not dict:
        raise wrong(param, "an object")
    kind = chosen.get("type")
    if kind is None:
        return Structured.NONE
    if type(kind) is not str:
        raise wrong(f"{param}.type", "a string")
    return _FORMATS.get(kind, Structured.GRAMMAR)


def sampling_of(body: Json) -> Sampling:
    """Sampling settings. ``logprobs`` is a boolean in chat, a count in completions: all but null and false count."""
    if not _names(body, _SAMPLING_KEYS):
        return PLAIN
    logprobs = body.get("logprobs")
    n = whole(body, "n")
    return Sampling(
        body.get("seed") is not None,
        number(body, "temperature"),
        number(body, "top_p"),
        1 if n is None else n,
        (logprobs is not None and logprobs is not False) or body.get("top_logprobs") is not None,
    )


def reserved(body: Json, *keys: str) -> int | None:
    """The output tokens asked for: the largest of ``keys``, because a runtime may read either. Negative means open."""
    most: int | None = None
    for key in keys:
        value = whole(body, key)
        if value is not None and value >= 0 and (most is None or value > most):
            most = value
    return most


def truncates(body: Json) -> bool:
    """Whether the runtime is asked to cut a prompt that is too long, instead of refusing it."""
    if not _names(body, _TRUNCATION_KEYS):
        return False
    if body.get("truncate_prompt_tokens") is not None or body.get("max_tokens_per_doc") is not None:
        return True
    return body.get("truncation") == "auto"


def usage_in_stream(body: Json) -> bool | None:
    """What ``stream_options.include_usage`` says; None when it says nothing."""
    options = members(body, "stream_options")
    if options is None or options.get("include_usage") is None:
        return None
    return flag(options, "include_usage", "stream_options.include_usage")


def task_hint(body: Json) -> str | None:
    """``metadata.quantgate_task``, a hint that counts only for trusted callers. Other metadata is not read."""
    metadata = body.get("metadata")
    if type(metadata) is dict:
        hint = metadata.get("quantgate_task")
        if type(hint) is str:
            return hint
    return None
