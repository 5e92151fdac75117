"""Garbage: characters and words that no healthy model writes.

Owns the signs of broken decoding (replacement characters, control characters, raw token marks, mojibake), of broken
weights (runs of one mark, salad of scripts or word pieces) and of template tokens that leaked. What the request itself
contains is never held against the answer. Must not judge sense. Called by `inspect`.
"""

import re
from typing import Final

from gateway.core.quality.finding import Check, Finding, absent, failed, passed
from gateway.core.quality.scripts import weights
from gateway.core.quality.view import View

_ORDINARY: Final = bytes([9, 10, 11, 12, 13, 27, *range(32, 127)])
_SAMPLE_CHARS: Final = 2_048  # of the beginning and of the end, for what shows anywhere
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9f]")
_PRIVATE: Final = re.compile(r"[\ue000-\uf8ff\ufff0-\ufffb\U000f0000-\U0010fffd]")
_RULERS: Final = frozenset(".-=_*~#+|─━═·… \n\t")
_LETTER_RUN: Final = 12
_MARK_RUN: Final = 16
_TEMPLATE: Final = re.compile(
    r"<\|(?:im_start|im_end|im_sep|endoftext|end_of_text|begin_of_text|eot_id|eom_id|start_header_id|end_header_id|user"
    r"|assistant|system|end|endofprompt|end_of_turn|start_of_role|end_of_role|channel|message|return)\|>"
    r"|</?s>(?=\s|$)|\[/?INST\]|<(?:start|end)_of_turn>|<\uff5c[\w\u2581]+\uff5c>|<<SYS>>"
)
_TOKEN_MARKS: Final = re.compile(r"\u0120\w|\u010a|\u2581\w|<0x[0-9A-F]{2}>|\[UNK\]|<unk>")
_MOJIBAKE: Final = re.compile(
    r"\u00c3[\u0080-\u00bf\u0192\u2020\u2021\u201a]|\u00e2\u20ac[\u0080-\u2122\u0153]|\u00ef\u00bf\u00bd"
)
_WORDS: Final = re.compile(r"[A-Za-z\u00c0-\u024f']+")
_JOINED: Final = re.compile(r"[a-z]{2,}[A-Z]{3,}|[a-z]{2,}[A-Z]{2,}[a-z]{2,}|[A-Z]{5,}[a-z]{2,}|[A-Za-z]{26,}")
_MIN_WORDS: Final = 30
_MIN_JUDGED_WORDS: Final = 14
_GIANT_WORD: Final = 31
_MAX_GIANT_SHARE: Final = 0.3
_MIN_GIANT_LETTERS: Final = 60
_MIN_FUNCTION_SHARE: Final = 0.06
_MAX_JOINED_SHARE: Final = 0.12
# the commonest words of the languages that models answer in most; a text of 30 words without them is no prose
_FUNCTION_WORDS: Final = frozenset(
    {
        "the", "of", "and", "to", "in", "a", "is", "that", "it", "for", "on", "with", "as", "are", "be", "by", "at",
        "this", "from", "or", "an", "you", "your", "can", "was", "not", "have", "has", "will", "its", "de", "la", "le",
        "les", "et", "des", "un", "une", "du", "en", "que", "pour", "dans", "est", "sur", "par", "au", "der", "die",
        "das", "und", "ist", "von", "mit", "den", "zu", "ein", "eine", "auf", "für", "nicht", "el", "los", "las", "y",
        "del", "por", "con", "para", "es", "una", "se", "lo", "al", "su", "il", "di", "che", "e", "per", "non", "sono",
        "o", "os", "da", "do", "em", "um", "uma", "com", "não", "het", "van", "te", "dat", "voor", "och", "att", "som",
        "på", "det", "i", "w", "z", "na", "się", "nie", "ve", "bir", "bu", "için", "và", "của", "là",
    }
)  # fmt: skip


def check_garbage(view: View) -> Finding:
    """Fail when the text holds signs of broken decoding, broken weights or leaked template tokens."""
    text = view.text
    if not text.strip():
        return absent(Check.GARBAGE, "no text")
    found = _broken_characters(view) or _leaked_tokens(view) or _runs(view) or _salad(view)
    return found or passed(Check.GARBAGE, "no sign of garbage")


def _broken_characters(view: View) -> Finding | None:
    text, asked = view.text, view.asked.context
    if text.isascii() and not text.encode().translate(None, _ORDINARY):
        return None
    # one at a cut end is the half of a character that the token limit split
    replacement = text.count("\ufffd") - (1 if view.cut and text.endswith("\ufffd") else 0)
    if replacement >= 2 and "\ufffd" not in asked:
        return failed(Check.GARBAGE, f"{replacement} replacement characters", start=text.find("\ufffd"))
    for name, pattern, least in (("control", _CONTROL, 1), ("private-use", _PRIVATE, 3), ("mojibake", _MOJIBAKE, 2)):
        hits = [hit.start() for hit in pattern.finditer(text)]
        if len(hits) >= least and not pattern.search(asked):
            return failed(Check.GARBAGE, f"{len(hits)} {name} characters", start=hits[0])
    return None


def _leaked_tokens(view: View) -> Finding | None:
    prose, asked = view.prose, view.asked.context
    if prose.isascii() and "<" not in prose and "[" not in prose:
        return None
    for hit in _TEMPLATE.finditer(prose):
        if hit[0] not in asked:
            return failed(Check.GARBAGE, "a chat template's token stands in the text", start=hit.start(), end=hit.end())
    marks = [hit for hit in _TOKEN_MARKS.finditer(prose) if hit[0] not in asked]
    if len(marks) >= 2:
        return failed(Check.GARBAGE, f"{len(marks)} raw marks of a tokenizer", start=marks[0].start())
    return None


def _runs(view: View) -> Finding | None:
    """One character many times. A substring search per distinct character beats a backreference at every position."""
    for character in set(view.prose) - _RULERS:
        if character.isspace() or character.isdigit():
            continue
        run = character * (_LETTER_RUN if character.isalpha() else _MARK_RUN)
        at = view.prose.find(run)
        if at >= 0 and run not in view.asked.context:
            return failed(Check.GARBAGE, f"one character {len(run)} times or more", start=at, end=at + len(run))
    marks = view.text.count("!") + view.text.count("\uff01")
    if marks >= 8 and marks > 0.3 * len(view.text.strip()):
        return failed(Check.GARBAGE, f"{marks} exclamation marks make up the text", start=0, end=len(view.text))
    return None


def _salad(view: View) -> Finding | None:
    """Pieces of many scripts or many languages' word pieces, as a model with broken weights strings them together."""
    share = view.letters
    total = sum(share.values())
    if total >= 40:
        asked = weights(view.asked.context[-8192:])
        strange = [
            name for name, weight in share.items() if weight >= 0.02 * total and weight >= 2 and name not in asked
        ]
        if len(strange) >= 3:
            return failed(Check.GARBAGE, f"letters of {len(strange)} scripts that the request does not use")
    if share.get("latin", 0.0) < 0.8 * total:
        return None
    prose = view.prose
    if len(prose) > 2 * _SAMPLE_CHARS:
        prose = f"{prose[:_SAMPLE_CHARS]} {prose[-_SAMPLE_CHARS:]}"
    return _word_salad(view, prose, _WORDS.findall(prose))


def _word_salad(view: View, prose: str, words: list[str]) -> Finding | None:
    letters = sum(map(len, words))
    giant = sum(len(word) for word in words if len(word) >= _GIANT_WORD)
    if giant >= _MIN_GIANT_LETTERS and giant > _MAX_GIANT_SHARE * letters:
        return failed(Check.GARBAGE, f"{giant} of {letters} letters stand in endless words")
    if len(words) < _MIN_JUDGED_WORDS:
        return None
    joined = sum(1 for word in words if not (word.islower() or word.istitle()) and _JOINED.search(word))
    if joined >= 3 and joined > _MAX_JOINED_SHARE * len(words) and "```" not in view.text:
        return failed(Check.GARBAGE, f"{joined} of {len(words)} words are pieces stuck together")
    if len(words) < _MIN_WORDS or view.text.lstrip()[:1] in {"{", "["}:
        return None
    function_words = sum(1 for word in words if word.lower() in _FUNCTION_WORDS)
    lines = prose.count("\n") + 1
    listing = len(words) / lines < 6 or prose.count(",") > 0.3 * len(words)
    if function_words < _MIN_FUNCTION_SHARE * len(words) and not listing:
        return failed(Check.GARBAGE, f"{function_words} of {len(words)} words are function words: a salad of words")
    return None
