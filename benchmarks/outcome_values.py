"""Finished requests as workers report them, and a policy that they fit: what `benchmarks.outcomes` sends.

Forty buckets, two pools, twenty tenants; with a rollout every outcome takes part in it, by five guards.
"""

import json
import random

import msgspec

from gateway.dataplane.outcomes import Ended, OutcomeBuffer
from gateway.model.outcome import Attempt, Capture, Kind, Outcome

POLICY = """
version: 1
models: {m: {context_window: 32k, baseline: bf16}}
pools:
  bf16:
    model: m
    runtime: openai
    precision: {weights: bf16, activations: bf16, kv_cache: bf16}
    endpoints: ["http://127.0.0.1:9"]
    attestation: "off"
  int4:
    model: m
    runtime: openai
    precision: {weights: int4, activations: bf16, kv_cache: bf16, group_size: 128, method: awq}
    hardware: {gpu: A100, compute_capability: "8.0"}
    endpoints: ["http://127.0.0.1:10"]
    attestation: "off"
tenants: {anonymous: {allow: true}}
routes: [{name: default, pools: [int4, bf16]}]
evidence: {check: {structured: 100%, tools: 100%, other: 5%}}
"""
ROLLOUT = """
rollouts:
  - {name: to-int4, candidate: int4, baseline: bf16, stages: [{weight: 50%}], guards: [errors, ttft, tpot, json, tools]}
guards:
  errors: {metric: error_rate, limit: 1%}
  ttft: {metric: ttft, quantile: 99%, limit: 2s, or_ratio_to_baseline: 1.2}
  tpot: {metric: tpot, quantile: 95%, limit: 60ms}
  json: {metric: format_error_rate, margin_to_baseline: 0.5%}
  tools: {metric: tool_failure_rate, margin_to_baseline: 1%}
"""

_REQUEST = json.dumps(
    {"model": "m", "messages": [{"role": "user", "content": "Tell me about the sea and its tides. " * 12}]}
).encode()
_ANSWER = json.dumps(
    {
        "id": "c",
        "object": "chat.completion",
        "model": "m",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": " ".join(f"Tide {n} comes and goes." for n in range(60))},
                "finish_reason": "stop",
            }
        ],
        "usage": {"prompt_tokens": 120, "completion_tokens": 300, "total_tokens": 420},
    }
).encode()
_TEXTS = Capture(_REQUEST, _ANSWER, False)
_LENGTHS = ("short", "medium", "long", "huge")


def policy(*, rollout: bool) -> str:
    """The policy file's text."""
    return POLICY + (ROLLOUT if rollout else "")


def packed(outcomes: list[Outcome]) -> list[bytes]:
    """As a worker sends them, every request having had one attempt."""
    buffer = OutcomeBuffer()
    for outcome in outcomes:
        values, (tried,) = msgspec.structs.asdict(outcome), outcome.attempts
        values |= {"kind": msgspec.msgpack.encode(outcome.kind), "attempts": None}
        buffer.add(Ended(**values, started_s=tried.started_s, took_s=tried.took_s))
    found = []
    while len(buffer):
        found.append(msgspec.msgpack.encode(buffer.take()[0]))
    return found


def samples(
    count: int, at_s: float, rng: random.Random, first: int, *, texts: float = 0.0, rollout: bool = False
) -> list[Outcome]:
    """Requests that finished at one moment, numbered from ``first``, a share of them with texts."""
    made = []
    part = ("candidate", "to-int4") if rollout else ("none", "")
    for index in range(count):
        pool = "int4" if rng.random() < 0.5 else "bf16"
        ttft_s, span_s = rng.lognormvariate(-2.0, 0.5), rng.lognormvariate(0.5, 0.4)
        kind = Kind(
            1, 0, "chat", f"tenant-{rng.randrange(20)}", "gold", "m", "",
            f"m/{rng.choice(_LENGTHS)}/task{rng.randrange(10)}", "short", "chat", "none", "none", "none", True,
            "default", *part, pool, f"{pool}/0", pool, 200, "ok", "", "", (), "stop", False,
        )  # fmt: skip
        made.append(
            Outcome(
                kind=kind,
                request_id=f"bench-{first + index:012d}",
                at=at_s,
                attempts=(Attempt(pool, f"{pool}/0", 200, "", 0.0004, ttft_s + span_s),),
                queue_s=0.0,
                overhead_s=0.0003,
                ttft_s=ttft_s,
                first_to_last_s=span_s,
                longest_gap_s=0.05,
                total_s=ttft_s + span_s,
                prompt_tokens_estimated=118,
                prompt_tokens=120,
                cached_tokens=rng.choice((0, 64)),
                completion_tokens=300,
                events=302,
                bytes_in=520,
                bytes_out=48_000,
                temperature=0.7,
                conversation=f"{rng.getrandbits(128):032x}",
                capture=_TEXTS if rng.random() < texts else None,
                trace_id=f"{rng.getrandbits(128):032x}",
            )
        )
    return made
