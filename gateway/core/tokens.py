"""How many tokens a prompt has, as exactly as the policy's bounds need and no more.

Three steps, each only if the one before leaves a bound in doubt: bytes (a byte-level BPE never gives more tokens than
bytes), a sample of short slices with a margin, a count in slices that stops at the highest bound. The first two are
cheap enough for an event loop; counting a long text is for a thread (``Estimate.settled`` tells).
``Correction`` learns per model how far estimates are off from the usage that runtimes report.

Tokenizers are arguments (``gateway.policy.tokenizer_files`` loads them); nothing here reads files.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, sqrt
from typing import Final, Protocol

from gateway.model.facts import Facts, Texts
from gateway.model.table import Table

INLINE_TEXT_BYTES: Final = 16_384
"""Counting this much takes about a millisecond; more is not counted on an event loop."""

SLICE_CHARS: Final = 8_192
"""One call to the tokenizer. Far below 64 kB, so that neither its token list nor a run without spaces costs much."""

MESSAGE_TOKENS: Final = 4
PROMPT_TOKENS: Final = 4
"""What chat templates add per message and per prompt; what differs is learnt by the correction."""

IMAGE_TOKENS: Final = 1_024
AUDIO_TOKENS: Final = 750
"""Stand-ins for what text cannot tell: a mid-sized image, half a minute of speech."""

_SAMPLES: Final = ((4, 96, 0.25), (12, 192, 0.12))
_SAMPLES_LONG: Final = ((16, 96, 0.2), (32, 256, 0.1))
"""(slices, characters each, least relative margin). With cl100k about 30 and 150 µs, for long texts 110 and 530 µs."""

_TEACHES_TOKENS: Final = 256
"""A shorter prompt says more about the chat template than about the tokenizer, and would bend long estimates by it."""

_RUN_CHARS: Final = 512  # on average per space: such text is cut small, because long runs cost more than linear time
_PIECE_CHARS: Final = 1_024
CAUTION: Final = 1.15
"""Another vocabulary may cut text finer than the one that counts (SmolLM2 has 14 % more tokens than cl100k on English
prose), and a constraint on length must hold from the first request on. What runtimes report soon replaces it."""
_DENSITY: Final = 0.27  # tokens per byte of ordinary English


_TOKENISED: Final = ("sample", "count")


class Tokenizer(Protocol):
    """Counts tokens of plain text. Special-token spellings in the text count as text."""

    def count(self, text: str) -> int:
        """Tokens of ``text``, without any that a template would add."""
        ...


@dataclass(init=False, unsafe_hash=True)
class Estimate:
    """``tokens``: corrected, at least 1. ``exact``: the whole text was counted. ``settled``: no bound is in doubt.

    ``raw`` and ``by`` (bytes | ids | sample | count) are for the correction.
    """

    tokens: Final[int]
    exact: Final[bool]
    settled: Final[bool]
    raw: Final[float]
    by: Final[str]
    text_bytes: Final[int]

    def __init__(  # noqa: PLR0917 - what a dataclass would have generated
        self,
        tokens: int,
        exact: bool,
        settled: bool = True,
        raw: float = 0.0,
        by: str = "bytes",
        text_bytes: int = 0,
    ) -> None:
        self.tokens = tokens
        self.exact = exact
        self.settled = settled
        self.raw = raw
        self.by = by
        self.text_bytes = text_bytes

    def least(self) -> int:
        """The tokens of which there is no doubt. What is learnt is a mean over all texts of a model: where digits or
        Base64 have taught it, prose looks half as long again as it is."""
        return min(self.tokens, ceil(self.raw)) if self.by in _TOKENISED else self.tokens


class Correction:
    """What one model's reported usage says about estimates. One per model and process; order hardly matters."""

    __slots__ = ("density", "observed", "ratio")

    def __init__(self) -> None:
        self.ratio = 1.0  # reported ÷ counted or sampled, 0.25 to 4
        self.density = _DENSITY  # tokens per byte where nothing was tokenised, 1/16 to 1
        self.observed = 0

    @classmethod
    def fresh(cls, tokenizer: tuple[str, str]) -> "Correction":
        """For a model of which nothing is known yet. Unless the tokenizer is the model's own, it errs upwards."""
        made = cls()
        if tokenizer[0] == "tiktoken":
            made.ratio = CAUTION
        return made

    def observe(self, estimate: Estimate, reported: int, cached: int = -1) -> None:
        """Learns from a finished request. Skips reports that cannot be about this text: none, more cached than
        prompted, or a count that seems to leave the cached part out; and prompts too short to tell."""
        if reported <= 0 or cached > reported or estimate.text_bytes < 64:
            return
        if cached > 0 and reported < estimate.tokens / 2:
            return
        self.observed += 1
        weight = max(0.02, 1.0 / (self.observed + 1))
        if estimate.by == "bytes":
            # The fixed part of the estimate is its raw value; the rest of the report is the text's.
            seen = (reported - estimate.raw) / estimate.text_bytes
            self.density += weight * (min(1.0, max(1 / 16, seen)) - self.density)
        elif estimate.by != "ids" and estimate.raw >= _TEACHES_TOKENS:
            seen = reported / estimate.raw
            self.ratio += weight * (min(4.0, max(0.25, seen)) - self.ratio)


def bounds_of(table: Table) -> tuple[int, ...]:
    """The context-token numbers where a length class or any predicate may change its mind, ascending."""
    return tuple(sorted({bound for _, bound in table.classifier.lengths} | set(table.token_steps)))


def plan(
    facts: Facts,
    texts: Texts,
    bounds: Sequence[int],
    tokenizer: Tokenizer,
    correction: Correction,
    *,
    default_output_tokens: int = 512,
    inline: bool = False,
) -> Estimate:
    """Prompt tokens of one request, good enough to place its context between ``bounds`` (context tokens, ascending).

    ``inline``: on an event loop; a long text that needs counting comes back unsettled, on the larger side of its
    margin, and the caller runs ``plan`` again in a thread.
    """
    fixed = _fixed(facts)
    text_bytes = facts.text_bytes
    if text_bytes and not texts.parts:  # token ids instead of text
        return Estimate(text_bytes, True, True, text_bytes, "ids", text_bytes)
    output = facts.max_output_tokens
    span = _Span(facts, bounds, default_output_tokens if output is None else output)
    if not bounds or text_bytes == 0 or span.below_first((text_bytes + fixed) * max(1.0, correction.ratio)):
        tokens = ceil(min(text_bytes * correction.density, text_bytes) + fixed)
        return Estimate(max(1, tokens), False, True, fixed, "bytes", text_bytes)
    guess, high = 0.0, float(text_bytes)
    total_chars = sum(map(len, texts.parts))
    for slices, chars, margin in _SAMPLES_LONG if total_chars > INLINE_TEXT_BYTES else _SAMPLES:
        if total_chars < 2 * slices * chars:
            break  # counting costs as little
        guess, doubt = _sample(texts.parts, total_chars, tokenizer, slices, chars)
        doubt = max(doubt, margin)
        high = min(guess * (1 + doubt), float(text_bytes))
        if span.settles((guess * (1 - doubt) + fixed) * correction.ratio, (high + fixed) * correction.ratio):
            return _corrected(guess + fixed, correction, "sample", text_bytes)
    if inline and text_bytes > INLINE_TEXT_BYTES:
        return _corrected(high + fixed, correction, "sample", text_bytes, settled=False)
    stop = span.stop(correction.ratio) - fixed
    counted = _count(texts.parts, tokenizer, stop)
    if counted >= stop:  # over the highest bound: by how much, the sample knows better
        return _corrected(max(counted, guess) + fixed, correction, "sample", text_bytes)
    return _corrected(counted + fixed, correction, "count", text_bytes)


def _fixed(facts: Facts) -> int:
    """Tokens besides the text's own."""
    return (
        PROMPT_TOKENS
        + MESSAGE_TOKENS * facts.messages
        + IMAGE_TOKENS * facts.images
        + (AUDIO_TOKENS if facts.audio else 0)
    )


def _corrected(raw: float, correction: Correction, by: str, text_bytes: int, *, settled: bool = True) -> Estimate:
    return Estimate(max(1, ceil(raw * correction.ratio)), by == "count", settled, raw, by, text_bytes)


class _Span:
    """Prompt tokens seen against the bounds on context tokens: the output is added, and of several independent inputs
    only the largest counts."""

    __slots__ = ("_bounds", "_reserved", "_share")

    def __init__(self, facts: Facts, bounds: Sequence[int], reserved: int) -> None:
        self._bounds = bounds
        self._reserved = reserved
        several = 0 < facts.longest_bytes < facts.text_bytes
        self._share = facts.longest_bytes / facts.text_bytes if several else 1.0

    def below_first(self, tokens: float) -> bool:
        return tokens * self._share + self._reserved < self._bounds[0]

    def settles(self, low: float, high: float) -> bool:
        """Whether no bound lies between the two."""
        first = bisect_left(self._bounds, low * self._share + self._reserved)
        return first == bisect_right(self._bounds, high * self._share + self._reserved)

    def stop(self, ratio: float) -> float:
        """The counted tokens from which the context is over every bound."""
        return (self._bounds[-1] + 1 - self._reserved) / (self._share * ratio)


def _sample(
    parts: Sequence[str], total_chars: int, tokenizer: Tokenizer, slices: int, chars: int
) -> tuple[float, float]:
    """Tokens of the whole by evenly spread slices, and how uncertain the slices' disagreement makes it (relative)."""
    step = total_chars / slices
    densities: list[float] = []
    at = 0  # characters before the current part
    rest = iter(parts)
    part = next(rest)
    for index in range(slices):
        place = int(index * step + (step - chars) / 2)
        while place >= at + len(part):
            at += len(part)
            part = next(rest)
        piece = part[place - at : place - at + chars]
        # Cutting through tokens at both ends adds about half a token.
        densities.append(max(0.0, tokenizer.count(piece) - 0.5) / len(piece))
    mean = sum(densities) / slices
    if mean == 0.0:
        return 0.0, 1.0
    variance = sum((density - mean) ** 2 for density in densities) / (slices - 1)
    return mean * total_chars, 3 * sqrt(variance / slices) / mean


def _count(parts: Sequence[str], tokenizer: Tokenizer, stop: float) -> int:
    """Tokens of all parts, or as many as reach ``stop``."""
    counted = 0
    for part in parts:
        for piece in _pieces(part):
            counted += tokenizer.count(piece)
            if counted >= stop:
                return counted
    return counted


def _pieces(part: str) -> Iterator[str]:
    """Slices that end before a space where there is one near, since tokens begin with their space."""
    if len(part) <= SLICE_CHARS:
        yield from _runs_cut(part)
        return
    start = 0
    while start < len(part):
        end = start + SLICE_CHARS
        if end < len(part):
            space = part.rfind(" ", end - 64, end)
            end = space if space > start else end
        yield from _runs_cut(part[start:end])
        start = end


def _runs_cut(piece: str) -> Iterator[str]:
    if len(piece) < _PIECE_CHARS or len(piece) < _RUN_CHARS * (piece.count(" ") + piece.count("\n") + 1):
        yield piece
        return
    for start in range(0, len(piece), _PIECE_CHARS):
        yield piece[start : start + _PIECE_CHARS]
