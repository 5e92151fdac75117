"""The answer to an ask: text, tool calls, finish reason and token counts, as a function of the request and the seed.

Owns the answer's values and what a good model would plausibly say. Pure. ``compose`` calls ``good_choice``; ``defect``
spoils its result where a fault strikes; the API modules render it.
"""

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import msgspec
import orjson

from gateway.simulator.ask import Ask, Tool
from gateway.simulator.config import Config
from gateway.simulator.instance import instance_of
from gateway.simulator.prose import cited, code, looked_up, pieces_of, prose, topics_of


class Call(msgspec.Struct, frozen=True):
    """A tool call; ``arguments`` is JSON text cut into pieces."""

    id: str
    name: str
    arguments: tuple[str, ...]

    @property
    def text(self) -> str:
        """The arguments as one JSON text."""
        return "".join(self.arguments)


class Choice(msgspec.Struct, frozen=True):
    """One of the ``n`` answers. Every piece is one token; a call costs one more for its frame."""

    pieces: tuple[str, ...] = ()
    reasoning: tuple[str, ...] = ()
    calls: tuple[Call, ...] = ()
    finish: str = "stop"  # stop | length | tool_calls
    structured: bool = False

    @property
    def text(self) -> str:
        """The content as one text."""
        return "".join(self.pieces)

    @property
    def tokens(self) -> int:
        """Completion tokens; an empty answer still cost its end-of-text."""
        return max(1, len(self.reasoning) + len(self.pieces) + sum(len(call.arguments) + 1 for call in self.calls))


class Answer(msgspec.Struct, frozen=True):
    """All choices with their usage. ``choices`` are in order of prompts, then of n."""

    choices: tuple[Choice, ...]
    prompt_tokens: int
    completion_tokens: int
    reasoning_tokens: int
    steps: int  # decode steps until the longest choice is done


def good_choice(ask: Ask, config: Config, random: Random) -> Choice:
    """What a good model answers; uncut."""
    topics = topics_of(ask.text)
    length = max(1, ask.min_tokens, round(config.output_tokens.sample(random.random())))
    reasoning = tuple(prose(random, topics, config.reasoning_tokens)) if config.reasoning_tokens else ()
    if ask.calling and (ask.choice != "auto" or random.random() < config.tool_call_rate):
        return Choice(reasoning=reasoning, calls=_calls(ask, topics, random), finish="tool_calls")
    if ask.options:
        return Choice((random.choice(ask.options),), reasoning, structured=True)
    if ask.schema is not None or ask.json_object:
        schema = ask.schema if ask.schema is not None else _any_object(topics)
        text = orjson.dumps(instance_of(schema, random, topics)).decode()
        return Choice(tuple(pieces_of(text)), reasoning, structured=True)
    return Choice(tuple(_free_text(ask, topics, random, length)), reasoning)


def _any_object(topics: Sequence[str]) -> Mapping[str, Any]:
    return {
        "type": "object",
        "properties": {
            "answer": {"type": "string"},
            "confidence": {"type": "number", "minimum": 0, "maximum": 1},
            "topics": {"type": "array", "items": {"enum": list(topics)}, "minItems": 1},
        },
        "required": ["answer", "confidence", "topics"],
    }


def _free_text(ask: Ask, topics: Sequence[str], random: Random, length: int) -> list[str]:
    if ask.ignore_eos:
        return prose(random, topics, length)
    if ask.tool_result is not None:
        found = " ".join(ask.tool_result.split())[:200]
        return pieces_of(f"The tool returned {found}. ") + prose(random, topics, max(1, length // 4))
    if ask.task == "rag":
        return pieces_of(cited(random, topics, ask.sources, length))
    if ask.task == "table":
        return pieces_of(looked_up(random, ask.rows, ask.text))
    if ask.task == "code":
        return pieces_of(code(random, ask.text, topics, length))
    return prose(random, topics, length)


def _calls(ask: Ask, topics: Sequence[str], random: Random) -> tuple[Call, ...]:
    named = [tool for tool in ask.tools if tool.name == ask.choice]
    if not named:
        named = [tool for tool in ask.tools if tool.name in ask.text] or [_closest(ask.tools, ask.text, random)]
    return tuple(make_call(tool, topics, random) for tool in named[:8])


def make_call(tool: Tool, topics: Sequence[str], random: Random) -> Call:
    """A call of this tool with arguments its parameters accept."""
    value = instance_of(tool.parameters or {"type": "object"}, random, topics)
    text = orjson.dumps(value if isinstance(value, dict) else {}).decode()
    return Call(f"chatcmpl-tool-{random.getrandbits(64):016x}", tool.name, tuple(pieces_of(text)))


def _closest(tools: Sequence[Tool], text: str, random: Random) -> Tool:
    words = {word for word in text.lower().split() if len(word) > 3}
    scores = [sum(word in f"{tool.name} {tool.description}".lower() for word in words) for tool in tools]
    best = max(scores)
    return random.choice([tool for tool, score in zip(tools, scores, strict=True) if score == best])
