"""Did the answer arrive, whole, and do its labels fit? Error objects, truncation, emptiness, finish reason.

Owns four structural checks. Truncation is kept apart from every fault of form: what is cut is not invalid. Must not
look at the meaning of the text. Called by `inspect`.
"""

import unicodedata
from typing import Final

from gateway.core.assemble.exact_json import JsonProblemError, parse_exact
from gateway.core.quality.finding import Check, Finding, absent, failed, passed, skipped
from gateway.core.quality.view import View
from gateway.model.enums import ToolUse

_ABORTED: Final = frozenset({"abort", "aborted", "error", "failed", "cancelled", "unreadable"})
_SPOKEN: Final = frozenset("LNS")  # general categories of letters, numbers and symbols: something was said


def check_error_object(view: View) -> Finding:
    """Fail when the answer carries an error object, also inside a 200 stream, or cannot be read at all."""
    answer = view.answer
    if answer.errors:
        return failed(
            Check.ERROR_OBJECT, "the answer carries an error object", where="answer", snippet=answer.errors[0].message
        )
    if answer.problem and not answer.broken_tail:
        return failed(Check.ERROR_OBJECT, "the answer cannot be read", where="answer", snippet=answer.problem)
    if answer.broken_events:
        return failed(Check.ERROR_OBJECT, f"{answer.broken_events} events of the stream cannot be read", where="answer")
    return passed(Check.ERROR_OBJECT, "no error object, everything could be read")


def check_truncation(view: View) -> Finding:
    """Fail when the token limit, the transport or the server ended the answer early."""
    answer, choice = view.answer, view.choice
    if choice.finish_reason == "length":
        return failed(
            Check.TRUNCATION, "finish_reason says that the token limit ended the answer", start=len(choice.text)
        )
    if answer.broken_tail:
        return failed(Check.TRUNCATION, "the bytes end inside an event or a JSON body", where="answer")
    if answer.errors:
        return skipped(Check.TRUNCATION, "the answer ends in an error object")
    if choice.finish_reason in _ABORTED:
        return failed(Check.TRUNCATION, "the server gave up before the end of the answer")
    if answer.streamed and not answer.done and choice.finish_reason is None:
        return failed(
            Check.TRUNCATION, "the stream ends without a finish_reason and without its terminator", where="answer"
        )
    if answer.streamed and not answer.done:
        return passed(Check.TRUNCATION, "finished; the stream's terminator is missing")
    return passed(Check.TRUNCATION, "finished")


def check_empty(view: View) -> Finding:
    """Fail when nothing was said: no text, no call, no refusal, or nothing but punctuation."""
    choice = view.choice
    if view.answer.errors or view.answer.problem:
        return skipped(Check.EMPTY, "there is no readable answer to be empty")
    if choice.tool_calls or choice.refusal or choice.other_output:
        return passed(Check.EMPTY, "a tool call, a refusal or another output is there")
    if _says_something(view.text) or _is_json(view.text):
        return passed(Check.EMPTY, "text is there")
    if view.cut:
        return skipped(Check.EMPTY, "cut off before any text")
    if choice.text.strip():
        return failed(Check.EMPTY, "the text holds no letter, digit or symbol", start=0, end=len(choice.text))
    if choice.reasoning.strip():
        return failed(Check.EMPTY, "there is reasoning, but neither an answer nor a tool call", where="reasoning")
    if not view.answer.choices:
        return failed(Check.EMPTY, "no choice came back", where="answer")
    return failed(Check.EMPTY, "no text and no tool call")


def check_choices(view: View) -> Finding:
    """Fail (as emptiness) when fewer choices came than were asked for."""
    got, asked = len(view.answer.choices), view.asked.n
    if got == 0 or got >= asked or view.answer.errors or view.answer.truncated:
        return absent(Check.EMPTY, "as many choices as asked for, or another check's matter")
    return failed(Check.EMPTY, f"{asked} choices were asked for, {got} came", where="answer")


def check_finish_reason(view: View) -> Finding:
    """Fail when finish_reason contradicts the content. Judged by the content: the label is what is wrong."""
    choice = view.choice
    reason = choice.finish_reason
    if view.answer.errors or view.answer.problem or view.answer.truncated:
        return skipped(Check.FINISH_REASON, "the answer did not come to its end")
    if choice.after_finish:
        return failed(Check.FINISH_REASON, "content came after finish_reason", where="answer")
    if reason is None:
        return failed(Check.FINISH_REASON, "the answer ended, but no finish_reason was given", where="answer")
    calls = bool(choice.tool_calls)
    if reason in {"tool_calls", "function_call"} and not calls:
        return failed(Check.FINISH_REASON, "finish_reason announces tool calls, but there is none")
    if reason == "stop" and calls and not _forced_by_name(view):
        return failed(Check.FINISH_REASON, "there are tool calls, but finish_reason is stop")
    return passed(Check.FINISH_REASON, "finish_reason fits the content")


def _forced_by_name(view: View) -> bool:
    """With a function named in tool_choice, OpenAI and its followers end with stop."""
    return view.asked.tool_use == ToolUse.FORCED and bool(view.asked.forced)


def _is_json(text: str) -> bool:
    """An empty object or array says that there is nothing, which is an answer."""
    try:
        parse_exact(text)
    except JsonProblemError:
        return False
    return True


def _says_something(text: str) -> bool:
    return any(unicodedata.category(character)[0] in _SPOKEN for character in text)
