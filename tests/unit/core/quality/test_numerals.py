"""Reading numbers as exact values."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.quality.numerals import canonical, numerals, rounds_to, worded


def values(text: str) -> set[str]:
    """All values of all numbers in a text."""
    return set().union(*(number.values for number in numerals(text)))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("1,234.50", "1234.5"),
        ("64.6k", "64600"),
        ("3.42 million", "3,420,000"),
        ("3.2万", "32000"),
        ("12.6亿元", "1260000000"),
        ("2.5%", "0.025"),
        ("四十二", "42"),
        ("三百二十", "320"),
        ("一万二千", "12000"),
        ("两亿三千万", "230000000"),
        ("百分之十五", "0.15"),
        ("三点五", "3.5"),
        ("一九八七", "1987"),
        ("７１２０", "7120"),
        ("1e3", "1000"),
        ("007", "7"),
    ],
)
def test_two_spellings_of_one_value(left: str, right: str) -> None:
    """Separators, scales, percents, Chinese and full-width digits."""
    assert values(left) & values(right)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("1234", "1235"),
        ("12345678901234567890", "12345678901234567891"),
        ("1.5", "15"),
        ("0.1", "0.01"),
        ("12", "21"),
        ("三十", "十三"),
    ],
)
def test_two_values(left: str, right: str) -> None:
    """Digits are exact at any length."""
    assert not values(left) & values(right)


@pytest.mark.parametrize("text", ["万一", "no number", "千克", "亿万"])
def test_words_that_are_no_numbers(text: str) -> None:
    """A lone unit is a word."""
    assert "1e0" not in values(text)


def test_small_numbers_are_marked() -> None:
    """Up to twelve without scale, decimals or percent."""
    found = {number.digits: number.small for number in numerals("3 items, 12 rows, 13 rows, 3.5 kg, 5 %, 7k")}
    assert found == {"3": True, "12": True, "13": False, "3.5": False, "5": False, "7": False}


def test_offsets_point_at_the_number() -> None:
    """Also behind full-width characters."""
    text = "面积７１２０平方"
    number = next(iter(numerals(text)))
    assert text[number.start : number.end] == "７１２０"


def test_number_words() -> None:
    """English words up to the hundreds."""
    assert {canonical("23"), canonical("7")} == set(worded("Twenty-three farms and seven barns"))


@pytest.mark.parametrize(
    ("precise", "rounded", "expected"),
    [
        ("16.5", "17", True),
        ("16.5", "16", True),
        ("0.487", "0.49", True),
        ("0.487", "0.48", True),
        ("0.487", "0.47", False),
        ("12", "12", False),
    ],
)
def test_rounding(precise: str, rounded: str, expected: bool) -> None:
    """Rounded or cut, to fewer places only."""
    assert expected == rounds_to(precise, rounded)


@given(st.integers(min_value=0, max_value=10**30))
def test_separators_never_change_a_value(number: int) -> None:
    """1,234,567 is 1234567 at any length."""
    assert values(f"{number:,}") & values(str(number))


@given(st.text(alphabet="0123456789.,%kM万亿百千十一二三 eE'", max_size=200))
def test_any_text_is_read(text: str) -> None:
    """No text makes the reader raise, and offsets stay inside it."""
    assert all(0 <= number.start < number.end <= len(text) for number in numerals(text))


def test_endless_numerals() -> None:
    """Thousands of digits, Arabic or Chinese, are read without Python's own limit in the way."""
    assert values("9" * 20_000)
    assert not values("三" * 20_000)
