"""YAML read as plain data in which every value still knows its place.

The core schema of YAML 1.2: only ``true`` and ``false`` are truth values, so ``off``, ``no`` and dates stay text.
Tags beyond it and duplicate keys are refused, anchors and ``<<`` work, and expansion is bounded. The only module that
reads YAML; called by ``merge`` and by ``quantgate test``.
"""

import re
from typing import Any

import yaml
from yaml.cyaml import CParser  # type: ignore[attr-defined]  # libyaml parser, missing in the stubs

from gateway.errors import PolicyError
from gateway.policy.broken import told
from gateway.policy.document import SourceFile
from gateway.policy.numbers import written
from gateway.policy.tree import Path, Place, Tree

NODES_MOST = 100_000
DEPTH_MOST = 32
_FLATTER = "no policy needs so many levels, and nothing may hold its own anchor"
_PREFIX = "tag:yaml.org,2002:"


class _Resolver(yaml.resolver.BaseResolver):
    """Implicit types of YAML 1.2's core schema, and the merge key."""


for _tag, _pattern, _first in (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", "-+0123456789"),
    ("float", r"[-+]?(?:\.[0-9]+|[0-9]+\.[0-9]*|[0-9]+(?:\.[0-9]*)?[eE][-+]?[0-9]+)", "-+.0123456789"),
    ("merge", r"<<", "<"),
):
    _Resolver.add_implicit_resolver(_PREFIX + _tag, re.compile(rf"(?:{_pattern})\Z"), list(_first))


class _Composer(CParser, _Resolver):
    def __init__(self, stream: str) -> None:
        CParser.__init__(self, stream)
        _Resolver.__init__(self)


class _BrokenError(Exception):
    """Stops reading one file; carries the finding."""

    def __init__(self, finding: PolicyError) -> None:
        super().__init__(finding.message)
        self.finding = finding


class _Reader:
    """Turns the nodes of one file into data; collects findings that do not stop it."""

    def __init__(self, file: str, tree: Tree, findings: list[PolicyError]) -> None:
        self._file = file
        self._tree = tree
        self._findings = findings
        self._nodes = 0

    def value(self, node: yaml.Node, path: Path, key: Place | None = None, depth: int = 0) -> Any:
        place = self._place(node)
        self._nodes += 1
        if self._nodes > NODES_MOST:
            raise _BrokenError(place.finding(f"the file expands to more than {NODES_MOST} values", "use fewer anchors"))
        if depth > DEPTH_MOST:
            raise _BrokenError(place.finding(f"nested more than {DEPTH_MOST} levels deep, or in itself", _FLATTER))
        if isinstance(node, yaml.ScalarNode):
            self._tree.places[path] = place
            return self._scalar(node, place)
        self._tree.places[path] = key or place
        if node.tag not in (_PREFIX + "map", _PREFIX + "seq"):
            self._findings.append(place.finding(f"the tag {node.tag} is not allowed", "policies hold plain data only"))
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, (*path, index), None, depth + 1) for index, item in enumerate(node.value)]
        return self._mapping(node, path, depth)

    def _mapping(self, node: yaml.Node, path: Path, depth: int) -> dict[str, Any]:
        here = self._tree.places[path]
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if key_node.tag == _PREFIX + "merge":
                result = {**self._merged(value_node, path, self._place(key_node), depth), **result}
        self._tree.places[path] = here
        own: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if key_node.tag == _PREFIX + "merge":
                continue
            place = self._place(key_node)
            if not isinstance(key_node, yaml.ScalarNode) or key_node.tag != _PREFIX + "str":
                template = isinstance(key_node, yaml.MappingNode)
                mend = "templates are not filled in here, do that before" if template else "put it in quotes"
                self._findings.append(place.finding("a key must be text", mend))
                continue
            key: str = key_node.value
            if key != key.strip():  # a no-break space looks like an indent, and makes another key
                mend = "indent with spaces of your keyboard"
                self._findings.append(place.finding(f"the key {key!r} has white space in it", mend))
                continue
            inner = (*path, key)
            if key in own:
                first = self._tree.keys[inner]
                self._findings.append(
                    place.finding(f"the key {key!r} is given twice", f"the first is in line {first.line}")
                )
                continue
            self._tree.keys[inner] = place
            own[key] = self.value(value_node, inner, place, depth + 1)
        return {**result, **own}

    def _merged(self, node: yaml.Node, path: Path, place: Place, depth: int) -> dict[str, Any]:
        sources = node.value if isinstance(node, yaml.SequenceNode) else [node]
        result: dict[str, Any] = {}
        for source in sources:
            if not isinstance(source, yaml.MappingNode):
                self._findings.append(place.finding("<< takes a mapping or a list of mappings"))
                continue
            data = self.value(source, path, place, depth + 1)
            result = {**data, **result}
        return result

    def _scalar(self, node: yaml.ScalarNode, place: Place) -> Any:
        kind = node.tag.removeprefix(_PREFIX)
        text: str = node.value
        try:
            if kind in ("str", "merge"):
                return text
            if kind == "null":
                return None
            if kind == "bool":
                return text.lower() == "true"
            if kind == "int":
                base = {"0o": 8, "0x": 16}.get(text[:2], 10)
                return written(int(text if base == 10 else text[2:], base), text)
            if kind == "float":
                return written(float(text), text)
        except ValueError:
            self._findings.append(place.finding(f"not a number: {text[:40]!r}", "put it in quotes"))
            return None
        self._findings.append(place.finding(f"the tag {node.tag} is not allowed", "policies hold plain data only"))
        return None

    def _place(self, node: yaml.Node) -> Place:
        return Place(self._file, node.start_mark.line + 1, node.start_mark.column + 1)


def read_tree(file: SourceFile) -> tuple[Tree | None, list[PolicyError]]:
    """One file as a tree. ``None`` with findings if it cannot be read or is empty."""
    tree = Tree({}, {}, {})
    findings: list[PolicyError] = []
    try:
        node = _compose(file)
        if node is None or (isinstance(node, yaml.ScalarNode) and node.tag == _PREFIX + "null"):
            raise _BrokenError(_at(file, "the file is empty", "an empty policy is invalid; remove the file or fill it"))
        if not isinstance(node, yaml.MappingNode):
            raise _BrokenError(_at(file, "a policy is a mapping of sections", "begin with version: 1"))
        tree.data = _Reader(file.name, tree, findings).value(node, ())
    except _BrokenError as error:
        return None, [*findings, error.finding]
    if not tree.data and not findings:
        return None, [_at(file, "the file is empty", "an empty policy is invalid; remove the file or fill it")]
    return tree, findings


def _at(file: SourceFile, message: str, mend: str = "", line: int = 1, column: int = 1) -> PolicyError:
    return PolicyError(file.name, line, column, message, mend)


def _behind(before: bytes) -> tuple[int, int]:
    """Line and column of what comes after these bytes."""
    lines = before.decode("utf-8", "replace").split("\n")
    return len(lines), len(lines[-1]) + 1


def _compose(file: SourceFile) -> yaml.Node | None:
    try:
        text = file.content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        place = _behind(file.content[: error.start])
        raise _BrokenError(_at(file, "the file is not UTF-8", "save it as UTF-8", *place)) from error
    try:
        node: yaml.Node | None = _Composer(text).get_single_node()
    except yaml.MarkedYAMLError as error:
        line, column, message, mend = told(error, text)
        raise _BrokenError(_at(file, f"not valid YAML: {message}", mend, line, column)) from error
    except yaml.reader.ReaderError as error:
        place = _behind(text.encode()[: error.position])
        raise _BrokenError(_at(file, f"not valid YAML: {error.reason}", "remove them", *place)) from error
    except RecursionError as error:
        raise _BrokenError(_at(file, "not valid YAML: nested too deeply", f"at most {DEPTH_MOST} levels")) from error
    except (yaml.YAMLError, ValueError) as error:
        raise _BrokenError(_at(file, f"not valid YAML: {error}", "look at what was edited last")) from error
    return node
