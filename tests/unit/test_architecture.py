"""The shape of the tree: layers, what pure code may import, a test file per module, sizes, names, docstrings.

Exceptions are written down with their reason, and one that is no longer needed fails, so the lists can only shrink.
"""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GATEWAY = ROOT / "gateway"
MODULES = sorted(path.relative_to(GATEWAY).as_posix() for path in GATEWAY.rglob("*.py"))
TESTS = sorted(ROOT.glob("tests/**/test_*.py"))

MODULE_LINES_MOST = 300
FUNCTION_LINES_MOST = 50
FORBIDDEN_NAMES = {"utils", "util", "helpers", "helper", "manager", "managers", "common", "misc", "base"}

PURE = ("core/", "model/", "errors.py")
# Computing and describing only: nothing here opens a file or a socket, reads a clock, or draws at random.
PURE_MAY_IMPORT = {
    *(
        "array",
        "ast",
        "base64",
        "binascii",
        "bisect",
        "collections",
        "contextlib",
        "csv",
        "dataclasses",
        "datetime",
        "email",
    ),
    *("enum", "fractions", "functools", "hashlib", "heapq", "hmac", "html", "io", "ipaddress", "itertools", "json"),
    *("keyword", "math", "operator", "re", "statistics", "string", "struct", "textwrap", "types", "typing"),
    *("unicodedata", "urllib", "warnings", "zlib"),
    *("msgspec", "orjson", "jsonschema", "jsonschema_specifications", "referencing", "rapidfuzz", "re2"),
    "gateway",
}
# Modules of the allowed packages that do more than compute.
PURE_MUST_NOT_IMPORT = {"urllib.request", "urllib.robotparser"}

# module: the test that covers it, where that is not the file of its name. Tests over real sockets and processes say
# more about these than a test that takes them apart.
COVERED_BY = {
    "app/worker_main.py": "tests/e2e/test_must_hold.py",
    "policy/schema/oversight.py": "tests/unit/policy/test_oversight.py",
    "policy/schema/proving.py": "tests/unit/policy/test_proving.py",
    "policy/schema/root.py": "tests/unit/policy/test_load.py",
    "policy/schema/rules.py": "tests/unit/policy/test_conditions.py",
    "policy/schema/serving.py": "tests/unit/policy/test_findings.py",
    "policy/schema/tests.py": "tests/unit/cli/test_policy_test.py",
    "cli/vectors/meters.py": "tests/unit/cli/test_vectors.py",
    "cli/vectors/report.py": "tests/unit/cli/test_vectors.py",
    "cli/vectors/sections.py": "tests/unit/cli/test_vectors.py",
    "core/report/rows.py": "tests/unit/core/report/test_tally.py",
    "core/report/values.py": "tests/unit/core/report/test_build.py",
    "store/aftermath.py": "tests/unit/store/test_others.py",
    "store/deployments.py": "tests/unit/store/test_others.py",
    "store/retention.py": "tests/unit/store/test_others.py",
    "store/samples.py": "tests/unit/store/test_others.py",
    "store/tables.py": "tests/unit/store/test_migrate.py",
}
# Values and enumerations without behaviour of their own.
ONLY_VALUES = {
    "errors.py",
    "model/answer.py",
    "model/enums.py",
    "model/messages.py",
    "model/outcome.py",
    "model/pair.py",
    "model/precision.py",
    "model/proving.py",
}

# path or path::function: why it is longer than the rest.
LONGER = {
    "wire/server.py": "the states of one connection, which read best in one file",
    "dataplane/worker.py::__init__": "the composition root of a worker: one line per part",
    "store/migrations/versions/r0001_records.py::upgrade": "a migration lists every column and is never edited again",
}
# Tasks that end in the function that makes them.
WAITS_WITHIN_A_FUNCTION = {"dataplane/worker.py"}


def parsed(path: Path) -> ast.Module:
    return _parsed(path)


@cache
def _parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def lines_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of the body, without its docstring."""
    body = function.body[1:] if ast.get_docstring(function) else function.body
    return (function.end_lineno or 0) - body[0].lineno + 1 if body else 0


def imports(tree: ast.Module) -> set[str]:
    """Dotted names of everything imported, ``TYPE_CHECKING`` blocks included."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def test_the_layers_hold() -> None:
    """import-linter keeps every contract of pyproject.toml."""
    program = Path(sys.executable).parent / "lint-imports"
    run = subprocess.run([program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr


def test_pure_code_imports_only_what_computes() -> None:
    """core, model and errors: an allow-list, so that a library or a module of the system needs a decision."""
    for module in MODULES:
        if not module.startswith(PURE):
            continue
        names = imports(parsed(GATEWAY / module))
        strange = {name for name in names if name.split(".")[0] not in PURE_MAY_IMPORT}
        assert strange == set(), module
        assert names & PURE_MUST_NOT_IMPORT == set(), module


def test_pure_code_does_not_open_or_print() -> None:
    """What needs no import is looked for too."""
    for module in MODULES:
        if not module.startswith(PURE):
            continue
        for node in ast.walk(parsed(GATEWAY / module)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in ("open", "print", "input", "exec", "eval", "__import__"), module


def mirrors(module: str) -> Path:
    folder, _, name = module.rpartition("/")
    return ROOT / "tests" / "unit" / folder / f"test_{name}"


TESTED_MODULES = [
    module
    for module in MODULES
    if not module.endswith(("__init__.py", "__main__.py")) and not module.startswith("store/migrations/")
]


def test_every_module_has_its_test() -> None:
    """``gateway/x/y.py`` is covered by ``tests/unit/x/test_y.py``, or by the test that is named here."""
    missing = [
        str(mirrors(module).relative_to(ROOT))
        for module in TESTED_MODULES
        if module not in COVERED_BY.keys() | ONLY_VALUES and not mirrors(module).is_file()
    ]
    assert missing == []
    assert [test for test in COVERED_BY.values() if not (ROOT / test).is_file()] == []


def test_no_exception_is_stale() -> None:
    """An exception whose module is gone, or has its own test by now, is struck from the lists."""
    excused = [*COVERED_BY, *ONLY_VALUES]
    assert [module for module in excused if module not in TESTED_MODULES] == []
    assert [module for module in excused if mirrors(module).exists()] == []


def test_values_have_no_behaviour() -> None:
    """What is excused from a test because it only holds values does only that: short properties and constructors."""
    for module in ONLY_VALUES:
        for function in functions(parsed(GATEWAY / module)):
            assert lines_of(function) <= 12, f"{module}: {function.name} deserves a test"


def test_modules_and_functions_are_short() -> None:
    """A screen or six for a module, one for a function; exceptions carry their reason and are still needed."""
    found: dict[str, int] = {}
    for module in MODULES:
        text = (GATEWAY / module).read_text()
        if len(text.splitlines()) > MODULE_LINES_MOST:
            found[module] = len(text.splitlines())
        for function in functions(parsed(GATEWAY / module)):
            if lines_of(function) > FUNCTION_LINES_MOST:
                found[f"{module}::{function.name}"] = lines_of(function)
    assert found.keys() - LONGER.keys() == set(), found
    assert LONGER.keys() - found.keys() == set(), "no longer needed"


def test_names_say_something() -> None:
    """A module is named after what it holds."""
    for module in MODULES:
        words = set(module.removesuffix(".py").split("/"))
        assert words & FORBIDDEN_NAMES == set(), module


def test_every_module_says_what_it_owns() -> None:
    """A docstring first, everywhere."""
    for module in MODULES:
        if (GATEWAY / module).read_text().strip():
            assert ast.get_docstring(parsed(GATEWAY / module)), module


def test_maps_are_complete() -> None:
    """A package whose docstring names two of its modules is a map, and names them all."""
    for module in MODULES:
        folder = (GATEWAY / module).parent
        if not module.endswith("/__init__.py"):
            continue
        named = set(re.findall(r"`+(\w+)`+", ast.get_docstring(parsed(GATEWAY / module)) or ""))
        inside = {path.stem for path in folder.glob("*.py")} - {"__init__"}
        inside |= {path.parent.name for path in folder.glob("*/__init__.py")}
        if len(named & inside) > 1:
            assert inside - named == set(), f"{module} is a map: say what these own"


def test_every_test_states_its_promise() -> None:
    """A docstring on every test."""
    for path in TESTS:
        for function in functions(parsed(path)):
            if function.name.startswith("test_"):
                assert ast.get_docstring(function), f"{path.relative_to(ROOT)}::{function.name}"


def test_tasks_have_a_name() -> None:
    """A task of the running gateway is made with a name, so a hanging one can be found."""
    for module in MODULES:
        if not module.startswith(("app/", "control/", "dataplane/", "wire/")) or module in WAITS_WITHIN_A_FUNCTION:
            continue
        for node in ast.walk(parsed(GATEWAY / module)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "create_task":
                assert any(keyword.arg == "name" for keyword in node.keywords), f"{module}:{node.lineno}"
