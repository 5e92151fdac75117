"""Shadow traffic over real models and a real gateway: BF16 against itself, and against Q4_0, in the excess difference.

    python -m benchmarks.shadow_real [--pairs 300] [--temperature 0.7] [--tokens 16] [--likelihood 10%] [--most-s 600]

Serves SmolLM2-135M in BF16 and Q4_0 (the demo's weights) and a gateway that mirrors every request with a second run of
the baseline to one of two candidates, drawn per conversation: the BF16 server once more, and the Q4_0 server. Sends the
30 prompts of ``comparison_real`` as conversations of their own until both candidates have enough pairs, or the time is
over. Printed are the gateway's own interval, which holds at any time, and the usual one for this number of pairs (95 %,
with the repetitions of one prompt as one cluster). Yields to other work on the machine.
"""

import argparse
import http.client
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import yaml

from benchmarks.comparison_real import interval, prompts
from benchmarks.processes import free_ports, wait_until
from gateway.core.mirror import Event
from gateway.demo.fleet import Fleet, ServerSpec, get
from gateway.demo.weights import Variant, cache_dir, obtain

NICE = 15
AHEAD = 3  # mirrored requests that may be under way
WAIT_S = 60.0  # for what is under way at the end
ENDED = (
    *(Event.COMPARED, Event.UNSCORED, Event.SHED, Event.CLIENT_GONE, Event.SERVED_ELSEWHERE, Event.NOT_SERVED),
    *(Event.TOO_LONG, Event.POLICY_CHANGED, Event.STOPPING, Event.BUFFER_FULL, Event.FAULT),
)
"""What becomes of a mirrored request."""
RULES = {"itself": "bf16-again", "q4": "q4"}


def policy(urls: dict[str, str], likelihood: str) -> dict[str, Any]:
    """One model, its baseline, and a rule for each candidate; requests are drawn between the two."""
    pools = {"bf16": ("bf16", "bf16"), "bf16-again": ("bf16", "bf16"), "q4": ("q4", "q4_0")}
    return {
        "version": 1,
        "models": {"m": {"baseline": "bf16"}},
        "pools": {
            name: {
                "model": "m",
                "runtime": "llama.cpp",
                "precision": {"weights": weights, "activations": "fp32", "kv_cache": "fp16"},
                "endpoints": [urls[server]],
                "attestation": "off",
                "timeouts": {"first_byte": "300s", "idle": "300s"},
            }
            for name, (server, weights) in pools.items()
        },
        "tenants": {"anonymous": {"allow": True}},
        "classify": {"buckets": {"by": ["model"]}},
        "routes": [{"name": "all", "pools": ["bf16"]}],
        "evidence": {"check": {"structured": "0%", "tools": "0%", "other": "0%"}},
        "shadow": [
            {
                "name": name,
                "sample": "100%",
                "candidate": candidate,
                "noise_leg": "100%",
                "inflight": 4,
                "queue": 400,
                "timeout": "600s",
                "likelihood": likelihood,
            }
            for name, candidate in RULES.items()
        ],
    }


class Gateway:
    """``quantgate serve`` with one worker."""

    def __init__(self, folder: Path, document: dict[str, Any]) -> None:
        config = folder / "policy.yaml"
        config.write_text(yaml.safe_dump(document))
        self.port, self.admin = free_ports(2)
        command = [sys.executable, "-m", "gateway", "serve", "--config", str(config), "--workers", "1"]
        command += ["--listen", f"127.0.0.1:{self.port}", "--admin", f"127.0.0.1:{self.admin}"]
        command += [
            "--state-dir",
            str(folder / "state"),
            "--access-log",
            str(folder / "access.jsonl"),
            "--drain-s",
            "1",
        ]
        self._log = (folder / "gateway.log").open("w")
        self.process = subprocess.Popen(command, stdout=self._log, stderr=self._log)
        wait_until(
            lambda: get(f"http://127.0.0.1:{self.admin}", "/readyz")[0] == 200,
            f"the gateway does not start: {folder / 'gateway.log'}",
            lambda: self.process.poll() is None,
        )

    def ask(self, path: str) -> Any:
        return json.loads(get(f"http://127.0.0.1:{self.admin}", path, timeout_s=30)[1])

    def events(self, metric: str = "quantgate_shadow_requests_total", label: str = "event") -> dict[str, int]:
        text = get(f"http://127.0.0.1:{self.admin}", "/metrics", timeout_s=30)[1].decode()
        found: dict[str, int] = defaultdict(int)
        for line in text.splitlines():
            if line.startswith(f"{metric}{{"):
                found[line.partition(f'{label}="')[2].partition('"')[0]] += int(float(line.rpartition(" ")[2]))
        return found

    def under_way(self) -> int:
        """Mirrored requests that have not come to an end."""
        found = self.events()
        return found[Event.MIRRORED] - sum(found[event] for event in ENDED)

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(30)
        self._log.close()


def drive(gateway: Gateway, options: argparse.Namespace) -> dict[str, int]:
    """Send prompts until both candidates have their pairs; which prompt each request was."""
    asked: dict[str, int] = {}
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=600)
    end = time.monotonic() + options.most_s
    number = 0
    while time.monotonic() < end:
        prompt = number % len(prompts())
        body: dict[str, Any] = {"model": "m", "messages": prompts()[prompt][1], "max_tokens": options.tokens}
        body["temperature"] = options.temperature
        headers = {"Content-Type": "application/json", "x-quantgate-session": f"run-{number}"}
        connection.request("POST", "/v1/chat/completions", json.dumps(body), headers)
        answer = connection.getresponse()
        answer.read()
        if answer.status != 200:
            raise SystemExit(f"the gateway answered {answer.status}")
        asked[answer.headers["x-quantgate-request-id"]] = prompt
        number += 1
        while gateway.under_way() > AHEAD and time.monotonic() < end:
            time.sleep(0.05)
        if number % 10 == 0 and enough(gateway, options.pairs):
            break
    end = time.monotonic() + WAIT_S
    while (gateway.under_way() > 0 or not all_stored(gateway)) and time.monotonic() < end:
        time.sleep(0.2)
    return asked


def all_stored(gateway: Gateway) -> bool:
    """Whether every pair that was compared can be read: one that is scored teacher-forced comes later by that."""
    found = gateway.events()
    return sum(len(stored(gateway, name)) for name in RULES.values()) >= found[Event.COMPARED] + found[Event.UNSCORED]


def enough(gateway: Gateway, pairs: int) -> bool:
    rows = {row["candidate"]: row["number"] for row in gateway.ask("/api/v1/excess")["excess"]}
    return all(rows.get(candidate, 0) + AHEAD >= pairs for candidate in RULES.values())


def stored(gateway: Gateway, candidate: str) -> list[dict[str, Any]]:
    """Every pair of a candidate, page by page."""
    found: list[dict[str, Any]] = []
    cursor = ""
    while True:
        page = gateway.ask(f"/api/v1/pairs?candidate={candidate}&limit=500{cursor}")
        found += page["pairs"]
        if page["next_cursor"] is None:
            return found
        cursor = f"&cursor={page['next_cursor']}"


def report(gateway: Gateway, asked: dict[str, int]) -> None:
    for row in gateway.ask("/api/v1/excess")["excess"]:
        pairs = [pair for pair in stored(gateway, row["candidate"]) if pair["loss"] is not None]
        usual = interval([(asked[pair["request_id"]], pair["loss"]) for pair in pairs]) if len(pairs) > 1 else "-"
        print(
            f"{row['candidate']:<11} n={row['number']:<4} agreement {row['agreement_mean']:.3f}  noise "
            f"{row['noise_mean']:.3f}  excess {row['mean']:+.4f}  at any time [{row['low']:+.3f}, {row['high']:+.3f}]  "
            f"for this n {usual}"
        )
        gaps = [
            (asked[pair["request_id"]], pair["likelihood_gap"]) for pair in pairs if pair["likelihood_gap"] is not None
        ]
        if len(gaps) > 1:
            print(f"{'':<11} likelihood gap n={len(gaps)}: {interval(gaps)} nats per token")
    print("counts:", dict(sorted(gateway.events().items())))
    print("likelihood:", dict(sorted(gateway.events("quantgate_likelihood_total", "outcome").items())))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=300, help="for each candidate")
    parser.add_argument("--temperature", type=float, default=0.7)
    parser.add_argument("--tokens", type=int, default=16, help="max_tokens of each answer")
    parser.add_argument("--likelihood", default="10%", help="share of pairs scored teacher-forced")
    parser.add_argument("--most-s", type=float, default=600)
    options = parser.parse_args()
    os.nice(NICE)
    weights = obtain(cache_dir(os.environ), print)
    specs = [
        ServerSpec(name, weights[variant], "m", slots=4)
        for name, variant in {"bf16": Variant.BF16, "q4": Variant.Q4_0}.items()
    ]
    with tempfile.TemporaryDirectory(prefix="quantgate-shadow-") as folder, Fleet(specs) as fleet:
        urls = {server.spec.name: server.url for server in fleet.servers}
        gateway = Gateway(Path(folder), policy(urls, options.likelihood))
        try:
            began = time.monotonic()
            asked = drive(gateway, options)
            print(f"temperature {options.temperature}, {options.tokens} tokens, {len(asked)} requests, "
                  f"{time.monotonic() - began:.0f} s")  # fmt: skip
            report(gateway, asked)
        finally:
            gateway.stop()


if __name__ == "__main__":
    main()
