"""Every key of the policy language is read by something: a key for nothing is a promise that nobody keeps."""

import ast
import dataclasses
import inspect
from collections.abc import Iterable
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from pydantic import BaseModel

from gateway.model import proving, table
from gateway.policy.schema import Policy
from gateway.policy.schema.proving import Guard

SOURCES = Path("gateway")
BY_NAME = {"standalone"}  # read from the tree of a file, before there is a policy


def read(files: Iterable[Path], *, methods: bool) -> set[str]:
    """Names of the attributes that the files look at; without ``methods`` not those that they only call."""
    names: set[str] = set()
    for file in files:
        nodes = list(ast.walk(ast.parse(file.read_text())))
        called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
        names |= {
            node.attr for node in nodes if isinstance(node, ast.Attribute) and (methods or id(node) not in called)
        }
    return names


def sections(annotation: Any, found: set[type[BaseModel]]) -> set[type[BaseModel]]:
    """``found`` with the section of a key's type and all below it."""
    if inspect.isclass(annotation) and issubclass(annotation, BaseModel) and annotation not in found:
        found.add(annotation)
        for field in annotation.model_fields.values():
            sections(field.annotation, found)
    for part in get_args(annotation):
        sections(part, found)
    return found


def test_every_key_is_compiled() -> None:
    """Something outside the schema takes each key's value."""
    found = read(
        [file for file in SOURCES.rglob("*.py") if file.parent != SOURCES / "policy" / "schema"], methods=False
    )
    written = {name for section in sections(Guard, sections(Policy, set())) for name in section.model_fields}
    assert written - found == BY_NAME


@pytest.mark.parametrize("module", [table, proving])
def test_every_part_of_the_table_is_used(module: Any) -> None:
    """What is compiled from a policy has a reader beyond the compiler."""
    readers = [
        file
        for file in SOURCES.rglob("*.py")
        if SOURCES / "policy" not in file.parents and file.name not in ("table.py", "proving.py")
    ]
    found = read(readers, methods=True)
    for made in vars(module).values():
        if getattr(made, "__module__", "") != module.__name__ or not inspect.isclass(made):
            continue
        names = (
            {field.name for field in dataclasses.fields(made)}
            if dataclasses.is_dataclass(made)
            else set(made.__struct_fields__)
            if issubclass(made, msgspec.Struct)
            else set()
        )
        assert names <= found, (made.__name__, names - found)
