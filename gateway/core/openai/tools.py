"""Declared tools and the choice among them, in every spelling that a runtime may act on.

A privileged tool must not slip past the constraint on privileged tools because of where its name stands, so names are
read from chat (``tools[].function.name``), responses and messages (``tools[].name``), custom tools, and the older
``functions``. A tool without a name (built-in ones such as ``web_search``) counts by its type.
"""

from typing import Any, Final

import orjson

from gateway.core.openai.fields import items, wrong
from gateway.core.openai.parse import Json
from gateway.errors import ApiError
from gateway.model.enums import ToolUse

_WRAPPERS: Final = ("function", "custom")
# Kinds of tools that the client runs itself, in chat, responses and messages. Whatever else is declared, the server may
# run: a search, a stored file, a remote MCP server.
_CLIENT_RUN: Final = frozenset(("function", "custom", "local_shell", "shell", "apply_patch", "namespace"))
_CLIENT_RUN_FAMILIES: Final = ("computer", "bash_", "text_editor_", "memory_")
_SERVER_ACTS: Final = ("mcp_servers", "web_search_options")
_FORCING: Final = frozenset(("required", "any"))
_NOT_FORCING: Final = frozenset(("auto", "none"))
_NO_TOOLS: Final = ToolUse.NONE
_DECLARED: Final = ToolUse.DECLARED
_FORCED: Final = ToolUse.FORCED
_LOOP: Final = ToolUse.LOOP


def tool_names(body: Json) -> tuple[str, ...]:
    """Names of all declared tools, in order. ``ApiError`` 400 names the entry that is no object or has no name."""
    tools = items(body, "tools")
    names = [_name(tool, f"tools[{index}]") for index, tool in enumerate(tools)]
    if "functions" in body:
        names += [_name(tool, f"functions[{index}]") for index, tool in enumerate(items(body, "functions"))]
    return tuple(names)


def _name(tool: Any, param: str) -> str:
    if type(tool) is not dict:
        raise wrong(param, "an object")
    for wrapper in _WRAPPERS:
        inner = tool.get(wrapper)
        if type(inner) is dict:
            tool, param = inner, f"{param}.{wrapper}"
            break
    name = tool.get("name")
    if name is None:
        name = tool.get("type")
    if type(name) is not str or not name:
        raise ApiError(400, "invalid_tool", f"'{param}.name' must be a non-empty string.", param=f"{param}.name")
    return name


def acts_on_server(body: Json) -> bool:
    """Whether the server may act or look things up by itself while it answers."""
    if any(body.get(key) is not None for key in _SERVER_ACTS):
        return True
    return any(not _client_runs(tool) for tool in items(body, "tools"))


def _client_runs(tool: Any) -> bool:
    kind = tool.get("type") if type(tool) is dict else None
    if kind is None or type(kind) is not str:
        return True
    return kind in _CLIENT_RUN or kind.startswith(_CLIENT_RUN_FAMILIES)


def definitions(body: Json) -> list[str]:
    """The definitions as text: the chat template writes them into the prompt, so they count as prompt text."""
    found: list[str] = []
    for key in ("tools", "functions"):
        found += rendered(body.get(key), param=key)
    return found


def rendered(*values: Any, param: str) -> list[str]:
    """JSON values as the text a template would write. ``ApiError`` 400 when they are nested too deeply to encode."""
    found: list[str] = []
    for value in values:
        if not value:
            continue
        if type(value) is str:
            found.append(value)
            continue
        try:
            found.append(orjson.dumps(value).decode())
        except orjson.JSONEncodeError:
            raise ApiError(400, "too_deep", f"'{param}' is nested too deeply.", param=param) from None
    return found


def forced_tool(body: Json) -> tuple[bool, str | None]:
    """Whether ``tool_choice`` (or ``function_call``) demands a call, and the tool it names, if any."""
    choice = body.get("tool_choice")
    if choice is None:
        choice = body.get("function_call")
    if choice is None:
        return False, None
    if type(choice) is str:
        return choice in _FORCING, None
    if type(choice) is not dict:
        raise wrong("tool_choice", "a string or an object")
    for wrapper in _WRAPPERS:
        inner = choice.get(wrapper)
        if type(inner) is dict:
            choice = inner
            break
    name = choice.get("name")
    if name is not None:
        if type(name) is not str:
            raise wrong("tool_choice.name", "a string")
        return True, name
    kind = choice.get("type")
    if kind == "allowed_tools":
        allowed = choice.get("allowed_tools")
        mode = (allowed if type(allowed) is dict else choice).get("mode")
        return type(mode) is str and mode in _FORCING, None
    # {"type": "auto"} leaves it open; {"type": "any"} and a built-in tool's own type demand a call.
    return type(kind) is str and kind not in _NOT_FORCING, None


def use_of(declared: tuple[str, ...], forced: bool, loop: bool) -> ToolUse:
    """A loop outranks a forced call: what matters there is that the conversation stays where it is."""
    if loop:
        return _LOOP
    if forced:
        return _FORCED
    return _DECLARED if declared else _NO_TOOLS
