"""Repetition: a text that turns in a circle, the commonest way for a damaged model to fail.

Owns five signs, each with its thresholds beside it: a tail that repeats one unit, a line or sentence again and again,
few distinct word sequences, few distinct letter sequences, and a text that compresses far too well. A text that ran
into its token limit needs less evidence: looping is why it got there. Must not judge what the text says. Called by
`inspect`.

Thresholds were set on the labelled set's development part; `docs/checks.md` reports them on all of it.
"""

import re
import zlib
from collections import Counter
from typing import Final

from gateway.core.quality.finding import Check, Finding, absent, failed, passed, skipped
from gateway.core.quality.view import TAIL_CHARS, View

_SUFFIX_CHARS: Final = 12
_CANDIDATES: Final = 6
_LOOPS: Final = ((60, 4), (120, 3.4))  # (weight in letters, repeats); a refrain is shorter
_LOOPS_AT_LIMIT: Final = ((60, 4), (36, 5), (24, 8), (130, 2.5))
_CODE_FACTOR: Final = 5.0  # code and data repeat by nature
_CODE_FACTOR_AT_LIMIT: Final = 2.0
_SPACE_LOOP_CHARS: Final = 40
_RULE_LOOP: Final = 16  # empty list items; a plain ruler of dashes may be longer
_RULER_CHARS: Final = 200
_SAME_CHARACTER: Final = re.compile(r"([^\s\-=_*~#.|+─━═…])\1{31,}")
_MIN_SEQUENCES: Final = 48
_MIN_SEQUENCES_CJK: Final = 24
_MIN_DISTINCT: Final = 0.55  # distinct word 4-grams / all; ordinary prose stays above 0.9
_VARIED: Final = 0.93
_MIN_DISTINCT_CODE_AT_LIMIT: Final = 0.35
_WINDOW_CHARS: Final = 400
_MIN_WINDOW_CHARS: Final = 140
_MIN_LETTER_SEQUENCES: Final = 0.27  # distinct letter triples / all in a window; prose and lists stay above 0.45
_MIN_BYTES: Final = 400
_MAX_RATIO: Final = 5.5  # bytes / compressed bytes; prose stays under 3, tables and lists under 4
_MAX_CODE_RATIO: Final = 14.0

_ASKED: Final = re.compile(r"\brepeat|\btimes\b|\bcopies\b|重复|[\d几多百千]\s*[遍次]", re.IGNORECASE)
_WORD: Final = re.compile(r"[^\W\d_]+|\d+")
_CJK: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]")
_RULE: Final = re.compile(r"[\s\-=_*~#|:+.·…─━═\u2500-\u257f]*")
_RULER: Final = re.compile(r"[-=_*~#|+:.·…─━═]{3,}")
_CLOSERS: Final = " \n\t.!?。！？\"'”’)"
_SENTENCE_END: Final = re.compile(r"[.!?。！？；\n]")
_DROPPED: Final = dict.fromkeys(map(ord, "0123456789*#>_-.)(|=+: \t"))
_HEAD_CHARS: Final = 2_048  # what is read of a long text: its beginning, and its end where loops stand


def check_repetition(view: View) -> Finding:
    """Fail when the text loops."""
    text = view.text
    if len(text) < 24:
        return absent(Check.REPETITION, "too short to loop")
    found = _tail_loop(view)
    if found is None:
        distinct = _distinct_sequences(view)
        # repeated lines and sentences repeat word sequences too, so a varied text needs no further look
        if distinct is None or distinct < _VARIED or view.at_limit:
            found = _few_sequences(view, distinct) or _line_loop(view) or _few_letters(view) or _compresses(view)
    if found is None:
        return passed(Check.REPETITION, "no loop")
    if _ASKED.search(view.asked.user[-1024:]) and not view.at_limit:
        return skipped(Check.REPETITION, "the text repeats itself, but the request may have asked for that")
    return found


def _tail_loop(view: View) -> Finding | None:
    """The end of the text is one unit over and over. Exact, so a change of a digit per round escapes it."""
    tail = view.tail
    whole = len(view.choice.text)
    blank = len(tail) - len(tail.rstrip())
    if blank >= _SPACE_LOOP_CHARS:
        return failed(Check.REPETITION, f"ends in {blank} blank characters", start=whole - blank)
    same = _SAME_CHARACTER.search(tail) if view.at_limit else None
    if same:
        return failed(Check.REPETITION, f"one character {len(same[0])} times", start=whole - len(tail) + same.start())
    tail = tail.rstrip(_CLOSERS)  # a loop may yet come to a full stop
    whole -= len(view.tail) - len(tail)
    if len(tail) < 2 * _SUFFIX_CHARS:
        return None
    suffix = tail[-_SUFFIX_CHARS:]
    end = len(tail)
    at = end - len(suffix)
    for _ in range(_CANDIDATES):
        at = tail.rfind(suffix, 0, at + len(suffix) - 1)
        if at < 0:
            return None
        period = end - len(suffix) - at
        length = _periodic_length(tail, period)
        if _is_loop(view, tail[-period:], length):
            detail = f"the last {length} characters are one unit of {period}, {length // period} times over"
            return failed(Check.REPETITION, detail, start=whole - length, end=whole)
    return None


def _is_loop(view: View, unit: str, length: int) -> bool:
    repeats = length / len(unit)
    if _RULE.fullmatch(unit):
        return repeats >= _RULE_LOOP if "\n" in unit and view.at_limit else length >= _RULER_CHARS and view.at_limit
    weight = length + 2 * int(len(_CJK.findall(unit)) * repeats)
    factor = 1.0 if _in_prose(view) else _CODE_FACTOR_AT_LIMIT if view.at_limit else _CODE_FACTOR
    loops = _LOOPS_AT_LIMIT if view.at_limit else _LOOPS
    return any(weight >= least * factor and repeats >= times for least, times in loops)


def _periodic_length(tail: str, period: int) -> int:
    """How many characters at the end have this period."""
    unit = tail[-period:]
    at = len(tail) - period
    while at >= period and tail[at - period : at] == unit:
        at -= period
    length = len(tail) - at
    while at > 0 and tail[at - 1] == tail[at - 1 + period]:
        at -= 1
        length += 1
    return length


def _line_loop(view: View) -> Finding | None:
    """One line many times in a row, or one sentence making up much of the prose; digits and list marks aside."""
    prose = view.prose[-TAIL_CHARS:]
    run = best = at = longest = 0
    offset = len(view.prose) - len(prose)
    previous = ""
    for line in prose.split("\n"):
        bare = line.translate(_DROPPED)
        if len(bare) >= 3:
            run = run + 1 if bare == previous else 1
            previous = bare
            if run > best:
                best, at, longest = run, offset, len(bare)
        offset += len(line) + 1
    enough = (3 if longest >= 20 else 4) if view.at_limit else 5
    if best >= enough:
        return failed(Check.REPETITION, f"the same line {best} times in a row", start=at)
    sentences = [bare for piece in _SENTENCE_END.split(prose) if len(bare := piece.translate(_DROPPED)) >= 5]
    if len(sentences) >= (4 if view.at_limit else 6):
        counts = Counter(sentences)
        repeated = sum(
            len(sentence) * count for sentence, count in counts.items() if count >= 3 and len(sentence) >= 10
        )
        if repeated >= 0.5 * sum(map(len, sentences)) and counts.most_common(1)[0][1] >= 4:
            return failed(Check.REPETITION, "half of the prose is sentences that come again and again")
    return None


def _distinct_sequences(view: View) -> float | None:
    """Share of distinct word 4-grams among all (CJK: of characters), or None where there are too few to tell."""
    prose = _in_prose(view)
    if not prose and not view.at_limit:
        return None
    text = _sample(view.prose if prose else view.text)
    cjk = view.letters.get("han", 0.0) + view.letters.get("kana", 0.0) > view.letters.get("latin", 0.0)
    words = _CJK.findall(text) if cjk else text.lower().split() if prose else _WORD.findall(text)
    count = len(words) - 3
    if count < (_MIN_SEQUENCES_CJK if cjk else _MIN_SEQUENCES):
        return None
    return len(set(zip(words, words[1:], words[2:], words[3:], strict=False))) / count


def _few_sequences(view: View, distinct: float | None) -> Finding | None:
    """Few distinct word sequences: loops that vary a little, or stammer."""
    if distinct is None or distinct >= (_MIN_DISTINCT if _in_prose(view) else _MIN_DISTINCT_CODE_AT_LIMIT):
        return None
    return failed(Check.REPETITION, f"only {distinct:.0%} of its four-word sequences are distinct")


def _few_letters(view: View) -> Finding | None:
    """Few distinct letter triples in a stretch of prose: word pieces over and over, in any order."""
    if not _in_prose(view):
        return None
    prose = " ".join(_RULER.sub(" ", view.prose).split())
    if len(prose) < _MIN_WINDOW_CHARS:
        return None
    last = len(prose) - _WINDOW_CHARS
    for at in {0, max(last // 2, 0), max(last, 0)}:
        window = prose[at : at + _WINDOW_CHARS]
        distinct = len(set(zip(window, window[1:], window[2:], strict=False))) / len(window)
        if distinct < _MIN_LETTER_SEQUENCES:
            return failed(Check.REPETITION, f"only {distinct:.0%} of the letter triples in a stretch are distinct")
    return None


def _compresses(view: View) -> Finding | None:
    raw = _sample(view.text).encode("utf-8", "replace")
    if len(raw) < _MIN_BYTES:
        return None
    ratio = len(raw) / len(zlib.compress(raw, 1))
    if ratio > (_MAX_RATIO if _in_prose(view) else _MAX_CODE_RATIO):
        return failed(Check.REPETITION, f"compresses {ratio:.1f} times")
    return None


def _in_prose(view: View) -> bool:
    """Whether most of the text is prose; JSON and code repeat by nature."""
    if view.text.lstrip()[:1] in {"{", "["}:
        return False
    code = sum(fence.body_end - fence.body_start for fence in view.fences)
    return code * 2 < len(view.text) and not (view.fences and not view.fences[-1].closed)


def _sample(text: str) -> str:
    """Beginning and end of a long text."""
    return text if len(text) <= _HEAD_CHARS + TAIL_CHARS else f"{text[:_HEAD_CHARS]}\n{text[-TAIL_CHARS:]}"
