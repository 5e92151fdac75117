"""Numbers, citations and code symbols of an answer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.comparison.marks import numbers, overlap, read_marks, split_code


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("1,000.50", "1000.5"),
        ("3.0", "3"),
        ("共12个", "12"),
        ("１２", "12"),
        ("1. one\n2. two", "one two"),
        ("007", "7"),
    ],
)
def test_one_number_has_one_spelling(left: str, right: str) -> None:
    """Separators, trailing zeros, wide digits and list ordinals are layout."""
    assert numbers(left) == numbers(right)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("-5 °C", "5 °C"),
        ("12345678901234567890", "12345678901234567891"),
        ("v1.2.3", "v1.2.4"),
        ("0.1", "0.10000000000000000001"),
        ("1e3", "1e4"),
    ],
)
def test_another_number_is_another_number(left: str, right: str) -> None:
    """A sign, a last digit and a patch level are what a damaged model gets wrong (B106)."""
    assert not numbers(left) & numbers(right)


def test_a_hyphen_between_values_is_no_sign() -> None:
    """3-5 is a range of positive numbers, and so are the fields of a date."""
    assert numbers("3-5 on 2024-05-01") == numbers("3 5 2024 1")


def test_citations_in_all_their_spellings() -> None:
    """Brackets with lists and ranges, footnotes, lenticular brackets, URLs, author and year."""
    text = "So [1, 3-5] and [doc 2], noted[^n1], 【4†source】, (Smith et al., 2020), https://h.org/p?q=1."
    found = read_marks(text)
    assert found.citations == {
        "1",
        "3",
        "4",
        "5",
        "doc2",
        "^n1",
        "4†source",
        "smith et al. 2020",
        "https://h.org/p?q=1",
    }
    assert found.numbers == frozenset()


def test_an_index_in_code_is_no_citation() -> None:
    """``row[0]`` in code cites nothing."""
    assert read_marks("Take `row[0]`:\n```python\nx = row[1]\n```").citations == frozenset()


def test_symbols_are_identifiers_without_keywords_strings_and_comments() -> None:
    """What is compared is what the code names."""
    code = 'def area(r):  # circle helper\n    """doc words"""\n    return PI * r ** 2 if r else "none at all"'
    text = f"```python\n{code}\n```"
    assert read_marks(text).symbols == {"area", "r", "PI"}


def test_symbols_outside_of_fences() -> None:
    """Back quotes and words that only code writes count where there is no fence; plain prose names nothing."""
    assert read_marks("Call `os.path.join` or my_func(x) via camelCase").symbols == {
        "os",
        "path",
        "join",
        "my_func",
        "camelCase",
    }
    assert read_marks("Plain prose. With sentences, and (brackets).").symbols == frozenset()


def test_split_code_keeps_an_unclosed_block() -> None:
    """A truncated answer ends inside its fence; that is code too."""
    code, prose = split_code("before\n```py\nx = 1\n```\nbetween\n```\ny = 2")
    assert [block.strip() for block in code] == ["x = 1", "y = 2"]
    assert prose.split() == ["before", "between"]


@given(st.frozensets(st.text(max_size=3), max_size=8), st.frozensets(st.text(max_size=3), max_size=8))
def test_overlap_is_f1(left: frozenset[str], right: frozenset[str]) -> None:
    """Symmetric, in [0, 1], 1 exactly for equal sets, 0 exactly for disjoint ones that are not both empty."""
    value = overlap(left, right)
    assert value == overlap(right, left)
    assert (value == 1.0) == (left == right)
    assert (value == 0.0) == (not left & right and bool(left or right))


@given(st.text(alphabet="0123456789.,-eEv[](){}`'\"\\/#*_ aZ\n【】é中", max_size=300))
def test_marks_survive_any_text(text: str) -> None:
    """Hostile mixtures of what the expressions look for are read, and read the same twice."""
    assert read_marks(text) == read_marks(text)


@pytest.mark.parametrize(
    "text",
    [
        "1," * 50_000,
        "[1," * 30_000,
        "(A" * 50_000,
        "```\n" + "'\\" * 50_000,
        "a" * 100_000,
        "a_" * 50_000,
        "https://" * 12_000,
    ],
)
def test_hostile_runs_are_read(text: str) -> None:
    """Runs that make a backtracking expression explode come back at once (the suite would hang otherwise)."""
    assert read_marks(text).citations is not None
