"""Bodies of the four generating APIs read into one ask."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.simulator.ask import BadAskError
from gateway.simulator.reading import read_ask
from tests.unit.simulator.rig import DOCUMENTS, PAY, PERSON, WEATHER, ask, chat, json_schema


def test_same_question_in_every_api_has_the_same_identity() -> None:
    """The identity is that of the prompt, not of the API's spelling, the stream flag, the model's name or the user."""
    wanted = ask().identity
    text = "Tell me about whales in the ocean"
    assert ask("responses", model="x", input=text).identity == wanted
    assert (
        ask("messages", model="x", messages=[{"role": "user", "content": [{"type": "text", "text": text}]}]).identity
        == wanted
    )
    assert ask("completions", prompt=text).identity == wanted
    assert (
        ask(**chat(stream=True, user="u", model="other", max_tokens=7, stream_options={"include_usage": True})).identity
        == wanted
    )


@pytest.mark.parametrize("change", [{"seed": 1}, {"tools": [PAY]}, {"response_format": json_schema(PERSON)}])
def test_what_shapes_the_answer_is_in_the_identity(change: dict[str, Any]) -> None:
    """Seed, tools and format make it another request."""
    assert ask(**chat(**change)).identity != ask().identity


def test_prompt_tokens_are_bytes_over_the_ratio() -> None:
    """A token is four bytes of UTF-8, each message costs four for its template, tools count too."""
    assert ask(**chat("x" * 400)).prompt_tokens == 104
    assert ask(**chat("é" * 200)).prompt_tokens == 104
    assert read_ask("chat", chat("x" * 400), 2).prompt_tokens == 204
    assert ask(**chat("x" * 400, tools=[PAY])).prompt_tokens > 120


@given(st.lists(st.text(max_size=40), min_size=1, max_size=6))
def test_prefixes_grow_with_the_conversation(texts: list[str]) -> None:
    """A conversation's prefixes are the first of its continuation's: that is what the prefix cache lives on."""
    messages = [{"role": "user", "content": text} for text in texts]
    short = ask(model="m", messages=messages).prefixes
    longer = ask(model="m", messages=[*messages, {"role": "assistant", "content": "more"}]).prefixes
    assert longer[: len(short)] == short
    assert [tokens for _, tokens in longer] == sorted(tokens for _, tokens in longer)


@pytest.mark.parametrize(
    ("body", "task"),
    [
        (chat(), "chat"),
        (chat("Write a python function"), "code"),
        (chat(tools=[WEATHER]), "tools"),
        (chat(tools=[WEATHER], tool_choice="none"), "chat"),
        (chat(response_format={"type": "json_object"}), "json"),
        ({"messages": [{"role": "system", "content": DOCUMENTS}, {"role": "user", "content": "where?"}]}, "rag"),
        (chat("| a | b |\n|---|---|\n| x | 1 |\nWhat is b of x?"), "table"),
    ],
)
def test_task_is_seen(body: dict[str, Any], task: str) -> None:
    """The strongest sign in a request gives its task."""
    assert ask(**body).task == task


def test_sources_of_a_prompt() -> None:
    """Markers and the words behind them, in three spellings."""
    spelled = "Document 3: Mice eat cheese.\n"
    tagged = '<document id="a7">Birds fly south.</document>'
    for text, marker, words in (
        (DOCUMENTS, "[2]", "The dog barks in the garden."),
        (spelled, "[3]", "Mice eat cheese."),
        (tagged, "[a7]", "Birds fly south."),
    ):
        found = {source.marker: source.text for source in ask(**chat(text)).sources}
        assert found[marker] == words


def test_tool_choice_in_every_spelling() -> None:
    """auto, none, required (any), or a tool by name, as each API spells it."""
    named = {"type": "function", "function": {"name": "pay"}}
    assert ask(**chat(tools=[PAY], tool_choice=named)).choice == "pay"
    assert ask(**chat(tools=[PAY], tool_choice="required")).choice == "required"
    anthropic = {"name": "pay", "input_schema": {"type": "object"}}
    body = {"messages": [{"role": "user", "content": "hi"}], "tools": [anthropic]}
    assert ask("messages", **body, tool_choice={"type": "any"}).choice == "required"
    assert ask("messages", **body, tool_choice={"type": "tool", "name": "pay"}).choice == "pay"
    assert ask("responses", input="hi", tools=[{"type": "function", "name": "pay", "parameters": {}}]).choice == "auto"
    assert ask(**chat(tool_choice="required")).choice == "none", "without tools there is nothing to choose"


def test_tool_results_end_the_calling() -> None:
    """After a tool's result the expected answer is text, in every API."""
    result = [{"role": "user", "content": "go"}, {"role": "tool", "tool_call_id": "c", "content": "42"}]
    assert ask(messages=result, tools=[PAY]).calling is False
    assert ask(messages=result, tools=[PAY]).tool_result == "42"
    blocks = [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "42"}]}]
    assert ask("messages", messages=blocks, tools=[{"name": "pay"}]).tool_result == "42"
    items = [{"role": "user", "content": "go"}, {"type": "function_call_output", "call_id": "c", "output": "42"}]
    assert ask("responses", input=items, tools=[{"type": "function", "name": "pay"}]).tool_result == "42"
    assert ask(messages=result, tools=[PAY], tool_choice="required").calling is True


def test_structured_outputs_of_vllm() -> None:
    """structured_outputs is understood; the older guided_* are ignored, as vLLM does."""
    assert ask(**chat(structured_outputs={"choice": ["yes", "no"]})).options == ("yes", "no")
    assert ask(**chat(structured_outputs={"json": PERSON})).schema == PERSON
    assert ask(**chat(guided_json=PERSON)).schema is None


@pytest.mark.parametrize(
    ("api", "body", "param"),
    [
        ("chat", {}, "messages"),
        ("chat", {"messages": []}, "messages"),
        ("chat", {"messages": ["x"]}, "messages"),
        ("chat", chat(max_tokens="many"), "max_tokens"),
        ("chat", chat(response_format={"type": "json_schema"}), "response_format"),
        ("completions", {"prompt": []}, "prompt"),
        ("responses", {}, "input"),
        ("messages", {"messages": "x"}, "messages"),
    ],
)
def test_what_is_missing_is_named(api: str, body: dict[str, Any], param: str) -> None:
    """A body without what its API needs is refused with the field's name."""
    with pytest.raises(BadAskError) as caught:
        read_ask(api, body, 4)
    assert caught.value.param == param


def test_completions_take_token_ids_and_batches() -> None:
    """A prompt of ids counts its ids; a batch of prompts gives as many choices."""
    assert ask("completions", prompt=[5, 6, 7]).prompt_tokens == 3 + 4
    assert ask("completions", prompt=["a", "b"], n=2).prompts == 2
