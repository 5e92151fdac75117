"""An engine over a real policy, a simulated second at a time: outcomes, announcements, turns, everything accepted."""

import random
from collections.abc import Callable

import msgspec

from gateway.control.rollouts import Engine
from gateway.control.rollouts_values import Proposal
from gateway.control.scoring import Scored
from gateway.core.evidence import Budget
from gateway.core.quality import Inspection
from gateway.core.quality.finding import Check, FailureClass, Finding, Verdict, failed, passed
from gateway.core.rollout import Headroom, State, measure_headroom
from gateway.model.messages import Start, Starts
from gateway.model.outcome import Attempt, Outcome
from gateway.model.proving import Rollout
from gateway.model.table import Table
from tests.unit.control.conftest import compiled, load_text, outcome

START_S = 1_700_000_000.0
GUARDS = """
  errors: {metric: error_rate, limit: 1%}
  json: {metric: format_error_rate, limit: 1%, feed: product, block: 1s, deadline: 5s}
"""


def rollout_policy(
    *, guards: str = GUARDS, names: str = "errors, json", stages: str = "", extra: str = "", record: str = "a"
) -> Table:
    """Two pools of one model and a rollout over every bucket."""
    stages = stages or "[{weight: 50%, at_least: {time: 30s, requests: 300}}, {weight: 100%, at_least: {time: 30s}}]"
    text = f"""
version: 1
models: {{m: {{context_window: 8192, baseline: bf16}}}}
pools:
  bf16: {{model: m, runtime: vllm, precision: {{weights: bf16, activations: bf16, kv_cache: bf16}},
    hardware: {{gpu: H100}}, endpoints: ["http://127.0.0.1:1"], limits: {{inflight: 100}}}}
  int4: {{model: m, runtime: vllm, precision: {{weights: int4, activations: bf16, kv_cache: bf16, method: awq,
    group_size: 128}}, hardware: {{gpu: H100}}, endpoints: ["http://127.0.0.1:2"], record: {{image: "{record}"}}}}
tenants: {{anonymous: {{allow: true}}}}
classify: {{buckets: {{by: [model, length, task], most: 50}}}}
routes: [{{name: r, pools: [int4, bf16]}}]
rollouts:
  - {{name: int4-all, candidate: int4, stages: {stages}, guards: [{names}], {extra}}}
guards: {guards}
"""
    return compiled(load_text(text).document, 1, {})


class World:
    """Everything is ready; loads are as set."""

    def __init__(self) -> None:
        self.is_ready = True
        self.away = ""

    def ready(self, pool: str) -> bool:
        """As set."""
        return self.is_ready

    def absence(self, pool: str) -> str:
        """As set."""
        return self.away

    def headroom(self, plan: Rollout, bucket_share: float) -> Headroom | None:
        """Room for ten."""
        return measure_headroom(plan.baseline, candidate_inflight=40, bucket_share=bucket_share, used=90, limit=100)


class EngineRig:
    """Drives an engine. ``stepped`` holds every accepted proposal."""

    def __init__(self, table: Table, seed: int = 1, budget: Budget | None = None) -> None:
        self.world = World()
        self.now_s = START_S
        self.random = random.Random(seed)
        self.table = table
        self.budget = budget or Budget()
        self.stepped: list[Proposal] = []
        self.count = 0
        self.store = True
        self.engine = self._made()
        self.engine.restore([], None, self.now_s)

    def _made(self) -> Engine:
        engine = Engine(self.world)
        engine.apply(self.table, self.budget, {"int4": "r-a", "bf16": "r-b"}, self.now_s)
        return engine

    def restart(self, *, with_meters: bool = True) -> None:
        """A fresh control that finds what was stored."""
        standings, state = list(self.engine.standings.values()), self.engine.state(self.now_s)
        self.engine = self._made()
        kept = msgspec.msgpack.decode(msgspec.msgpack.encode(state), type=type(state)) if with_meters else None
        self.engine.restore(standings, kept, self.now_s)

    def second(self, bucket: str = "m/short/chat", rate: int = 10, **bad: float) -> list[Proposal]:
        """One second of traffic at the shares in force; ``bad``: rates of errors, json, slow, and base_… of each."""
        standing = self.state(bucket)
        share = max(0, standing.share_bp) / 10_000 if standing else 0.0
        batch = []
        for _ in range(rate):
            candidate = self.random.random() < min(share, 0.98)
            batch.append(self._request(bucket, candidate, bad))
        starts: dict[str, int] = {}
        for scored in batch:
            starts[scored.outcome.kind.pool] = starts.get(scored.outcome.kind.pool, 0) + 1
        counts = [Start(int(self.now_s), bucket, pool, number) for pool, number in starts.items()]
        self.engine.take_starts(Starts(0, counts))
        self.engine.take_outcomes([scored.outcome for scored in batch], self.now_s)
        self.engine.take_scored(batch, self.now_s)
        self.now_s += 1.0
        return self.turn()

    def turn(self) -> list[Proposal]:
        """One turn; what it proposes is stored and accepted."""
        self._accept(self.engine.restage(self.now_s))
        found = self.engine.turn(self.now_s)
        self._accept(found)
        return found

    def _accept(self, found: list[Proposal]) -> None:
        for proposal in found if self.store else []:
            self.engine.accept(proposal)
            self.stepped.append(proposal)

    def until(self, condition: Callable[[], bool], most: int = 2_000, **traffic: object) -> int:
        """Seconds until ``condition`` holds."""
        for second in range(most):
            if condition():
                return second
            self.second(**traffic)  # type: ignore[arg-type]
        raise AssertionError(f"not within {most} s: {[p.event.kind.value for p in self.stepped]}")

    def state(self, bucket: str = "m/short/chat"):  # type: ignore[no-untyped-def]
        """The bucket's standing, None if it was never met."""
        identity = self.table.rollouts[0].identity
        return self.engine.standings.get((identity, bucket))

    def at(self, state: State, bucket: str = "m/short/chat") -> bool:
        """Whether the bucket is in that state."""
        standing = self.state(bucket)
        return standing is not None and standing.state is state

    def _request(self, bucket: str, candidate: bool, bad: dict[str, float]) -> Scored:
        pool, prefix = ("int4", "") if candidate else ("bf16", "base_")
        failed_ = self.random.random() < bad.get(f"{prefix}errors", 0.0)
        slow = self.random.random() < bad.get(f"{prefix}slow", 0.0)
        self.count += 1
        request = request_of(bucket, pool, self.now_s, f"q{self.count}", error=failed_, ttft_s=5.0 if slow else 0.1)
        broken = self.random.random() < bad.get(f"{prefix}json", 0.0)
        return Scored(request, None if failed_ else inspection(json=not broken))


def request_of(
    bucket: str, pool: str, at_s: float, request_id: str, *, error: bool = False, ttft_s: float = 0.1
) -> Outcome:
    """One request of the rollout at a pool."""
    failure = "status_5xx" if error else ""
    return outcome(
        request_id=request_id,
        at=at_s,
        bucket=bucket,
        rollout="int4-all",
        pool=pool,
        length=bucket.split("/")[1],
        task=bucket.split("/")[2],
        result="upstream_error" if error else "ok",
        failure=failure,
        ttft_s=-1.0 if error else ttft_s,
        conversation=f"c-{request_id}",
        attempts=(Attempt(pool, f"{pool}/0", 502 if error else 200, failure, 0.0, 0.3),),
    )


def inspection(*, json: bool = True) -> Inspection:
    """An inspected JSON answer."""
    finding: Finding = passed(Check.JSON, "is JSON") if json else failed(Check.JSON, "is not JSON")
    failures = () if json else (FailureClass.FORMAT_ERROR,)
    assert finding.verdict in (Verdict.PASS, Verdict.FAIL)
    return Inspection("chat", True, 1, 10, (finding,), failures, 1.0 if json else 0.2)
