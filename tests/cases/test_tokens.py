"""Group 12 of the cases: token counting is bounded and off the loop."""

import json
import statistics
import time

import pytest

from tests.cases.client import call, request_bytes
from tests.cases.conftest import Lane
from tests.cases.messages import OK, r0

PROSE = "The gateway counts the tokens of this ordinary sentence, and then it counts them once more. "


def test_b99_large_prose_does_not_stop_the_loop(lane: Lane) -> None:
    """While several 8 MB prompts are counted, liveness and small requests go on: most are not held up at all."""
    text = PROSE * (8_000_000 // len(PROSE))
    large = request_bytes({"model": lane.model, "messages": [{"role": "user", "content": text}]})
    port = lane.gateway.port
    small_body = request_bytes(r0(lane.model))
    clients = [lane.gateway.connect(timeout=60) for _ in range(3)]
    took: list[float] = []
    for client in clients:
        client.send(large)
    with lane.gateway.connect() as other:
        while len(lane.first.received) < 3 and len(took) < 400:
            started = time.monotonic()
            assert call(port, method="GET", path="/health").status == 200
            other.send(small_body)
            assert other.reply().read()
            took.append(time.monotonic() - started)
            time.sleep(0.01)
    for client in clients:
        assert client.reply().status == 200
        client.close()
    assert len(took) > 3
    assert statistics.quantiles(took, n=10)[-1] < 0.25, sorted(took)[-5:]
    assert len(max((received.body for received in lane.first.received), key=len)) > 7_000_000


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
