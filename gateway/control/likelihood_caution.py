"""What teacher-forced scoring must never be: the request that ends the engine of a pool that serves.

The scores of a text take ``tokens × vocabulary`` numbers at once, which engines do not plan for when they give their
memory to the KV cache: vLLM runs out of it, or, serving LoRA adapters, trips over it, and either way all its requests
die with it. Owns how long a text may be, which pools are not asked at all, and which broke and are left in peace; asks
and counts nothing itself. Called by ``control.likelihood``.
"""

from collections.abc import Callable, Iterable
from typing import Final

import structlog

from gateway.core.comparison import Scoring
from gateway.model.pair import Leg
from gateway.model.table import Pool

SUSPENDED_S: Final = 3600.0
"""How long a pool is left in peace after a scoring call during which its server failed or hung up."""

BYTES_PER_TOKEN: Final = 3
"""Of a text whose tokens no runtime has counted: few enough to err towards leaving a long text out."""

_log = structlog.get_logger("control.likelihood")


class Caution:
    """Whom not to ask. ``clock`` gives monotonic seconds, ``serves_adapters`` what the runtimes of a pool say."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.serves_adapters: Callable[[str], bool] = lambda _: False
        self._clock = clock
        self._suspended: dict[str, float] = {}

    def objection(self, pool: Pool, scoring: Scoring) -> str:
        """Why a pool is not asked for scores now, in a word; empty if it may be."""
        if scoring is Scoring.PROMPT_LOGPROBS and self._has_adapters(pool):
            return "adapters"
        return "suspended" if self._clock() < self._suspended.get(pool.name, 0.0) else ""

    def broke(self, pool: str, why: str) -> None:
        """The pool's server failed while it scored: whether it was that or not, it is not asked again soon."""
        self._suspended[pool] = self._clock() + SUSPENDED_S
        _log.error("likelihood_suspended", pool=pool, why=why, for_s=SUSPENDED_S)

    def _has_adapters(self, pool: Pool) -> bool:
        return bool(pool.adapters) or self.serves_adapters(pool.name)


def tokens_at_once(scoring: Scoring, request: bytes, legs: Iterable[Leg]) -> int:
    """Tokens whose scores a runtime must hold together, for the longer of the answers: of prompt and answer where it
    scores all that it reads, of the answer where it can begin there, none where it decodes one by one."""
    if scoring is Scoring.FORCED_DECODING:
        return 0
    longest = 0
    for leg in legs:
        answer = leg.completion_tokens if leg.completion_tokens >= 0 else len(leg.answer) // BYTES_PER_TOKEN
        prompt = leg.prompt_tokens if leg.prompt_tokens >= 0 else len(request) // BYTES_PER_TOKEN
        longest = max(longest, answer if scoring is Scoring.INPUT_TOKEN_LOGPROBS else prompt + answer)
    return longest
