"""Fields that cross the gateway, in both directions, and the bytes of its own errors."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.dataplane.answers import broken_event, clean, error_fields, fields_to_client, fields_to_pool
from gateway.errors import ApiError
from gateway.model.enums import Api

NAMES = st.sampled_from([b"x-a", b"authorization", b"cookie", b"te", b"x-quantgate-task", b"accept", b"x-api-key"])


def test_credentials_and_hop_by_hop_never_reach_a_pool() -> None:
    """The client's key, cookies, framing and the gateway's own hints stay here; the rest goes on, in order."""
    headers = [
        (b"host", b"g"),
        (b"authorization", b"Bearer secret"),
        (b"x-api-key", b"secret"),
        (b"cookie", b"secret"),
        (b"connection", b"keep-alive, X-Hop"),
        (b"x-hop", b"secret"),
        (b"transfer-encoding", b"chunked"),
        (b"accept-encoding", b"gzip"),
        (b"x-quantgate-session", b"secret"),
        (b"x-forwarded-for", b"10.0.0.1"),
        (b"traceparent", b"00-1-2-01"),
        (b"openai-organization", b"o"),
    ]
    assert fields_to_pool(headers) == b"traceparent: 00-1-2-01\r\nopenai-organization: o\r\n"


@given(st.lists(st.tuples(NAMES, st.just(b"secret")), max_size=8))
def test_no_arrangement_of_fields_leaks(headers: list[tuple[bytes, bytes]]) -> None:
    """Whatever order and repetition: only what may go goes."""
    lines = fields_to_pool(headers).split(b"\r\n")
    assert {line.partition(b":")[0] for line in lines if line} <= {b"x-a", b"accept"}


def test_a_pools_fields_for_the_client() -> None:
    """Framing, Date, Server, what Connection names and what is ours to say are dropped; repeated fields stay so."""
    headers = [
        (b"date", b"d"),
        (b"server", b"s"),
        (b"content-length", b"9"),
        (b"connection", b"x-gone"),
        (b"x-gone", b"1"),
        (b"access-control-allow-origin", b"*"),
        (b"x-ratelimit-remaining-requests", b"9999"),
        (b"x-quantgate-pool", b"inner"),
        (b"set-cookie", b"a"),
        (b"set-cookie", b"b"),
        (b"cache-control", b"public"),
    ]
    assert fields_to_client(headers, sse=False) == b"set-cookie: a\r\nset-cookie: b\r\ncache-control: public\r\n"
    streamed = fields_to_client(headers, sse=True)
    assert b"public" not in streamed
    assert b"Cache-Control: no-cache\r\n" in streamed


def test_header_values_cannot_be_split() -> None:
    """Whatever is put into a field of ours, it stays one line of printable ASCII."""
    assert clean("a\r\nSet-Cookie: x\u20ac") == b"a??Set-Cookie: x?"
    error = ApiError(429, "c", "m", headers=(("Retry-After", "1\r\nX: y"),))
    assert error_fields(error) == b"Content-Type: application/json\r\nRetry-After: 1??X: y\r\n"


@pytest.mark.parametrize("api", [api for api in Api if api is not Api.MODELS])
def test_the_event_of_a_stream_that_breaks(api: Api) -> None:
    """OpenAI's object everywhere; where clients go by an event's name and type it has those of that API too."""
    raw = broken_event(api, 'it "broke"')
    head, _, data = raw.partition(b"data: ")
    event = orjson.loads(data.partition(b"\n\n")[0])
    assert (event["error"]["code"], event["error"]["message"]) == ("upstream_truncated", 'it "broke"')
    typed = api in (Api.MESSAGES, Api.RESPONSES)
    assert (head, event.get("type")) == ((b"event: error\n", "error") if typed else (b"", None))
    assert ("message" in event) is (api is Api.RESPONSES)
    assert raw.endswith(b"data: [DONE]\n\n") is (api in (Api.CHAT, Api.COMPLETIONS))
