"""Which language an answer is written in, as far as a flip between two answers can be seen.

Owns a coarse reading: the script that most letters belong to, and for Latin letters the language whose commonest words
occur most. Must not guess: a short or mixed text has no language, and no language is no flip. Called by `reading` and
`agree`.
"""

from collections import Counter
from typing import Final

from gateway.core.comparison.text import words
from gateway.core.quality.scripts import weights

LEAST_WEIGHT: Final = 12.0
"""Fewer letters tell nothing: "Paris." is English and French."""

SAMPLE_CHARS: Final = 4_000
"""Characters that are looked at."""

_LEAST_COMMON_WORDS: Final = 4
_MARGIN: Final = 1.5
_SHARE: Final = 0.75
_KANA_SHARE: Final = 0.1  # Chinese has no kana; Japanese prose has more kana than Chinese characters

_COMMON: Final = {
    "en": "the of and to in is that it for was with as are this be on by have from not which you can",
    "de": "der die und das ist nicht ein eine den mit von zu auf für sich dem des im auch wird sie werden",
    "fr": "le la les des et est une un du dans que pour qui pas sur avec sont au ce par plus cette vous",
    "es": "el la los las que y en un una es por con para del se no su como más al está este son",
    "it": "il lo la gli che di e un una è per con non del della sono nel si come più questo anche",
    "pt": "o os as que e em um uma é por com para do da se não no na dos como mais ao são",
    "nl": "de het een en van is dat niet op te zijn met voor aan er ook bij wordt deze als",
}
_COMMON_WORDS: Final = {language: frozenset(text.split()) for language, text in _COMMON.items()}
_LATIN: Final = frozenset({"latin", *_COMMON_WORDS})


def language_of(plain_text: str) -> str:
    """Name the language (``en``, ``de`` …) or else the script (``han``, ``cyrillic`` …) of a normalised text.

    Empty where it cannot be told: too few letters, or no script with three quarters of them. ``latin`` where no
    language stands out.
    """
    sample = plain_text[:SAMPLE_CHARS]
    found = weights(sample)
    total = sum(found.values())
    if total < LEAST_WEIGHT:
        return ""
    if found.get("kana", 0.0) >= _KANA_SHARE * total:
        found["kana"] += found.pop("han", 0.0)
    script = max(found, key=lambda name: found[name])
    if found[script] < _SHARE * total:
        return ""
    return _latin_language(sample) if script == "latin" else script


def same_language(left: str, right: str) -> bool:
    """Whether two names from `language_of` may be the same language; an unknown one may be any of its script."""
    if left == right or not left or not right:
        return True
    return "latin" in {left, right} and {left, right} <= _LATIN


def _latin_language(sample: str) -> str:
    counts = Counter(word.lower() for word in words(sample))
    hits = {language: sum(counts[word] for word in common) for language, common in _COMMON_WORDS.items()}
    (best, most), (_, second) = sorted(hits.items(), key=lambda item: -item[1])[:2]
    return best if most >= _LEAST_COMMON_WORDS and most >= _MARGIN * second else "latin"
