"""Numbers in text, English and Chinese, as values that compare: digits, separators, units of scale, percents, words.

Owns the reading of numerals. Exact for digits: a value is a string of significant digits and a power of ten, never a
float. Must not know where the numbers come from. Used by the numbers check and by whoever compares table answers.
"""

import re
import unicodedata
from collections.abc import Iterator
from typing import Final

import msgspec

from gateway.core.quality.seldom import Seldom

_NUMBER: Final = re.compile(
    r"(?<![\w.])(?P<hex>0[xX][0-9A-Fa-f]+)"
    r"|(?P<digits>\d{1,3}(?:[,\u2009\u202f\u00a0']\d{3})+(?!\d)(?:\.\d+)?|\d+(?:\.\d+)?)"
    r"(?P<exponent>[eE][+-]?\d{1,3}(?![\w.]))?"
    r"(?:[ \u00a0]?(?P<scale>thousand|million|billion|trillion|mn|bn|[kKMBT](?![A-Za-z])"
    r"|百万|千万|万亿|百亿|千亿|万|亿|千(?![克米瓦卡])|百))?"
    r"(?P<percent>[ \u00a0]?(?:%|percent\b|per cent\b|％|个百分点))?"
)
_CHINESE: Final = re.compile(
    r"(?P<percent>百分之)?(?P<word>[零〇一二两三四五六七八九十百千万亿]+)(?:点(?P<fraction>[零〇一二三四五六七八九]+))?"
)
_SCALES: Final = {
    "thousand": 3, "k": 3, "千": 3, "million": 6, "mn": 6, "m": 6, "百万": 6, "billion": 9, "bn": 9, "b": 9,
    "trillion": 12, "t": 12, "万亿": 12, "百": 2, "万": 4, "千万": 7, "亿": 8, "百亿": 10, "千亿": 11,
}  # fmt: skip
_CN_DIGITS: Final = {word: value for value, word in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
_CN_UNITS: Final = {"十": 10, "百": 100, "千": 1000}
_CN_BIG: Final = {"万": 10_000, "亿": 100_000_000}
_MAX_DIGITS: Final = 40  # longer ones are compared digit by digit, but neither rounded nor read from words
_WORDS: Final = {
    "zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
    "ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16,
    "seventeen": 17, "eighteen": 18, "nineteen": 19, "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50,
    "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90, "half": 50, "dozen": 12, "hundred": 100,
}  # fmt: skip
_ENGLISH: Final = Seldom(rf"\b({'|'.join(_WORDS)})(?:-({'|'.join(list(_WORDS)[1:10])}))?\b")


class Numeral(msgspec.Struct, frozen=True):
    """One number in a text: its offset, what was written, and every value that it may stand for.

    ``values`` are canonical (`canonical`): 3.2万 is both 3.2 and 32000, 12 % both 12 and 0.12. ``small`` numbers (up to
    12, without scale, decimals or percent) are as a rule counts, list marks and dates.
    """

    start: int
    end: int
    values: frozenset[str]
    digits: str
    small: bool
    scaled: str = ""  # the value with its unit of scale, where it has one


def numerals(text: str, *, most: int = 2048) -> Iterator[Numeral]:
    """Numbers of a text in Arabic and Chinese digits, in order of kind, at most ``most`` of each."""
    folded = _fold(text)
    for count, found in enumerate(_NUMBER.finditer(folded)):
        if count >= most:
            break
        yield _arabic(found)
    if folded.isascii():
        return
    for count, found in enumerate(_CHINESE.finditer(folded)):
        if count >= most:
            break
        value = _chinese(found["word"])
        if value is not None:
            written = str(value) + (
                "." + "".join(str(_CN_DIGITS[d]) for d in found["fraction"]) if found["fraction"] else ""
            )
            values = {canonical(written)} | ({canonical(written, -2)} if found["percent"] else set())
            small = value <= 12 and not found["fraction"] and not found["percent"]
            yield Numeral(found.start(), found.end(), frozenset(values), written, small)


def worded(text: str) -> Iterator[str]:
    """Canonical values of English number words, for contexts that spell numbers out."""
    for found in _ENGLISH.finditer(text):
        yield canonical(str(_WORDS[found[1].lower()] + (_WORDS[found[2].lower()] if found[2] else 0)))


def canonical(digits: str, power: int = 0) -> str:
    """Significant digits and power of ten of a plain decimal; equal numbers have equal spellings."""
    whole, _, fraction = digits.partition(".")
    significant = (whole + fraction).lstrip("0")
    power -= len(fraction)
    power += len(significant) - len(significant.rstrip("0"))
    significant = significant.rstrip("0")
    return f"{significant}e{power}" if significant else "0"


def rounds_to(precise: str, rounded: str) -> bool:
    """Whether the plain decimal ``precise`` gives ``rounded`` when rounded or cut to as many decimals."""
    places = len(rounded.partition(".")[2])
    whole, _, fraction = precise.partition(".")
    if len(fraction) <= places or len(precise) > _MAX_DIGITS:
        return False
    cut = whole + fraction[:places]
    up = str(int(cut) + 1).zfill(len(cut))
    target = rounded.replace(".", "")
    return target in {cut, up} or target.lstrip("0") in {cut.lstrip("0"), up.lstrip("0")}


def _fold(text: str) -> str:
    """Full-width digits and signs as ASCII, one character for one, so that offsets stay."""
    if text.isascii():
        return text
    return "".join(unicodedata.normalize("NFKC", c) if "\uff00" <= c <= "\uff5e" else c for c in text)


def _arabic(found: re.Match[str]) -> Numeral:
    if found["hex"]:
        return Numeral(found.start(), found.end(), frozenset({found["hex"].lower()}), found["hex"], False)
    digits = re.sub(r"[^\d.]", "", found["digits"])
    power = int(found["exponent"][1:]) if found["exponent"] else 0
    values = {canonical(digits, power)}
    scale = found["scale"]
    scaled = canonical(digits, power + _SCALES[scale.lower()]) if scale else ""
    if scaled:
        values.add(scaled)
    if found["percent"] and "e-" in (fraction := canonical(digits, power - 2)):
        values.add(fraction)
    plain = not scale and not found["percent"] and "." not in digits and not power
    return Numeral(
        found.start(), found.end(), frozenset(values), digits, plain and len(digits) <= 2 and int(digits) <= 12
    )


def _chinese(word: str) -> int | None:
    """Value of a Chinese numeral; None where it is none (a lone unit as in 万一). Digits read out are one number."""
    if len(word) > _MAX_DIGITS:
        return None
    if all(character in _CN_DIGITS for character in word):
        return int("".join(str(_CN_DIGITS[character]) for character in word))
    total = section = digit = 0
    for character in word:
        if character in _CN_DIGITS:
            digit = _CN_DIGITS[character]
        elif character in _CN_UNITS:
            section += (digit or 1) * _CN_UNITS[character]
            digit = 0
        else:
            section += digit
            digit = 0
            if section == 0:
                return None
            total = (
                (total + section) * _CN_BIG[character] if character == "亿" else total + section * _CN_BIG[character]
            )
            section = 0
    return total + section + digit
