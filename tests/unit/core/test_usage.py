"""The stripper takes out the usage event and nothing else, however the bytes are split."""

from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.core.sse import Scanner
from gateway.core.usage import STRIP_MOST, UsageStripper


def event(value: Any, end: bytes = b"\n") -> bytes:
    """One event with this JSON as data."""
    return b"data: " + orjson.dumps(value) + end + end


USAGE = {"prompt_tokens": 3, "completion_tokens": 2}
CONTENT = event({"choices": [{"index": 0, "delta": {"content": 'say "usage" please'}}]})
WITH_USAGE = event({"choices": [{"index": 0, "delta": {"content": "x"}}], "usage": USAGE})
NULL_USAGE = event({"choices": [], "usage": None})
ERROR = event({"error": {"message": "x"}, "usage": USAGE})
DONE = b"data: [DONE]\n\n"
KEPT = [
    CONTENT,
    WITH_USAGE,
    NULL_USAGE,
    ERROR,
    DONE,
    b": alive\n\n",
    b'data: "usage" no json\n\n',
    b"\n",
    b'data: {"usage":[]}\n\n',
]
LONG = event({"choices": [], "pad": "x" * 2 * STRIP_MOST, "usage": USAGE})
TAKEN = [
    event({"choices": [], "usage": USAGE}),
    event({"choices": None, "usage": USAGE}),
    event({"usage": USAGE}),
    event({"choices": [], "usage": USAGE}, end=b"\r\n"),
    event({"choices": [], "usage": USAGE}, end=b"\r"),
]


def passed(*pieces: bytes) -> bytes:
    """All that goes to the client."""
    stripper = UsageStripper()
    return b"".join([*(stripper.feed(piece) for piece in pieces), stripper.flush()])


@st.composite
def splits(draw: st.DrawFn) -> tuple[list[bytes], list[bytes]]:
    """Events, and one way to cut their bytes."""
    events = draw(
        st.lists(st.sampled_from([*KEPT, *TAKEN, LONG, CONTENT.replace(b"\n", b"\r"), b"data: cut"]), max_size=8)
    )
    stream = b"".join(events)
    cuts = sorted(draw(st.lists(st.integers(0, len(stream)), max_size=10)))
    return events, [stream[start:end] for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)]


@settings(max_examples=400)
@given(splits())
def test_any_split_passes_the_same(split: tuple[list[bytes], list[bytes]]) -> None:
    """The bytes that go on do not depend on how they came."""
    events, pieces = split
    whole = passed(b"".join(events))
    assert passed(*pieces) == whole
    if len(whole) < 1_500:
        stream = b"".join(events)
        assert passed(*[stream[at : at + 1] for at in range(len(stream))]) == whole


@given(st.lists(st.sampled_from([*KEPT[:-2], *TAKEN]), max_size=10))
def test_only_usage_events_are_taken(events: list[bytes]) -> None:
    """What remains is exactly the other events, byte for byte."""
    assert passed(*events) == b"".join(piece for piece in events if piece not in TAKEN)


@given(st.lists(st.binary(max_size=40), max_size=6))
def test_streams_without_usage_pass_whole(pieces: list[bytes]) -> None:
    """Any bytes at all without a usage event come out as they went in."""
    stream = b"".join(pieces)
    if b"usage" not in stream:
        assert passed(*pieces) == stream


def test_the_quick_way_copies_nothing() -> None:
    """A read of whole events without usage is passed on as the same object."""
    stripper = UsageStripper()
    assert stripper.feed(DONE) is DONE
    assert stripper.feed(b": alive\n\n") == b": alive\n\n"


@pytest.mark.parametrize("taken", TAKEN)
def test_usage_events_are_taken_out(taken: bytes) -> None:
    """Empty, null and missing choices (B22), LF, CRLF and CR."""
    stripper = UsageStripper()
    assert stripper.feed(CONTENT + taken) + stripper.feed(DONE) == CONTENT + DONE


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_an_event_goes_on_as_soon_as_it_is_whole(end: bytes) -> None:
    """Nothing waits for the next event, whichever line end the runtime uses (B05)."""
    stripper = UsageStripper()
    whole = event({"choices": [{"delta": {"content": "a"}}]}, end=end)
    assert stripper.feed(whole[:20]) == b""
    assert stripper.feed(whole[20:]) == whole


def test_long_events_are_not_held() -> None:
    """Past the bound an event goes through as it comes (B10), and stripping goes on after it."""
    stripper = UsageStripper()
    pieces = [LONG[at : at + 4_000] for at in range(0, len(LONG), 4_000)]
    out = [stripper.feed(piece) for piece in pieces]
    assert b"".join(out) == LONG
    assert not any(out[:4])
    assert all(out[4:])
    assert stripper.feed(TAKEN[0]) == b""
    assert stripper.feed(DONE) == DONE


def test_flush_gives_back_what_is_held() -> None:
    """A stream cut in the middle of an event reaches the client as it was cut."""
    stripper = UsageStripper()
    assert stripper.feed(b"data: {") == b""
    assert stripper.flush() == b"data: {"
    assert stripper.flush() == b""


@pytest.mark.parametrize("extra", [-1, 0, 1])
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_the_bound_is_the_same_for_any_split(extra: int, end: bytes) -> None:
    """At the bound itself the result must not depend on how the bytes came."""
    empty = event({"choices": [], "pad": "", "usage": USAGE}, end)
    size = STRIP_MOST + extra - (len(empty) - 2 * len(end))
    whole = event({"choices": [], "pad": "x" * size, "usage": USAGE}, end)
    wanted = DONE if extra <= 0 else whole + DONE
    for cut in range(len(whole) - 6, len(whole) + 1):
        assert passed(whole[:cut], whole[cut:] + DONE) == wanted
    assert passed(whole[:50], whole[50:-3], whole[-3:-2], whole[-2:-1], whole[-1:], b"", DONE) == wanted


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_the_end_of_a_long_event_in_pieces(end: bytes) -> None:
    """A long event's blank line may come byte by byte; what follows is judged again."""
    long = b"data: " + b"x" * 2 * STRIP_MOST
    rest = end + end + TAKEN[0] + DONE
    assert passed(long, *[rest[at : at + 1] for at in range(len(rest))]) == long + end + end + DONE
    assert passed(long + end, end + TAKEN[0], DONE) == long + end + end + DONE


@pytest.mark.parametrize("data", [b"", b'not json, but with "usage"', b"3"])
def test_odd_events_with_the_word(data: bytes) -> None:
    """What only looks like usage passes."""
    block = b'event: "usage"\ndata: ' + data + b"\n\n"
    assert passed(block, DONE) == block + DONE
    assert passed(b': "usage"\n\n') == b': "usage"\n\n'


@given(splits())
def test_knowing_what_is_one_event_changes_nothing(made: tuple[list[bytes], list[bytes]]) -> None:
    """A scanner that has looked at the same bytes spares the stripper work, and no byte is another one for it."""
    _, pieces = made
    scanner, told, alone = Scanner(), UsageStripper(), UsageStripper()
    for piece in pieces:
        scanner.feed(piece)
        assert told.feed(piece, one_event=scanner.one_event) == alone.feed(piece)
    assert told.flush() == alone.flush()


def test_output_that_speaks_of_usage_goes_on_as_it_is() -> None:
    """vLLM says ``"usage":null`` in each event: known to be one event of output, it is not even copied."""
    stripper = UsageStripper()
    for number in (1, 22, 333):
        data = event({"id": number, "choices": [{"delta": {"content": "x"}}], "usage": None})
        assert stripper.feed(data, one_event=True) is data
    usage = event({"choices": [], "usage": USAGE})
    assert stripper.feed(usage, one_event=True) == b""
