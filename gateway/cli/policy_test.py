"""``quantgate test``: the ``*.test.yaml`` beside a policy, each request with what must become of it.

Resolves no secret and opens no socket. Exit status: 0 all hold, 1 some do not, or a file is rejected (2 is wrong
usage).
"""

import sys
from pathlib import Path
from typing import Annotated, TextIO

import msgspec
import typer
from pydantic import ValidationError

from gateway.cli.ask import UnusableError, answer, make_ask, tenant_of
from gateway.cli.telling import print_json
from gateway.core.decide import Explanation
from gateway.errors import ApiError, PolicyRejectedError
from gateway.model.table import Table
from gateway.policy.compile import compile_table
from gateway.policy.document import FILE_BYTES_MOST, SourceFile, rejected
from gateway.policy.findings import explain_rejection
from gateway.policy.load import load
from gateway.policy.reading import read_tree
from gateway.policy.schema.tests import Case, Expect, PolicyTests
from gateway.policy.schema.values import did_you_mean
from gateway.policy.secret import unresolved
from gateway.policy.tree import Tree

PASSED, FAILED = 0, 1


class Verdict(msgspec.Struct, frozen=True):
    """One test: where it stands, and what did not hold (nothing = it passed)."""

    file: str
    line: int
    name: str
    failures: tuple[str, ...]


def test(
    path: Annotated[Path, typer.Argument(help="A folder of policies, one policy, or one *.test.yaml.")],
    as_json: Annotated[bool, typer.Option("--json", help="The same as JSON.")] = False,
) -> None:
    """Run the *.test.yaml beside a policy."""
    raise typer.Exit(run(path, as_json))


def run(path: Path, as_json: bool = False, out: TextIO | None = None) -> int:
    """Run the tests that belong to ``path`` and print the result to ``out``."""
    stream = out if out is not None else sys.stdout
    try:
        verdicts = [verdict for file in test_files(path) for verdict in run_file(file, path)]
    except PolicyRejectedError as error:
        if as_json:
            print_json({"ok": False, "errors": [msgspec.to_builtins(finding) for finding in error.findings]}, stream)
        else:
            stream.write(f"{error}\n")
        return FAILED
    failed = sum(bool(verdict.failures) for verdict in verdicts)
    if as_json:
        print_json({"ok": not failed, "tests": [msgspec.to_builtins(verdict) for verdict in verdicts]}, stream)
    else:
        for verdict in verdicts:
            stream.write(
                f"{'FAILED' if verdict.failures else 'ok    '} {verdict.file}:{verdict.line}: {verdict.name}\n"
            )
            stream.writelines(f"         {failure}\n" for failure in verdict.failures)
        stream.write(f"{len(verdicts) - failed} of {len(verdicts)} hold\n")
    return FAILED if failed else PASSED


def test_files(path: Path) -> list[Path]:
    """The test files of ``path``: itself, those of the folder, or the one named like the policy.

    Raises if there is none.
    """
    if path.name.endswith((".test.yaml", ".test.yml")):
        found = [path] if path.is_file() else []
    elif path.is_dir():
        found = sorted(file for file in path.iterdir() if file.name.endswith((".test.yaml", ".test.yml")))
    else:
        found = [file for file in (path.with_suffix(".test" + path.suffix),) if file.is_file()]
    if not found:
        raise rejected(str(path), "there are no tests here", "put a *.test.yaml beside the policy")
    return found


def run_file(file: Path, path: Path) -> list[Verdict]:
    """The verdicts of one test file. ``path`` is the policy it is about, unless it names one itself."""
    tests, tree = _read(file)
    own = file.parent if path == file else path
    policy = own if tests.policy is None else file.parent / tests.policy
    table = compile_table(load(policy).document, 0, {}, unresolved)
    return [
        Verdict(str(file), tree.place(("tests", index)).line, case.name, tuple(failures(table, case)))
        for index, case in enumerate(tests.tests)
    ]


def _read(file: Path) -> tuple[PolicyTests, Tree]:
    try:
        with file.open("rb") as opened:
            content = opened.read(FILE_BYTES_MOST)
    except OSError as error:
        raise rejected(str(file), f"cannot be read: {error.strerror or error}") from None
    tree, findings = read_tree(SourceFile(str(file), content))
    if tree is None or findings:
        raise PolicyRejectedError(findings)
    try:
        data = {key: value for key, value in tree.data.items() if not key.startswith("x-")}
        return PolicyTests.model_validate(data), tree
    except ValidationError as error:
        raise PolicyRejectedError(explain_rejection(error, tree, PolicyTests)) from None


def failures(table: Table, case: Case) -> list[str]:
    """What does not hold for one case, in words."""
    if unknown := _unknown(table, case.expect):
        return unknown
    try:
        found = answer(table, make_ask(case.path, case.headers, case.body), tenant_of(table, case.tenant), case.tokens)
    except UnusableError as error:
        return [str(error)]
    except ApiError as error:
        if case.expect.error == error.code:
            return []
        return [f"the gateway answers {error.status} {error.code}: {error.message}"]
    refusal = found.explanation.refusal
    if case.expect.error is not None and (refusal is None or refusal.code != case.expect.error):
        instead = "the request is accepted" if refusal is None else f"it is {refusal.code}"
        return [f"expected the error {case.expect.error}, but {instead}"]
    return _differences(case.expect, found.explanation)


def _unknown(table: Table, expect: Expect) -> list[str]:
    """What is expected of something that the policy does not have: `never` would hold for ever, and promise nothing."""
    constraints = [constraint.name for constraint in table.constraints]
    pools = [*([expect.pool] if expect.pool else []), *(expect.pools or ()), *(expect.never or ())]
    wanted = (("pool", pools, list(table.pools)), ("constraint", expect.constraints or [], constraints))
    said = []
    for kind, names, known in wanted:
        for name in dict.fromkeys(names):
            if name not in known:
                said.append(f"the policy has no {kind} {name!r}; {did_you_mean(name, known) or ', '.join(known)}")
    return said


def _differences(expect: Expect, found: Explanation) -> list[str]:
    decision, profile = found.decision, found.profile
    real: dict[str, object] = {
        "pool": decision.pools[0] if decision.pools else None,
        "pools": list(decision.pools),
        "refused": not decision.pools,
        "rule": decision.rule,
        "rollout": decision.rollout,
        "bucket": profile.bucket,
        "model": profile.model,
        "adapter": profile.adapter,
        "task": profile.task,
        "length": profile.length,
        "privilege": profile.privilege,
    }
    wanted = {name: getattr(expect, name) for name in real if name in expect.model_fields_set}
    said = [f"expected {name} {value}, but it is {real[name]}" for name, value in wanted.items() if real[name] != value]
    for pool in expect.never or ():
        if pool in decision.pools:
            said.append(f"{pool} must never serve it, but is choice {decision.pools.index(pool) + 1}")
    if expect.constraints is not None and set(expect.constraints) != set(decision.constraints):
        said.append(f"expected the constraints {sorted(expect.constraints)}, but {sorted(decision.constraints)} apply")
    if said and decision.exclusions:
        said.append("ruled out: " + "; ".join(f"{out.pool} by {out.by} ({out.reason})" for out in decision.exclusions))
    return said
