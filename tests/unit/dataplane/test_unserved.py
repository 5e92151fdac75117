"""Errors without an exchange: each is answered with an id, and recorded under it."""

import asyncio

import pytest

from gateway.dataplane.outcomes import OutcomeBuffer
from gateway.dataplane.unserved import Unserved
from gateway.errors import ApiError
from tests.unit.dataplane.conftest import Make
from tests.unit.dataplane.outcome_values import opened
from tests.unit.dataplane.plane import Plane, Reply, Upstream

NOT_READ = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 9, 8\r\n\r\n"
LONG = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n"


async def raw(plane: Plane, data: bytes) -> Reply:
    reader, writer = await asyncio.open_connection("127.0.0.1", plane.port)
    writer.write(data)
    async with asyncio.timeout(5):
        answer = await reader.read()
    writer.close()
    return Reply(answer)


@pytest.mark.parametrize(
    ("data", "status", "result", "code"),
    [
        (b"GET /chat/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", 404, "not_found", "unknown_path"),
        (
            b"PUT /v1/models HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
            405,
            "client_error",
            "method_not_allowed",
        ),
        (
            b"POST /v1/feedback HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}",
            400,
            "client_error",
            "invalid_value",
        ),
        (NOT_READ, 400, "client_error", "bad_request"),
        (LONG, 413, "client_error", "request_too_large"),
    ],
)
async def test_every_error_has_an_id_and_a_record(
    make: Make, first: Upstream, data: bytes, status: int, result: str, code: str
) -> None:
    """Whoever quotes the id finds the line; the name of a path that nobody serves is not in it."""
    plane = await make({"a": [first.url]})
    reply = await raw(plane, data)
    assert reply.status == status
    outcome = await plane.outcome()
    assert reply.header["x-quantgate-request-id"] == outcome.request_id
    kind = outcome.kind
    assert (kind.api, kind.status, kind.result, kind.error_code) == ("other", status, result, reply.code)
    assert reply.code == code
    assert (kind.tenant, kind.bucket, kind.pool, outcome.attempts) == ("", "", "", ())
    assert (outcome.bytes_out, outcome.total_s >= 0.0) == (len(reply.raw), True)


async def test_what_is_no_error_leaves_no_record(make: Make, first: Upstream) -> None:
    """Probes and preflights would drown the log."""
    plane = await make({"a": [first.url]})
    for line in (b"GET /health", b"OPTIONS /v1/models"):
        await raw(plane, line + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert opened(plane.worker.outcomes.take()[0]) == []


class Connection:
    """As much of a client's connection as an answer needs."""

    bytes_out = 7

    def answer(self, status: int, fields: bytes, body: bytes, *, close: bool = False) -> None:
        self.answered = (status, fields, close)


def test_without_a_policy_the_record_is_of_no_generation() -> None:
    """And a request that could not be read closes its connection."""
    outcomes, connection = OutcomeBuffer(), Connection()
    unserved = Unserved(3, lambda: "id-1", outcomes, lambda: 50.0, lambda: 9.0)
    unserved.refuse(connection, ApiError(503, "starting", "Not yet."), None, {})  # type: ignore[arg-type]
    (outcome,) = opened(outcomes.take()[0])
    assert (outcome.kind.generation, outcome.kind.worker, outcome.kind.result, outcome.at) == (0, 3, "no_pool", 50.0)
    assert connection.answered[0] == 503
    assert b"x-quantgate-request-id: id-1\r\n" in connection.answered[1]
    assert connection.answered[2]
