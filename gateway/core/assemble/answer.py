"""The assembled answer: what a pool said, whatever API and framing it came in.

Owns the values and what they can say about themselves. Must not parse. Built by `gateway.core.assemble`, read by the
quality checks and by the comparison of two pools' answers.
"""

import msgspec

from gateway.model.enums import Api


class ToolCall(msgspec.Struct, frozen=True):
    """One call of a tool. ``arguments`` is the JSON text as the model wrote it, ``{}`` where it was absent or blank.

    ``custom``: a free-text tool, whose ``arguments`` are no JSON.
    """

    name: str = ""
    arguments: str = "{}"
    id: str = ""
    custom: bool = False


class Choice(msgspec.Struct, frozen=True):
    """One of the n answers. Texts are whole; surrogate pairs are joined, lone surrogates became U+FFFD.

    ``finish_reason`` is chat's word whatever the API: ``stop``, ``length``, ``tool_calls``, ``content_filter``,
    ``refusal``, else the runtime's own word; None = never given. ``after_finish``: content came after it.
    ``other_output``: something that is neither text nor a call (audio, an image, a server-side tool).
    """

    index: int = 0
    text: str = ""
    reasoning: str = ""
    refusal: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: str | None = None
    logprobs: bool = False
    after_finish: bool = False
    other_output: bool = False


class Usage(msgspec.Struct, frozen=True):
    """Token counts as the runtime reported them; None = not reported."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None


class AnswerError(msgspec.Struct, frozen=True):
    """An error object in the body or inside a 200 stream."""

    code: str = ""
    message: str = ""


class Answer(msgspec.Struct, frozen=True):
    """Everything the pool answered.

    ``done``: the terminator came (``[DONE]``, ``message_stop``, a final ``response.*`` event, or the end of a whole
    JSON body). ``broken_events`` counts events whose data could not be read; ``broken_tail``: the bytes end inside an
    event or a JSON body. ``problem`` says why nothing could be read at all, else it is empty.
    """

    api: Api = Api.CHAT
    streamed: bool = False
    model: str = ""
    choices: tuple[Choice, ...] = ()
    usage: Usage | None = None
    errors: tuple[AnswerError, ...] = ()
    done: bool = False
    events: int = 0
    broken_events: int = 0
    broken_tail: bool = False
    broken_unicode: int = 0
    problem: str = ""

    @property
    def truncated(self) -> bool:
        """The transport ended before the answer did (not: the token limit was reached)."""
        if self.broken_tail:
            return True
        unfinished = not self.choices or any(choice.finish_reason is None for choice in self.choices)
        return self.streamed and not self.done and unfinished and not self.errors
