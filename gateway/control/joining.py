"""What became of answers later: joins traces of turns, and takes applications' feedback.

Owns what was said of recent answers. Feedback counts only for the tenant that got the answer; it may come before
its request's outcome does, which a worker sends a moment later, so it waits for that, or for ``recall`` to find its
request on record. Called with outcomes, scored outcomes and feedback on control's loop; gives consequences to the
archive, the counters and whoever subscribes.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence

from gateway.control.recent import Recent
from gateway.control.scoring import Scored
from gateway.control.series import Counter
from gateway.core.batch import Batch
from gateway.core.consequence import BAD_BELOW, Consequence, Kind, Subject, Tracker
from gateway.model.messages import Feedback
from gateway.model.outcome import Outcome
from gateway.store import aftermath

RECENT_MOST = 100_000  # answers that are remembered for feedback; about 30 MB
RECALLED_MOST = 10_000  # others that it spoke of
WAIT_S = 30.0  # how long feedback waits for its request's outcome or record
AHEAD_S = 3_600.0  # what lies further in the future was said before the clock was set back
WAITING_MOST = 10_000
WORDS_MOST = 8  # about one answer

Subscriber = Callable[[Consequence, float], None]


class Joining:
    """The joiner. Subscribers hear each consequence with its badness: 1 counts against the pool, 0 for it."""

    def __init__(self, keep: Callable[[aftermath.Consequence], None], most: int = RECENT_MOST) -> None:
        self.counted = Counter(
            "quantgate_consequences_total",
            "What became known after an answer, by kind and whether it counts against the pool.",
            ("bucket", "pool", "kind", "verdict"),
        )
        self.ignored = Counter("quantgate_feedback_ignored_total", "Feedback that was not counted, by why.", ("why",))
        self._keep = keep
        self._tracker = Tracker()
        self._recent = Recent(most)
        self._recalled: OrderedDict[str, Subject] = OrderedDict()
        self._early: OrderedDict[str, list[Feedback]] = OrderedDict()
        self._said: dict[str, tuple[str, ...]] = {}  # by request: the words of its feedback that were counted
        self._subscribers: list[Subscriber] = []

    def subscribe(self, subscriber: Subscriber) -> None:
        """Hear every consequence from now on."""
        self._subscribers.append(subscriber)

    def configure(self, most: int, remember_s: float) -> None:
        """The policy's bounds; what is remembered stays."""
        self._tracker.resize(most, remember_s)

    @property
    def waiting(self) -> int:
        """Requests that feedback spoke of and that are not known yet."""
        return len(self._early)

    def unknown(self, before: float) -> list[str]:
        """Those that it spoke of before then."""
        return [name for name, feedback in self._early.items() if feedback[0].at <= before]

    def recall(self, found: Iterable[aftermath.Answered]) -> None:
        """Answers on record that feedback waits for, with what was said of them before."""
        for subject, said in found:
            request_id = subject.request_id
            waiting = self._early.pop(request_id, None)
            if waiting is None:
                continue
            self._recalled[request_id] = subject
            if len(self._recalled) > RECALLED_MOST:
                self._said.pop(self._recalled.popitem(last=False)[0], None)
            words = (_word(label, -1.0 if score is None else score) for label, score in said)
            self._said[request_id] = tuple(dict.fromkeys(words))
            for feedback in waiting:
                self.take_feedback(feedback)

    def take_batch(self, batch: Batch) -> None:
        """Remember answers at once, long before they are scored: an application may be quick to judge."""
        for forgotten in self._recent.add(batch):
            for request_id in self._said.keys() & forgotten.keys():
                del self._said[request_id]
        for request_id in batch.request_id if self._early else ():
            if request_id in self._early and self._recent.subject(request_id) is not None:
                for feedback in self._early.pop(request_id):
                    self.take_feedback(feedback)
        if batch.at:
            self._give_up(batch.at[-1] - WAIT_S)

    def take_scored(self, batch: Sequence[Scored]) -> None:
        """Join what answers tell of earlier ones."""
        for scored in batch:
            outcome = scored.outcome
            if scored.trace is not None and outcome.kind.pool and outcome.kind.result == "ok":
                for consequence in self._tracker.see(subject_of(outcome), outcome.conversation, scored.trace):
                    self._found(consequence, outcome.at, 1.0, by=outcome.request_id)

    def take_feedback(self, feedback: Feedback) -> None:
        """An application's word. Only the tenant that got the answer may speak of it, and a word counts once.

        A change of mind is another word; the same one again, however often, must not outvote other answers.
        Words that judge nothing are told apart by their labels.
        """
        subject = self._recent.subject(feedback.request_id) or self._recalled.get(feedback.request_id)
        if subject is None:
            waiting = self._early.setdefault(feedback.request_id, [])
            if len(waiting) < WORDS_MOST and len(self._early) <= WAITING_MOST:
                waiting.append(feedback)
            else:
                self.ignored.add(("unknown_request",))
            if not waiting:
                del self._early[feedback.request_id]
            self._give_up(feedback.at - WAIT_S)
        elif subject.tenant != feedback.tenant:
            self.ignored.add(("other_tenant",))
        else:
            bad = _badness(feedback.score)
            said = self._said.get(feedback.request_id, ())
            word = _word(feedback.label, feedback.score)
            if word in said or len(said) >= WORDS_MOST:
                self.ignored.add(("repeated",))
                return
            self._said[feedback.request_id] = (*said, word)
            score = feedback.score if feedback.score >= 0 else None
            consequence = Consequence(Kind.FEEDBACK, subject)
            self._found(consequence, feedback.at, bad, label=feedback.label, score=score)

    def _give_up(self, before: float) -> None:
        """Feedback whose request never came and is not on record: a wrong id, or one from long ago."""
        while self._early:
            request_id, waiting = next(iter(self._early.items()))
            if before < waiting[0].at < before + AHEAD_S:
                return
            del self._early[request_id]
            self.ignored.add(("unknown_request",), len(waiting))

    def _found(
        self,
        consequence: Consequence,
        at: float,
        bad: float,
        *,
        by: str = "",
        label: str = "",
        score: float | None = None,
    ) -> None:
        subject = consequence.subject
        verdict = "none" if bad < 0 else "bad" if bad else "good"
        self.counted.add((subject.bucket, subject.pool, consequence.kind.value, verdict))
        self._keep(
            aftermath.Consequence(
                at,
                subject.request_id,
                consequence.kind.value,
                subject.tenant,
                subject.bucket,
                subject.pool,
                label,
                score,
                by,
            )
        )
        if bad >= 0:
            for subscriber in self._subscribers:
                subscriber(consequence, bad)


def _badness(score: float) -> float:
    return -1.0 if score < 0 else float(score < BAD_BELOW)


def _word(label: str, score: float) -> str:
    """What counts once: a verdict, or the label of what is none."""
    bad = _badness(score)
    return label if bad < 0 else "bad" if bad else "good"


def subject_of(outcome: Outcome) -> Subject:
    """The request that a consequence may count against."""
    kind = outcome.kind
    conversation = outcome.conversation
    return Subject(outcome.request_id, outcome.at, kind.tenant, kind.bucket, kind.pool, conversation, kind.rollout)
