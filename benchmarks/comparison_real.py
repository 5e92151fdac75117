"""A pool against itself and against its quantised copies, with real weights: ``python -m benchmarks.comparison_real``.

Serves SmolLM2-135M in BF16, Q8_0 and Q4_0 (the demo's weights), sends 30 prompts to each, compares the answers in three
legs, and scores each answer of the baseline under every pool. ``--temperature 0.7 --rounds 5`` are the settings of the
table in docs/comparison.md. Intervals are 95 %, with the rounds of one prompt counted as one cluster. Takes about 5 s a
prompt, round and idle core.
"""

import argparse
import http.client
import json
import math
import os
import statistics
from collections import defaultdict
from typing import Any

from gateway.core.assemble import Answer, assemble
from gateway.core.comparison import Agreement, Call, Reply, Scoring, TokenScores, excess, likelihood_gap, score_answer
from gateway.core.quality import read_request
from gateway.demo.fleet import Fleet, RunningServer, ServerSpec
from gateway.demo.weights import Variant, cache_dir, obtain

QUESTIONS = (
    "What is the capital of Spain?",
    "What is the capital of Canada?",
    "How many legs does a spider have?",
    "Which ocean lies between Africa and Australia?",
    "What is 7 plus 5?",
    "Which metal is liquid at room temperature?",
    "Who painted the Mona Lisa?",
    "What do bees make?",
    "Which gas do plants take in?",
    "In which country is Kyoto?",
)
RECORDS = (
    '"name" and "age" for Eva, who is 41',
    '"city" and "river" for London and the Thames',
    '"title" and "year" for the novel Dracula from 1897',
    '"fruit" and "weight" for an apple of 150 grams',
    '"x" and "y" with the values 3 and 8',
    '"animal" and "sound" for a cow',
    '"status" and "code" with missing and 404',
    '"month" and "days" for June',
    '"item" and "price" for a lamp at 25 euros',
    '"language" and "extension" for Rust and .rs',
)
TASKS = (
    "Write one sentence about mountains.",
    "Say in one sentence what a bank does.",
    "List three vegetables.",
    "Write a short birthday wish for a colleague.",
    "Give one reason to sleep well.",
    "Shorten this: The dog ran through the park and barked at every bird it saw.",
    "Say it politely: Send me the invoice today.",
    "Name two musical instruments.",
    "Continue: It was a dark and rainy night",
    "Explain in two sentences why the sky is blue.",
)
EXAMPLES = (
    ('"name" and "job" for a nurse called Tom', '{"name": "Tom", "job": "nurse"}'),
    ('"sport" and "players" for football with 11', '{"sport": "football", "players": 11}'),
)
LEGS = (("baseline", "bf16", 1), ("noise", "bf16", 2), ("itself", "bf16", 3), ("q8", "q8", 4), ("q4", "q4", 5))


def prompts() -> list[tuple[str, list[dict[str, str]]]]:
    """(task, messages) of the 30 prompts."""
    asked = "Return only a JSON object with the keys {}. No other text."
    shots: list[dict[str, str]] = [{"role": "system", "content": "You turn requests into one line of JSON."}]
    for keys, record in EXAMPLES:
        shots += [{"role": "user", "content": asked.format(keys)}, {"role": "assistant", "content": record}]
    free = [("chat", [{"role": "user", "content": text}]) for text in (*QUESTIONS, *TASKS)]
    return free + [("extraction", [*shots, {"role": "user", "content": asked.format(keys)}]) for keys in RECORDS]


def post(server: RunningServer, call: Call) -> Reply:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=600)
    try:
        connection.request("POST", call.path, call.body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return Reply(answer.status, answer.read())
    finally:
        connection.close()


def ask(server: RunningServer, request: dict[str, Any]) -> Answer:
    return assemble(request, post(server, Call("/v1/chat/completions", json.dumps(request).encode())).body)


def score(server: RunningServer, request: dict[str, Any], text: str) -> TokenScores:
    steps = score_answer(Scoring.FORCED_DECODING, request, text, "m")
    call = next(steps)
    while True:
        try:
            call = steps.send(post(server, call))
        except StopIteration as done:
            scores: TokenScores = done.value
            return scores


def interval(rows: list[tuple[int, float]]) -> str:
    """Mean and 95 % half-width of values that come in clusters."""
    mean = statistics.mean(value for _, value in rows)
    sums: dict[int, float] = defaultdict(float)
    for cluster, value in rows:
        sums[cluster] += value - mean
    count = len(sums)
    if count < 2:
        return f"{mean:+.4f} ± unknown"
    error = math.sqrt(sum(total**2 for total in sums.values()) * count / (count - 1)) / len(rows)
    return f"{mean:+.4f} ± {1.96 * error:.4f}"


def measure(servers: dict[str, RunningServer], temperature: float, rounds: int) -> None:
    losses: dict[tuple[str, str], list[tuple[int, float]]] = defaultdict(list)
    scores: dict[tuple[str, str], list[float]] = defaultdict(list)
    gaps: dict[str, list[tuple[int, float]]] = defaultdict(list)
    for number, (task, messages) in enumerate(prompts()):
        for round_ in range(rounds):
            request: dict[str, Any] = {"messages": messages, "max_tokens": 80, "temperature": temperature}
            answers = {
                leg: ask(
                    servers[pool], request | {"seed": 104_729 * seed + 7_919 * round_ + number, "cache_prompt": False}
                )
                for leg, pool, seed in LEGS
            }
            asked = read_request(request)
            for leg in ("itself", "q8", "q4"):
                triple = excess(answers["baseline"], answers[leg], answers["noise"], asked, task)
                assert isinstance(triple.agreement, Agreement) and isinstance(triple.noise, Agreement)
                assert triple.loss is not None and triple.loss.trip is not None
                for group in ("all", task):
                    losses[group, leg].append((number, triple.loss.trip))
                    scores[group, leg].append(triple.agreement.score or 0.0)
                    scores[group, "noise"].append(triple.noise.score or 0.0)
            text = answers["baseline"].choices[0].text
            if round_ == 0 and text.strip():
                own = score(servers["bf16"], request, text)
                for leg, pool in (("itself", "bf16"), ("q8", "q8"), ("q4", "q4")):
                    gap = likelihood_gap(own, score(servers[pool], request, text))
                    if gap is not None:
                        gaps[leg].append((number, gap.mean_nats))
    for (group, leg), rows in sorted(losses.items()):
        print(
            f"{group:10s} {leg:6s} n={len(rows):3d} agreement {statistics.mean(scores[group, leg]):.3f}"
            f"  noise {statistics.mean(scores[group, 'noise']):.3f}  excess {interval(rows)}"
        )
    for leg, rows in gaps.items():
        print(f"gap of the baseline's answers under {leg:6s} n={len(rows)}: {interval(rows)} nats per token")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--temperature", type=float, default=0.0)
    parser.add_argument("--rounds", type=int, default=1)
    options = parser.parse_args()
    weights = obtain(cache_dir(os.environ), print)
    variants = {"bf16": Variant.BF16, "q8": Variant.Q8_0, "q4": Variant.Q4_0}
    specs = [ServerSpec(name, weights[variant], "m") for name, variant in variants.items()]
    with Fleet(specs) as fleet:
        measure({server.spec.name: server for server in fleet.servers}, options.temperature, options.rounds)


if __name__ == "__main__":
    main()
