"""Plausible text: prose about the words of a prompt, code that parses, answers that cite, table look-ups.

Owns the vocabulary. Pure: randomness is an argument. Prose comes as pieces, one piece to a token. ``answer``,
``defect``, ``compose`` and ``audio`` call it.
"""

import re
from collections.abc import Callable, Sequence
from keyword import iskeyword
from random import Random

from gateway.simulator.ask import Source

PIECE = re.compile(r"\s*[^\W\d_]+|\s*\d{1,3}|\s*\S|\s+")
_WORD = re.compile(r"[^\W\d_][\w-]{3,24}")
_SYMBOL = re.compile(r"\bdef (\w+)\(|`([a-z_]\w*)`|\bfunction (?!def\b)([a-z_]\w+)")
_DULL = frozenset(
    {"what", "that", "this", "with", "from", "have", "your", "about", "which", "when", "where", "please", "would"}
    | {"could", "should", "answer", "only", "tell", "there", "write", "give", "into", "then", "they", "will"}
)

_SUBJECTS = (
    " system",
    " process",
    " result",
    " approach",
    " method",
    " service",
    " team",
    " answer",
    " design",
    " request",
)
_VERBS = (
    " shows",
    " needs",
    " explains",
    " supports",
    " changes",
    " follows",
    " keeps",
    " improves",
    " affects",
    " guides",
)
_QUALITIES = (
    " clear",
    " useful",
    " stable",
    " common",
    " careful",
    " simple",
    " recent",
    " practical",
    " steady",
    " known",
)
_CLOSERS = (" today", " overall", " again", " here", " first", " later", " together", " often", " directly", " soon")
_LISTS = {"S": _SUBJECTS, "V": _VERBS, "Q": _QUALITIES, "C": _CLOSERS}

# One sentence each; S V Q C stand for a word of the lists above, T for a word of the prompt, an underscore for a space.
_PATTERNS = tuple(
    tuple(pattern.replace("_", " ").split("/"))
    for pattern in (
        "_The/T/V/_the/Q/S/.",
        "_A/Q/S/V/_the/T/_and/_the/S/.",
        "_This/S/V/_how/_the/T/V/_the/Q/S/C/.",
        "_The/S/_of/T/V/_a/Q/S/_that/V/_the/S/.",
        "_When/_the/T/V/,/_the/S/V/_a/Q/S/C/.",
        "_It/V/_the/T/_because/_the/Q/S/V/_the/S/_of/_the/S/.",
    )
)
_SHORTEST = min(map(len, _PATTERNS))
_FITTING = tuple(tuple(p for p in _PATTERNS if len(p) <= left) for left in range(max(map(len, _PATTERNS)) + 1))
_FILLERS: tuple[tuple[str, ...], ...] = (
    (),
    (" Agreed.",),
    (" Done", "."),
    (" All", " good", "."),
    (" That", " is", " all", "."),
    (" That", " is", " the", " point", "."),
    (" That", " is", " the", " whole", " point", "."),
)


def pieces_of(text: str) -> list[str]:
    """``text`` cut into pieces, one to a token; joined again they give the text back."""
    return PIECE.findall(text)


def topics_of(text: str) -> list[str]:
    """Words of the prompt that prose may talk about. Its end says best what is asked."""
    words = [word for word in _WORD.findall(text[-160:]) if word.lower() not in _DULL]
    return words[-12:] or ["question"]


def prose(random: Random, topics: Sequence[str], length: int) -> list[str]:
    """Sentences about the topics in exactly ``length`` pieces (at least one)."""
    draw, pieces = random.random, list[str]()
    left = max(length, 1)
    while left >= _SHORTEST:
        fitting = _FITTING[min(left, len(_FITTING) - 1)]
        pattern = fitting[int(draw() * len(fitting))]
        _write_sentence(draw, topics, pattern, pieces)
        left -= len(pattern)
    pieces.extend(_FILLERS[left])
    pieces[0] = pieces[0].lstrip()
    return pieces


def _write_sentence(draw: Callable[[], float], topics: Sequence[str], pattern: Sequence[str], into: list[str]) -> None:
    for slot in pattern:
        words = _LISTS.get(slot)
        if words is not None:
            into.append(words[int(draw() * len(words))])
        elif slot == "T":
            into.append(" " + topics[int(draw() * len(topics))])
        else:
            into.append(slot)


def reworded(pieces: Sequence[str], random: Random) -> list[str]:
    """The same sentences with some words exchanged for others of their kind."""
    kinds = {word: words for words in _LISTS.values() for word in words}
    return [
        kinds[piece][int(random.random() * 10)] if piece in kinds and random.random() < 0.5 else piece
        for piece in pieces
    ]


def cited(random: Random, topics: Sequence[str], sources: Sequence[Source], length: int) -> str:
    """Prose in which every sentence rests on a source of the prompt: words of it, and its marker."""
    sentences, size = list[str](), 0
    ranked = sorted(sources, key=lambda source: -sum(topic.lower() in source.text.lower() for topic in topics))
    for turn in range(max(1, length // 24)):
        source = ranked[turn % len(ranked)] if turn < 2 else ranked[int(random.random() * len(ranked))]
        words = source.text.split()
        start = 0 if turn < len(ranked) else int(random.random() * max(1, len(words) - 12))
        quote = " ".join(words[start : start + 14]).strip(" .,;")
        sentences.append(f"{quote} {source.marker}.")
        size += len(words)
    return " ".join(sentences)


def looked_up(random: Random, rows: Sequence[Sequence[str]], text: str) -> str:
    """A sentence that gives one cell of the prompt's table; the row is the one the question names, if it names one."""
    header, body = rows[0], [row for row in rows[1:] if any(cell.strip("-: ") for cell in row)] or list(rows)
    question = text.rsplit("|", 1)[-1].lower()
    named = [row for row in body if row and row[0] and row[0].lower() in question]
    row = named[0] if named else body[int(random.random() * len(body))]
    columns = [index for index in range(1, len(row)) if index < len(header) and header[index].lower() in question]
    column = columns[0] if columns else min(len(row) - 1, 1 + int(random.random() * max(1, len(row) - 1)))
    title = header[column] if column < len(header) else "value"
    return f"The {title} of {row[0]} is {row[column]}."


def code(random: Random, text: str, topics: Sequence[str], length: int) -> str:
    """A sentence and a Python function that parses; it is named as the prompt names its symbol."""
    symbols = [name for groups in _SYMBOL.findall(text) for name in groups if name and not iskeyword(name)]
    plain = [topic.lower().replace("-", "_") for topic in topics if topic.isascii() and not topic[0].isdigit()]
    name = symbols[0] if symbols else "_".join(plain[-2:]) or "solve"
    if not name.isidentifier() or iskeyword(name):
        name = "solve"
    argument = ("values", "items", "records", "lines")[int(random.random() * 4)]
    limit = int(random.random() * 90) + 10
    steps = "".join(
        f"        if item == {int(random.random() * limit)}:\n            continue\n"
        for _ in range(max(0, length - 60) // 14)
    )
    body = (
        f"def {name}({argument}):\n    result = []\n    for item in {argument}:\n{steps}"
        f"        if len(result) < {limit}:\n            result.append(item)\n    return result\n"
    )
    return f"Here is `{name}`:\n\n```python\n{body}```\n"
