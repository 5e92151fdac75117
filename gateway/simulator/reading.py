"""Reads a body of one of the four generating APIs (chat, completions, responses, messages) into one ``Ask``.

Owns what each API's fields mean. Pure. ``service`` and ``routes`` call ``read_ask``.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any

import orjson

from gateway.simulator.ask import Ask, BadAskError, Source, Tool

_CODE_SIGNS = ("```", "def ", "class ", "function ", "python", "Python", "regex", "SQL")
_MARKERS = (
    re.compile(r"^\s*(\[[\w.-]{1,24}\])[ :\t]+(\S.*)$", re.MULTILINE),
    re.compile(r"^\s*[Dd]ocument (\d{1,4})[:.]\s*(\S.*)$", re.MULTILINE),
    re.compile(r"<doc(?:ument)?\s+id=[\"']?([\w.-]{1,24})[\"']?[^>]*>\s*([^<]+)"),
)
_ROW = re.compile(r"^\s*\|(.+)\|\s*$", re.MULTILINE)
_TEXT_SEEN = 8_000  # characters of the last user text that shape the answer; the rest only counts


class _Prompt:
    """Gathers the pieces of a prompt: bytes, prefix digests, and the parts that shape the answer."""

    def __init__(self, bytes_per_token: int) -> None:
        self.digest = blake2b(digest_size=16)
        self.bytes_per_token = bytes_per_token
        self.size = 0
        self.messages = 0
        self.turns = 0
        self.prefixes: list[tuple[bytes, int]] = []
        self.texts: list[str] = []
        self.user = ""
        self.tool_result: str | None = None

    @property
    def tokens(self) -> int:
        """Tokens so far; each message costs four for its template."""
        return -(-self.size // self.bytes_per_token) + 4 * self.messages

    def add(self, role: str, text: str, result: str | None = None) -> None:
        """Take in one message."""
        raw = text.encode("utf-8", "surrogatepass")
        self.digest.update(b"%b\0%d\0" % (role.encode("utf-8", "surrogatepass"), len(raw)))
        self.digest.update(raw)
        self.size += len(raw)
        self.messages += 1
        self.prefixes.append((self.digest.copy().digest(), self.tokens))
        self.tool_result = result
        if role == "user" and result is None:
            self.user = text
            self.turns += 1
        self.texts.append(text)

    def add_shape(self, *parts: object) -> None:
        """Let settings that shape the answer into the identity."""
        for part in parts:
            self.digest.update(orjson.dumps(part, option=orjson.OPT_SORT_KEYS) + b"\1" if part is not None else b"\2")


def _content_text(content: object) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    parts = []
    for part in content:
        if isinstance(part, str):
            parts.append(part)
        elif isinstance(part, dict):
            text = part.get("text")
            parts.append(text if isinstance(text, str) else "[media]" if part.get("type") != "tool_use" else "")
    return "\n".join(parts)


def _integer(body: Mapping[str, Any], *names: str) -> int | None:
    for name in names:
        value = body.get(name)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int):
            raise BadAskError(f"Input should be a valid integer: {name}", name)
        return value
    return None


def _strings(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()


def _tools(declared: object) -> tuple[Tool, ...]:
    found = []
    for entry in declared if isinstance(declared, list) else ():
        spec = entry.get("function", entry) if isinstance(entry, dict) else None
        if not isinstance(spec, dict) or not isinstance(spec.get("name"), str):
            continue
        parameters = spec.get("parameters") or spec.get("input_schema") or {}
        found.append(
            Tool(spec["name"], str(spec.get("description") or ""), parameters if isinstance(parameters, dict) else {})
        )
    return tuple(found)


def _choice(value: object) -> str:
    if isinstance(value, str):
        return {"any": "required"}.get(value, value)
    if isinstance(value, dict):
        kind = value.get("type")
        if isinstance(kind, str) and kind in ("any", "auto", "none", "required"):
            return "required" if kind == "any" else kind
        name = value.get("name") or (value.get("function") or {}).get("name")
        if isinstance(name, str):
            return name
    return "auto"


def _structure(body: Mapping[str, Any]) -> tuple[Mapping[str, Any] | bool | None, bool, tuple[str, ...]]:
    """(schema, any JSON object, fixed options) of response_format, text.format or structured_outputs."""
    wanted = body.get("response_format") or (body.get("text") or {}).get("format") or {}
    kind = wanted.get("type") if isinstance(wanted, dict) else None
    if kind == "json_schema":
        inner = wanted.get("json_schema", wanted)
        schema = inner.get("schema") if isinstance(inner, dict) else None
        if not isinstance(schema, dict | bool):
            raise BadAskError("response_format of type json_schema needs a schema", "response_format")
        return schema, False, ()
    if kind == "json_object":
        return None, True, ()
    guided = body.get("structured_outputs")
    if isinstance(guided, dict):
        schema = guided.get("json")
        if isinstance(schema, str):
            schema = orjson.loads(schema)
        return schema, False, _strings(guided.get("choice"))
    return None, False, ()


def _sources(texts: Iterable[str]) -> tuple[Source, ...]:
    found: dict[str, Source] = {}
    for text in texts:
        for pattern in _MARKERS:
            for match in pattern.finditer(text[:65_536]):
                marker = match[1] if match[1].startswith("[") else f"[{match[1]}]"
                found.setdefault(marker, Source(marker, match[2].strip()[:400]))
            if found:
                break
    return tuple(found.values())[:64]


def _rows(text: str) -> tuple[tuple[str, ...], ...]:
    rows = [tuple(cell.strip() for cell in match[1].split("|")) for match in _ROW.finditer(text)]
    return tuple(row for row in rows if any(cell.strip("-: ") for cell in row))[:64]


def _read_chat(body: Mapping[str, Any], prompt: _Prompt) -> None:
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise BadAskError("Field required: messages", "messages")
    for message in messages:
        if not isinstance(message, dict):
            raise BadAskError("Input should be an object: messages", "messages")
        role = str(message.get("role", "user"))
        text = _content_text(message.get("content"))
        for call in message.get("tool_calls") or ():
            function = call.get("function") or {} if isinstance(call, dict) else {}
            text += f"\n{function.get('name', '')}{function.get('arguments', '')}"
        prompt.add(role, text, text if role in ("tool", "function") else None)


def _read_messages(body: Mapping[str, Any], prompt: _Prompt) -> None:
    if body.get("system"):
        prompt.add("system", _content_text(body["system"]))
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise BadAskError("Field required: messages", "messages")
    for message in messages:
        content = message.get("content") if isinstance(message, dict) else None
        blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
        results = [_content_text(block.get("content")) for block in blocks if block.get("type") == "tool_result"]
        text = "\n".join(results) if results else _content_text(content)
        prompt.add(str(message.get("role", "user")), text, text if results else None)


def _read_responses(body: Mapping[str, Any], prompt: _Prompt) -> None:
    if isinstance(body.get("instructions"), str):
        prompt.add("system", body["instructions"])
    given = body.get("input")
    if isinstance(given, str):
        prompt.add("user", given)
        return
    if not isinstance(given, list) or not given:
        raise BadAskError("Field required: input", "input")
    for item in given:
        if not isinstance(item, dict):
            raise BadAskError("Input should be an object: input", "input")
        if item.get("type") == "function_call_output":
            prompt.add("tool", str(item.get("output", "")), str(item.get("output", "")))
        elif item.get("type") == "function_call":
            prompt.add("assistant", f"{item.get('name', '')}{item.get('arguments', '')}")
        else:
            prompt.add(str(item.get("role", "user")), _content_text(item.get("content")))


def _read_completions(body: Mapping[str, Any], prompt: _Prompt) -> tuple[int, str]:
    """Take the prompts in; (their number, the first as text)."""
    given = body.get("prompt")
    if isinstance(given, str):
        prompts: Sequence[Any] = [given]
    elif isinstance(given, list) and given and isinstance(given[0], int):
        prompts = [given]
    elif isinstance(given, list) and given:
        prompts = given
    else:
        raise BadAskError("Field required: prompt", "prompt")
    first = ""
    for number, entry in enumerate(prompts):
        text = entry if isinstance(entry, str) else " ".join(map(str, entry))
        first = text if number == 0 else first
        prompt.add("user", text)
        if not isinstance(entry, str):
            prompt.size += len(entry) * prompt.bytes_per_token - len(text)
    return len(prompts), first


def read_ask(api: str, body: Mapping[str, Any], bytes_per_token: int) -> Ask:
    """The ask in a request body of one of the generating APIs.

    Raises ``BadAskError`` where the body lacks what the API needs.
    """
    prompt = _Prompt(bytes_per_token)
    prompts, first = 1, ""
    if api == "chat":
        _read_chat(body, prompt)
    elif api == "messages":
        _read_messages(body, prompt)
    elif api == "responses":
        _read_responses(body, prompt)
    else:
        prompts, first = _read_completions(body, prompt)
    schema, json_object, options = _structure(body)
    tools = _tools(body.get("tools"))
    choice = _choice(body.get("tool_choice")) if tools else "none"
    tool_bytes = len(orjson.dumps(body["tools"])) if tools else 0
    prompt.add_shape(body.get("seed"), body.get("tools"), choice, schema, json_object, options)
    sources = _sources(prompt.texts)
    text = prompt.user[:_TEXT_SEEN]
    rows = _rows(text) if "|" in text else ()
    structured = schema is not None or json_object
    stream_options = body.get("stream_options") or {}
    logprobs = body.get("top_logprobs") or 0 if body.get("logprobs") is True else body.get("logprobs")
    return Ask(
        api=api,
        model=str(body.get("model") or ""),
        identity=prompt.digest.digest(),
        prompt_tokens=prompt.tokens + -(-tool_bytes // bytes_per_token),
        prefixes=tuple(prompt.prefixes),
        text=text,
        task=_task(text, tools=choice != "none", structured=structured, cited=bool(sources), table=len(rows) > 1),
        turns=prompt.turns,
        sources=sources,
        rows=rows,
        tools=tools,
        choice=choice,
        tool_result=prompt.tool_result,
        schema=schema,
        json_object=json_object,
        options=options,
        stream=body.get("stream") is True,
        include_usage=stream_options.get("include_usage") is True,
        continuous_usage=stream_options.get("continuous_usage_stats") is True,
        max_tokens=_integer(body, "max_completion_tokens", "max_output_tokens", "max_tokens"),
        min_tokens=_integer(body, "min_tokens") or 0,
        ignore_eos=body.get("ignore_eos") is True,
        stop=_strings(body.get("stop") or body.get("stop_sequences")),
        n=_integer(body, "n") or 1,
        prompts=prompts,
        logprobs=logprobs if isinstance(logprobs, int) and not isinstance(logprobs, bool) else None,
        echo=first if body.get("echo") is True else "",
    )


def _task(text: str, *, tools: bool, structured: bool, cited: bool, table: bool) -> str:
    """The kind of work, strongest sign first."""
    for task, sign in (("tools", tools), ("json", structured), ("rag", cited), ("table", table)):
        if sign:
            return task
    return "code" if any(sign in text for sign in _CODE_SIGNS) else "chat"
