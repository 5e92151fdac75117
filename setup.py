"""Compiles the request path to C with mypyc where ``QUANTGATE_COMPILE=1`` asks for it, as ``make`` and the image do.

The compiled modules are these very files: without a compiler the package is pure Python, does the same, and costs about
twice the processor time per request. What is listed runs for every request, streamed event or outcome; whatever runs
seldom stays interpreted, because compiling it would only cost time to build.
"""

import hashlib
import json
import os
import sys
from pathlib import Path

from setuptools import setup

ROOT = Path(__file__).resolve().parent
EVERY_REQUEST = (
    "gateway/wire/*.py",
    "gateway/core/openai/*.py",
    *(
        f"gateway/core/{name}.py"
        for name in (
            *("answer", "arms", "balance", "breaker", "classify", "columns", "decide", "edit", "framing"),
            *("retry", "sse", "tokens", "usage"),
        )
    ),
    *(
        f"gateway/dataplane/{name}.py"
        for name in (
            *("admission", "answers", "attempt", "board", "collected", "conversations", "deciding", "exchange"),
            *("fleet", "forward", "front", "identity", "kinds", "known", "outcomes", "pipeline", "quota", "relay"),
            *("sizing", "starts", "trials"),
        )
    ),
    *(f"gateway/model/{name}.py" for name in ("decision", "enums", "facts", "table")),
    "gateway/policy/memo.py",
    "gateway/policy/patterns.py",
)
# All of it is one library that nobody else links to: calls within it need no detour and may be inlined. Calls of the
# interpreter go straight to it: that saves a jump each, which a processor with cold caches does not foresee.
FLAGS = ("-fvisibility=hidden", "-fno-semantic-interposition", "-fno-plt")


def request_path() -> list[str]:
    """The files to compile, in a stable order. Empty packages are nothing to compile."""
    found = {path for pattern in EVERY_REQUEST for path in ROOT.glob(pattern) if path.name != "__init__.py"}
    return [str(path.relative_to(ROOT)) for path in sorted(found)]


def extensions() -> list[object]:
    """The extension modules: none, unless asked for. Writes down what they were made of, for ``app.compiled``."""
    if os.environ.get("QUANTGATE_COMPILE") != "1" or not {"build_ext", "bdist_wheel"} & set(sys.argv):
        return []
    from mypyc.build import mypycify

    files = request_path()
    digests = {
        str(Path(name).relative_to("gateway")): hashlib.sha256((ROOT / name).read_bytes()).hexdigest() for name in files
    }
    (ROOT / "gateway" / "compiled.json").write_text(json.dumps(digests, indent=0))
    made = list(mypycify(files, opt_level="2", debug_level="0", group_name="gateway.compiled"))
    for extension in made:  # they share one list of flags
        extension.extra_compile_args = [*extension.extra_compile_args, *FLAGS]
    return made


if __name__ == "__main__":
    setup(ext_modules=extensions())
