"""Group 12 of the cases: token counting is bounded and off the loop."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gateway.core.tokens import CAUTION
from gateway.policy.tokenizer_files import load_tokenizer
from tests.cases.conftest import Lane
from tests.cases.gateway import Gateway, simple_policy, wait_for
from tests.cases.messages import OK

ROOT = Path(__file__).resolve().parents[2]
PROSE = "The gateway counts the tokens of this ordinary sentence, and then it counts them once more. "


# Runs apart, so that the work of sending megabytes is not the reason why this process is slow to measure.
SENDER = """
import json, sys, time
from tests.cases.client import Client, request_bytes
port, prose = int(sys.argv[1]), sys.argv[2]
text = prose * (8_000_000 // len(prose))
large = request_bytes({"model": "m", "messages": [{"role": "user", "content": text}]})
with Client(port, timeout=60) as client:
    for _ in range(5):
        begin = time.monotonic()
        client.send(large)
        reply = client.reply()
        reply.read()
        assert reply.status == 200, reply.status
        print(json.dumps([begin, time.monotonic()]), flush=True)
"""


@pytest.fixture
def simulator(tmp_path: Path) -> Iterator[str]:
    """A simulated runtime in a process of its own; its URL."""
    log = tmp_path / "simulator.log"
    command = [
        sys.executable,
        "-m",
        "gateway",
        "simulate",
        "--port",
        "0",
        "--model",
        "up",
        "--context-length",
        "4000000",
    ]
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, cwd=ROOT)
    listening = wait_for(lambda: log.read_text() if "listening" in log.read_text() else None, "the simulator", 30)
    yield f"http://127.0.0.1:{json.loads(listening)['port']}"
    process.terminate()
    process.wait(10)


def test_b99_large_prose_does_not_stop_the_loop(simulator: str, start_gateway: Callable[..., Gateway]) -> None:
    """While an 8 MB prompt is counted, which takes its time, the loop turns: liveness is answered in a part of it.

    A length class ends where the estimate is, so that no sample settles on which side the prompt is. Five prompts, and
    one will do: whatever else may hold a process up for so long does not do it five times.
    """
    tokens = load_tokenizer(("tiktoken", "cl100k_base")).count(PROSE) * (8_000_000 // len(PROSE))
    bound = int(tokens * CAUTION)
    gateway = start_gateway(simple_policy(simulator, classify={"lengths": {"long": bound, "huge": 3 * bound}}))
    command = [sys.executable, "-c", SENDER, str(gateway.port), PROSE]
    sender = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE)
    probes = []
    with gateway.connect() as neighbour:
        while sender.poll() is None:
            begin = time.monotonic()
            assert neighbour.request(None, method="GET", path="/health").read()
            probes.append((begin, time.monotonic()))
    assert sender.returncode == 0
    assert sender.stdout is not None
    spans = [json.loads(line) for line in sender.stdout]
    sender.stdout.close()
    gateway.outcome(5, model="m")
    counted_s = [outcome["overhead_ms"] / 1000 for outcome in gateway.outcomes(model="m")]
    slowest_s = [max(end - begin for begin, end in probes if end > first and begin < last) for first, last in spans]
    assert min(slowest / counted for slowest, counted in zip(slowest_s, counted_s, strict=True)) < 0.5
    assert min(outcome["bytes_in"] for outcome in gateway.outcomes(model="m")) > 7_900_000


RUNS = {
    "carets": "^" * 1_000_000,
    "letters": "a" * 100_000,
    "underscores": "_" * 50_000,
    "spaces": " " * 500_000,
    "digits": "7" * 500_000,
    "newlines": "\n" * 300_000,
    "accents": "é" * 200_000,
    "emoji": "👩‍🚀" * 40_000,
    "mixed-runs": ("a" * 5000 + " ") * 60,
}


@pytest.mark.parametrize("name", RUNS)
def test_b101_long_runs_of_one_character(lane: Lane, name: str) -> None:
    """Text that is costly for byte-pair encoding is routed within the patience of a client, and the worker lives."""
    pids = lane.gateway.worker_pids()
    lane.first.play(OK)
    assert lane.request({"model": lane.model, "messages": [{"role": "user", "content": RUNS[name]}]}).status == 200
    assert lane.first.received[0].json["messages"][0]["content"] == RUNS[name]
    assert lane.gateway.worker_pids() == pids


SPECIAL = "a <|endoftext|> b <|im_start|> <|fim_prefix|> <|endofprompt|> </s> <s>"


def test_b103_special_tokens_are_text(lane: Lane) -> None:
    """Names of special tokens in a prompt, a system text or a tool result are ordinary text."""
    called = {"id": "c0", "type": "function", "function": {"name": "f", "arguments": json.dumps({"x": SPECIAL})}}
    messages = [
        {"role": "system", "content": SPECIAL},
        {"role": "user", "content": SPECIAL * 2000},
        {"role": "assistant", "content": None, "tool_calls": [called]},
        {"role": "tool", "tool_call_id": "c0", "content": SPECIAL},
    ]
    lane.first.play(OK)
    assert lane.request({"model": lane.model, "messages": messages}).status == 200
    assert lane.first.received[0].json["messages"] == messages
    assert lane.outcome()["prompt_tokens_estimated"] > 2000
