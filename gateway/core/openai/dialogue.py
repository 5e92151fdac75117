"""From a walked conversation to its ``Reading``: the part that chat, responses and messages share."""

from typing import Any

from gateway.core.openai import gather, output, tools
from gateway.core.openai.content import Thread
from gateway.core.openai.fields import flag
from gateway.core.openai.parse import Json
from gateway.model.enums import Api, Structured
from gateway.model.facts import Facts, Reading, Texts


def reading_of(
    api: Api,
    model: str,
    body: Json,
    thread: Thread,
    session: bytes | None,
    *,
    count: int,
    output_tokens: int | None,
    structured: Structured,
    caller: Any,
    usage: bool | None = None,
    server_state: bool = False,
) -> Reading:
    """The facts and texts of a conversation of ``count`` messages; ``caller`` is the body's name of its end user."""
    parts = thread.parts
    declared: tuple[str, ...] = ()
    if "tools" in body or "functions" in body:
        declared = tools.tool_names(body)
        parts += tools.definitions(body)
        server_state = server_state or tools.acts_on_server(body)
    elif "mcp_servers" in body or "web_search_options" in body:
        server_state = server_state or tools.acts_on_server(body)
    forced, name = tools.forced_tool(body)
    system = gather.join(thread.system)
    user = gather.clip(thread.last)
    fence, table, cited = gather.marks(user)
    digest, named = gather.conversation_of(
        session, body.get("prompt_cache_key"), caller, model=model, system=system, first=thread.first or ""
    )
    # By position, because a struct looks every keyword up among all its fields; tests hold the order.
    facts = Facts(
        api,
        model,
        flag(body, "stream"),
        usage,
        output_tokens,
        gather.size_bytes(parts),
        count,
        thread.turns,
        declared,
        tools.use_of(declared, forced, thread.loop),
        name,
        structured,
        output.sampling_of(body),
        thread.images,
        thread.audio,
        fence,
        table,
        cited,
        output.task_hint(body),
        server_state,
        digest,
        named,
        0,
        output.truncates(body),
    )
    return Reading(facts, Texts(system, user, tuple(parts)))
