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
    forced, name = tools.forced_tool(body)
    system = gather.join(thread.system)
    user = gather.clip(thread.last)
    fence, table, cited = gather.marks(user)
    digest, named = gather.conversation_of(
        session, body.get("prompt_cache_key"), caller, model=model, system=system, first=thread.first or ""
    )
    facts = Facts(
        api=api,
        model=model,
        stream=flag(body, "stream"),
        usage_in_stream=usage,
        max_output_tokens=output_tokens,
        text_bytes=gather.size_bytes(parts),
        messages=count,
        turns=thread.turns,
        tools=declared,
        tool_use=tools.use_of(declared, forced, thread.loop),
        forced_tool=name,
        pending_calls=tuple(thread.pending),
        structured=structured,
        sampling=output.sampling_of(body),
        images=thread.images,
        audio=thread.audio,
        code_fence=fence,
        table=table,
        citations=cited,
        task_hint=output.task_hint(body),
        server_state=server_state,
        conversation=digest,
        session=named,
    )
    return Reading(facts, Texts(system, user, tuple(parts)))
