"""Compiles the request path to C with mypyc where ``QUANTGATE_COMPILE=1`` asks for it, as ``make`` and the image do.

The compiled modules are these very files: without a compiler the package is pure Python, does the same, and costs about
twice the processor time per request. What is listed runs for every request or every streamed event; whatever runs
seldom stays interpreted, because compiling it would only cost time to build.
"""

import os
from pathlib import Path

from setuptools import setup

EVERY_REQUEST = (
    "gateway/wire/*.py",
    "gateway/core/openai/*.py",
    *(
        f"gateway/core/{name}.py"
        for name in (
            *("answer", "arms", "balance", "breaker", "classify", "decide", "edit", "framing"),
            *("retry", "sse", "tokens", "usage"),
        )
    ),
    *(
        f"gateway/dataplane/{name}.py"
        for name in (
            *("admission", "answers", "attempt", "board", "conversations", "deciding", "exchange", "fleet", "forward"),
            *("front", "identity", "known", "outcomes", "pipeline", "relay", "sizing", "starts"),
        )
    ),
    "gateway/policy/memo.py",
    "gateway/policy/patterns.py",
)


def request_path() -> list[str]:
    """The files to compile, in a stable order. Empty packages are nothing to compile."""
    root = Path(__file__).parent
    found = sorted(path for pattern in EVERY_REQUEST for path in root.glob(pattern))
    return [str(path.relative_to(root)) for path in found if path.stat().st_size and path.name != "__init__.py"]


def extensions() -> list[object]:
    """The extension modules: none, unless asked for."""
    if os.environ.get("QUANTGATE_COMPILE") != "1":
        return []
    from mypyc.build import mypycify  # noqa: PLC0415 - a pure build needs no compiler

    return list(mypycify(request_path(), opt_level="3", debug_level="0", group_name="gateway.compiled"))


setup(ext_modules=extensions())
