"""The growing answer: fragments in, one frozen `Answer` out.

Owns how fragments join: texts by choice, tool calls by index, then id, then position. Must not know the shape of any
API's events. Filled by `chat`, `responses` and `messages`, built by `gateway.core.assemble`.

Hostile input is bounded by its own size: every list grows with the bytes read, and the number of choices and calls is
capped, since an index is only a number that a stranger chose.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from gateway.core.assemble.answer import Answer, AnswerError, Choice, ToolCall, Usage
from gateway.core.assemble.exact_json import write_exact
from gateway.model.enums import Api

MAX_CHOICES: Final = 128
MAX_CALLS: Final = 512
MAX_ERRORS: Final = 16

_USAGE_NAMES: Final = {
    "prompt_tokens": ("prompt_tokens", "input_tokens"),
    "completion_tokens": ("completion_tokens", "output_tokens"),
}


def as_text(value: Any) -> str:
    """The value if it is a string, else nothing: null, numbers and objects say no text."""
    return value if isinstance(value, str) else ""


def as_list(value: Any) -> list[Any]:
    """The value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def as_object(value: Any) -> dict[str, Any]:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def as_index(value: Any) -> int | None:
    """A whole number that fits 53 bits, also spelled as a string or with a fraction of zero; else None."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10:
        return int(value)
    if isinstance(value, (int, float)) and abs(value) < 1 << 53 and value == int(value):
        return int(value)
    return None


def content_text(value: Any) -> str:
    """Text of a message's content: a string, or the joined text parts of a list."""
    if isinstance(value, str):
        return value
    parts = (as_object(part) for part in as_list(value))
    return "".join(as_text(part.get("text")) for part in parts if part.get("type") != "thinking")


class CallParts:
    """One tool call while it grows."""

    def __init__(self) -> None:
        self.id = ""
        self.name = ""
        self.custom = False
        self.pieces: list[str] = []

    def add(self, call_id: Any, name: Any, arguments: Any) -> None:
        """Add one fragment; null is absent. A name that comes again whole is not glued to itself."""
        self.id = as_text(call_id) or self.id
        piece = as_text(name)
        if piece and piece != self.name:
            self.name += piece
        if isinstance(arguments, str):
            self.pieces.append(arguments)
        elif isinstance(arguments, dict | list):
            self.pieces.append(write_exact(arguments))

    def continues(self, call_id: Any, name: Any) -> bool:
        """Whether a fragment with this id and name can belong here.

        A second id with a name opens another call, and so does a second name once there are arguments: a name that
        comes in pieces is complete by then.
        """
        named = as_text(name)
        other_id = as_text(call_id) not in {"", self.id} and self.id != ""
        other_name = self.name not in {"", named} and any(self.pieces)
        return not (named and (other_id or other_name))


class ChoiceParts:
    """One choice while it grows."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.text: list[str] = []
        self.reasoning: list[str] = []
        self.refusal: list[str] = []
        self.calls: list[CallParts] = []
        self.finish: str | None = None
        self.logprobs = False
        self.after_finish = False
        self.other_output = False
        self._by_index: dict[int, CallParts] = {}

    def add_text(self, piece: str) -> None:
        """Append answer text."""
        if piece:
            self.text.append(piece)
            self.after_finish |= self.finish is not None

    def add_reasoning(self, piece: str) -> None:
        """Append reasoning text."""
        if piece:
            self.reasoning.append(piece)
            self.after_finish |= self.finish is not None

    def call_for(self, index: int | None, call_id: Any, name: Any, position: int, entries: int) -> CallParts:
        """Return the call that a fragment belongs to, opening a new one where none fits."""
        self.after_finish |= self.finish is not None
        if index is not None:
            known = self._by_index.get(index)
            if known is None or not known.continues(call_id, name):
                known = self._by_index[index] = self.open_call()
            return known
        for call in reversed(self.calls):
            if as_text(call_id) and call.id == call_id and call.continues(call_id, name):
                return call
        if as_text(call_id) or not self.calls:
            return self.open_call()
        candidate = self.calls[position] if entries > 1 and position < len(self.calls) else self.calls[-1]
        whole = candidate.name and as_text(name) and any(candidate.pieces)
        return self.open_call() if whole or (entries > 1 and position >= len(self.calls)) else candidate

    def open_call(self) -> CallParts:
        """Open a call, whatever id or index it may share with others: in a whole answer each entry is one."""
        call = CallParts()
        if len(self.calls) < MAX_CALLS:
            self.calls.append(call)
        return call

    def build(self, clean: Callable[[str], str]) -> Choice:
        """Freeze the choice; calls without name, id and arguments were never calls."""
        calls = tuple(
            ToolCall(
                clean(call.name), clean(text) if (text := "".join(call.pieces)).strip() else "{}", call.id, call.custom
            )
            for call in self.calls
            if call.name or call.id or any(call.pieces)
        )
        return Choice(
            index=self.index,
            text=clean("".join(self.text)),
            reasoning=clean("".join(self.reasoning)),
            refusal=clean("".join(self.refusal)),
            tool_calls=calls,
            finish_reason=self.finish,
            logprobs=self.logprobs,
            after_finish=self.after_finish,
            other_output=self.other_output,
        )


class AnswerParts:
    """The whole answer while it grows."""

    def __init__(self) -> None:
        self.model = ""
        self.choices: dict[int, ChoiceParts] = {}
        self.errors: list[AnswerError] = []
        self.done = False
        self._usage: dict[str, int] = {}
        self._broken_unicode = 0

    def choice(self, index: int) -> ChoiceParts:
        """The choice of this index; beyond the cap a choice that is read and forgotten."""
        known = self.choices.get(index)
        if known is None:
            known = ChoiceParts(index)
            if len(self.choices) < MAX_CHOICES:
                self.choices[index] = known
        return known

    def add_error(self, value: Any) -> None:
        """Record an error in any of the shapes that runtimes use: an object, a bare text, a list of findings."""
        if len(self.errors) >= MAX_ERRORS:
            return
        found = as_object(value)
        code = next(
            (word for key in ("code", "type") if isinstance(word := found.get(key), str | int) and word != ""), ""
        )
        message = as_text(found.get("message")) or as_text(found.get("detail")) or as_text(value)
        self.errors.append(AnswerError(self._clean(str(code)[:100]), self._clean(message[:500])))

    def add_usage(self, value: Any) -> None:
        """Take over the token counts that are given; later ones win, absent ones stay."""
        given = as_object(value)
        for field, names in _USAGE_NAMES.items():
            for name in names:
                self._set_usage(field, given.get(name))
        details = as_object(given.get("prompt_tokens_details") or given.get("input_tokens_details"))
        self._set_usage("cached_tokens", details.get("cached_tokens", given.get("cache_read_input_tokens")))
        details = as_object(given.get("completion_tokens_details") or given.get("output_tokens_details"))
        self._set_usage("reasoning_tokens", details.get("reasoning_tokens"))

    def _set_usage(self, field: str, value: Any) -> None:
        number = as_index(value)
        if number is not None and number >= 0:
            self._usage[field] = number

    def _clean(self, text: str) -> str:
        """Join surrogate pairs that two fragments carried; a lone surrogate becomes U+FFFD and is counted."""
        try:
            text.encode()
        except UnicodeEncodeError:
            joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
            self._broken_unicode += joined.count("\ufffd") - text.count("\ufffd")
            return joined
        return text

    def build(self, api: Api, fields: Mapping[str, Any]) -> Answer:
        """Freeze the answer; ``fields`` are what the framing knows (events, streamed, broken tail, problem)."""
        choices = tuple(self.choices[index].build(self._clean) for index in sorted(self.choices))
        usage = Usage(**self._usage) if self._usage else None
        return Answer(
            api=api,
            model=self._clean(self.model),
            choices=choices,
            usage=usage,
            errors=tuple(self.errors),
            done=self.done,
            broken_unicode=self._broken_unicode,
            **fields,
        )
