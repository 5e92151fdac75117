"""What the next turn tells about an answer: tool calls that failed, calls that are repeated, questions asked again.

Pure and in two halves. ``trace`` reads one exchange (in a scorer process, from texts) into digests and flags that hold
no text. ``Tracker`` joins the traces of different requests in bounded memory (in control) and says which earlier
request each consequence counts against: the pool that produced the call or the answer, never the one that happened to
serve the next turn.
"""

import re
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from enum import StrEnum
from hashlib import blake2b
from typing import Any

import msgspec

from gateway.core.assemble import Answer, canonical_text

RE_ASK_S = 120.0  # a person who asks the same again within two minutes did not get what they wanted
BAD_BELOW = 0.5  # feedback with a score under this counts against the pool
RESULT_CHARS = 4_000

# A tool that failed says so at the start, in a field of its own, or with a flag of the protocol.
_FAILED_TEXT = re.compile(
    r"\A[\s*#>!`:-]{0,8}(?:error|exception|traceback|fatal|failed|failure|invalid|unknown\s+(?:tool|function)|"
    r"\u9519\u8bef|\u5f02\u5e38|\u5931\u8d25|\u65e0\u6548)(?!\s+rate)",
    re.IGNORECASE,
)
_FAILED_FIELD = re.compile(
    r'\A\s*\{.{0,200}?"(?:error|exception|err)"\s*+:\s*+(?!null|false|""|\{\}|\[\])'
    r'|\A\s*\{.{0,200}?"(?:success|ok)"\s*:\s*false'
    r'|\A\s*\{.{0,200}?"(?:status|state)"\s*:\s*"(?:error|failed|failure)"',
    re.IGNORECASE | re.DOTALL,
)

_Key = tuple[str, str]  # tenant and conversation


class Kind(StrEnum):
    """What a consequence is. The value is metric label and column value."""

    FEEDBACK = "feedback"
    TOOL_ERROR = "tool_error"
    REPEATED_CALL = "repeated_call"
    RE_ASK = "re_ask"


class Call(msgspec.Struct, frozen=True, array_like=True):
    """A tool call that an answer made: its id, and a digest of name and canonical arguments."""

    id: str
    digest: bytes


class Result(msgspec.Struct, frozen=True, array_like=True):
    """A tool result that a request carries: the call's id, and whether the tool says that it failed."""

    id: str
    failed: bool


class Trace(msgspec.Struct, frozen=True, array_like=True):
    """What joining needs of one exchange. ``question``: digest of the last user message, empty in a tool loop.

    ``dialogue``: the request has earlier turns or names its session, so that an equal question is the same person's.
    """

    calls: tuple[Call, ...] = ()
    results: tuple[Result, ...] = ()
    question: bytes = b""
    dialogue: bool = False


class Subject(msgspec.Struct, frozen=True):
    """The request that a consequence counts against. ``conversation`` is empty where nobody asks for it.

    ``rollout`` is the one that the request took part in, empty if in none.
    """

    request_id: str
    at: float
    tenant: str
    bucket: str
    pool: str
    conversation: str = ""
    rollout: str = ""


class Consequence(msgspec.Struct, frozen=True):
    """One joined consequence."""

    kind: Kind
    subject: Subject


def trace(body: Mapping[str, Any], answer: Answer) -> Trace:
    """Digests and flags of one exchange. Tool results are those after the last assistant message."""
    messages = body.get("messages")
    if not isinstance(messages, list):
        return Trace(calls=_calls(answer))
    results: list[Result] = []
    question = ""
    users = 0
    for message in messages:
        if not isinstance(message, dict):
            continue
        role = message.get("role")
        if role == "assistant":
            results.clear()
            question = ""
        elif role == "tool":
            results.append(Result(str(message.get("tool_call_id", "")), _failed(_text(message.get("content")))))
        elif role == "user":
            users += 1
            results.extend(_anthropic_results(message.get("content")))
            question = _text(message.get("content"))
    named = any(isinstance(body.get(key), str) for key in ("user", "prompt_cache_key"))
    digest = blake2b(question.encode("utf-8", "replace"), digest_size=8).digest() if question and not results else b""
    return Trace(_calls(answer), tuple(results[:64]), digest, users > 1 or named)


class Tracker:
    """Joins traces over requests. Bounded: ``most`` calls and as many conversations, the oldest are forgotten."""

    def __init__(self, most: int = 100_000, remember_s: float = 1800.0) -> None:
        self._most = most
        self._remember_s = remember_s
        # By conversation too: some runtimes number calls anew in each, such as functions.search:0.
        self._calls: OrderedDict[tuple[str, str, str], Subject] = OrderedDict()
        self._last_calls: OrderedDict[_Key, tuple[frozenset[bytes], float]] = OrderedDict()
        self._questions: OrderedDict[_Key, tuple[bytes, Subject]] = OrderedDict()

    def resize(self, most: int, remember_s: float) -> None:
        """Other bounds from now on."""
        self._most, self._remember_s = most, remember_s

    def see(self, subject: Subject, conversation: str, seen: Trace) -> list[Consequence]:
        """Take one exchange in order of time; what it tells about earlier ones, and about itself.

        Each kind once of one earlier answer: however many of its parallel calls failed, it was one bad turn.
        """
        key = (subject.tenant, conversation)
        found = [Consequence(Kind.TOOL_ERROR, earlier) for earlier in self._failed_calls(key, subject, seen)]
        if conversation:
            asked = self._asked_before(key, subject, seen)
            if asked is not None:
                found.append(Consequence(Kind.RE_ASK, asked))
            if self._calls_again(key, subject, seen):
                found.append(Consequence(Kind.REPEATED_CALL, subject))
        for call in seen.calls:
            if call.id:
                self._put(self._calls, (*key, call.id), subject)
        return found

    def _failed_calls(self, key: _Key, subject: Subject, seen: Trace) -> Iterable[Subject]:
        """The answers whose calls came back failed. Every result settles its call."""
        failed: dict[str, Subject] = {}
        for result in seen.results:
            earlier = self._take((*key, result.id), subject.at)
            if earlier is not None and result.failed:
                failed[earlier.request_id] = earlier
        return failed.values()

    def _asked_before(self, key: _Key, subject: Subject, seen: Trace) -> Subject | None:
        """The answer to the same question a moment ago; the question is remembered."""
        if not (seen.question and seen.dialogue):
            return None
        question, earlier = self._questions.get(key, (b"", subject))
        self._put(self._questions, key, (seen.question, subject))
        return earlier if question == seen.question and 0.0 <= subject.at - earlier.at <= RE_ASK_S else None

    def _calls_again(self, key: _Key, subject: Subject, seen: Trace) -> bool:
        """Whether it calls, with results at hand, what the turn before called; its calls are remembered."""
        if not seen.calls:
            return False
        calls = frozenset(call.digest for call in seen.calls)
        before, at = self._last_calls.get(key, (frozenset(), subject.at))
        self._put(self._last_calls, key, (calls, subject.at))
        return bool(seen.results) and bool(calls & before) and subject.at - at <= self._remember_s

    def __len__(self) -> int:
        return len(self._calls) + len(self._questions) + len(self._last_calls)

    def _take(self, key: tuple[str, str, str], at: float) -> Subject | None:
        subject = self._calls.pop(key, None)
        return subject if subject is not None and at - subject.at <= self._remember_s else None

    def _put(self, memory: "OrderedDict[Any, Any]", key: tuple[str, ...], value: Any) -> None:
        memory[key] = value
        memory.move_to_end(key)
        while len(memory) > self._most:
            memory.popitem(last=False)


def _calls(answer: Answer) -> tuple[Call, ...]:
    return tuple(
        Call(
            call.id,
            blake2b(
                f"{call.name}\0{canonical_text(call.arguments)}".encode("utf-8", "replace"), digest_size=8
            ).digest(),
        )
        for choice in answer.choices
        for call in choice.tool_calls[:64]
    )


def _anthropic_results(content: Any) -> list[Result]:
    if not isinstance(content, list):
        return []
    return [
        Result(str(block.get("tool_use_id", "")), block.get("is_error") is True or _failed(_text(block.get("content"))))
        for block in content
        if isinstance(block, dict) and block.get("type") == "tool_result"
    ]


def _failed(text: str) -> bool:
    head = text[:RESULT_CHARS]
    return _FAILED_TEXT.search(head) is not None or _FAILED_FIELD.search(head) is not None


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    return "\n".join(
        block["text"] for block in content if isinstance(block, dict) and isinstance(block.get("text"), str)
    )
