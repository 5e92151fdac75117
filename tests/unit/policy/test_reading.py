"""YAML with places: bounded, without tags, without surprises."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.policy import reading as module
from gateway.policy.document import SourceFile
from gateway.policy.numbers import as_written
from gateway.policy.reading import read_tree
from gateway.policy.tree import Tree, dotted


def read(text: str | bytes) -> tuple[Tree | None, list[str]]:
    found, findings = read_tree(SourceFile("p.yaml", text if isinstance(text, bytes) else text.encode()))
    return found, [str(finding) for finding in findings]


def data(text: str) -> dict[str, Any]:
    found, findings = read(text)
    assert found is not None
    assert not findings
    return found.data


def test_only_true_and_false_are_truth_values() -> None:
    """``off``, ``no``, dates and times stay the text they look like; numbers are numbers."""
    text = "{a: off, b: no, c: 2026-01-01, d: 12:30, e: true, f: ~, g: 4e6, h: 1.5, i: 0x10, j: '5', k: -3, l: 1.2.3}"
    expected = [*("off", "no", "2026-01-01", "12:30"), True, None, 4e6, 1.5, 16, "5", -3, "1.2.3"]
    assert list(data(text).values()) == expected


def test_a_number_is_as_written_where_text_is_wanted() -> None:
    """A driver 580.10 is no 580.1, and a commit 12e4567 is not infinite."""
    found = data("a: 580.10\nb: 12e4567\nc: 0123\nd: 5\n")
    assert [as_written(value) for value in found.values()] == ["580.10", "12e4567", "0123", "5"]
    assert found["c"] == 123


def test_every_value_knows_its_place() -> None:
    """Scalars stand where they are written, collections where their key is, items where they begin; 1-based."""
    found, _ = read("a:\n  b: [x,\n    y]\nc: 1\n")
    assert found is not None
    places = {dotted(path): (place.line, place.column) for path, place in found.places.items()}
    assert places == {"policy": (1, 1), "a": (1, 1), "a.b": (2, 3), "a.b[0]": (2, 7), "a.b[1]": (3, 5), "c": (4, 4)}
    assert found.keys["a", "b"].column == 3
    assert found.place(("a", "b", 7, "deeper")) == found.places["a", "b"]


def test_a_key_given_twice_is_refused_where_it_is_repeated() -> None:
    """The later value never silently wins."""
    _, findings = read("a: 1\nb: 2\na: 3\n")
    assert findings == ["p.yaml:3:1: error: the key 'a' is given twice (the first is in line 1)"]


def test_anchors_and_merge_keys_work_and_own_keys_win() -> None:
    """``<<`` fills in what is not given, in any order, from one mapping or several."""
    text = "x: &x {a: 1, b: {c: 2}}\ny: &y {a: 9, d: 4}\nz:\n  a: 0\n  <<: [*x, *y]\nw: *x\n"
    found = data(text)
    assert found["z"] == {"a": 0, "b": {"c": 2}, "d": 4}
    assert found["w"] == {"a": 1, "b": {"c": 2}}
    tree, _ = read(text)
    assert tree is not None
    assert tree.places["z",].line == 3
    assert tree.places["z", "a"].line == 4


def test_a_bad_merge_is_a_finding() -> None:
    """``<<`` of something that is no mapping."""
    assert "takes a mapping" in read("a: {<<: 5}")[1][0]


@pytest.mark.parametrize("text", ["", "# only a comment\n", "null", "~", "{}", "---\n...\n", "\n\n"])
def test_b91_empty_is_invalid(text: str) -> None:
    """Empty, null and only comments are no policy."""
    found, findings = read(text)
    assert found is None
    assert "the file is empty" in findings[0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[1, 2]", "1:1: error: a policy is a mapping"),
        ("word", "1:1: error: a policy is a mapping"),
        ("a: [1\nb: 2\n", "error: not valid YAML"),
        ("a: 1\n---\nb: 2\n", "2:1: error: not valid YAML"),
        ("a: *gone\n", "1:4: error: not valid YAML"),
        ("a: !!python/object:os.system x\n", "1:4: error: the tag"),
        ("a: !env HOME\n", "1:4: error: the tag"),
        ("a: !thing {b: 1}\n", "error: the tag"),
        ("a: !!int word\n", "not a number"),
        ("1: x\n", "1:1: error: a key must be text"),
        ("? [a]\n: x\n", "a key must be text"),
        ("a: {{ b }}\n", "templates are not filled in here"),
        ("a: 1\n\u00a0b: 1\n", "2:1: error: the key '\\xa0b' has white space in it"),
        ("a: \x01\n", "not valid YAML"),
        ("a: &a [*a]\n", "nested more than"),
        ("[" * 5000, "not valid YAML"),
        ("a: " + "[" * 100 + "]" * 100, "nested more than"),
    ],
)
def test_what_is_not_plain_data_is_refused_with_its_place(text: str, said: str) -> None:
    """Broken YAML, several documents, tags, loops and abysses each give a finding."""
    assert said in read(text)[1][0]


def test_text_that_is_not_utf8_is_refused_with_its_line() -> None:
    """Other encodings are not guessed; a byte order mark is no harm."""
    assert "p.yaml:2:4: error: the file is not UTF-8" in read(b"a: 1\nb: \xff\n")[1][0]
    assert data("\ufeffa: 1") == {"a": 1}


def test_expansion_is_bounded() -> None:
    """A few lines of anchors cannot fill the memory."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 9)]
    found, findings = read("\n".join(lines))
    assert found is None
    assert "expands to more than" in findings[0]


def test_many_values_are_allowed_up_to_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound counts values, collections included."""
    monkeypatch.setattr(module, "NODES_MOST", 4)
    assert read("a: [1]")[0] is not None
    assert read("a: [1, 2, 3]")[0] is None


@given(st.binary(max_size=300) | st.text(max_size=300).map(str.encode))
def test_any_bytes_give_a_tree_or_findings(content: bytes) -> None:
    """Nothing a file holds makes the reader fail in another way."""
    found, findings = read_tree(SourceFile("p.yaml", content))
    assert found is not None or findings
