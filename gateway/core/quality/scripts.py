"""Writing systems: how much of each a text holds, and which one an answer should be in.

Owns the counting of letters by script, and the check that an answer does not slip into a script the request gave no
reason for. Must not identify languages beyond their script. `weights` also serves the view and the garbage check.
"""

import re
from bisect import bisect_right
from collections import Counter
from typing import TYPE_CHECKING, Final

from gateway.core.quality.finding import Check, Finding, absent, failed, passed, skipped
from gateway.core.quality.seldom import Seldom

if TYPE_CHECKING:
    from gateway.core.quality.view import View

_SAMPLE_CHARS: Final = 8_192
_RANGES: Final = (
    (0x0041, 0x005A, "latin"), (0x0061, 0x007A, "latin"), (0x00C0, 0x024F, "latin"), (0x0370, 0x03FF, "greek"),
    (0x0400, 0x052F, "cyrillic"), (0x0531, 0x058F, "armenian"), (0x0591, 0x05FF, "hebrew"), (0x0600, 0x06FF, "arabic"),
    (0x0750, 0x077F, "arabic"), (0x0900, 0x0DFF, "indic"), (0x0E01, 0x0E7F, "thai"), (0x10A0, 0x10FF, "georgian"),
    (0x1100, 0x11FF, "hangul"), (0x1E00, 0x1EFF, "latin"), (0x3041, 0x30FF, "kana"), (0x3400, 0x4DBF, "han"),
    (0x4E00, 0x9FFF, "han"), (0xAC00, 0xD7A3, "hangul"), (0xF900, 0xFAFF, "han"), (0xFF66, 0xFF9F, "kana"),
    (0x20000, 0x3FFFF, "han"),
)  # fmt: skip
"""Unicode blocks in ascending order: first, last, script. What lies between is no letter of a script told apart."""

_STARTS: Final = tuple(first for first, _, _ in _RANGES)
_NO_ASCII_LETTERS: Final = bytes(code for code in range(256) if not (65 <= code <= 90 or 97 <= code <= 122))
_BEYOND_ASCII: Final = re.compile(r"[^\x00-\x7f]+")
_LETTER_WEIGHT: Final = {"han": 3.0, "kana": 2.0, "hangul": 2.0}  # letters of an alphabet that say as much
_MIN_WEIGHT: Final = 24.0
_TRANSLATION: Final = Seldom(
    r"translat|language|multilingual|pinyin|romaji|kanji|hiragana|transliterat|翻译|译成|译为|语言|拼音|双语|外文|单词"
)
_NAMED: Final = Seldom(
    r"\b(english|chinese|mandarin|cantonese|japanese|korean|russian|ukrainian|greek|arabic|hebrew|hindi|thai|french|german"
    r"|spanish|italian|portuguese|vietnamese|turkish|persian|farsi|urdu|bengali|georgian|armenian|latin)\b"
    r"|(中文|汉语|普通话|英文|英语|日文|日语|韩文|韩语|俄语|法语|德语|西班牙语)"
)
_SCRIPT_OF: Final = dict.fromkeys(
    ("chinese", "mandarin", "cantonese", "中文", "汉语", "普通话"), "han"
) | dict.fromkeys(("english", "英文", "英语"), "latin")


def weights(text: str) -> dict[str, float]:
    """Weight of each script in the text's beginning, in letters of an alphabet; absent scripts are not listed."""
    sample = text[:_SAMPLE_CHARS]
    found: dict[str, float] = {}
    letters = len(sample.encode("ascii", "ignore").translate(None, _NO_ASCII_LETTERS))
    if letters:
        found["latin"] = float(letters)
    if not sample.isascii():
        for character, count in Counter("".join(_BEYOND_ASCII.findall(sample))).items():
            script = script_of(character)
            if script:
                found[script] = found.get(script, 0.0) + count * _LETTER_WEIGHT.get(script, 1.0)
    return found


def script_of(character: str) -> str:
    """The script of a letter, empty for all else."""
    code = ord(character)
    at = bisect_right(_STARTS, code) - 1
    return _RANGES[at][2] if at >= 0 and code <= _RANGES[at][1] else ""


def check_script(view: "View") -> Finding:
    """Fail when a notable part of the prose is in a script that the request neither uses nor speaks of."""
    answer = view.letters
    total = sum(answer.values())
    if total < _MIN_WEIGHT:
        return absent(Check.SCRIPT, "too few letters")
    asked = weights(view.asked.user)
    if sum(asked.values()) < 4:
        return absent(Check.SCRIPT, "the request has too few letters")
    main = _main_script(asked)
    if _speaks_of_others(view.asked.user[-8192:], main) or _speaks_of_others(view.asked.system[:4096], main):
        return skipped(Check.SCRIPT, "the request speaks of other languages")
    context = weights(view.asked.context[-_SAMPLE_CHARS:])
    context_total = sum(context.values())
    for script, weight in answer.items():
        share = weight / total
        if script == "latin":
            # names, units and code words are Latin everywhere: only an answer that is all Latin slipped
            if main != "latin" and share > 0.9 and not _latin_is_natural(view, context, context_total):
                return failed(Check.SCRIPT, f"asked in {main}, answered in latin", start=0, end=len(view.text))
            continue
        foreign = script != main and not _related(script, main) and context.get(script, 0.0) < 0.02 * context_total
        if foreign and share > 0.04 and weight >= 9:
            start = next((at for at, character in enumerate(view.prose) if script_of(character) == script), -1)
            return failed(Check.SCRIPT, f"asked in {main}, {share:.0%} of the answer is {script}", start=start)
    return passed(Check.SCRIPT, "the scripts of the answer are those of the request")


def _speaks_of_others(text: str, main: str) -> bool:
    """Whether a text names a language that is not of the request's own script, or translation as such."""
    if _TRANSLATION.found_in(text):
        return True
    return any(_SCRIPT_OF.get((found[1] or found[2]).lower()) != main for found in _NAMED.finditer(text))


def _main_script(asked: dict[str, float]) -> str:
    """The script of the request; a little of another than Latin decides, since code and names are Latin."""
    total = sum(asked.values())
    others = {name: weight for name, weight in asked.items() if name != "latin"}
    best = max(others, key=others.__getitem__, default="latin")
    return best if others and others[best] >= 0.25 * total else "latin"


def _latin_is_natural(view: "View", context: dict[str, float], total: float) -> bool:
    """Code, JSON and documents in Latin script excuse an answer in it."""
    if view.fences or view.text.lstrip()[:1] in {"{", "["}:
        return True
    return context.get("latin", 0.0) > 0.35 * total


def _related(script: str, main: str) -> bool:
    return {script, main} in ({"han", "kana"}, {"han", "hangul"})
