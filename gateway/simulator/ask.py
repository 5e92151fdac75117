"""A request for generated text as a value: what is asked, how long the prompt is, what identifies it.

Owns ``Ask`` and its parts. Pure. ``reading`` makes it from a body; ``answer``, ``compose`` and ``service`` use it. It
must not decide anything about the answer.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from gateway.simulator.fault import Subject


class BadAskError(Exception):
    """The request does not say what is needed; ``param`` names the field."""

    def __init__(self, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.param = param


class Tool(msgspec.Struct, frozen=True):
    """A declared function."""

    name: str
    description: str
    parameters: Mapping[str, Any]


class Source(msgspec.Struct, frozen=True):
    """A document in the prompt: the marker it is cited by, and its words."""

    marker: str
    text: str


class Ask(msgspec.Struct, frozen=True):
    """One request for text.

    ``choice``: none | auto | required | the name of a tool. ``prefixes`` are (digest, tokens) of everything up to
    the end of each message, for the prefix cache. ``identity`` is the digest of all that shapes the answer: not of
    ``stream``, the model's name or the user. ``prompts`` counts the prompts of a completions batch.
    """

    api: str
    model: str
    identity: bytes
    prompt_tokens: int
    prefixes: tuple[tuple[bytes, int], ...]
    text: str
    task: str
    turns: int
    sources: tuple[Source, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    tools: tuple[Tool, ...] = ()
    choice: str = "auto"
    tool_result: str | None = None
    schema: Mapping[str, Any] | bool | None = None
    json_object: bool = False
    options: tuple[str, ...] = ()
    stream: bool = False
    include_usage: bool = False
    continuous_usage: bool = False
    max_tokens: int | None = None
    min_tokens: int = 0
    ignore_eos: bool = False
    stop: tuple[str, ...] = ()
    n: int = 1
    prompts: int = 1
    logprobs: int | None = None
    echo: str = ""

    @property
    def calling(self) -> bool:
        """Whether a tool call is the expected answer."""
        return bool(self.tools) and self.choice != "none" and (self.choice != "auto" or self.tool_result is None)

    @property
    def subject(self) -> Subject:
        """What fault conditions may look at."""
        return Subject(
            api=self.api,
            model=self.model,
            prompt_tokens=self.prompt_tokens,
            turns=self.turns,
            task=self.task,
            tools=bool(self.tools),
            structured=self.schema is not None or self.json_object or bool(self.options),
            stream=self.stream,
            text=self.text,
            calling=self.calling,
            cited=bool(self.sources),
        )
