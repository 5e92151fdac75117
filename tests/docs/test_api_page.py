"""``docs/api.md`` lists the paths, headers and error codes that the code has."""

import ast
import re
from pathlib import Path

from gateway.core.openai.paths import api_of
from gateway.core.retry import MEANINGS
from gateway.model.enums import Api

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "api.md").read_text()
DATA, _, ADMIN = PAGE.partition("## Admin port")
# Answered without being a request to a pool.
OTHER_PATHS = {"/health", "/healthz", "/ping", "/v1/feedback"}
# Packages whose errors reach clients of the data port.
SPEAKING = ("core", "dataplane", "wire")


def sources(*packages: str) -> list[tuple[Path, str]]:
    return [(file, file.read_text()) for package in packages for file in (ROOT / "gateway" / package).rglob("*.py")]


def codes() -> dict[str, Path]:
    """Every code written out in an ``ApiError``, and those that failures of pools have."""
    found: dict[str, Path] = {meaning.code: ROOT / "gateway/core/retry.py" for meaning in MEANINGS.values()}
    for file, text in sources(*SPEAKING):
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("ApiError", "error_body"):
                second = node.args[1] if len(node.args) > 1 else None
                if isinstance(second, ast.Constant) and isinstance(second.value, str):
                    found[second.value] = file
    return found


def documented_codes() -> set[str]:
    rows = re.findall(r"^\| [\d, ]+ \| ([^|]+) \|", DATA, re.MULTILINE)
    return {code for row in rows for code in re.findall(r"`(\w+)`", row)}


def test_every_error_code_is_explained() -> None:
    """A code that a client can get has its line."""
    missing = {code: str(file) for code, file in codes().items() if code not in documented_codes()}
    assert missing == {}


def test_no_code_is_promised_that_nobody_gives() -> None:
    """Each documented code occurs in the code (``missing_`` ones are made of the field's name)."""
    known = codes().keys()
    for code in documented_codes():
        assert code in known or code.startswith("missing_"), code


def test_the_paths_are_the_paths() -> None:
    """Every path of the table is served with its method, and no path of the code is left out."""
    listed: set[str] = set()
    for paths, method in re.findall(r"^\| ((?:`/[^|]*)) \| (GET|POST) \|", DATA, re.MULTILINE):
        for path in re.findall(r"`([^`]+)`", paths):
            listed.add(path)
            if path not in OTHER_PATHS:
                assert api_of(method, path.replace("{id}", "x")) is not None, path
    ((_, text),) = [found for found in sources("core") if found[0].name == "paths.py"]
    assert set(re.findall(r'"(/[^"]+[a-z])"', text)) <= listed
    assert listed >= OTHER_PATHS
    assert {api_of("POST", path) for path in listed} >= set(Api) - {Api.MODELS, Api.OTHER}


def test_the_admin_paths_are_the_paths() -> None:
    """Every route of the admin port is listed, and no other."""
    rows = re.findall(r"^\| (`/[^|]*) \|", ADMIN, re.MULTILINE)
    listed = {path for row in rows for path in re.findall(r"`([^`]+)`", row)}
    routes: set[str] = set()
    for _, text in sources("control"):
        routes |= set(re.findall(r'"(/(?:api/v1/[\w/{}]+|healthz|readyz|metrics))"', text))
    # Paths that control asks runtimes for are no routes of its own.
    assert listed == routes


def test_the_headers_are_the_headers() -> None:
    """Every ``x-quantgate-`` header that the code reads or writes for clients is named, and no other."""
    used: set[str] = set()
    for _, text in sources("dataplane", "control"):
        used |= set(re.findall(r"x-quantgate-[a-z][a-z-]*[a-z]", text))
    named = set(re.findall(r"x-quantgate-[a-z][a-z-]*[a-z]", PAGE))
    # Sent to pools with mirrored requests, never to clients.
    assert named | {"x-quantgate-shadow"} == used | {"x-quantgate-shadow"}
