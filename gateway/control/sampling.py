"""Which texts are kept for replay: a tenant's opt-out first, then incidents or a share, then redaction.

Owns no text: what is kept is redacted, capped and sealed in a thread, and goes to the archive as ciphertext. Samples
are drawn from the answers that are checked, because only their texts reach control at all.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence

import structlog

from gateway.control.pairing import ScoredPair
from gateway.control.scoring import Scored
from gateway.control.series import Counter
from gateway.core.comparison import Verdict
from gateway.core.redaction import Redactor
from gateway.model.outcome import Outcome
from gateway.model.pair import Pair
from gateway.model.proving import Samples
from gateway.store.engine import StoreError
from gateway.store.samples import PAIR, Sample, SampleRow, Sealer

INCIDENTS = "incidents"
OFF = "off"
INCIDENT_EXCESS = 0.5  # of a pair's disagreement beyond the baseline's own: then both its texts are worth a look
WAITING_MOST = 200  # sealing runs beside the loop; more than this waiting are given up

_log = structlog.get_logger("control.sampling")


class Sampling:
    """The sampler. ``rand`` gives numbers in [0, 1)."""

    def __init__(self, keep: Callable[[SampleRow], None], rand: Callable[[], float]) -> None:
        self.kept = Counter("quantgate_samples_total", "Texts kept for replay, or not, by why.", ("outcome",))
        self._keep = keep
        self._rand = rand
        self._rules = Samples()
        self._opted_out: frozenset[str] = frozenset()
        self._sealer: Sealer | None = None
        self._redactor = Redactor(())
        self._sealing = 0

    def configure(self, rules: Samples, opted_out: frozenset[str]) -> None:
        """The policy's rules. Without a usable key nothing is kept, and the log says so."""
        self._rules = rules
        self._opted_out = opted_out
        self._sealer = None
        self._redactor = Redactor(rules.redact)
        if rules.key is None:
            return
        try:
            self._sealer = Sealer(rules.key)
        except StoreError as error:
            _log.error("samples_off", error=str(error))

    def take_scored(self, batch: Sequence[Scored]) -> None:
        """Keep what the rules say."""
        if self._sealer is None:
            return
        for scored in batch:
            reason = self._reason(scored)
            if reason is None:
                continue
            if self._sealing >= WAITING_MOST:
                self.kept.add(("busy",))
                continue
            self._sealing += 1
            task = asyncio.get_running_loop().run_in_executor(None, self._seal, self._sealer, scored.outcome, reason)
            task.add_done_callback(self._sealed)

    def take_pair(self, scored: ScoredPair) -> None:
        """Keep both texts of a pair by the same rules; an incident is a candidate that failed or answered otherwise."""
        tenant = scored.pair.tenant
        if self._sealer is None or tenant in self._opted_out or scored.pair.candidate.missing:
            return
        rule = self._rules.tenants.get(tenant, self._rules.keep)
        wanted = _is_incident(scored) if rule == INCIDENTS else isinstance(rule, int | float) and self._rand() < rule
        if not wanted:
            return
        if self._sealing >= WAITING_MOST:
            self.kept.add(("busy",))
            return
        self._sealing += 1
        task = asyncio.get_running_loop().run_in_executor(None, self._seal_pair, self._sealer, scored.pair)
        task.add_done_callback(self._sealed)

    def _reason(self, scored: Scored) -> str | None:
        outcome = scored.outcome
        if outcome.capture is None or outcome.kind.tenant in self._opted_out:
            return None
        rule = self._rules.tenants.get(outcome.kind.tenant, self._rules.keep)
        incident = outcome.kind.result != "ok" or (scored.inspection is not None and not scored.inspection.ok)
        if rule == OFF:
            return None
        if rule == INCIDENTS:
            return "incident" if incident else None
        if isinstance(rule, int | float) and self._rand() < rule:
            return "incident" if incident else "share"
        return None

    def _seal(self, sealer: Sealer, outcome: Outcome, reason: str) -> SampleRow:
        capture = outcome.capture
        assert capture is not None  # noqa: S101 - asked before
        most = self._rules.most_bytes
        redactor = self._redactor
        request, answer = redactor.text(capture.request), redactor.answer(capture.answer)
        sample = Sample(outcome.kind.api, request[:most], answer[:most])
        return SampleRow(
            outcome.request_id,
            outcome.at,
            outcome.at + self._rules.retention_s,
            outcome.kind.tenant,
            outcome.kind.bucket,
            outcome.kind.pool,
            reason,
            sealer.seal(outcome.request_id, sample),
        )

    def _seal_pair(self, sealer: Sealer, pair: Pair) -> SampleRow:
        most, redactor = self._rules.most_bytes, self._redactor
        answers = (pair.baseline.answer, pair.candidate.answer, pair.noise.answer if pair.noise else b"")
        request = redactor.text(pair.request)[:most]
        sample = Sample(pair.api, request, *(redactor.answer(answer)[:most] for answer in answers))
        return SampleRow(
            pair.request_id,
            pair.at,
            pair.at + self._rules.retention_s,
            pair.tenant,
            pair.bucket,
            pair.baseline.pool,
            PAIR,
            sealer.seal(pair.request_id, sample),
        )

    def _sealed(self, task: "asyncio.Future[SampleRow]") -> None:
        self._sealing -= 1
        if task.cancelled():
            return
        if task.exception() is not None:
            self.kept.add(("failed",))
            _log.error("sample_failed", error=type(task.exception()).__name__)
            return
        self.kept.add(("kept",))
        self._keep(task.result())


def _is_incident(scored: ScoredPair) -> bool:
    """A failed candidate, a flip (refusal, language, JSON, tools), or a difference far beyond the baseline's own."""
    agreement, loss = scored.scores.agreement, scored.scores.loss
    if agreement.verdict is Verdict.COMPARED:
        return agreement.capped_by is not None or (loss is not None and (loss.trip or 0.0) >= INCIDENT_EXCESS)
    return agreement.verdict in (Verdict.OTHER_FAILED, Verdict.BOTH_FAILED)


def opted_out(tenants: Mapping[str, object]) -> frozenset[str]:
    """Tenants whose texts must never be kept."""
    return frozenset(name for name, tenant in tenants.items() if not getattr(tenant, "capture", True))
