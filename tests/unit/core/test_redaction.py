"""Redaction: however a secret is written, it is gone, and what is kept is still the same JSON and the same events."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.assemble import assemble
from gateway.core.redaction import MASK, Redactor

SECRET = "AKIA/Q7 key"
REDACTOR = Redactor((r"AKIA/Q7 k\w+", r"\b\d{16}\b"))
WORD = MASK.decode()
SPELLINGS = [
    SECRET,
    SECRET.replace("/", "\\/"),
    SECRET.replace("A", "\\u0041"),
    "".join(f"\\u{ord(character):04X}" for character in SECRET),
]


def chunk(index: int = 0, **delta: Any) -> dict[str, Any]:
    """A chunk of a chat completion."""
    return {"id": "c", "object": "chat.completion.chunk", "model": "m", "choices": [{"delta": delta, "index": index}]}


def stream(*values: Any) -> bytes:
    """Events with these data, and the end."""
    return "".join(f"data: {json.dumps(value)}\n\n" for value in values).encode() + b"data: [DONE]\n\n"


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_escapes_hide_nothing(spelling: str) -> None:
    """In a request as in an answer; what is kept is the same JSON but for the mask."""
    raw = f'{{"messages":[{{"role":"user","content":"my {spelling}, \\"ok\\""}}],"n":1.50}}'.encode()
    expected = f'{{"messages":[{{"role":"user","content":"my {WORD}, \\"ok\\""}}],"n":1.50}}'.encode()
    assert REDACTOR.text(raw) == REDACTOR.answer(raw) == expected


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("depth", [1, 2])
def test_arguments_of_tools_are_json_in_a_string(spelling: str, depth: int) -> None:
    """And may hold JSON in strings themselves; after the mask they are still arguments."""
    arguments = f'{{"token": "{spelling}", "city": "Oslo"}}'
    inner = {"token": WORD, "city": "Oslo"}
    for _ in range(depth - 1):
        arguments = json.dumps({"inner": arguments})
    message = {"tool_calls": [{"id": "1", "function": {"name": "f", "arguments": arguments}}]}
    found = json.loads(REDACTOR.answer(json.dumps({"choices": [{"message": message}]}).encode()))
    read = json.loads(found["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"])
    assert (json.loads(read["inner"]) if depth == 2 else read) == inner


@pytest.mark.parametrize("at", range(1, len(SECRET)))
def test_a_secret_that_is_split_over_two_deltas_is_found(at: int) -> None:
    """Wherever it is split; the stream has the same events, and assembles to the masked text."""
    raw = stream(
        chunk(role="assistant", content=""),
        chunk(content=f"take {SECRET[:at]}"),
        chunk(1, content="another choice"),
        chunk(content=f"{SECRET[at:]} and go"),
    )
    clean = REDACTOR.answer(raw)
    found = assemble(b"{}", clean)
    assert [choice.text for choice in found.choices] == [f"take {WORD} and go", "another choice"]
    assert (found.events, found.broken_events, found.done) == (5, 0, True)
    assert clean.count(b"data: ") == raw.count(b"data: ")


@given(st.lists(st.integers(1, 30), max_size=12), st.sampled_from(SPELLINGS))
def test_a_secret_is_found_in_any_pieces(cuts: list[int], spelling: str) -> None:
    """One character a delta, the whole text in one, or anything between; as text, and escaped in a tool's arguments."""
    text, at = json.dumps({"note": f"take {SECRET}, go"}).replace(SECRET, spelling), 0
    pieces = []
    for cut in cuts:
        pieces.append(text[at : at + cut])
        at += cut
    pieces.append(text[at:])
    calls = [chunk(tool_calls=[{"index": 0, "id": "1", "function": {"name": "f", "arguments": one}}]) for one in pieces]
    (choice,) = assemble(b"{}", REDACTOR.answer(stream(*calls))).choices
    assert json.loads(choice.tool_calls[0].arguments) == {"note": f"take {WORD}, go"}
    raw = stream(*(chunk(content=one) for one in pieces))
    assert json.loads(assemble(b"{}", REDACTOR.answer(raw)).choices[0].text) == {"note": f"take {WORD}, go"}


def test_events_of_the_other_apis_are_joined_too() -> None:
    """Deltas of blocks and of output items, each of its own text; the final event repeats the whole."""
    half = len(SECRET) // 2
    blocks = [
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": SECRET[:half]}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": SECRET[half:]}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": SECRET[half:]}},
    ]
    found = [json.loads(line[6:]) for line in REDACTOR.answer(stream(*blocks)).splitlines()[:-2] if line]
    assert [event["delta"]["text"] for event in found] == [WORD, SECRET[half:], ""]
    kind = "response.output_text.delta"
    items = [
        {"type": kind, "item_id": "1", "delta": SECRET[:half]},
        {"type": kind, "item_id": "1", "delta": SECRET[half:]},
        {"type": "response.output_text.done", "item_id": "1", "text": f"so: {SECRET}"},
    ]
    found = [json.loads(line[6:]) for line in REDACTOR.answer(stream(*items)).splitlines()[:-2] if line]
    assert [event.get("delta", event.get("text")) for event in found] == [WORD, "", f"so: {WORD}"]


def test_token_probabilities_do_not_spell_it_again() -> None:
    """They go where anything was found, from bodies and streams, and stay where nothing was."""
    logprobs = {"content": [{"token": one, "bytes": list(one.encode())} for one in (SECRET[:4], SECRET[4:])]}
    for raw in (
        json.dumps({"choices": [{"message": {"content": SECRET}, "logprobs": logprobs}]}).encode(),
        stream({"choices": [{"index": 0, "delta": {"content": SECRET}, "logprobs": logprobs}]}),
    ):
        clean = REDACTOR.answer(raw)
        assert MASK in clean
        assert b"token" not in clean
        harmless = raw.replace(SECRET.encode(), b"nothing")
        assert REDACTOR.answer(harmless) == harmless


def test_a_number_becomes_a_text() -> None:
    """A card that stands there as a number is masked whole, and the JSON can still be read."""
    raw = b'{"card": 4111111111111111, "pin": 12, "list": [4111111111111111], "text": "4111111111111111"}'
    assert json.loads(REDACTOR.text(raw)) == {"card": WORD, "pin": 12, "list": [WORD], "text": WORD}
    part = Redactor((r"\d{4}",))
    assert json.loads(part.text(b'{"pin": -12345.5e3}')) == {"pin": WORD}


def test_a_word_bounds_where_the_text_says() -> None:
    """The letter of an escape is no letter of the text: after a line break a number begins."""
    raw = json.dumps({"content": "card:\n4111111111111111\n"}).encode()
    assert json.loads(REDACTOR.text(raw)) == {"content": f"card:\n{WORD}\n"}


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b'{"a": "\\',
        b"\xff\xfe",
        b"data: {\n\ndata: \xff\n\n",
        b"data: [1, 2]\n\n",
        b"event: x\n\n",
        b"[" * 2000,
    ],
)
def test_what_cannot_be_read_is_looked_at_as_it_is(raw: bytes) -> None:
    """Nothing found, nothing changed, nothing raised; and a secret in it is found."""
    assert REDACTOR.text(raw) == REDACTOR.answer(raw) == raw
    assert SECRET.encode() not in REDACTOR.answer(raw + SECRET.encode())
    assert MASK in REDACTOR.text(raw + SECRET.encode())


def test_without_patterns_nothing_is_looked_at() -> None:
    """And every byte stays."""
    assert Redactor(()).answer(stream(chunk(content=SECRET))) == stream(chunk(content=SECRET))


@given(st.binary(max_size=200))
def test_any_bytes_come_back_without_what_is_found(raw: bytes) -> None:
    """As a request and as an answer."""
    redactor = Redactor(("a+",))
    assert b"a" not in redactor.text(raw).replace(MASK, b"")
    assert b"a" not in redactor.answer(raw).replace(MASK, b"")
