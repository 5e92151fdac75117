"""What a record costs the worker: build the outcome of a finished request, buffer it, encode it for control.

    python -m benchmarks.record_cost

Processor time without sockets, the best of several rounds, because other load only ever adds. The promise is under
5 µs a request.
"""

import time
from typing import Any

import msgspec

from benchmarks.micro_request import POLICY
from gateway.core.answer import AnswerInfo
from gateway.dataplane.exchange import outcome_of
from gateway.dataplane.outcomes import BATCH, OutcomeBuffer
from gateway.model.decision import Decision
from gateway.model.enums import Api, Result, Structured, ToolUse
from gateway.model.facts import Facts, Profile, Sampling
from gateway.model.messages import Outcomes
from gateway.model.outcome import Attempt
from gateway.policy.compile import compile_table
from gateway.policy.document import Snapshot, SourceFile
from gateway.policy.load import load_snapshot

COUNT = 5_000
ROUNDS = 15


class Shape:
    """Stands for an exchange at its end: the same attributes, without a connection."""

    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)


def finished() -> Any:
    """A streamed chat request that went well."""
    loaded = load_snapshot(Snapshot("p.yaml", False, (SourceFile("p.yaml", POLICY.encode()),)))
    table = compile_table(loaded.document, 1, {}, lambda _: "")
    sampling = Sampling(temperature=0.7)
    profile = Profile(
        Api.CHAT, "m", None, "short", "chat", ToolUse.NONE, "none", Structured.NONE, "anonymous", "default",
        True, False,
        sampling, 120, 632, 1, "m/short/chat/none/-/default",
    )  # fmt: skip
    return Shape(
        generation=Shape(table=table),
        profile=profile,
        decision=Decision("default", ("bf16",)),
        facts=Facts(Api.CHAT, "m", stream=True, sampling=sampling),
        usage=AnswerInfo(),
        caller=Shape(tenant=table.anonymous),
        attempts=[Attempt("bf16", "bf16/0", 200, "", 0.0004, 1.9)],
        admitted_at=10.0001,
        queued_at=10.0001,
        ready_at=10.0,
        started_at=9.9998,
        content_at=10.1,
        content_last_at=11.8,
        longest_gap_s=0.06,
        request_id="0123456789-00042",
        wall_at=1_700_000_000.0,
        api=Api.CHAT,
        failure="",
        error_code="",
        events=302,
        bytes_in=520,
        connection=Shape(bytes_out=48_000),
        conversation=b"c" * 16,
        capture=None,
        trace_id="f" * 32,
    )


def measure() -> dict[str, float]:
    """Seconds a request, by part."""
    exchange, encoder = finished(), msgspec.msgpack.Encoder()
    best = dict.fromkeys(("build", "buffer", "encode"), float("inf"))
    for _ in range(ROUNDS):
        buffer = OutcomeBuffer()
        begin = time.process_time()
        made = [outcome_of(exchange, Result.OK, 200, 11.9, 0) for _ in range(COUNT)]
        built = time.process_time()
        for outcome in made:
            buffer.add(outcome)
        buffered = time.process_time()
        while len(buffer):
            batch, dropped = buffer.take(BATCH)
            encoder.encode(Outcomes(0, dropped, batch))
        encoded = time.process_time()
        for name, took_s in (("build", built - begin), ("buffer", buffered - built), ("encode", encoded - buffered)):
            best[name] = min(best[name], took_s / COUNT)
    return best


def main() -> None:
    """Print it."""
    best = measure()
    total = sum(best.values())
    parts = ", ".join(f"{name} {seconds * 1e6:.2f}" for name, seconds in best.items())
    print(f"{total * 1e6:.2f} us a request ({parts}); promised: under 5")


if __name__ == "__main__":
    main()
