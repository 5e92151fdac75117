"""Tool calls: known names, readable arguments, arguments that fit, and the tool_choice kept.

Owns four structural checks of the calls that are there; a call that leaked into the text is `leaks`' matter. Judges by
the calls, not by finish_reason. Must not run or even name a tool outside of a requested snippet. Called by `inspect`.
"""

from typing import Any, Final

from gateway.core.assemble.answer import ToolCall
from gateway.core.assemble.exact_json import JsonProblemError, parse_exact
from gateway.core.quality.finding import Check, Finding, absent, failed, passed, skipped
from gateway.core.quality.schema import SchemaUnusableError, StepBudget, first_mismatch
from gateway.core.quality.view import JSON_CHARS, View
from gateway.model.enums import ToolUse

MAX_JUDGED: Final = 64
"""Calls per choice whose arguments are looked at."""


def check_tool_names(view: View) -> Finding:
    """Fail when a call names a tool that the request does not offer."""
    calls = view.choice.tool_calls
    if not calls:
        return absent(Check.TOOL_NAMES, "no tool call")
    offered = {tool.name for tool in view.asked.tools}
    for number, call in enumerate(calls):
        if call.name not in offered:
            if not call.name and view.cut:
                return skipped(Check.TOOL_NAMES, "cut off before the name")
            detail = "a call names a tool that was not offered" if offered else "a tool is called, but none was offered"
            if not call.name:
                detail = "a call has no name"
            return failed(Check.TOOL_NAMES, detail, where=f"arguments[{number}]", snippet=call.name)
    return passed(Check.TOOL_NAMES, "all called tools were offered")


def check_tool_arguments(view: View) -> Finding:
    """Fail when the arguments of a call are no JSON object. Blank arguments are the empty object."""
    calls = [call for call in view.choice.tool_calls if not call.custom]
    if not calls:
        return absent(Check.TOOL_ARGUMENTS, "no tool call with JSON arguments")
    for number, call in enumerate(view.choice.tool_calls[:MAX_JUDGED]):
        if call.custom:
            continue
        where = f"arguments[{number}]"
        if len(call.arguments) > JSON_CHARS:
            return skipped(Check.TOOL_ARGUMENTS, f"arguments longer than {JSON_CHARS} characters")
        try:
            value = parse_exact(call.arguments)
        except JsonProblemError as problem:
            if problem.cut and view.cut and number == len(view.choice.tool_calls) - 1:
                return skipped(Check.TOOL_ARGUMENTS, "cut off; what is there is a correct beginning")
            at = problem.position
            return failed(
                Check.TOOL_ARGUMENTS, f"arguments are not JSON: {problem.message}", where=where, start=at, end=at
            )
        if not isinstance(value, dict):
            end = len(call.arguments)
            return failed(Check.TOOL_ARGUMENTS, "arguments are JSON, but no object", where=where, start=0, end=end)
    return passed(Check.TOOL_ARGUMENTS, "the arguments of all calls are JSON objects")


def check_tool_schema(view: View) -> Finding:
    """Fail when parsed arguments break the called tool's schema."""
    judged = False
    reason = ""
    budget = StepBudget()
    for number, call in enumerate(view.choice.tool_calls[:MAX_JUDGED]):
        tool = view.asked.tool(call.name)
        if call.custom or tool is None or tool.schema is None:
            continue
        value = _object(call)
        if value is None:
            reason = "arguments do not parse; see tool_arguments"
            continue
        try:
            mismatch = first_mismatch(tool.schema, value, budget)
        except SchemaUnusableError as error:
            reason = str(error)
            continue
        judged = True
        if mismatch is not None:
            return failed(
                Check.TOOL_SCHEMA,
                f"arguments break the keyword {mismatch.keyword!r} of the tool's schema",
                where=f"arguments[{number}]",
                start=0,
                end=len(call.arguments),
                snippet=f"{mismatch.path}: {mismatch.message}",
            )
    if reason:
        return skipped(Check.TOOL_SCHEMA, reason)
    if not judged:
        return absent(Check.TOOL_SCHEMA, "no call of an offered tool that has a schema")
    return passed(Check.TOOL_SCHEMA, "all arguments match their tool's schema")


def check_tool_choice(view: View) -> Finding:
    """Fail when tool_choice was not kept: required or forced and not called, forbidden or restricted and called."""
    asked, calls = view.asked, view.choice.tool_calls
    if view.answer.errors or view.answer.problem:
        return absent(Check.TOOL_CHOICE, "there is no answer")
    if asked.calls_forbidden and asked.tools:
        if calls:
            return failed(Check.TOOL_CHOICE, "tool_choice forbids calls, but a tool was called")
        return passed(Check.TOOL_CHOICE, "no tool was called, as tool_choice wants it")
    if asked.one_call and len(calls) > 1:
        return failed(Check.TOOL_CHOICE, "several tools were called, although parallel calls were switched off")
    names = {call.name for call in calls}
    if asked.allowed and names - set(asked.allowed):
        return failed(Check.TOOL_CHOICE, "a tool was called that tool_choice does not allow")
    if asked.tool_use != ToolUse.FORCED or not asked.tools:
        settled = bool(calls) and (asked.one_call or bool(asked.allowed))
        return passed(Check.TOOL_CHOICE, "kept") if settled else absent(Check.TOOL_CHOICE, "tool_choice leaves it open")
    if not calls:
        if view.cut:
            return skipped(Check.TOOL_CHOICE, "cut off before any call")
        if view.choice.refusal:
            return skipped(Check.TOOL_CHOICE, "refused")
        return failed(Check.TOOL_CHOICE, "a tool had to be called, but none was")
    if asked.forced and names != {asked.forced}:
        return failed(Check.TOOL_CHOICE, "another tool was called than the one that was forced")
    return passed(Check.TOOL_CHOICE, "the forced tool was called")


def _object(call: ToolCall) -> dict[str, Any] | None:
    if len(call.arguments) > JSON_CHARS:
        return None
    try:
        value = parse_exact(call.arguments)
    except JsonProblemError:
        return None
    return value if isinstance(value, dict) else None
