"""What the comparator needs to know of one answer, each thing worked out once and only when asked for.

Owns the memo: in three legs the baseline is held against two others. Must not compare. Built by `agree`.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import Final, NamedTuple

from gateway.core.assemble.answer import Answer, Choice
from gateway.core.comparison.language import SAMPLE_CHARS, language_of
from gateway.core.comparison.marks import Marks, read_marks
from gateway.core.comparison.structure import Json, read_json
from gateway.core.comparison.text import joined, plain, words
from gateway.core.quality.asked import Asked
from gateway.core.quality.finding import Verdict
from gateway.core.quality.garbage import check_garbage
from gateway.core.quality.loops import check_repetition
from gateway.core.quality.refusals import check_refusal
from gateway.core.quality.structure import check_schema
from gateway.core.quality.view import View, view_of

MOST_CHOICES: Final = 16
"""Choices of one answer that are compared."""

_ABORTED: Final = frozenset({"abort", "aborted", "error", "failed", "cancelled"})


class Reading:
    """One choice of one answer. Attributes are worked out at first use and kept."""

    def __init__(self, asked: Asked, answer: Answer, choice: Choice) -> None:
        self.asked = asked
        self.answer = answer
        self.choice = choice
        self.text = joined(_text_of(choice))

    @cached_property
    def plain(self) -> str:
        """The text, normalised."""
        return plain(self.text)

    @cached_property
    def words(self) -> list[str]:
        """The words of the normalised text."""
        return words(self.plain)

    @cached_property
    def marks(self) -> Marks:
        """Numbers, citations, code symbols."""
        return read_marks(self.text)

    @cached_property
    def json(self) -> Json:
        """The JSON in the text."""
        return read_json(self.text)

    @cached_property
    def language(self) -> str:
        """Language or script of the prose; empty where it cannot be told."""
        return language_of(plain(self._view.prose[: 2 * SAMPLE_CHARS]))

    @cached_property
    def refuses(self) -> bool:
        """Whether it declines to do what was asked."""
        if self.choice.refusal or self.choice.finish_reason in {"refusal", "content_filter"}:
            return True
        return check_refusal(self._view).verdict == Verdict.FAIL

    @cached_property
    def degenerate(self) -> bool:
        """Whether it loops or is garbage."""
        return Verdict.FAIL in (check_repetition(self._view).verdict, check_garbage(self._view).verdict)

    @cached_property
    def fits_schema(self) -> bool | None:
        """Whether the text has the requested schema or form; None where none was asked for or it cannot be judged."""
        return {Verdict.PASS: True, Verdict.FAIL: False}.get(check_schema(self._view).verdict)

    @property
    def ending(self) -> str:
        """How it ended, judged by what is there: a label that contradicts the calls present is another check's."""
        reason = self.choice.finish_reason
        if reason in {None, "stop", "tool_calls", "function_call", "end_turn"}:
            return "unknown" if reason is None else "done"
        return "refused" if reason in {"refusal", "content_filter"} else str(reason)

    @cached_property
    def _view(self) -> View:
        return view_of(self.asked, self.answer, self.choice)


class Legible(NamedTuple):
    """One leg, ready to be compared any number of times."""

    failed: bool
    choices: Mapping[int, Reading]


def read(asked: Asked, answer: Answer) -> Legible:
    """Prepare one answer; nothing is worked out yet."""
    choices = {choice.index: Reading(asked, answer, choice) for choice in answer.choices[:MOST_CHOICES]}
    return Legible(failed(answer), choices)


def failed(answer: Answer) -> bool:
    """Whether a leg counts as failed: an error, unreadable, broken off, aborted by the server, or empty.

    Reasoning alone is empty too, unless the token limit cut it off: then it is all there could be.
    """
    if answer.errors or answer.problem or answer.truncated or answer.broken_events:
        return True
    if any(choice.finish_reason in _ABORTED for choice in answer.choices):
        return True
    return not any(_says_something(choice) for choice in answer.choices)


def _text_of(choice: Choice) -> str:
    if choice.text or choice.refusal or choice.tool_calls:
        return choice.text or choice.refusal
    return choice.reasoning


def _says_something(choice: Choice) -> bool:
    if choice.text.strip() or choice.refusal.strip() or choice.tool_calls or choice.other_output:
        return True
    return choice.finish_reason == "length" and bool(choice.reasoning.strip())
