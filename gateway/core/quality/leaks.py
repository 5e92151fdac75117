"""A tool call that came as text: the model meant to call, the runtime's parser did not see it.

Owns the marks that serving runtimes' tool formats leave in text when parsing fails, and the shapes that models fall
back to (a JSON object naming a declared tool, a Python call, ReAct lines). Judged only when tools were offered. In
code or quotes a mark alone proves nothing, since people ask about these formats: there a declared name must follow.
Called by `inspect`.
"""

import re
from typing import Final

from gateway.core.assemble.exact_json import JsonProblemError, parse_exact
from gateway.core.quality.finding import Check, Finding, absent, failed, passed
from gateway.core.quality.view import View

_NEAR_CHARS: Final = 200
_MAX_MARKS: Final = 32
_MAX_NAMES: Final = 64

_MARKS: Final = re.compile(
    r"</?tool_call>|<\|?tool_calls?(?:_begin|_section_begin)?\|?>|<\uff5ctool\u2581calls?\u2581(?:begin|sep)\uff5c>"
    r"|</?(?:minimax|seed|longcat|glm)[:_]tool_calls?>|<function(?:=|_call>|_calls>|\s+name=)|</function>"
    r"|\[TOOL_CALLS?\]|<\|python_tag\|>|<\|START_ACTION\|>|<start_function_call>|<\|tool\u2581call|<invoke\s+name="
    r"|<\|channel\|>commentary\s+to=functions\.|<\uff5cDSML\uff5c"
)
_JSON_NAME: Final = re.compile(
    r"""["'](?:name|function|tool|tool_name|action|function_name|recipient_name)["']\s*:\s*["']([\w.:/-]{1,128})["']"""
)
_JSON_ARGUMENTS: Final = re.compile(
    r"""["'](?:arguments|parameters|args|input|tool_input|action_input|kwargs|tool_arguments)["']\s*:"""
)
_REACT: Final = re.compile(
    r"^[ \t]*Action[ \t]*:[ \t]*`?([\w.:/-]{1,128})`?[ \t]*\n[ \t]*Action Input[ \t]*:", re.MULTILINE | re.IGNORECASE
)


def check_tool_leak(view: View) -> Finding:
    """Fail when a call of an offered tool stands in the text, or in reasoning that led to no answer."""
    names = [tool.name for tool in view.asked.tools][:_MAX_NAMES]
    if not names:
        return absent(Check.TOOL_LEAK, "no tool was offered")
    choice = view.choice
    if not choice.text.strip() and not choice.reasoning.strip():
        return absent(Check.TOOL_LEAK, "no text")
    at = _leak_at(view.text, view.prose, names)
    if at >= 0:
        return failed(Check.TOOL_LEAK, "a tool call stands in the text", start=at, end=min(at + 80, len(view.text)))
    if not choice.text.strip() and not choice.tool_calls:
        # reasoning may discuss the format; it is a leak only where it is all there is
        tail = choice.reasoning[-4096:]
        at = _leak_at(tail, " " * len(tail), names)
        if at >= 0:
            at += len(choice.reasoning) - len(tail)
            return failed(
                Check.TOOL_LEAK, "a tool call stands in the reasoning and nowhere else", where="reasoning", start=at
            )
    return passed(Check.TOOL_LEAK, "no tool call in the text")


def _leak_at(text: str, prose: str, names: list[str]) -> int:
    """Offset of the first leaked call, or -1."""
    for number, mark in enumerate(_MARKS.finditer(text)):
        if number >= _MAX_MARKS:
            break
        near = text[mark.start() : mark.end() + _NEAR_CHARS]
        if prose[mark.start()] == text[mark.start()] or any(name in near for name in names):
            return mark.start()
    for found in _REACT.finditer(text):
        if found[1] in names:
            return found.start()
    at = _json_call_at(text, names)
    return at if at >= 0 else _python_call_at(text, names)


def _json_call_at(text: str, names: list[str]) -> int:
    """A JSON object with a declared tool's name and an arguments key beside it."""
    for number, found in enumerate(_JSON_NAME.finditer(text)):
        if number >= _MAX_MARKS:
            break
        name = found[1].removeprefix("functions.")
        window = text[max(found.start() - _NEAR_CHARS, 0) : found.end() + _NEAR_CHARS]
        if name in names and _JSON_ARGUMENTS.search(window):
            return found.start()
    return -1


def _python_call_at(text: str, names: list[str]) -> int:
    """A text that is nothing but a call of a declared tool: ``name(...)``, ``[name(...)]``, ``name {...}``."""
    bare = text.strip().removeprefix("```").removesuffix("```").strip()
    bare = bare.removeprefix("python").removeprefix("tool_code").strip()
    body = bare.removeprefix("[").removesuffix("]").strip()
    for name in names:
        if not body.startswith(name):
            continue
        rest = body[len(name) :].lstrip(": \n")
        if rest.startswith("(") and rest.endswith(")"):
            return text.find(name)
        if rest.startswith("{") and _is_json(rest):
            return text.find(name)
    return -1


def _is_json(text: str) -> bool:
    try:
        parse_exact(text[:65_536])
    except JsonProblemError:
        return False
    return True
