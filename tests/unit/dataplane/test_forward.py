"""Attempts: another endpoint where that may help, never outside the decision, and the pool's own words kept."""

import asyncio
import contextlib
import os
import resource

import orjson
import pytest

from gateway.core import edit
from tests.unit.dataplane.conftest import Make
from tests.unit.dataplane.plane import CHAT, OK, STREAM, Reply, Upstream, answer, chunk, stream_head


def failing(status: int, body: bytes = b'{"error":{"message":"boom","type":"x","code":1}}', fields: str = "") -> object:
    return lambda _body, writer: writer.write(answer(body, status, fields))


@pytest.mark.parametrize("status", [500, 502, 503, 429, 401])
async def test_failover_before_content(make: Make, first: Upstream, second: Upstream, status: int) -> None:
    """A failed attempt leaves no trace at the client; both attempts are on record."""
    first.script = failing(status)  # type: ignore[assignment]
    plane = await make({"a": [first.url], "b": [second.url]})
    reply = await plane.ask(CHAT)
    assert (reply.status, reply.header["x-quantgate-pool"]) == (200, "b")
    outcome = await plane.outcome()
    assert [(attempt.pool, attempt.failure != "") for attempt in outcome.attempts] == [("a", True), ("b", False)]
    assert outcome.kind.result == "ok"


@pytest.mark.parametrize("status", [400, 404, 413, 422])
async def test_client_errors_are_not_tried_again(make: Make, first: Upstream, second: Upstream, status: int) -> None:
    """The client's own fault goes back to it in the pool's words, and no endpoint is blamed."""
    first.script = failing(status)  # type: ignore[assignment]
    plane = await make({"a": [first.url], "b": [second.url]})
    reply = await plane.ask(CHAT)
    assert (reply.status, reply.json["error"]["message"]) == (status, "boom")
    assert second.bodies == []
    assert (await plane.outcome()).kind.result == "client_error"
    view = next(view for view in plane.worker.fleet.views.values() if view.endpoint.pool == "a")
    assert view.breaker._failures == 0


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"object":"error","message":"flat","type":"BadRequestError","code":400}', "flat"),
        (b'{"detail":"fastapi"}', "fastapi"),
        (b'{"error":"a string"}', "a string"),
        (b'{"detail":[{"loc":["x"]}]}', '[{"loc":["x"]}]'),
        (b"<html>no json</html>", "The pool answered with status 400."),
    ],
)
async def test_error_shapes_of_runtimes_become_openais(make: Make, first: Upstream, body: bytes, message: str) -> None:
    """Whatever shape a runtime uses, an SDK can read it."""
    first.script = failing(400, body)  # type: ignore[assignment]
    plane = await make({"a": [first.url]})
    reply = await plane.ask(CHAT)
    assert reply.status == 400
    assert reply.json["error"]["message"] == message
    assert set(reply.json["error"]) == {"message", "type", "param", "code"}


async def test_a_pools_401_is_no_answer_to_a_client(make: Make, first: Upstream) -> None:
    """It speaks of the gateway's credential: the client gets 502 and none of the pool's words."""
    first.script = failing(401, b'{"error":"Unauthorized"}', "WWW-Authenticate: Bearer\r\n")  # type: ignore[assignment]
    plane = await make({"a": [first.url]})
    reply = await plane.ask(CHAT)
    assert reply.status == 502
    assert "www-authenticate" not in reply.header
    assert "Unauthorized" not in reply.body.decode()


@pytest.mark.parametrize(
    ("said", "given"), [("Retry-After: 7\r\n", "7"), ("Retry-After: 99999999\r\n", "300"), ("", "1")]
)
async def test_busy_pools_say_when_to_come_back(make: Make, first: Upstream, said: str, given: str) -> None:
    """429 and 503 always carry whole seconds, the pool's if it said any, within a cap."""
    first.script = failing(503, fields=said)  # type: ignore[assignment]
    plane = await make({"a": [first.url]})
    reply = await plane.ask(CHAT)
    assert (reply.status, reply.header["retry-after"]) == (503, given)


async def test_a_refused_connection_is_tried_elsewhere(make: Make, first: Upstream) -> None:
    """Nothing listens: the next pool serves; alone it is a 502 that says what happened."""
    plane = await make({"dead": ["http://127.0.0.1:1"], "a": [first.url]})
    assert (await plane.ask(CHAT)).header["x-quantgate-pool"] == "a"
    alone = await make({"dead": ["http://127.0.0.1:1"]})
    reply = await alone.ask(CHAT)
    assert (reply.status, reply.code) == (502, "upstream_unreachable")
    assert "Cannot connect" in reply.json["error"]["message"]


async def test_a_host_without_descriptors_blames_no_pool(make: Make, first: Upstream) -> None:
    """503 and nobody ejected, however often; with room again the same endpoint serves."""
    plane = await make({"a": [first.url]})
    reader, writer = await asyncio.open_connection("127.0.0.1", plane.port)
    body = orjson.dumps(CHAT)
    while not plane.worker.context.connections:
        await asyncio.sleep(0.005)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    held = [os.dup(0)]
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (held[0] + 1, hard))
        with contextlib.suppress(OSError):
            while True:
                held.append(os.dup(0))
        for _ in range(6):
            writer.write(
                b"POST /v1/chat/completions HTTP/1.1\r\nHost: g\r\nContent-Length: %d\r\n\r\n" % len(body) + body
            )
            head = await reader.readuntil(b"\r\n\r\n")
            reply = Reply(head + await reader.readexactly(int(Reply(head).header["content-length"])))
            assert (reply.status, reply.code) == (503, "gateway_exhausted")
            assert reply.header["retry-after"]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for descriptor in held:
            os.close(descriptor)
        writer.close()
    assert (await plane.outcome()).kind.failure == "exhausted"
    assert (await plane.ask(CHAT)).header["x-quantgate-pool"] == "a"


async def test_a_silent_pool_times_out_and_the_next_serves(make: Make, first: Upstream, second: Upstream) -> None:
    """First-byte limit, then failover; the dead pool's endpoint is blamed."""

    async def never(_body: bytes, writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    first.script = never
    plane = await make({"a": [first.url], "b": [second.url]}, pool={"a": {"timeouts": {"first_byte": "50ms"}}})
    assert (await plane.ask(CHAT)).header["x-quantgate-pool"] == "b"
    assert (await plane.outcome()).attempts[0].failure == "first_byte_timeout"


async def test_a_kept_alive_connection_that_closes_is_replaced_for_free(make: Make, first: Upstream) -> None:
    """The server closes as we take the connection: one fresh connection, same endpoint, no failure on record."""
    plane = await make({"a": [first.url]})
    assert (await plane.ask(CHAT)).status == 200

    def slam_once(_body: bytes, writer: asyncio.StreamWriter) -> None:
        first.script = lambda _again, other: other.write(answer(OK))
        writer.transport.abort()

    first.script = slam_once
    assert (await plane.ask(CHAT)).status == 200
    outcome = await plane.outcome(2)
    assert [attempt.failure for attempt in outcome.attempts] == [""]
    assert len(first.bodies) == 3


async def test_five_failures_eject_and_all_ejected_is_still_served(
    make: Make, first: Upstream, second: Upstream
) -> None:
    """An ejected endpoint gets nothing while another is healthy; if all are ejected, health fails open."""
    first.script = failing(500)  # type: ignore[assignment]
    plane = await make({"a": [first.url], "b": [second.url]})
    for _ in range(7):
        assert (await plane.ask(CHAT)).status == 200
    assert len(first.bodies) == 5
    first.script = lambda _body, writer: writer.write(answer(OK))
    plane.report("b/0", "unhealthy")
    assert (await plane.ask(CHAT)).status == 200


async def test_quarantine_fails_closed(make: Make, first: Upstream) -> None:
    """A pool that is not what it claims serves nobody, even if it is the only one."""
    plane = await make({"a": [first.url]})
    plane.report("a/0", "quarantined")
    reply = await plane.ask(CHAT)
    assert (reply.status, reply.code) == (503, "no_endpoint_available")
    assert first.bodies == []
    assert (await plane.outcome()).kind.result == "no_pool"


async def test_constraints_hold_on_failover(make: Make, first: Upstream, second: Upstream) -> None:
    """The only pool that may serve a privileged tool fails: an error, never the other pool."""
    first.script = failing(500)  # type: ignore[assignment]
    plane = await make(
        {"a": [first.url], "b": [second.url]},
        pool={
            "b": {
                "precision": {"weights": "int4", "activations": "bf16", "kv_cache": "bf16"},
                "hardware": {"device": "cpu"},
            }
        },
        classify={"tools": {"privileged": ["pay_*"]}},
        constraints=[{"name": "priv", "when": {"tools": {"privilege": "high"}}, "require": {"weights": ["bf16"]}}],
    )
    tool = {"type": "function", "function": {"name": "pay_now", "parameters": {}}}
    reply = await plane.ask({**CHAT, "tools": [tool]})
    assert reply.status == 500
    assert second.bodies == []
    assert (await plane.outcome()).kind.constraints == ("priv",)


async def test_compressed_errors_are_passed_with_their_coding(make: Make, first: Upstream) -> None:
    """Bytes that cannot be looked into go through as they are, with the field that explains them."""
    import gzip

    body = gzip.compress(b'{"error":{"message":"x"}}')
    first.script = failing(404, body, "Content-Encoding: gzip\r\n")  # type: ignore[assignment]
    plane = await make({"a": [first.url]})
    reply = await plane.ask(CHAT)
    assert reply.header["content-encoding"] == "gzip"
    assert orjson.loads(gzip.decompress(reply.body))["error"]["message"] == "x"


async def test_multipart_models_are_renamed(make: Make, first: Upstream) -> None:
    """An audio form reaches the pool with the pool's model name and the file untouched."""
    form = (
        b'--b\r\nContent-Disposition: form-data; name="model"\r\n\r\nm\r\n'
        b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\n\x00\xffRIFF\r\n--b--\r\n'
    )
    plane = await make({"a": [first.url]})
    reader, writer = await asyncio.open_connection("127.0.0.1", plane.port)
    writer.write(
        b"POST /v1/audio/transcriptions HTTP/1.1\r\nHost: g\r\nConnection: close\r\n"
        b"Content-Type: multipart/form-data; boundary=b\r\nContent-Length: %d\r\n\r\n" % len(form) + form
    )
    assert b"200 OK" in await reader.read()
    writer.close()
    assert first.bodies[0] == form.replace(b"\r\n\r\nm\r\n", b"\r\n\r\nup\r\n")


async def test_room_in_a_healthy_pool_is_worth_waiting_for(make: Make, first: Upstream, second: Upstream) -> None:
    """A full pool that works is waited for; a pool that does not work gets nothing because of it."""
    held: list[asyncio.StreamWriter] = []
    first.script = lambda _body, writer: held.append(writer)
    plane = await make(
        {"a": [first.url], "b": [second.url]},
        pool={"a": {"limits": {"inflight": 1}, "timeouts": {"first_byte": "9s"}}},
    )
    plane.report("b/0", "unhealthy")
    asked = [asyncio.create_task(plane.ask(CHAT)) for _ in range(2)]
    async with asyncio.timeout(5):
        while not (held and plane.worker.admission.queued):
            await asyncio.sleep(0.005)
    first.script = lambda _body, writer: writer.write(answer(OK))
    held[0].write(answer(OK))
    assert [(await one).status for one in asked] == [200, 200]
    assert second.bodies == []


async def test_a_second_attempt_that_cannot_be_made_is_answered(
    make: Make, first: Upstream, second: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other pool's name cannot be written into the body: the client hears it instead of waiting for ever."""
    first.script = failing(500)  # type: ignore[assignment]
    plane = await make({"a": [first.url], "b": [second.url]}, pool={"a": {"upstream_model": "m"}})

    class TooDeep:
        def decode(self, body: bytes) -> None:
            raise RecursionError

    monkeypatch.setattr(edit, "_VALUES", TooDeep())  # looks where the name stands in a body that has it twice
    reply = await plane.ask({**CHAT, "metadata": {"model": "x"}})  # written anew for the second pool only
    assert (reply.status, reply.code) == (400, "too_deep")
    outcome = await plane.outcome()
    assert (outcome.kind.result, [attempt.pool for attempt in outcome.attempts]) == ("client_error", ["a"])
    assert all(view.inflight == 0 for view in plane.worker.fleet.views.values())
    assert second.bodies == []


@pytest.mark.parametrize("message", [b'"\\ud800"', b"123456789012345678901234567890"])
@pytest.mark.parametrize("closes", [True, False])
async def test_an_error_that_cannot_be_written_again_keeps_its_status(
    make: Make, first: Upstream, message: bytes, closes: bool
) -> None:
    """Half a surrogate pair in a pool's error event: the client gets the status, in the gateway's words, at once."""

    def script(_body: bytes, writer: asyncio.StreamWriter) -> None:
        event = b'data: {"error":{"code":400,"message":%b,"x":"\\ud800"}}' % message + (b"" if closes else b"\n\n")
        writer.write(stream_head() + chunk(event) + (b"0\r\n\r\n" if closes else b""))

    first.script = script
    plane = await make({"a": [first.url]}, pool={"a": {"timeouts": {"first_byte": "9s"}}})
    reply = await plane.ask(STREAM)
    assert (reply.status, reply.code) == (400, "upstream_refused")


async def test_a_redirection_never_reaches_a_client(make: Make, first: Upstream, second: Upstream) -> None:
    """A pool that redirects would lead an SDK past the gateway: a bad answer, tried elsewhere, told as 502."""
    first.script = failing(307, b"{}", "Location: http://169.254.0.1/\r\n")  # type: ignore[assignment]
    plane = await make({"a": [first.url], "b": [second.url]})
    assert (await plane.ask(CHAT)).header["x-quantgate-pool"] == "b"
    alone = await make({"a": [first.url]})
    reply = await alone.ask(CHAT)
    assert reply.status == 502
    assert "location" not in reply.header
