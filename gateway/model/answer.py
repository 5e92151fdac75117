"""The usual whole answer of chat and completions, as far as it is read: ``core.answer`` decodes it with this.

Such a decoder makes no objects of what nobody asks for, which is nearly everything. It refuses whatever has another
shape than stands here, so that only one reading has to know of those. (Not in a compiled module, where annotations are
not what the decoder needs.)
"""

from typing import Literal

import msgspec


class Cached(msgspec.Struct, frozen=True, gc=False):
    """Details of the prompt's tokens."""

    cached_tokens: int | float | None = None


class Counts(msgspec.Struct, frozen=True, gc=False):
    """Usage with the names of these two APIs and none of the others'."""

    prompt_tokens: int | float
    completion_tokens: int | float
    prompt_tokens_details: Cached | None = None
    input_tokens_details: None = None
    cache_read_input_tokens: None = None


class Choice(msgspec.Struct, frozen=True, gc=False):
    """One of the answers."""

    finish_reason: str | None = None


class ChatAnswer(msgspec.Struct, frozen=True, gc=False):
    """An answer that is no error of any kind."""

    choices: list[Choice]
    usage: Counts
    object: Literal["chat.completion", "text_completion"] | None = None
    type: None = None
    error: None = None
