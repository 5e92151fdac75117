"""Chat requests: what is counted, what is sliced, which wrong field is named, what passes untouched."""

import dataclasses
from typing import Any

import orjson
import pytest

from gateway.core.openai import read
from gateway.errors import ApiError
from gateway.model.enums import Api, Structured, ToolUse
from gateway.model.facts import Facts, Reading, Sampling

HI = [{"role": "user", "content": "hi"}]
CALL = {"id": "c0", "type": "function", "function": {"name": "f", "arguments": "{}"}}


def chat(messages: Any = HI, **fields: Any) -> Reading:
    """A chat request, read."""
    return read(Api.CHAT, orjson.dumps({"model": "m", "messages": messages, **fields}))


def refused(messages: Any = HI, **fields: Any) -> ApiError:
    """The 400 that a chat request gets."""
    with pytest.raises(ApiError) as caught:
        chat(messages, **fields)
    assert caught.value.status == 400
    return caught.value


def test_every_fact_in_its_place() -> None:
    """Facts are built by position for speed; this pins each one to its field, whatever the struct's order becomes."""
    reading = chat(
        [
            {"role": "system", "content": "Be brief."},
            {
                "role": "user",
                "content": [{"type": "text", "text": "See ```x``` [1]\n|a|b|\n|---|---|"}, {"type": "image_url"}],
            },
            {"role": "assistant", "content": None, "tool_calls": [CALL]},
            {"role": "tool", "tool_call_id": "c0", "content": "é"},
        ],
        stream=True,
        stream_options={"include_usage": False},
        max_tokens=7,
        tools=[{"type": "function", "function": {"name": "f"}}],
        tool_choice={"type": "function", "function": {"name": "f"}},
        response_format={"type": "json_object"},
        seed=0,
        temperature=0.5,
        top_p=0.9,
        n=2,
        logprobs=True,
        metadata={"quantgate_task": "code"},
        user="u-1",
        truncate_prompt_tokens=-1,
    )
    facts = reading.facts
    tools_bytes = len('[{"type":"function","function":{"name":"f"}}]')
    expected = {
        "api": Api.CHAT,
        "model": "m",
        "stream": True,
        "usage_in_stream": False,
        "max_output_tokens": 7,
        "text_bytes": len("Be brief.") + len("See ```x``` [1]\n|a|b|\n|---|---|") + len("f{}") + 2 + tools_bytes,
        "messages": 4,
        "turns": 1,
        "tools": ("f",),
        "tool_use": ToolUse.LOOP,
        "forced_tool": "f",
        "structured": Structured.JSON_OBJECT,
        "sampling": Sampling(seed=True, temperature=0.5, top_p=0.9, n=2, logprobs=True),
        "images": 1,
        "audio": False,
        "code_fence": True,
        "table": True,
        "citations": True,
        "task_hint": "code",
        "server_state": False,
        "session": True,
        "longest_bytes": 0,
        "truncates": True,
    }
    found = {field.name: getattr(facts, field.name) for field in dataclasses.fields(Facts)}
    assert len(found.pop("conversation")) == 16
    assert found == expected


def test_plain_request() -> None:
    """Defaults say nothing that the client did not say."""
    facts = chat().facts
    assert (facts.stream, facts.usage_in_stream, facts.max_output_tokens) == (False, None, None)
    assert (facts.tool_use, facts.structured, facts.sampling) == (ToolUse.NONE, Structured.NONE, Sampling())
    assert (facts.text_bytes, facts.messages, facts.turns) == (2, 1, 1)


def test_texts_are_the_system_and_the_last_user_text() -> None:
    """The classifier sees the instructions and the newest question, not the whole history."""
    texts = chat(
        [
            {"role": "developer", "content": "Rules."},
            {"role": "user", "content": "first"},
            {"role": "assistant", "content": "answer"},
            {"role": "system", "content": [{"type": "text", "text": "More."}]},
            {"role": "user", "content": [{"type": "text", "text": "second"}, {"type": "text", "text": "part"}]},
        ]
    ).texts
    assert texts.system == "Rules.\nMore."
    assert texts.user == "second\npart"
    assert texts.parts == ("Rules.", "first", "answer", "More.", "second", "part")


def test_long_texts_are_sliced() -> None:
    """Slices are bounded: 16 kB of head and 4 kB of tail; the parts stay whole, for counting."""
    long = "a" * 30_000 + "z" * 30_000
    reading = chat([{"role": "system", "content": long}, {"role": "user", "content": long}])
    assert reading.texts.user == "a" * 16_384 + "\n" + "z" * 4_096
    assert reading.texts.system == "a" * 16_384
    assert reading.facts.text_bytes == 120_000
    assert reading.texts.parts == (long, long)


@pytest.mark.parametrize(
    "assistant",
    [
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "assistant", "tool_calls": [CALL]},
        {"role": "assistant", "content": "", "tool_calls": [{**CALL, "function": {"name": "f", "arguments": ""}}]},
        {"role": "assistant", "content": None, "tool_calls": None, "refusal": None},
    ],
)
def test_assistant_without_content_is_valid(assistant: dict[str, Any]) -> None:
    """Null or absent content beside tool calls is an ordinary request (B42), as are empty arguments (B32)."""
    facts = chat([*HI, assistant, {"role": "tool", "tool_call_id": "c0", "content": "1"}]).facts
    assert facts.tool_use is ToolUse.LOOP


def test_only_trailing_results_make_a_loop() -> None:
    """A tool loop lasts while tool results are the last messages."""
    results = [{"role": "tool", "tool_call_id": call, "content": "1"} for call in ("a", "b")]
    assert chat([*HI, *results]).facts.tool_use is ToolUse.LOOP
    over = chat([*HI, *results, {"role": "user", "content": "thanks"}]).facts
    assert over.tool_use is ToolUse.NONE
    again = chat([*HI, *results, {"role": "assistant", "tool_calls": [CALL]}, results[1]]).facts
    assert again.tool_use is ToolUse.LOOP
    unnamed = chat([*HI, {"role": "tool", "content": "1"}]).facts
    assert unnamed.tool_use is ToolUse.LOOP
    assert chat([*HI, {"role": "function", "name": "f", "content": "1"}]).facts.tool_use is ToolUse.LOOP


def test_unknown_fields_and_nulls_pass() -> None:
    """Fields the gateway does not read are none of its business (B44); null is as good as absent."""
    chat(
        chat_template_kwargs={"enable_thinking": False},
        return_token_ids=True,
        x_vendor={"a": [1, None]},
        stop=None,
        stream=None,
        stream_options=None,
        max_tokens=None,
        n=None,
        seed=None,
        temperature=None,
        tools=None,
        tool_choice=None,
        response_format=None,
        metadata=None,
        user=None,
    )


def test_huge_integers_pass() -> None:
    """A seed beyond 64 bits is a seed (B106)."""
    seed = b'"seed":18446744073709551617,"metadata":{"id":9007199254740993}'
    body = b'{"model":"m","messages":[{"role":"user","content":"hi"}],' + seed + b"}"
    assert read(Api.CHAT, body).facts.sampling.seed


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"messages": [3]}, "messages[0]"),
        ({"messages": [*HI, {"role": 3, "content": ""}]}, "messages[1].role"),
        ({"messages": [{"role": ["user"], "content": ""}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": 3}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": {"type": "text"}}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": [3]}]}, "messages[0].content[0]"),
        ({"messages": [{"role": "user", "content": [{"type": 3}]}]}, "messages[0].content[0].type"),
        ({"messages": [{"role": "user", "content": [{"type": "text", "text": 3}]}]}, "messages[0].content[0].text"),
        ({"messages": [{"role": "tool", "tool_call_id": 3}]}, "messages[0].tool_call_id"),
        ({"messages": [{"role": "assistant", "tool_calls": {}}]}, "messages[0].tool_calls"),
        ({"stream": "true"}, "stream"),
        ({"stream_options": []}, "stream_options"),
        ({"stream_options": {"include_usage": 1}}, "stream_options.include_usage"),
        ({"max_tokens": "7"}, "max_tokens"),
        ({"max_completion_tokens": 1e30}, "max_completion_tokens"),
        ({"temperature": "hot"}, "temperature"),
        ({"top_p": True}, "top_p"),
        ({"n": 1.5}, "n"),
        ({"tools": {}}, "tools"),
        ({"tools": [3]}, "tools[0]"),
        ({"tool_choice": 3}, "tool_choice"),
        ({"response_format": "json"}, "response_format"),
        ({"response_format": {"type": 3}}, "response_format.type"),
    ],
)
def test_wrong_types_name_the_field(fields: dict[str, Any], param: str) -> None:
    """A 400 points at the field, so that the caller need not guess."""
    messages = fields.pop("messages", HI)
    error = refused(messages, **fields)
    assert error.param == param


def test_a_conversation_keeps_its_digest_as_it_grows() -> None:
    """Later turns only append, so the digest is the first messages'; another question is another conversation."""
    start = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "one"}]
    first = chat(start).facts
    later = chat([*start, {"role": "assistant", "content": "1"}, {"role": "user", "content": "two"}]).facts
    assert first.conversation == later.conversation
    assert not first.session
    assert (first.turns, later.turns) == (1, 2)
    assert chat([start[0], {"role": "user", "content": "other"}]).facts.conversation != first.conversation
    assert chat([{"role": "system", "content": "Be long."}, start[1]]).facts.conversation != first.conversation


def test_the_named_conversation_wins() -> None:
    """Header, then prompt_cache_key, then user; each says that the client named it, and none equals another."""
    body = orjson.dumps({"model": "m", "messages": HI, "prompt_cache_key": "x", "user": "x"})
    by_header = read(Api.CHAT, body, session=b"x").facts
    by_key = read(Api.CHAT, body).facts
    by_user = chat(user="x").facts
    assert by_header.session and by_key.session and by_user.session
    assert len({by_header.conversation, by_key.conversation, by_user.conversation}) == 3
    assert chat([{"role": "user", "content": "else"}], user="x").facts.conversation == by_user.conversation


def test_facts_hold_no_prompt_text() -> None:
    """Nothing after the classifier can log what was asked, because the facts do not have it."""
    secret = "tangerine dream"
    facts = chat([{"role": "system", "content": secret}, {"role": "user", "content": secret}], user=secret).facts
    assert secret not in repr(facts)


def test_odd_calls_in_the_history_pass() -> None:
    """The inner shape of earlier calls is the runtime's business; only their text is counted."""
    calls = [3, {}, {"function": 3}, {"function": {"name": None, "arguments": {}}}, CALL]
    assert chat([*HI, {"role": "assistant", "tool_calls": calls}, {"content": "x"}]).texts.parts == (
        "hi",
        "f",
        "{}",
        "x",
    )
