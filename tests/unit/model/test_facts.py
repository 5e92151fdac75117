"""The values of a request: their ``__init__`` is spelt out, and nothing but this holds it to the fields."""

import ast
import dataclasses
from pathlib import Path

import pytest

import gateway
from gateway.model.enums import Api
from gateway.model.facts import Facts, Sampling

FACTS, DECISION, TOKENS, ANSWER = "model/facts.py", "model/decision.py", "core/tokens.py", "core/answer.py"
VALUES = [
    *((FACTS, name) for name in ("Sampling", "Facts", "Texts", "Reading", "Principal", "Profile")),
    *((DECISION, name) for name in ("Exclusion", "Decision")),
    (TOKENS, "Estimate"),
    (ANSWER, "AnswerInfo"),
]


@pytest.mark.parametrize(("module", "name"), VALUES, ids=[name for _, name in VALUES])
def test_every_argument_is_the_field_of_its_name(module: str, name: str) -> None:
    """Same names, same types, same order: what a dataclass would have generated."""
    tree = ast.parse((Path(gateway.__file__).parent / module).read_text())
    (found,) = (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name)
    (init,) = (node for node in found.body if isinstance(node, ast.FunctionDef) and node.name == "__init__")
    fields = [node for node in found.body if isinstance(node, ast.AnnAssign)]
    names = [ast.unparse(field.target) for field in fields]
    types = [ast.unparse(field.annotation) for field in fields]
    arguments = init.args.args[1:]
    assert [each.arg for each in arguments] == names
    assert [f"Final[{ast.unparse(each.annotation)}]" for each in arguments if each.annotation] == types
    assert [ast.unparse(node) for node in init.body] == [f"self.{field} = {field}" for field in names]


def test_they_are_values() -> None:
    """Equal where all fields are equal, whether given by place or by name; keys of a memo."""
    one = Facts(Api.CHAT, "m", True, sampling=Sampling(n=2))
    assert one == Facts(api=Api.CHAT, model="m", stream=True, sampling=Sampling(False, None, None, 2))
    assert hash(one) == hash(dataclasses.replace(one))
    for change in ({"api": Api.SCORE}, {"turns": 1}, {"sampling": Sampling()}, {"conversation": b"c"}):
        assert dataclasses.replace(one, **change) != one
