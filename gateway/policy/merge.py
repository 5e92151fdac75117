"""Several files as one set: mappings are united, lists follow each other in the order of the file names.

Nothing is ever overridden: what two files both define is an error that names both places. Called by ``load``.
"""

from typing import Any

from gateway.errors import PolicyError
from gateway.policy.document import Snapshot
from gateway.policy.reading import read_tree
from gateway.policy.tree import Path, Tree

SHARED = ("version",)
PARTS = ("classify", "evidence", "records", "gateway", "guards", "models", "pools", "tenants")
LISTS = ("constraints", "routes", "shadow", "rollouts", "notify", "operators")


def merged_tree(source: Snapshot) -> tuple[Tree, list[PolicyError], tuple[str, ...]]:
    """The set's tree, what is wrong with its files, and the names of the files that take part."""
    trees: list[Tree] = []
    findings: list[PolicyError] = []
    names: list[str] = []
    for file in source.files:
        tree, found = read_tree(file)
        if tree is not None and source.folder and tree.data.get("standalone") is True:
            continue
        findings += found
        names.append(file.name)
        if tree is not None:
            findings += _version(tree, file.name)
            trees.append(tree)
    if not names:
        mend = "load one of its files by name, or remove `standalone: true`"
        findings.append(PolicyError(source.path, 1, 1, "every policy in this folder is standalone", mend))
    whole = Tree({}, {}, {})
    for tree in trees:
        findings += _add(whole, tree)
    return whole, findings, tuple(names)


def _version(tree: Tree, file: str) -> list[PolicyError]:
    if "version" in tree.data:
        return []
    return [PolicyError(file, 1, 1, "the file does not say which policy language it is written in", "add version: 1")]


def _add(whole: Tree, tree: Tree) -> list[PolicyError]:
    findings: list[PolicyError] = []
    whole.places.setdefault((), tree.place(()))
    for section, value in tree.data.items():
        if section.startswith("x-"):
            continue
        present = whole.data.get(section)
        if present is None and section not in whole.data:
            whole.data[section] = value
            _move(whole, tree, (section,), 0)
        elif section in LISTS and isinstance(present, list) and isinstance(value, list):
            _move(whole, tree, (section,), len(present))
            whole.data[section] = [*present, *value]
        elif section in PARTS and isinstance(present, dict) and isinstance(value, dict):
            findings += _unite(whole, tree, section, present, value)
        elif section not in SHARED:
            findings.append(_twice(whole, tree, (section,)))
        elif value != present:
            first = whole.place((section,))
            message = f"{section} is {value!r} here, and {present!r} in {first.file}"
            findings.append(tree.place((section,)).finding(message, "write version: 1 in all of them"))
    return findings


def _unite(whole: Tree, tree: Tree, section: str, present: dict[str, Any], value: dict[str, Any]) -> list[PolicyError]:
    findings = [_twice(whole, tree, (section, key)) for key in value if key in present]
    fresh = {key: inner for key, inner in value.items() if key not in present}
    whole.data[section] = {**present, **fresh}
    for key in fresh:
        _move(whole, tree, (section, key), 0)
    return findings


def _twice(whole: Tree, tree: Tree, path: Path) -> PolicyError:
    first = whole.place(path)
    message = f"{'.'.join(str(step) for step in path)} is defined twice"
    return tree.place(path).finding(message, f"the first is in {first.file}, line {first.line}")


def _move(whole: Tree, tree: Tree, prefix: Path, offset: int) -> None:
    """Copy the places under ``prefix``; items of a list move up by ``offset``."""
    for source, target in ((tree.places, whole.places), (tree.keys, whole.keys)):
        for path, place in source.items():
            if path[: len(prefix)] != prefix:
                continue
            inner = path[len(prefix) :]
            if offset and inner and isinstance(inner[0], int):
                inner = (inner[0] + offset, *inner[1:])
            target.setdefault((*prefix, *inner), place)
