"""Files that are no YAML: what is said, and what to write instead."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.policy.document import SourceFile
from gateway.policy.reading import read_tree

MISTAKES = [
    ("models:\n\tm: {}\n", "2:1", "indented with a tab", "spaces"),
    ("a: @x\n", "1:4", "cannot begin with `@`", "quotes"),
    ("a: %x\n", "1:4", "cannot begin with `%`", "quotes"),
    ("tools: [*.write]\n", "1:9", "cannot begin with `*`", "quotes"),
    ("tools:\n  - *_x\n", "2:5", "marked `&_x`, and nothing is", "quotes"),
    ("a: {<<: *base, b: 1}\n", "1:9", "marked `&base`, and nothing is", "further up in this file"),
    ("a:\n  b: 1\n\u00a0\u00a0c: 1\n  d: 1\n", "3:1", "indented with what is no plain space", "spaces"),
    ("a:\n  b: c\n  d:e\n  f: g\n", "4:3", "line 3 has a key without a space", "key: value"),
    ("a: & b\n", "1:4", "cannot begin with `&`", "quotes"),
    ("name: a: b\n", "1:8", "second `: `", "quotes"),
    ("version:1\nmodels: {}\n", "2:7", "line 1 has a key without a space", "key: value"),
    ("routes:\n  -name: a\n   pools: [x]\n", "3:9", "line 2 has a dash without a space", "- name"),
    ("models:\n  m\n  n: 1\n", "3:4", "line 2 goes on", "colon"),
    ("a: 1\n<<<<<<< HEAD\nb: 1\n=======\n", "3:1", "line 2 is left over from a merge", "conflict"),
    ('a:\n  - b\n  "c"\nd: 1\n', "4:1", "line 3 stands among a list's items without a dash", "`- `"),
    ("a: 1\nb\nc: 1\n", "3:1", "key in line 2 has no colon", "key: value"),
    ("a:\n    m: {}\n  n: {}\n", "3:3", "does not line up with the keys from line 1", "same column"),
    ("a:\n  - b\n  c: 1\n", "3:3", "does not line up with the list from line 2", "`- `"),
    ("a: !<x y\n", "1:7", "while ", "quotes, brackets and indent"),
    ("a: [b, c\nd: {}\n", "2:2", "list that opens in line 1", "`]`"),
    ("a: {b: c\n", "2:1", "mapping that opens in line 1", "`}`"),
    ("a: 'b\nc: d\n", "3:1", "quote that opens in line 1", "close it"),
    ('a: "\\d"\n', "1:5", "no such escape", "single quotes"),
    ("a: 1\n---\nb: 2\n", "2:1", "second document", "`---`"),
    ("a: \x07\n", "1:4", "control characters", "remove"),
    ("# ééé\na: é\x07\n", "2:5", "control characters", "remove"),
    ("a: " + "[" * 5000, "", "nested too deeply", "brackets"),
]


@pytest.mark.parametrize(("text", "place", "message", "mend"), MISTAKES)
def test_mistakes_are_told_with_a_mend(text: str, place: str, message: str, mend: str) -> None:
    """The place is where one looks, the words are a policy's, and a mend is named."""
    tree, findings = read_tree(SourceFile("p.yaml", text.encode()))
    assert tree is None
    (finding,) = findings
    assert finding.message.startswith("not valid YAML: ")
    assert message in finding.message
    assert mend in finding.mend
    assert finding.mend
    if place:
        assert f"{finding.line}:{finding.column}" == place


@given(st.text(alphabet="ab:-[]{}'\"*&@`%#|>\\\t\n <=", max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    """Whatever stands in a file, the answer is a tree or findings, and never an exception."""
    tree, findings = read_tree(SourceFile("p.yaml", text.encode()))
    assert tree is not None or findings
    assert all(finding.mend for finding in findings if finding.message.startswith("not valid YAML"))
