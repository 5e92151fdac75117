"""The admin port asked from the command line: query, body, token, and the words when nothing answers."""

import http.server
import json
import threading
from collections.abc import Iterator

import pytest

from gateway.cli.admin_port import UnreachableError, ask, token_of, without_token
from gateway.policy.secret import SecretError


class Admin(http.server.BaseHTTPRequestHandler):
    """Says what it was asked."""

    def answer(self) -> None:
        size = int(self.headers.get("Content-Length") or 0)
        told = {
            "method": self.command,
            "path": self.path,
            "body": self.rfile.read(size).decode(),
            "type": self.headers.get("Content-Type"),
            "authorization": self.headers.get("Authorization"),
            "extra": self.headers.get("X-Extra"),
        }
        data = json.dumps(told).encode()
        self.send_response(418)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = answer  # noqa: N815 - the server's names

    def log_message(self, *_: object) -> None:
        """Quiet."""


@pytest.fixture
def admin() -> Iterator[str]:
    """HOST:PORT."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Admin)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_a_question_carries_query_headers_and_token(admin: str) -> None:
    """Status and body come back as they are."""
    status, body = ask(f"http://{admin}/behind/", "/x", query={"a": "b c"}, headers={"X-Extra": "1"}, token="t")
    found = json.loads(body)
    assert (status, found["method"], found["path"]) == (418, "GET", "/behind/x?a=b+c")
    assert (found["authorization"], found["extra"], found["type"]) == ("Bearer t", "1", None)
    assert json.loads(ask(admin, "/x")[1])["authorization"] is None


def test_a_command_carries_json(admin: str) -> None:
    """With the content type that the gateway insists on."""
    found = json.loads(ask(admin, "/x", method="POST", body={"reason": "r"})[1])
    assert (found["method"], found["body"], found["type"]) == ("POST", '{"reason":"r"}', "application/json")


@pytest.mark.parametrize("address", ["127.0.0.1:1", "ftp://h", "http://"])
def test_where_nothing_answers_is_named(address: str) -> None:
    """So that a typing error is seen."""
    with pytest.raises(UnreachableError, match=address.replace("/", ".")):
        ask(address, "/")


def test_the_token_comes_from_a_reference_or_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading may go without; a command may not."""
    monkeypatch.delenv("QUANTGATE_TOKEN", raising=False)
    monkeypatch.setenv("OTHER", "t-2")
    assert token_of() == ""
    with pytest.raises(SecretError, match="QUANTGATE_TOKEN"):
        token_of(needed=True)
    assert token_of("env:OTHER") == "t-2"
    monkeypatch.setenv("QUANTGATE_TOKEN", "t-1")
    assert (token_of(), token_of(needed=True), token_of("env:OTHER")) == ("t-1", "t-1", "t-2")


@pytest.mark.parametrize("written", ["h:99999", "h:x", "http://[::1", "a b:90", "", "ftp://h"])
def test_what_is_no_address_is_told_how_one_is_written(written: str) -> None:
    """Never an error of the parser."""
    with pytest.raises(UnreachableError, match="HOST:PORT or a URL"):
        ask(written, "/x")


def test_a_host_that_no_resolver_takes_is_not_reached() -> None:
    """A name that cannot be encoded is an answer too."""
    with pytest.raises(UnreachableError, match="Nothing answers"):
        ask("a..b:90", "/x")


def test_who_sent_no_token_is_told_where_it_is_taken_from() -> None:
    """A person at a command line has no header to write."""
    assert "QUANTGATE_TOKEN" in without_token(401, "")
    assert without_token(401, "t") == without_token(403, "") == ""
