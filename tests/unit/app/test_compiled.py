"""Nobody runs an edited source without knowing that the compiled one from before is what runs."""

import hashlib
import json
import runpy
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

from gateway.app.compiled import DIGESTS, PACKAGE, describe, is_compiled, stale

ROOT = PACKAGE.parent


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package with one compiled module."""
    (tmp_path / "wire").mkdir()
    (tmp_path / "wire" / "a.py").write_text("A = 1\n")
    (tmp_path / f"compiled__mypyc{EXTENSION_SUFFIXES[0]}").touch()
    (tmp_path / DIGESTS).write_text(json.dumps({"wire/a.py": hashlib.sha256(b"A = 1\n").hexdigest()}))
    return tmp_path


def test_what_was_compiled_as_it_stands(package: Path) -> None:
    """Sources as they were: compiled."""
    assert (stale(package), describe(package)) == ([], "compiled")


def test_an_edited_and_a_deleted_source(package: Path) -> None:
    """Either is named."""
    (package / "wire" / "a.py").write_text("A = 2\n")
    assert describe(package) == "stale: wire/a.py"
    (package / "wire" / "a.py").unlink()
    assert stale(package) == ["wire/a.py"]


def test_no_digests_is_stale(package: Path) -> None:
    """Compiled by who knows what."""
    (package / DIGESTS).unlink()
    assert stale(package) == [DIGESTS]


def test_nothing_compiled_is_interpreted(tmp_path: Path) -> None:
    """Pure Python is always what stands there, and another interpreter's modules are not ours."""
    assert (stale(tmp_path), describe(tmp_path)) == ([], "interpreted")
    (tmp_path / "compiled__mypyc.cpython-27-none.so").touch()
    assert not is_compiled(tmp_path)


def test_every_module_that_is_to_be_compiled_exists() -> None:
    """A pattern of ``setup.py`` that matches nothing would leave a module interpreted, silently."""
    names = runpy.run_path(str(ROOT / "setup.py"), run_name="read")
    found = names["request_path"]()
    assert len(found) > 40
    for pattern in names["EVERY_REQUEST"]:
        assert list(ROOT.glob(pattern)), pattern
    assert not set(found) & {"gateway/dataplane/worker.py", "gateway/dataplane/link.py"}
