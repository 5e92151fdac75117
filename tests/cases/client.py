"""A blocking HTTP/1.1 client that shows bytes and times as they are: raw requests out, answers read event by event."""

import json
import socket
import struct
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

TIMEOUT_S = 15.0


class ClosedError(Exception):
    """The server closed the connection before the answer was complete; ``how`` is eof or reset."""

    def __init__(self, how: str) -> None:
        super().__init__(how)
        self.how = how


@dataclass
class Event:
    """One server-sent event as raw bytes without its blank line, and when it was complete."""

    raw: bytes
    at: float

    @property
    def data(self) -> bytes | None:
        """The joined data lines, or None for comments alone."""
        lines = self.raw.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        found = [line[5:].removeprefix(b" ") for line in lines if line[:5] == b"data:"]
        return b"\n".join(found) if found else None

    @property
    def json(self) -> Any:
        """The data as JSON."""
        data = self.data
        assert data is not None
        return json.loads(data)


@dataclass
class Reply:
    """An answer: head at once, body as it is asked for."""

    status: int
    reason: str
    headers: list[tuple[str, str]]
    _source: "Client"
    body: bytes = b""
    _done: bool = False
    pieces: list[tuple[float, bytes]] = field(default_factory=list)

    def header(self, name: str) -> str | None:
        """The first value of a header."""
        return next(iter(self.all(name)), None)

    def all(self, name: str) -> list[str]:
        """Every value of a header."""
        return [value for key, value in self.headers if key.lower() == name.lower()]

    @property
    def json(self) -> Any:
        """The whole body as JSON."""
        self.read()
        return json.loads(self.body)

    @property
    def error(self) -> dict[str, Any]:
        """The error object of one of the gateway's own errors; fails if it has not exactly OpenAI's shape."""
        error = self.pool_error
        assert error.keys() == {"message", "type", "param", "code"}, error
        return error

    @property
    def pool_error(self) -> dict[str, Any]:
        """The error object of an answer that may hold a pool's own words: an object with a message, as SDKs need it."""
        content_type = self.header("content-type") or ""
        assert content_type.startswith("application/json"), content_type
        body = self.json
        assert isinstance(body, dict), body
        assert isinstance(body.get("error"), dict), body
        assert isinstance(body["error"]["message"], str)
        found: dict[str, Any] = body["error"]
        return found

    def read(self) -> bytes:
        """The whole body. Raises ``ClosedError`` if it breaks off."""
        if not self._done:
            for _ in self.stream():
                pass
        return self.body

    def stream(self) -> Iterator[bytes]:
        """Body bytes as they come; once they are all here, all of them again."""
        if self._done:
            yield self.body
            return
        for piece in self._source.body_of(self):
            self.pieces.append((time.monotonic(), piece))
            self.body += piece
            yield piece
        self._done = True

    def events(self) -> Iterator[Event]:
        """Server-sent events as they are complete."""
        held = b""
        for piece in self.stream():
            held += piece
            while True:
                found = [(at, mark) for mark in (b"\n\n", b"\r\n\r\n", b"\r\r") if (at := held.find(mark)) >= 0]
                if not found:
                    break
                at, mark = min(found)
                raw, held = held[:at], held[at + len(mark) :]
                if raw.strip():
                    yield Event(raw, time.monotonic())

    def payloads(self) -> list[bytes]:
        """The data of every event to the end of the stream, comments left out."""
        return [event.data for event in self.events() if event.data is not None]


class Client:
    """One connection to the gateway."""

    def __init__(self, port: int, timeout: float = TIMEOUT_S, *, receive_buffer: int | None = None) -> None:
        self.sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        if receive_buffer is not None:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.sock.settimeout(timeout)
        self.sock.connect(("127.0.0.1", port))
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = b""

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close in an orderly way."""
        self.sock.close()

    def reset(self) -> None:
        """Close with a TCP reset."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def send(self, data: bytes) -> None:
        """Raw bytes."""
        self.sock.sendall(data)

    def request(
        self,
        body: object | bytes | None = None,
        *,
        method: str = "POST",
        path: str = "/v1/chat/completions",
        headers: Sequence[tuple[str, str]] = (),
    ) -> Reply:
        """Send a request and read the answer's head. A body that is not bytes is sent as JSON."""
        self.send(request_bytes(body, method=method, path=path, headers=headers))
        return self.reply(method)

    def reply(self, method: str = "POST") -> Reply:
        """Read the next answer's head; interim answers are skipped."""
        while True:
            head = self._until(b"\r\n\r\n")
            lines = head.decode("latin-1").split("\r\n")
            version, status, reason = (*lines[0].split(" ", 2), "")[:3]
            assert version == "HTTP/1.1", lines[0]
            pairs = [(name.strip(), value.strip()) for name, _, value in (line.partition(":") for line in lines[1:])]
            if not 100 <= int(status) < 200:
                reply = Reply(int(status), reason, pairs, self)
                if method == "HEAD" or int(status) in (204, 304):
                    reply._done = True
                return reply

    def line(self) -> bytes:
        """One line of raw input."""
        return self._until(b"\r\n")

    def closed_by_server(self) -> bool:
        """Read on until the server closes; whether it did within the timeout without sending more."""
        try:
            return not self._buffer and self.sock.recv(1) == b""
        except ConnectionError:
            return True

    def body_of(self, reply: Reply) -> Iterator[bytes]:
        """Body bytes by the answer's framing."""
        codings = [value.lower() for value in reply.all("transfer-encoding")]
        lengths = reply.all("content-length")
        assert not (codings and lengths), reply.headers
        if codings:
            assert codings == ["chunked"], codings
            while size := int(self._until(b"\r\n").split(b";")[0], 16):
                yield self._exactly(size)
                assert self._exactly(2) == b"\r\n"
            assert self._until(b"\r\n") == b"", "trailers"
        elif lengths:
            assert len(lengths) == 1, lengths
            left = int(lengths[0])
            while left:
                piece = self._some(left)
                left -= len(piece)
                yield piece
        else:
            while piece := self._some(65_536, eof=True):
                yield piece

    def _until(self, mark: bytes) -> bytes:
        while mark not in self._buffer:
            self._fill()
        found, _, self._buffer = self._buffer.partition(mark)
        return found

    def _exactly(self, size: int) -> bytes:
        pieces, have = [self._buffer], len(self._buffer)
        while have < size:
            data = self._receive()
            pieces.append(data)
            have += len(data)
        whole = b"".join(pieces)
        self._buffer = whole[size:]
        return whole[:size]

    def _some(self, most: int, *, eof: bool = False) -> bytes:
        if not self._buffer:
            try:
                self._fill()
            except ClosedError as error:
                if eof and error.how == "eof":
                    return b""
                raise
        piece, self._buffer = self._buffer[:most], self._buffer[most:]
        return piece

    def _fill(self) -> None:
        self._buffer += self._receive()

    def _receive(self) -> bytes:
        try:
            data = self.sock.recv(262_144)
        except ConnectionError:
            raise ClosedError("reset") from None
        if not data:
            raise ClosedError("eof")
        return data


def request_bytes(
    body: object | bytes | None = None,
    *,
    method: str = "POST",
    path: str = "/v1/chat/completions",
    headers: Sequence[tuple[str, str]] = (),
) -> bytes:
    """A whole request as bytes."""
    payload = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    names = {name.lower() for name, _ in headers}
    lines = [f"{method} {path} HTTP/1.1", "Host: gateway.test"]
    if "content-type" not in names and body is not None:
        lines.append("Content-Type: application/json")
    if "content-length" not in names and "transfer-encoding" not in names and (body is not None or method == "POST"):
        lines.append(f"Content-Length: {len(payload)}")
    lines += [f"{name}: {value}" for name, value in headers]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + payload


def call(port: int, body: object | bytes | None = None, **options: Any) -> Reply:
    """One request on a connection of its own, answer read whole."""
    with Client(port) as client:
        reply = client.request(body, **options)
        reply.read()
        return reply
