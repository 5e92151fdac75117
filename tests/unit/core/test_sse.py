"""The scanner tells the same about a stream however its bytes are split, and never disturbs it."""

from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.core.sse import FIRST_EVENT_MOST, TAIL_BYTES, AnswerInfo, Scanner, finish_info


def event(value: Any, end: bytes = b"\n", space: bytes = b" ") -> bytes:
    """One event with this JSON as data."""
    return b"data:" + space + orjson.dumps(value) + end + end


def chunk(content: str, index: int = 0, **choice: Any) -> dict[str, Any]:
    """A chat chunk with this content."""
    return {"id": "a", "choices": [{"index": index, "delta": {"content": content}, "finish_reason": None, **choice}]}


ROLE = event({"id": "a", "choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]})
FIN = event({"id": "a", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
USAGE = event({"id": "a", "choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}})
ERROR = event({"error": {"message": "queue full", "type": "overloaded", "code": 503}})
DONE = b"data: [DONE]\n\n"


def scanned(*pieces: bytes) -> Scanner:
    """A scanner that was fed these pieces."""
    scanner = Scanner()
    for piece in pieces:
        scanner.feed(piece)
    return scanner


def facts(scanner: Scanner) -> tuple[Any, ...]:
    """All that a scanner tells."""
    return scanner.events, scanner.bytes, scanner.content, scanner.error, scanner.at_boundary, scanner.info()


_PIECES = st.sampled_from(
    [
        ROLE,
        event(chunk("é")),
        event(chunk("x"), end=b"\r\n"),
        event(chunk("x"), end=b"\r"),
        event(chunk("x"), space=b""),
        event(chunk("one")) + event(chunk("two")),
        event(chunk("x" * 5_000)),
        event({"type": "transcript.text.done", "text": "x" * 5_000}),
        event({"text": "x" * 5_000, "type": "transcript.text.done"}, end=b"\r"),
        FIN,
        USAGE,
        event({"choices": None, "usage": {"prompt_tokens": 3}}),
        event({"usage": {"prompt_tokens": 4}}),
        ERROR,
        DONE,
        b"data:[DONE]\r\n\r\n",
        b": PROCESSING\n\n",
        b": half",
        b"event: ping\ndata: {}\n\n",
        b"event: message_stop\ndata: {}\n\n",
        b"data: not json\n\n",
        b"data: [1]\n\n",
        b"data: {\ndata: }\n\n",
        b"data",
        b"\n",
        b"\r",
        b"\r\n",
        b"data: x",
    ]
)


@st.composite
def splits(draw: st.DrawFn) -> tuple[bytes, list[bytes]]:
    """A stream, and one way to cut it."""
    stream = b"".join(draw(st.lists(_PIECES, max_size=10)))
    cuts = sorted(draw(st.lists(st.integers(0, len(stream)), max_size=12)))
    return stream, [stream[start:end] for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)]


@settings(max_examples=500)
@given(splits())
def test_any_split_tells_the_same(split: tuple[bytes, list[bytes]]) -> None:
    """Whole, cut anywhere, or byte by byte: events, content, errors, usage, finish and end are the same (B01, B03)."""
    stream, pieces = split
    whole = facts(scanned(stream))
    assert facts(scanned(*pieces)) == whole
    if len(stream) < 1_000:
        assert facts(scanned(*[stream[at : at + 1] for at in range(len(stream))])) == whole


@pytest.mark.parametrize(
    ("pieces", "rests"),
    [
        ([b": ping\n\n"], True),
        ([b":\r\n\r\n", b"retry: 5\n\n"], True),
        ([b"data: {}\n\n", b":\n\n"], True),
        ([b"data: {}"], False),
        ([b"data: {}\n"], False),
        ([b'data: {"a":', b" 1"], False),
        ([b"event: x\ndata: {}\n", b":\n"], False),
    ],
)
def test_a_stream_rests_between_events(pieces: list[bytes], rests: bool) -> None:
    """Comments leave it at rest, a part of an event does not, whatever stands between."""
    assert scanned(*pieces).at_rest is rests


@given(splits())
def test_events_are_what_the_rules_say(split: tuple[bytes, list[bytes]]) -> None:
    """The count equals a plain line-by-line reading of the event-stream rules."""
    stream, pieces = split
    events, has_data = 0, False
    lines = stream.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    for line in lines[:-1]:
        if not line:
            events += has_data
            has_data = False
        elif line.partition(b":")[0] == b"data":
            has_data = True
    assert scanned(*pieces).events == events


def test_feed_returns_the_events_it_ended() -> None:
    """So a relay can tell progress from life signs."""
    scanner = Scanner()
    assert scanner.feed(ROLE[:10]) == 0
    assert scanner.feed(ROLE[10:]) == 1
    assert scanner.feed(b"") == 0
    assert scanner.feed(event(chunk("a")) * 3) == 3
    assert scanner.feed(b": alive\n\n") == 0
    assert scanner.events == 4


def test_content_starts_with_output_only() -> None:
    """Comments (B08) and the role-only chunk are no output; reasoning (B36) and tool calls are."""
    scanner = scanned(b": PROCESSING\n\n", ROLE, b": PROCESSING\n\n")
    assert not scanner.content
    assert scanner.events == 1
    scanner.feed(event({"choices": [{"index": 0, "delta": {"reasoning": "think"}}]}))
    assert scanner.content


def test_a_half_event_is_no_event() -> None:
    """An event exists at its blank line, not before, and what is unfinished is no error (B01)."""
    whole = event(chunk("hello"))
    scanner = scanned(whole[:-1])
    assert (scanner.events, scanner.content, scanner.error, scanner.at_boundary) == (0, False, None, False)
    scanner.feed(whole[-1:])
    assert (scanner.events, scanner.content, scanner.at_boundary) == (1, True, True)


@pytest.mark.parametrize("size", [50_000, 700_000])
def test_one_very_long_event(size: int) -> None:
    """A 700 kB line is counted and is output, and no more of it is kept than the tail (B10)."""
    data = event(chunk("x" * size))
    scanner = scanned(*[data[at : at + 16_384] for at in range(0, len(data), 16_384)], FIN, DONE)
    assert (scanner.events, scanner.content) == (3, True)
    assert scanner.info() == AnswerInfo(finish_reason="stop", done=True)
    held = sum(len(piece) for piece in scanner._tail) + len(scanner._buffer)
    assert held <= TAIL_BYTES + 2_048


@pytest.mark.parametrize("extra", [-1, 0, 1])
def test_the_bound_on_a_first_event_is_the_same_for_any_split(extra: int) -> None:
    """At the bound itself the result must not depend on how the bytes came."""
    empty = event({"choices": [], "pad": ""})
    data = event({"choices": [], "pad": "x" * (FIRST_EVENT_MOST - len(empty) + 2 + extra)})
    assert len(data) == FIRST_EVENT_MOST + 2 + extra
    for cut in (len(data), len(data) - 1, len(data) - 2, 100):
        assert scanned(data[:cut], data[cut:]).content is (extra > 0)


def test_memory_is_bounded_over_a_long_stream() -> None:
    """However long a stream runs, the scanner holds its last bytes only."""
    scanner = Scanner()
    for _ in range(5_000):
        scanner.feed(event(chunk("token")))
    assert scanner.events == 5_000
    assert sum(len(piece) for piece in scanner._tail) <= TAIL_BYTES + 2_048
    assert len(scanner._tail) < 100
    assert not scanner._buffer


def test_a_normal_end() -> None:
    """Finish, usage and terminator come from the stream's last bytes."""
    scanner = scanned(ROLE, *[event(chunk("token"))] * 300, FIN, USAGE, DONE)
    assert scanner.info() == AnswerInfo(3, -1, 2, "stop", None, True)


@pytest.mark.parametrize("choices", [[], None, ...])
def test_usage_without_choices(choices: Any) -> None:
    """Empty, null and missing choices are the same usage event (B22)."""
    value: dict[str, Any] = {"usage": {"prompt_tokens": 1, "completion_tokens": 1}}
    if choices is not ...:
        value["choices"] = choices
    info = scanned(event(chunk("a")), FIN, event(value), DONE).info()
    assert (info.prompt_tokens, info.completion_tokens) == (1, 1)


def test_usage_in_every_chunk() -> None:
    """With continuous usage the last one counts, also when later chunks have a null in its place."""
    running = [event({**chunk("a"), "usage": {"prompt_tokens": 3, "completion_tokens": n}}) for n in range(1, 4)]
    assert scanned(*running, DONE).info().completion_tokens == 3
    assert scanned(*running, event({**chunk("a"), "usage": None}), DONE).info().completion_tokens == 3


def test_no_terminator() -> None:
    """A stream that ends without [DONE] says so; its finish reason is still known."""
    info = scanned(event(chunk("a")), FIN).info()
    assert (info.done, info.finish_reason) == (False, "stop")
    cut = scanned(event(chunk("a")), event(chunk("b"))[:20]).info()
    assert (cut.done, cut.finish_reason, cut.error) == (False, "", None)
    assert scanned(event(chunk("a")), FIN, b"data: [DONE]").info().done


def test_error_before_output() -> None:
    """Known at once, so that the real status can be sent (B17, B19)."""
    scanner = scanned(ERROR)
    assert scanner.error == {"message": "queue full", "type": "overloaded", "code": 503}
    assert not scanner.content


def test_error_after_output() -> None:
    """Known at the end: the engine died in the middle and the server still said [DONE]."""
    scanner = scanned(event(chunk("par")), ERROR, DONE)
    assert scanner.error is None
    info = scanner.info()
    assert (info.error or {}).get("code") == 503
    assert (info.done, info.finish_reason) == (True, "")


def test_text_that_looks_like_events() -> None:
    """A model that writes about [DONE], errors and usage has not ended, failed or used anything."""
    text = 'data: [DONE]\n\n{"error":{"message":"x"}} "usage":{"prompt_tokens":9} "finish_reason":"stop"'
    scanner = scanned(event(chunk(text)), event(chunk(text)))
    assert scanner.events == 2
    assert scanner.info() == AnswerInfo()


def test_several_choices() -> None:
    """Interleaved choices (B37): output of any of them starts the clock, the last finish is told."""
    scanner = scanned(
        event(chunk("b", index=1)),
        event(chunk("a")),
        event(chunk("", index=1, finish_reason="length")),
        event(chunk("", finish_reason="stop")),
        DONE,
    )
    assert scanner.content
    assert scanner.info().finish_reason == "stop"


def test_messages_stream() -> None:
    """Anthropic's events: the prompt's size at the start, the completion's at the end, message_stop as terminator."""
    named = [
        (
            "message_start",
            {"message": {"usage": {"input_tokens": 25, "cache_read_input_tokens": 5, "output_tokens": 1}}},
        ),
        ("content_block_start", {"index": 0, "content_block": {"type": "text", "text": ""}}),
        ("ping", {}),
        *[("content_block_delta", {"index": 0, "delta": {"type": "text_delta", "text": "token"}})] * 100,
        ("content_block_stop", {"index": 0}),
        ("message_delta", {"delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 15}}),
        ("message_stop", {}),
    ]
    pieces = [b"event: %b\n" % kind.encode() + event({"type": kind, **value}) for kind, value in named]
    assert not scanned(*pieces[:3]).content
    assert scanned(*pieces[:4]).content
    scanner = scanned(*pieces)
    assert scanner.events == len(named)
    assert scanner.info() == AnswerInfo(30, 5, 15, "stop", None, True)
    assert facts(scanned(b"".join(pieces))) == facts(scanner)


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ({"input_tokens": 20, "cache_read_input_tokens": 80}, {"output_tokens": 9}),
        (
            {"input_tokens": 0, "output_tokens": 0},
            {"input_tokens": 20, "cache_read_input_tokens": 80, "output_tokens": 9},
        ),
        ({"input_tokens": 100}, {"input_tokens": 20, "cache_read_input_tokens": 80, "output_tokens": 9}),
        ({"input_tokens": 20, "cache_read_input_tokens": 80}, {"input_tokens": 20, "output_tokens": 9}),
    ],
    ids=["start", "end", "cache-at-end", "end-without-cache"],
)
def test_messages_usage_at_either_end(start: dict[str, int], end: dict[str, int]) -> None:
    """Runtimes tell a prompt's parts at the start, at the end or at both; none of it is lost, none counted twice."""
    scanner = scanned(
        event({"type": "message_start", "message": {"usage": start}}),
        event({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "token"}}) * 100,
        event({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": end}),
        event({"type": "message_stop"}),
    )
    assert scanner.info() == AnswerInfo(100, 80, 9, "stop", None, True)


def test_a_long_final_event_is_known_by_its_type_alone() -> None:
    """Where no line names events, the number that stands before the type does not hide it."""
    response = {"object": "response", "status": "completed", "output": "x" * 20_000, "usage": {"output_tokens": 2}}
    scanner = scanned(
        event({"type": "response.output_text.delta", "sequence_number": 4, "delta": "hi"}),
        event({"sequence_number": 1_234_567, "type": "response.completed", "response": response}),
    )
    assert scanner.info() == AnswerInfo(-1, -1, 2, "stop", None, True)


@pytest.mark.parametrize("size", [10, 20_000])
def test_responses_stream(size: int) -> None:
    """The final event repeats the whole answer: usage, reason and terminator are found though its head is not kept."""
    output = [{"type": "message", "content": [{"type": "output_text", "text": "x" * size}]}]
    usage = {"input_tokens": 8, "input_tokens_details": {"cached_tokens": 2}, "output_tokens": 9}
    response = {"object": "response", "status": "completed", "output": output, "usage": usage}
    named: list[tuple[str, dict[str, Any]]] = [
        ("response.created", {"response": {"object": "response", "status": "in_progress", "error": None}}),
        ("response.output_item.added", {"item": {"type": "message", "content": []}}),
        ("response.output_text.delta", {"delta": "x"}),
        ("response.completed", {"response": response}),
    ]
    pieces = [b"event: %b\n" % kind.encode() + event({"type": kind, **value}) for kind, value in named]
    assert not scanned(*pieces[:2]).content
    scanner = scanned(*pieces)
    assert (scanner.events, scanner.content) == (4, True)
    assert scanner.info() == AnswerInfo(8, 2, 9, "stop", None, True)


@pytest.mark.parametrize(("name", "reason"), [("response.incomplete", "length"), ("response.failed", "error")])
def test_responses_that_end_otherwise(name: str, reason: str) -> None:
    """The event's own name tells, where its data is too long to keep."""
    start = b"event: response.output_text.delta\n" + event({"type": "response.output_text.delta", "delta": "x"})
    last = b"event: %b\n" % name.encode() + event({"type": name, "response": {"output": "x" * 20_000}})
    info = scanned(start, last).info()
    assert (info.finish_reason, info.done) == (reason, True)


@pytest.mark.parametrize("size", [5, 4_000, 4_050, 5_000, 20_000])
@pytest.mark.parametrize("first", [True, False], ids=["type-first", "type-last"])
def test_transcripts_end_by_type(size: int, first: bool) -> None:
    """OpenAI names no events here and sends no [DONE]; the last one repeats the whole text."""
    kind, rest = {"type": "transcript.text.done"}, {"text": 'x"type":"' * (size // 9), "usage": {"type": "tokens"}}
    pieces = [event({"type": "transcript.text.delta", "delta": "x"})] * 200
    assert not scanned(*pieces).info().done
    assert scanned(*pieces, event({**kind, **rest} if first else {**rest, **kind})).info().done
    quoted = {"type": "transcript.text.delta", "delta": '{"type":"transcript.text.done"}' + "x" * size}
    assert not scanned(*pieces, event(quoted)).info().done


def test_speech_ends_by_type() -> None:
    """Audio in the field of its own is output, and the last event tells the usage."""
    done = {"type": "speech.audio.done", "usage": {"input_tokens": 3, "output_tokens": 9, "total_tokens": 12}}
    scanner = scanned(event({"type": "speech.audio.delta", "audio": "AAAA"}), event(done))
    assert scanner.content
    assert scanner.info() == AnswerInfo(3, -1, 9, "", None, True)


def test_malformed_data_is_passed_for_output() -> None:
    """What the scanner cannot read is committed as it is: holding it back would hold it for ever."""
    assert scanned(b"data: not json\n\n").content
    assert not scanned(b"data: [1]\n\n", b"data:\n\n").content


def test_lone_surrogates_are_output() -> None:
    """Half a pair in a delta is a delta (B104)."""
    assert scanned(b'data: {"choices":[{"delta":{"content":"\\ud83d"}}]}\n\n').content


@pytest.mark.parametrize(
    ("stream", "at_boundary"),
    [
        (b"", True),
        (b"data: x\n\n", True),
        (b"data: x\r\n\r\n", True),
        (b"data: x\r\r", True),
        (b"data: x\n\r\n", True),
        (b"data: x\r\n", False),
        (b"data: x\n", False),
        (b"data: x\n\nevent: y\n", False),
        (b": x\n", False),
    ],
)
def test_at_boundary(stream: bytes, at_boundary: bool) -> None:
    """Whether an event of the gateway's own may follow without being glued to half of another."""
    assert scanned(stream).at_boundary is at_boundary


@given(st.binary(max_size=200), st.booleans())
def test_any_tail_is_read(tail: bytes, whole: bool) -> None:
    """No bytes break the look back (B21)."""
    assert isinstance(finish_info(tail, whole=whole), AnswerInfo)


@given(
    st.sampled_from(["type", "usage", "error", "choices", "response"]), st.sampled_from([[], {}, 3, "x", None, [[]]])
)
def test_odd_events_break_nothing(key: str, value: Any) -> None:
    """Fields of any type in an event are survived, before and after output."""
    odd = event({key: value})
    scanned(odd, DONE).info()
    scanned(event(chunk("a")), odd, DONE).info()
