"""Exact JSON: digits stay, hostile text is refused with its place, and cut text is told apart from wrong text."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.assemble.exact_json import (
    MAX_DEPTH,
    JsonProblemError,
    Literal,
    canonical_number,
    canonical_text,
    line_and_column,
    parse_envelope,
    parse_exact,
    write_exact,
)

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(VALUES)
def test_round_trip_keeps_every_value(value: object) -> None:
    """What json.dumps writes, parse_exact reads as the same value, and write_exact spells so that json reads it."""
    parsed = parse_exact(json.dumps(value))
    assert value == parsed
    assert value == json.loads(write_exact(parsed))


@given(st.integers(min_value=10**19, max_value=10**40))
def test_long_numbers_that_differ_in_one_digit_differ(number: int) -> None:
    """20-digit neighbours never compare equal, as integers or as decimals."""
    assert canonical_text(f"[{number}]") != canonical_text(f"[{number + 1}]")
    assert canonical_text(f"[0.{number}]") != canonical_text(f"[0.{number + 1}]")


def test_numbers_keep_their_digits() -> None:
    """A float that would round keeps its text; an integer beyond Python's own limit survives."""
    value = parse_exact('{"a": 12345678901234567890.123, "b": ' + "7" * 6000 + ', "c": 0.5}')
    assert isinstance(value["a"], Literal)
    assert value["a"].text == "12345678901234567890.123"
    assert "7" * 6000 in write_exact(value)
    assert type(value["c"]) is float


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ('{"a":1,"b":2}', ' { "b" : 2 , "a" : 1 } '),
        ("[1.0]", "[1]"),
        ("[100]", "[1e2]"),
        ("[0.10]", "[1e-1]"),
        ("[-0]", "[0]"),
        ("", "{}"),
        ("  \n", "{}"),
        ('["\\u00e9"]', '["é"]'),
    ],
)
def test_equal_values_have_one_spelling(left: str, right: str) -> None:
    """Order, spaces, escapes, the spelling of numbers and blank arguments make no difference."""
    assert canonical_text(left) == canonical_text(right)


@pytest.mark.parametrize(
    ("left", "right"), [("[1]", '["1"]'), ("[true]", "[1]"), ("[null]", "[]"), ("{}", "[]"), ("[1,2]", "[2,1]")]
)
def test_different_values_have_different_spellings(left: str, right: str) -> None:
    """Types and the order of arrays make a difference."""
    assert canonical_text(left) != canonical_text(right)


def test_text_that_is_no_json_is_its_own_canonical_form() -> None:
    """A comparator can always compare: what does not parse stays as it is."""
    assert canonical_text("{'a': 1}") == "{'a': 1}"


def test_canonical_number_leaves_strange_text() -> None:
    """What is no JSON number is not touched."""
    assert canonical_number("1e9999999999999999999") == "1e9999999999999999999"


FULL = '{"a": [1.5e-3, true, null, -2, "x\\u00e9\\n"], "b": {"c": {}, "d": "\\ud83d\\ude00"}, "e": false}'


@pytest.mark.parametrize("length", range(len(FULL)))
def test_every_beginning_of_json_is_cut_and_not_wrong(length: int) -> None:
    """Any prefix of a JSON text is refused as cut."""
    with pytest.raises(JsonProblemError) as caught:
        parse_exact(FULL[:length])
    assert caught.value.cut


@pytest.mark.parametrize(
    "text",
    [
        '{"a":1,}',
        "{'a':1}",
        '{"a":1} x',
        '{"a" 1',
        "[1 2",
        '{"a":NaN',
        '{"a":"b\nc',
        '{"a": tru, ',
        "{a:1",
        "[1,,",
        "\\",
    ],
)
def test_wrong_json_is_wrong_even_at_a_cut(text: str) -> None:
    """A fault before the end is never excused as a cut."""
    with pytest.raises(JsonProblemError) as caught:
        parse_exact(text)
    assert not caught.value.cut


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
def test_strict_refuses_and_envelope_accepts_constants(constant: str) -> None:
    """NaN and its like are no JSON from a model, but runtimes write them into logprobs."""
    with pytest.raises(JsonProblemError):
        parse_exact(f"[{constant}]")
    assert isinstance(parse_envelope(f"[{constant}]".encode())[0], float)


@pytest.mark.parametrize("opening", ["[", '{"a":', "[[{"])
def test_deep_nesting_is_refused_and_never_overflows(opening: str) -> None:
    """20,000 levels are a problem with a place, not a RecursionError."""
    with pytest.raises(JsonProblemError, match="nested deeper"):
        parse_exact(opening * 20_000)
    with pytest.raises(JsonProblemError):
        parse_envelope((opening * 20_000).encode())


def test_brackets_in_strings_are_no_nesting() -> None:
    """Only brackets outside of strings count."""
    assert parse_exact(json.dumps(["[" * 5000])) == ["[" * 5000]
    assert parse_exact("[" * MAX_DEPTH + "]" * MAX_DEPTH)


@pytest.mark.parametrize("raw", [b'{"a":"\\ud83d"}', b'{"a":"\xff"}', b'\xef\xbb\xbf{"a":1}', b'{"a":"x\ny"}'])
def test_envelope_survives_what_runtimes_send(raw: bytes) -> None:
    """Lone surrogates, bad UTF-8, a BOM and raw control characters do not lose the answer."""
    assert "a" in parse_envelope(raw)


def test_envelope_exact_keeps_integers_beyond_64_bits() -> None:
    """With exact=True a body's integers are not rounded."""
    assert parse_envelope(b"[18446744073709551617]", exact=True)[0] == 18446744073709551617


@given(st.binary(max_size=60))
def test_envelope_raises_only_its_own_error(raw: bytes) -> None:
    """Any bytes either parse or raise JsonProblemError."""
    try:
        parse_envelope(raw)
    except JsonProblemError as problem:
        assert problem.position >= 0


def test_line_and_column() -> None:
    """Both count from one; a column counts characters after the last line end."""
    assert line_and_column("abc", 0) == (1, 1)
    assert line_and_column("a\nbc", 3) == (2, 2)
