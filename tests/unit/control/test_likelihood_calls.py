"""One call for scores, against a server on a real socket that answers, refuses, breaks or is gone."""

import asyncio
from collections.abc import Callable

import aiohttp
import pytest

from gateway.control import likelihood_calls
from gateway.control.likelihood_calls import Calls, url_of
from gateway.control.likelihood_caution import Caution
from gateway.core.comparison import Call, Scoring
from gateway.model.precision import Precision
from gateway.model.table import Endpoint, Pool
from tests.unit.dataplane.pair_values import make_pair

CALL = Call("/v1/chat/completions", b"{}")


async def ask(caution: Caution, answer: bytes) -> int | str:
    """The status that a server's raw answer gives, or the name of the error."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        return await _post(caution, server.sockets[0].getsockname()[1])


async def _post(caution: Caution, port: int) -> int | str:
    endpoint = Endpoint("int4/0", "int4", "http", "127.0.0.1", port, "")
    calls = Calls(caution)
    try:
        return (await calls.post(make_pair(), _pool(endpoint), endpoint, CALL)).status
    except (aiohttp.ClientError, OSError) as error:
        return type(error).__name__
    finally:
        await calls.close()


def _pool(*endpoints: Endpoint) -> Pool:
    return Pool("int4", "m", "vllm", Precision("int4"), endpoints)


def told(status: int) -> bytes:
    return f"HTTP/1.1 {status} X\r\nContent-Length: 2\r\n\r\n{{}}".encode()


@pytest.mark.parametrize(
    ("answer", "found", "objection"),
    [
        (told(200), 200, ""),
        (told(400), 400, ""),
        (told(503), 503, ""),
        (told(500), 500, "suspended"),
        (b"", "ServerDisconnectedError", "suspended"),
        (b"HTTP/1.1 200 X\r\nContent-Length: 9\r\n\r\n{}", "ClientPayloadError", "suspended"),
    ],
    ids=["answered", "refused", "busy", "failed", "hung up", "cut off"],
)
async def test_a_server_that_fails_under_a_call_is_left_in_peace(
    answer: bytes, found: int | str, objection: str
) -> None:
    """An engine that dies of it must not be asked again as soon as it is back."""
    caution = Caution(lambda: 0.0)
    assert await ask(caution, answer) == found
    assert caution.objection(_pool(), Scoring.PROMPT_LOGPROBS) == objection


async def test_a_server_that_is_not_there_has_not_been_asked(unused_tcp_port_factory: Callable[[], int]) -> None:
    """Nothing broke under the call."""
    caution = Caution(lambda: 0.0)
    assert await _post(caution, unused_tcp_port_factory()) == "ClientConnectorError"
    assert caution.objection(_pool(), Scoring.PROMPT_LOGPROBS) == ""


async def test_a_reply_is_read_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its length is our limit, and no fault of the server's."""
    monkeypatch.setattr(likelihood_calls, "REPLY_MOST_BYTES", 1)
    caution = Caution(lambda: 0.0)
    assert await ask(caution, told(200)) == "OSError"
    assert caution.objection(_pool(), Scoring.PROMPT_LOGPROBS) == ""


def test_addresses() -> None:
    """IPv6 in brackets, no slash at the end."""
    assert url_of(Endpoint("e", "p", "http", "::1", 8000, "")) == "http://[::1]:8000"
    assert url_of(Endpoint("e", "p", "https", "h", 443, "/x/")) == "https://h:443/x"
