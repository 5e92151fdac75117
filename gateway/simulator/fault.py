"""Faults: what goes wrong, for which requests, how often.

Owns the vocabulary of faults and the choice whether one strikes. Pure: the random numbers are arguments. ``service``
asks it once per request; ``defect`` and ``delivery`` carry the chosen fault out. It must not know sockets or time.
"""

from collections.abc import Sequence
from typing import Literal

import msgspec

TRANSPORT = frozenset(
    {"status", "hang", "stall", "reset", "drop", "cut", "no_done", "error_event", "slow", "refuse", "crash"}
)
QUALITY = frozenset(
    {
        "broken_json",
        "schema_violation",
        "wrong_tool",
        "wrong_arguments",
        "leaked_tool_call",
        "repetition",
        "garbage",
        "empty",
        "truncated",
        "wrong_citation",
        "wrong_number",
        "reword",
    }
)

Kind = Literal[
    "status",  # answer with `status`, `message` and `retry_after` instead of serving
    "hang",  # accept the request and never answer; the slot stays taken until the client leaves
    "stall",  # go silent after `after_tokens`; the connection stays open
    "reset",  # TCP reset after `after_tokens` (0 = before any byte)
    "drop",  # close the connection after `after_tokens`, in the middle of the HTTP message
    "cut",  # end the HTTP message properly after `after_tokens`, without finish_reason and [DONE]
    "no_done",  # a complete stream that lacks only [DONE]
    "error_event",  # after `after_tokens` an error object inside the 200 stream, then [DONE]; unstreamed: 500
    "slow",  # multiply every latency by `factor`
    "refuse",  # at once: close idle connections and refuse new ones for `for_s`
    "crash",  # at once: reset every connection and refuse new ones for `for_s`
    "broken_json",
    "schema_violation",
    "wrong_tool",
    "wrong_arguments",
    "leaked_tool_call",  # the call appears as text in the content
    "repetition",
    "garbage",
    "empty",
    "truncated",  # the answer ends early with finish_reason "length"
    "wrong_citation",
    "wrong_number",
    "reword",  # harmless: other words, same meaning and structure
]


class When(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which requests a fault may strike; every given field must match. ``contains`` looks at the last user text."""

    min_prompt_tokens: int = 0
    max_prompt_tokens: int | None = None
    min_turns: int = 0
    tasks: tuple[str, ...] = ()
    apis: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    tools: bool | None = None
    structured: bool | None = None
    stream: bool | None = None
    contains: str = ""


class Fault(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One fault. ``draw`` "request": equal requests always share their fate (a property of the model); "sequence":
    each request is drawn anew (a property of the moment). Left out, quality faults go by request, the rest by sequence.

    ``times``: at most so many strikes. ``for_s``: active only so long after it was set; how long ``refuse`` and
    ``crash`` keep the port closed (None: until the faults are changed through the control port).
    """

    kind: Kind
    probability: float = 1.0
    when: When = When()
    draw: Literal["request", "sequence"] | None = None
    times: int | None = None
    for_s: float | None = None
    after_tokens: int = 3
    status: int = 500
    message: str | None = None
    retry_after: str | None = None
    factor: float = 5.0

    def __post_init__(self) -> None:
        if not 0 <= self.probability <= 1:
            raise ValueError("probability is between 0 and 1")
        if not 400 <= self.status <= 599:
            raise ValueError("a fault's status is between 400 and 599")
        if self.kind in ("refuse", "crash") and (self.probability, self.when) != (1.0, When()):
            raise ValueError(f"{self.kind} strikes the whole server at once; it takes neither probability nor when")
        if self.factor <= 0 or self.after_tokens < 0:
            raise ValueError("factor must be above 0 and after_tokens at least 0")

    @property
    def by_request(self) -> bool:
        """Whether equal requests share their fate."""
        return (self.draw or ("request" if self.kind in QUALITY else "sequence")) == "request"


class Subject(msgspec.Struct, frozen=True):
    """What a condition may look at."""

    api: str
    model: str
    prompt_tokens: int
    turns: int
    task: str
    tools: bool
    structured: bool
    stream: bool
    text: str
    calling: bool  # a tool call is the expected answer
    cited: bool  # the prompt holds sources with markers


_CALL_FAULTS = frozenset({"wrong_tool", "wrong_arguments", "leaked_tool_call"})
_FORM_FAULTS = frozenset({"broken_json", "schema_violation"})


def applies(kind: str, subject: Subject) -> bool:
    """Whether this kind of fault can show in the answer to this request at all."""
    if kind in _CALL_FAULTS:
        return subject.calling
    if kind in _FORM_FAULTS:
        return subject.calling or subject.structured
    return subject.cited if kind == "wrong_citation" else True


def matches(when: When, subject: Subject) -> bool:
    """Whether every given field of the condition holds for this request."""
    return (
        when.min_prompt_tokens <= subject.prompt_tokens
        and (when.max_prompt_tokens is None or subject.prompt_tokens <= when.max_prompt_tokens)
        and when.min_turns <= subject.turns
        and (not when.tasks or subject.task in when.tasks)
        and (not when.apis or subject.api in when.apis)
        and (not when.models or subject.model in when.models)
        and when.tools in (None, subject.tools)
        and when.structured in (None, subject.structured)
        and when.stream in (None, subject.stream)
        and when.contains in subject.text
    )


class Armed(msgspec.Struct):
    """A fault in force: when it was set (loop seconds) and how often it has struck."""

    fault: Fault
    since: float
    strikes: int = 0

    def live(self, now: float) -> bool:
        """Whether it may still strike."""
        fault = self.fault
        return (fault.times is None or self.strikes < fault.times) and (
            fault.for_s is None or now - self.since < fault.for_s
        )


def choose(
    armed: Sequence[Armed], subject: Subject, now: float, by_request: Sequence[float], by_sequence: Sequence[float]
) -> tuple[Fault | None, Fault | None]:
    """The (transport, quality) faults that strike this request: of each family the first that is drawn.

    ``by_request`` and ``by_sequence`` hold one uniform number per armed fault. Strikes are counted here.
    """
    transport: Fault | None = None
    quality: Fault | None = None
    for index, entry in enumerate(armed):
        fault = entry.fault
        taken = transport if fault.kind in TRANSPORT else quality
        if taken is not None or not entry.live(now):
            continue
        if not applies(fault.kind, subject) or not matches(fault.when, subject):
            continue
        drawn = by_request[index] if fault.by_request else by_sequence[index]
        if drawn >= fault.probability:
            continue
        entry.strikes += 1
        if fault.kind in TRANSPORT:
            transport = fault
        else:
            quality = fault
    return transport, quality
