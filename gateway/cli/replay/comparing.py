"""Answers of several pools to the same requests, held against the first pool's.

Owns the totals and the words of the result; the comparison is ``core.comparison``'s, the one that shadow pairs use.
No text of an answer is in a result unless it was asked for. Called by ``quantgate replay``.
"""

from collections.abc import Sequence
from typing import Any

from gateway.cli.replay.given import Item
from gateway.cli.replay.sending import Reply
from gateway.core.assemble import Answer, assemble
from gateway.core.comparison import Agreement, LegState, Part, excess
from gateway.core.evidence.intervals import MeanInterval
from gateway.core.quality import Asked, inspect_assembled, read_request
from gateway.core.report import Estimate, Verdict
from gateway.core.report.judging import mean, share
from gateway.core.sketch import Sketch

ALPHA = 0.05


class Totals:
    """One pool over all requests."""

    def __init__(self, pool: str) -> None:
        self.pool = pool
        self.sent = 0
        self.failed = 0
        self.exact = 0
        self.compared = 0
        self.failures: dict[str, int] = {}
        self.why_failed: dict[str, int] = {}
        self.first = Sketch()
        self.ttft = Sketch()
        self.per_token = Sketch()
        self.total = Sketch()
        self.tokens = 0
        self.agreement = MeanInterval(ALPHA)
        self.noise = MeanInterval(ALPHA)
        self.losses = MeanInterval(ALPHA)

    def count(self, reply: Reply, failures: Sequence[str]) -> None:
        """One answer by itself."""
        self.sent += 1
        if not reply.good:
            self.failed += 1
            why = reply.error or f"status {reply.status}"
            self.why_failed[why] = self.why_failed.get(why, 0) + 1
            return
        self.total.add(reply.total_s)
        for sketch, seconds in (
            (self.first, reply.first_s),
            (self.ttft, reply.ttft_s),
            (self.per_token, reply.per_token_s),
        ):
            if seconds >= 0.0:
                sketch.add(seconds)
        self.tokens += max(0, reply.tokens)
        for name in failures:
            self.failures[name] = self.failures.get(name, 0) + 1

    def compare(self, agreement: Agreement | LegState, noise: Agreement | LegState, loss: float | None) -> None:
        """One answer against the first pool's."""
        if isinstance(agreement, Agreement) and agreement.score is not None:
            self.compared += 1
            self.agreement.add(agreement.score)
            self.exact += dict(agreement.parts).get(Part.EXACT) == 1.0
        if isinstance(noise, Agreement) and noise.score is not None:
            self.noise.add(noise.score)
        if loss is not None:
            self.losses.add((loss + 1.0) / 2.0)

    @property
    def verdict(self) -> Verdict | None:
        """On the excess over the noise: decided by its interval; None without a noise leg."""
        if not self.losses.state.number:
            return None
        found = self.losses.loss_interval()
        if found.lower > 0.0:
            return Verdict.WORSE
        return Verdict.BETTER if found.upper < 0.0 else Verdict.NOT_ENOUGH

    def values(self) -> dict[str, Any]:
        """For JSON."""
        losses = self.losses.loss_interval() if self.losses.state.number else None
        return {
            "pool": self.pool,
            "sent": self.sent,
            "failed": _estimate(share(self.failed, self.sent, ALPHA)),
            "why_failed": dict(sorted(self.why_failed.items())),
            "first_byte_s": _quantiles(self.first),
            "ttft_s": _quantiles(self.ttft),
            "tpot_s": _quantiles(self.per_token),
            "total_s": _quantiles(self.total),
            "output_tokens": self.tokens,
            "checks_failed": {
                name: _estimate(share(count, self.sent - self.failed, ALPHA))
                for name, count in sorted(self.failures.items())
            },
            "compared": self.compared,
            "exact": _estimate(share(self.exact, self.compared, ALPHA)),
            "agreement": _estimate(mean(self.agreement)),
            "noise": _estimate(mean(self.noise)),
            "excess": None
            if losses is None
            else {
                "number": self.losses.state.number,
                "value": 2.0 * self.losses.state.sum_x / self.losses.state.number - 1.0,
                "lower": max(-1.0, losses.lower),
                "upper": min(1.0, losses.upper),
                "verdict": self.verdict,
            },
        }


class Results:
    """All pools; ``names`` in the order of the targets, ``noise``: the last one is the first pool's second run."""

    def __init__(self, names: Sequence[str], *, noise: bool, with_answers: bool) -> None:
        self.pools = [Totals(name) for name in names]
        self.took_s = 0.0
        self._noise = noise
        self._with_answers = with_answers

    def add(self, item: Item, replies: Sequence[Reply]) -> dict[str, Any]:
        """Compare one request's answers; the result as a line for JSON."""
        asked = read_request(item.body)
        answers = [assemble(item.body, reply.raw) if reply.good else LegState.FAILED for reply in replies]
        again = answers[-1] if self._noise else LegState.NOT_ASKED
        line: dict[str, Any] = {"id": item.id, "bucket": item.bucket, "task": item.task, "pools": {}}
        for index, (totals, reply, answer) in enumerate(zip(self.pools, replies, answers, strict=True)):
            failures = _failures(asked, answer)
            totals.count(reply, failures)
            found: dict[str, Any] = {
                "status": reply.status,
                "error": reply.error,
                "first_byte_s": round(reply.first_s, 6),
                "ttft_s": round(reply.ttft_s, 6),
                "tpot_s": round(reply.per_token_s, 6),
                "total_s": round(reply.total_s, 6),
                "checks_failed": failures,
            }
            second_run = self._noise and index == len(self.pools) - 1
            if index and not second_run:
                triple = excess(answers[0], answer, again, asked, item.task or "chat")
                trip = triple.loss.trip if triple.loss is not None else None
                totals.compare(triple.agreement, triple.noise, trip)
                found["agreement"] = _agreement(triple.agreement)
                found["excess"] = trip
            if self._with_answers:
                found["answer"] = reply.raw.decode("utf-8", "replace")
            line["pools"][totals.pool] = found
        return line


def _failures(asked: Asked, answer: Answer | LegState) -> list[str]:
    if isinstance(answer, LegState):
        return []
    return [failure.value for failure in inspect_assembled(asked, answer).failures]


def _agreement(found: Agreement | LegState) -> dict[str, Any] | None:
    if isinstance(found, LegState):
        return None
    return {
        "score": found.score,
        "verdict": found.verdict,
        "capped_by": found.capped_by,
        "parts": dict(found.parts),
    }


def _quantiles(sketch: Sketch) -> dict[str, float | None]:
    return {"p50": sketch.quantile(0.5), "p95": sketch.quantile(0.95)}


def _estimate(found: Estimate) -> dict[str, Any]:
    return {"number": found.number, "value": found.value, "lower": found.lower, "upper": found.upper}
