"""What the request asked for, as far as an answer can be held against it: structure, tools, texts, counts.

Owns the reading of request bodies of all four generating APIs for the checks' sake. Must not validate: a body that
a pool answered was acceptable to it, and what is unreadable here is simply not asked. Called by `inspect`.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from gateway.core.assemble import api_of_request
from gateway.core.assemble.parts import as_index, as_list, as_object, as_text
from gateway.model.enums import Api, Structured, ToolUse

CONTEXT_CHARS: Final = 262_144
"""Characters of prompt text that are read for grounding; a longer context makes those checks skip."""

MAX_TOOLS: Final = 512


class Tool(msgspec.Struct, frozen=True):
    """A tool the request offers. ``schema`` None = none given; ``custom`` = free-text input."""

    name: str
    schema: Any = None
    custom: bool = False


class Asked(msgspec.Struct, frozen=True):
    """What was asked.

    ``context`` is all text the answer may draw on (system, user and tool messages, earlier answers), ``user`` the last
    user message, ``prefill`` a trailing assistant message that the answer continues. ``allowed`` restricts the tools
    that may be called (empty = all). ``words``: the text must be one of these; ``pattern``: it must match in full.
    """

    api: Api = Api.CHAT
    n: int = 1
    structured: Structured = Structured.NONE
    schema: Any = None
    words: tuple[str, ...] = ()
    pattern: str = ""
    tools: tuple[Tool, ...] = ()
    tool_use: ToolUse = ToolUse.NONE
    calls_forbidden: bool = False
    forced: str = ""
    allowed: tuple[str, ...] = ()
    one_call: bool = False
    user: str = ""
    system: str = ""
    context: str = ""
    context_cut: bool = False
    prefill: str = ""

    def tool(self, name: str) -> Tool | None:
        """The offered tool of this name."""
        return next((tool for tool in self.tools if tool.name == name), None)


def read_request(body: Mapping[str, Any]) -> Asked:
    """Read a request body of any generating API. Never raises; what is missing or malformed was not asked."""
    api = api_of_request(body)
    fields = _structure(body) | _tool_choice(body)
    tools = tuple(_tools(body))
    if tools and fields["tool_use"] == ToolUse.NONE:
        fields["tool_use"] = ToolUse.DECLARED
    turns = list(_turns(body))
    context = "\n".join(text for _, text in turns)
    last_user = next((text for role, text in reversed(turns) if role == "user"), "")
    prefill = turns[-1][1] if turns and turns[-1][0] == "assistant" and api != Api.RESPONSES else ""
    return Asked(
        api=api,
        n=max(as_index(body.get("n")) or 1, 1),
        tools=tools,
        user=last_user[:CONTEXT_CHARS],
        system="\n".join(text for role, text in turns if role in {"system", "developer"})[:CONTEXT_CHARS],
        context=context[:CONTEXT_CHARS],
        context_cut=len(context) > CONTEXT_CHARS,
        prefill=prefill,
        **fields,
    )


def _structure(body: Mapping[str, Any]) -> dict[str, Any]:
    """The requested form of the answer: OpenAI's response_format, then the runtimes' own spellings."""
    config = as_object(body.get("output_config"))
    asked = as_object(
        body.get("response_format")
        or as_object(body.get("text")).get("format")
        or body.get("output_format")
        or config.get("format")
    )
    kind = asked.get("type")
    if kind == "json_schema":
        holder = as_object(asked.get("json_schema")) or asked
        schema = holder.get("schema", asked.get("schema"))
        return {"structured": Structured.JSON_SCHEMA, "schema": schema}
    if kind == "json_object":
        schema = asked.get("schema")  # llama.cpp and others take a schema here too
        named = Structured.JSON_OBJECT if schema is None else Structured.JSON_SCHEMA
        return {"structured": named, "schema": schema}
    guided = as_object(body.get("structured_outputs"))
    schema = guided.get("json", body.get("guided_json", body.get("json_schema")))
    if schema is not None:
        return {"structured": Structured.JSON_SCHEMA, "schema": schema}
    words = as_list(guided.get("choice", body.get("guided_choice")))
    pattern = as_text(guided.get("regex", body.get("guided_regex", body.get("regex"))))
    if words or pattern:
        named_words = tuple(word for word in words if isinstance(word, str))
        return {"structured": Structured.GRAMMAR, "words": named_words, "pattern": pattern}
    return {"structured": Structured.NONE}


def _tools(body: Mapping[str, Any]) -> Iterator[Tool]:
    for entry in as_list(body.get("tools"))[:MAX_TOOLS]:
        found = as_object(entry)
        function = as_object(found.get("function") or found.get("custom")) or found
        name = as_text(function.get("name"))
        if name:
            custom = found.get("type") == "custom"
            yield Tool(name, function.get("parameters", function.get("input_schema")), custom)
    for entry in as_list(body.get("functions"))[:MAX_TOOLS]:
        found = as_object(entry)
        if as_text(found.get("name")):
            yield Tool(found["name"], found.get("parameters"))


def _tool_choice(body: Mapping[str, Any]) -> dict[str, Any]:
    choice = body.get("tool_choice", body.get("function_call"))
    found = as_object(choice)
    kind = as_text(choice) or as_text(found.get("type"))
    fields: dict[str, Any] = {"tool_use": ToolUse.NONE}
    if body.get("parallel_tool_calls") is False or found.get("disable_parallel_tool_use") is True:
        fields["one_call"] = True
    if kind == "allowed_tools":
        holder = as_object(found.get("allowed_tools")) or found
        entries = [as_object(entry) for entry in as_list(holder.get("tools"))]
        names = (as_text(entry.get("name") or as_object(entry.get("function")).get("name")) for entry in entries)
        fields["allowed"] = tuple(name for name in names if name)
        kind = as_text(holder.get("mode"))
    name = as_text(found.get("name") or as_object(found.get("function") or found.get("custom")).get("name"))
    if name:
        return fields | {"tool_use": ToolUse.FORCED, "forced": name}
    if kind in {"required", "any"}:
        return fields | {"tool_use": ToolUse.FORCED}
    return fields | {"calls_forbidden": kind == "none"}


def _turns(body: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(role, text) of everything said so far, in order."""
    for key in ("system", "instructions"):
        text = _text(body.get(key))
        if text:
            yield "system", text
    prompt = body.get("prompt")
    if isinstance(prompt, str):
        yield "user", prompt
    for entry in as_list(prompt):
        if isinstance(entry, str):
            yield "user", entry
    source = body.get("messages", body.get("input"))
    if isinstance(source, str):
        yield "user", source
    for entry in as_list(source):
        found = as_object(entry)
        role = as_text(found.get("role")) or ("tool" if "output" in found else "assistant")
        text = _text(found.get("content")) or _text(found.get("output"))
        if text:
            yield role, text


def _text(value: Any) -> str:
    """All text of a content: a string, or its text parts, tool results and documents, one a line."""
    if isinstance(value, str):
        return value
    pieces: list[str] = []
    for part in map(as_object, as_list(value)):
        text = as_text(part.get("text"))
        if text:
            pieces.append(text)
            continue
        inner = part.get("content") or as_object(part.get("source")).get("data")
        if as_text(part.get("type")) in {"tool_result", "document"} and inner:
            pieces.append(inner if isinstance(inner, str) else "\n".join(_leaf_texts(inner)))
    return "\n".join(pieces)


def _leaf_texts(value: Any) -> Iterator[str]:
    for part in map(as_object, as_list(value)):
        yield as_text(part.get("text"))
