"""Whether the request path runs compiled, and whether what was compiled is what stands beside it.

``setup.py`` compiles modules in place with mypyc and writes down the digest of each source. A compiled module is
imported before its source, so a source that was edited since is not what runs: whoever starts a gateway or the tests
must hear of it. Called by ``supervisor``, the CLI and the tests.
"""

import hashlib
import json
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
DIGESTS = "compiled.json"
"""Written by ``setup.py`` into the package: path of each compiled source in it → SHA-256."""


def is_compiled(package: Path = PACKAGE) -> bool:
    """Whether the compiled code fits this interpreter."""
    return any((package / f"compiled__mypyc{suffix}").exists() for suffix in EXTENSION_SUFFIXES)


def stale(package: Path = PACKAGE) -> list[str]:
    """Sources that differ from what was compiled, as paths in the package. Empty where nothing is compiled."""
    if not is_compiled(package):
        return []
    try:
        digests = json.loads((package / DIGESTS).read_bytes())
    except FileNotFoundError:
        return [DIGESTS]
    return [
        name
        for name, digest in digests.items()
        if not (package / name).exists() or hashlib.sha256((package / name).read_bytes()).hexdigest() != digest
    ]


def describe(package: Path = PACKAGE) -> str:
    """``compiled``, ``interpreted``, or ``stale: …`` with the sources that do not run as they stand."""
    changed = stale(package)
    if changed:
        return f"stale: {', '.join(changed)}"
    return "compiled" if is_compiled(package) else "interpreted"
