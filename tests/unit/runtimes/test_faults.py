"""Whatever shape an error body has, its message, type, code and parameter are found, and nothing else."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.runtimes.faults import MESSAGE_CHARS, Fault, read_fault


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        (
            b'{"error":{"message":"no","type":"NotFoundError","param":"model","code":404}}',
            Fault("no", "NotFoundError", "404", "model"),
        ),
        (b'{"error":"Unauthorized"}', Fault("Unauthorized")),
        (
            b'{"object":"error","message":"bad","type":"BadRequestError","param":null,"code":400}',
            Fault("bad", "BadRequestError", "400"),
        ),
        (b'{"message":"busy"}', Fault("busy")),
        (b'{"detail":"Server is pinned to x"}', Fault("Server is pinned to x")),
        (
            b'{"detail":[{"loc":["body","top_k"],"msg":"Extra inputs","input":"SECRET"}]}',
            Fault("top_k: Extra inputs", param="top_k"),
        ),
        (
            b'{"detail":{"error":{"message":"valid api key!","type":"invalid_request","code":"invalid_api_key"}}}',
            Fault("valid api key!", "invalid_request", "invalid_api_key"),
        ),
        (
            b'{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}',
            Fault("Loading model", "unavailable_error", "503"),
        ),
        (b"Internal Server Error", Fault("Internal Server Error")),
        (b'"text"', Fault("text")),
        (b"", Fault("")),
        (b"[]", Fault("")),
        (b'{"detail":[]}', Fault("")),
        (b'{"detail":["odd"]}', Fault("odd")),
        (b'{"error":{}}', Fault("")),
        (b'{"error":[{"loc":null}]}', Fault("invalid")),
        (b'{"detail":[{"loc":"body","msg":"odd"}]}', Fault("odd")),
        (b'{"detail":[{"loc":7,"msg":"odd"},{}]}', Fault("odd; invalid")),
        (b'{"error":' * 900 + b"{}" + b"}" * 900, Fault("")),
    ],
)
def test_known_shapes(body: bytes, fault: Fault) -> None:
    """Each shape that a runtime sends is read, and the input a validator quotes is not kept."""
    assert fault == read_fault(body)


def test_a_long_message_is_cut() -> None:
    """A traceback in a message does not travel on whole."""
    message = read_fault(orjson.dumps({"error": {"message": "x" * 10_000}})).message
    assert len(message) == MESSAGE_CHARS
    assert message.endswith("…")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=10),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["error", "detail", "message", "code", "loc", "msg"]), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(st.binary(max_size=200) | json_values.map(orjson.dumps))
def test_any_body_gives_a_fault(body: bytes) -> None:
    """No body raises, and the message is bounded."""
    assert len(read_fault(body).message) <= MESSAGE_CHARS
