"""Where commands read evidence: databases and admin ports, and the words when there is none."""

import http.server
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.cli.stored import StoredError, ask_admin, open_database, said
from tests.unit.cli.databases import fill


class Admin(http.server.BaseHTTPRequestHandler):
    """Says what path it was asked; 404 in the API's shape for others."""

    def do_GET(self) -> None:
        good = self.path.startswith("/api/v1/report")
        body = self.path.encode() if good else b'{"error": {"message": "no such path"}}'
        if self.path.startswith("/plain"):
            body = b"not json"
        self.send_response(200 if good else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Quiet."""


@pytest.fixture
def admin() -> Iterator[str]:
    """HOST:PORT of an admin port."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Admin)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_the_admin_port_is_asked_with_its_query(admin: str) -> None:
    """As HOST:PORT or as a URL with a path in front."""
    assert (
        ask_admin(admin, "/api/v1/report", {"since": "1 h", "bucket": "a/b"})
        == b"/api/v1/report?since=1+h&bucket=a%2Fb"
    )
    with pytest.raises(StoredError, match="404: no such path"):
        ask_admin(f"http://{admin}/behind/", "/api/v1/report")
    with pytest.raises(StoredError, match="404: not json"):
        ask_admin(admin, "/plain")


@pytest.mark.parametrize("address", ["127.0.0.1:1", "ftp://h", "http://"])
def test_no_admin_port_is_said(address: str) -> None:
    """With the address, so that a typing error is seen."""
    with pytest.raises(StoredError, match=address.replace("/", ".")):
        ask_admin(address, "/")


def test_a_database_is_opened_by_url_or_folder(tmp_path: Path) -> None:
    """Both find the same file."""
    url = fill(tmp_path, 1)
    for engine in (open_database(None, tmp_path), open_database(url, Path("/nowhere"))):
        assert engine.url.get_backend_name() == "sqlite"
        engine.dispose()


def test_a_drivers_words_are_one_line_without_values() -> None:
    """Statements hold values, and values may be anybody's."""
    error = ValueError("first line\nsecond line with a secret")
    assert said(error) == "first line"
