"""The parts that make evidence of outcomes, wired: checks → counters, consequences, samples, records.

One object for the composition root. Policy comes in with ``apply``; nothing here can delay or fail a request.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import orjson

from gateway.control.archive import Archive
from gateway.control.endpoints import EndpointView
from gateway.control.joining import Joining
from gateway.control.latency import Latency
from gateway.control.likelihood import Likelihood
from gateway.control.likelihood_caution import Caution
from gateway.control.pairing import Pairing
from gateway.control.recall import Recall
from gateway.control.sampling import Sampling, opted_out
from gateway.control.scoring import Scoring
from gateway.control.series import Counter, Family, gauge
from gateway.control.verdicts import Verdicts
from gateway.core.batch import Batch
from gateway.model.messages import Feedback, Outcomes
from gateway.model.pair import Pairs
from gateway.model.proving import Oversight
from gateway.model.table import Pool, Table
from gateway.runtimes.attestation import Attestation

STOP_S = 5.0
_ATTESTED = (
    *("runtime", "version", "weights", "activations", "kv_cache", "method", "group_size", "weight_bits"),
    *("context_length", "gpus", "tensor_parallel", "device"),
)


class Evidence:
    """Scoring, counting, joining, sampling and archiving."""

    def __init__(
        self,
        state_dir: Path,
        *,
        processes: int,
        monotonic: Callable[[], float],
        wall: Callable[[], float],
        rand: Callable[[], float],
    ) -> None:
        self._in_force: tuple[Table, Oversight] | None = None
        self._attested: dict[str, list[Attestation]] = {}
        self.scoring = Scoring(processes)
        self.archive = Archive(state_dir, monotonic, wall)
        self.verdicts = Verdicts()
        self.latency = Latency(monotonic)
        self.joining = Joining(self.archive.put)
        self.recall = Recall(self.joining, self.archive, wall)
        self.sampling = Sampling(self.archive.put, rand)
        self.likelihood = Likelihood(self.scoring.run, Caution(monotonic))
        self.pairing = Pairing(self.scoring, self.archive.put, self.likelihood)
        self.pairing.subscribe(self.sampling.take_pair)
        self.scoring.subscribe("verdicts", self.verdicts.take_scored)
        self.scoring.subscribe("joining", self.joining.take_scored)
        self.scoring.subscribe("sampling", self.sampling.take_scored)
        self.scoring.subscribe("archive", self.archive.take_scored, self.archive.take_batch)

    @property
    def counters(self) -> tuple[Counter, ...]:
        """Everything counted here, for the scrape."""
        return (
            self.scoring.skipped,
            self.verdicts.answers,
            self.verdicts.checks,
            self.verdicts.failures,
            self.joining.counted,
            self.joining.ignored,
            self.sampling.kept,
            self.pairing.events,
            self.pairing.compared,
            self.likelihood.counted,
            self.archive.written,
            self.archive.dropped,
            self.archive.failures,
        )

    def families(self) -> Iterable[Family]:
        """Gauges of this moment."""
        yield from self.pairing.families()
        yield self.pairing.agreement.family()
        yield self.pairing.excess.family()
        yield gauge(
            "quantgate_checks_waiting", "Answers that wait to be checked.", (), {(): float(self.scoring.waiting)}
        )
        yield self.archive.write_s.family()
        yield gauge(
            "quantgate_feedback_waiting",
            "Feedback that waits for its answer's outcome.",
            (),
            {(): float(self.joining.waiting)},
        )
        yield gauge("quantgate_records_waiting", "Rows that wait to be written.", (), {(): float(self.archive.waiting)})
        yield gauge(
            "quantgate_database_up",
            "1 while records can be written.",
            (),
            {(): float(self.archive.engine is not None and not self.archive.error)},
        )

    def apply(self, table: Table, oversight: Oversight) -> None:
        """A policy came into force."""
        evidence = table.evidence
        self._in_force = table, oversight
        self._note_deployments()
        self.joining.configure(evidence.remember_most, evidence.remember_s)
        tenants = {**table.tenants, **({"anonymous": table.anonymous} if table.anonymous else {})}
        self.pairing.configure(table)
        self.sampling.configure(oversight.samples, opted_out(tenants))

    def take_views(self, views: Iterable[EndpointView]) -> None:
        """What the runtimes attest by now: a deployment is another one when its runtime is."""
        attested: dict[str, list[Attestation]] = {}
        for view in views:
            if view.attestation is not None:
                attested.setdefault(view.pool, []).append(view.attestation)
        if attested != self._attested:
            self._attested = attested
            self._note_deployments()

    def _note_deployments(self) -> None:
        if self._in_force is None:
            return
        table, oversight = self._in_force
        pools = {name: deployment_record(pool, self._attested.get(name, ())) for name, pool in table.pools.items()}
        declared = {name: deployment_record(pool) for name, pool in table.pools.items()}
        self.archive.configure(oversight.database, oversight.retention_s, pools, declared)

    def start(self) -> None:
        """Begin to write."""
        self.archive.start()

    def take_batch(self, batch: Batch) -> None:
        """A batch from the recorder."""
        self.latency.take_batch(batch)
        self.joining.take_batch(batch)
        self.scoring.take_batch(batch)

    def take_losses(self, message: Outcomes) -> None:
        """What a worker says that it lost."""
        self.scoring.take_lost(message.captures_dropped)

    def take_feedback(self, feedback: Feedback) -> None:
        """An application's word on one of its answers."""
        self.joining.take_feedback(feedback)

    def take_pairs(self, message: Pairs) -> None:
        """Shadow pairs and counts of a worker."""
        self.pairing.take(message)

    async def stop(self) -> None:
        """Check and write what is still under way, within a few seconds."""
        await self.pairing.stop(STOP_S)
        await self.scoring.stop(STOP_S)
        await asyncio.to_thread(self.archive.stop, STOP_S)


def deployment_record(pool: Pool, attested: Sequence[Attestation] = ()) -> dict[str, Any]:
    """What is known of a pool's deployment: from the policy precision, hardware, runtime and its own record; from its
    endpoints what they attest, where it explains a number (not what changes by itself, such as a cache's size).
    """
    told = {name: _told(name, attested) for name in _ATTESTED}
    return {
        "pool": pool.name,
        "model": pool.model,
        "runtime": pool.runtime,
        "precision": msgspec.to_builtins(pool.precision),
        "device": pool.device,
        "gpu": pool.gpu,
        "compute_capability": pool.compute_capability,
        **({} if pool.gpu_count is None else {"gpu_count": pool.gpu_count}),
        "context_window": pool.context_window,
        "upstream_model": pool.upstream_model,
        **{f"record.{key}": value for key, value in pool.record.items()},
        **{f"attested.{name}": values for name, values in told.items() if values},
    }


def _told(name: str, attested: Sequence[Attestation]) -> list[Any]:
    """What a pool's endpoints say of one thing, each answer once: two versions in one pool must show."""
    found = [msgspec.to_builtins(getattr(one, name)) for one in attested]
    values = [value.get("value") if isinstance(value, dict) and "confidence" in value else value for value in found]
    return sorted({orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode() for value in values if value})
