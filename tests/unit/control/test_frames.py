"""Frames on the socket between control and workers."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.control import frames
from gateway.model.messages import Hello, Outcomes, Prepared, ToWorker
from tests.unit.dataplane.outcome_values import sent


def test_a_frame_is_its_length_and_one_message():
    """What one side encodes the other decodes, and the head says exactly how much to read."""
    frame = frames.encode(Hello(3, 77, 12))
    assert frames.body_length(frame[: frames.HEAD_BYTES]) == len(frame) - frames.HEAD_BYTES
    assert frames.decode_to_control(frame[frames.HEAD_BYTES :]) == Hello(3, 77, 12)


def test_every_kind_of_worker_message_is_told_apart(outcome):
    """The tag decides, not the shape: messages of equal length decode to their own type."""
    for message in (Hello(1, 2, 3), Prepared(1, 2, "no")):
        assert frames.decode_to_control(frames.encode(message)[4:]) == message
    made = sent(outcome(), outcome(status=500))
    found = frames.decode_to_control(frames.encode(Outcomes(7, 4, made, 2))[4:])
    assert isinstance(found, Outcomes)
    assert (found.worker, found.dropped, found.captures_dropped) == (7, 4, 2)
    assert found.batch == made


def test_a_length_over_the_limit_is_refused_before_it_is_read():
    """A peer cannot make control reserve gigabytes by a length field."""
    with pytest.raises(frames.FrameError, match="over the limit"):
        frames.body_length(b"\xff\xff\xff\xff")


@given(st.binary(max_size=200))
def test_nonsense_is_a_frame_error_and_nothing_else(body):
    """Whatever bytes arrive, decoding gives a worker's message or ``FrameError``."""
    try:
        message = frames.decode_to_control(body)
    except frames.FrameError:
        return
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(message)) is not None


def test_messages_to_workers_are_not_messages_of_workers():
    """A process that plays control cannot be mistaken for a worker."""
    for kind in ToWorker.__args__:
        tag = kind.__struct_config__.tag
        with pytest.raises(frames.FrameError):
            frames.decode_to_control(msgspec.msgpack.encode([tag]))
