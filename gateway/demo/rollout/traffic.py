"""The rollout's requests as they run: several at once, each answer judged by the application, until all is decided.

Owns which way comes next (``Course``) and what came back (``Tally``). Called by ``chapter`` beside the watching.
"""

from collections import Counter
from random import Random

import msgspec

from gateway.demo.client import Answer, Clients, right
from gateway.demo.rollout.notes import Request, Requests, Way

AT_ONCE = 6
AFTER = 20
"""Requests of each way once it is decided, for the proof."""
# Most are of the way that has to be proven good, which takes more answers than finding a bad one out.
_WEIGHTS = {Way.SCHEMA: 2.0, Way.FREE: 1.0}
_DECIDED_WEIGHT = 0.25


class Decision(msgspec.Struct, frozen=True):
    """What the gateway said of a way's bucket, and the last request that was sent before every worker knew."""

    state: str
    number: int


class Course:
    """Hands out requests until both ways are decided and enough followed, or until it is stopped."""

    def __init__(self, requests: Requests, seed: int) -> None:
        self.decisions: dict[Way, Decision] = {}
        self._requests = requests
        self._rng = Random(seed)  # noqa: S311 - mixes a workload
        self._after: Counter[Way] = Counter()
        self._stopped = False

    def next(self) -> Request | None:
        """The next request; None = no more."""
        weights = [self._weight(way) for way in Way]
        if self._stopped or not any(weights):
            return None
        (way,) = self._rng.choices(list(Way), weights)
        self._after[way] += way in self.decisions
        return self._requests.next(way)

    def settle(self, way: Way, state: str) -> None:
        """A bucket was decided and every worker knows: what is handed out from now on is proof."""
        known = self.decisions.get(way)
        if known is None or known.state != state:
            self.decisions[way] = Decision(state, self._requests.number)
            self._after[way] = 0

    def stop(self) -> None:
        """No more requests."""
        self._stopped = True

    def _weight(self, way: Way) -> float:
        if way not in self.decisions:
            return _WEIGHTS[way]
        if len(self.decisions) < len(Way):
            return _DECIDED_WEIGHT
        return float(self._after[way] < AFTER)


class Sent(msgspec.Struct, frozen=True):
    """One request with its answer. ``good``: the application can use it; ``told``: the gateway took its word."""

    request: Request
    answer: Answer
    good: bool
    told: bool


class Tally:
    """Everything that came back, and the sums of it by way and pool."""

    def __init__(self) -> None:
        self.sent: list[Sent] = []
        self.answers: Counter[tuple[Way, str]] = Counter()
        self.wrong: Counter[tuple[Way, str]] = Counter()

    def came(self, sent: Sent) -> None:
        """One more."""
        self.sent.append(sent)
        if right(sent.request.item, sent.answer):
            at = sent.request.way, sent.answer.pool
            self.answers[at] += 1
            self.wrong[at] += not sent.good

    def of(self, way: Way) -> int:
        """Answers of a way."""
        return sum(count for (found, _), count in self.answers.items() if found is way)


async def work(clients: Clients, course: Course, tally: Tally) -> None:
    """Send one request after another, and tell the gateway what each answer was worth."""
    while (request := course.next()) is not None:
        answer = await clients.send(request.item)
        good = request.note.is_told_by(answer.text)
        told = right(request.item, answer) and await clients.judge(request.item, answer, good=good)
        tally.came(Sent(request, answer, good, told))
