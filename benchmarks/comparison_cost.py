"""Cost of comparing one pair and one triple of answers.

    python -m benchmarks.comparison_cost [REPEATS]

Prints the median CPU time in µs for answers of about 1 kB and 10 kB whose words differ in 20 %, for equal answers, for
three legs, for JSON and for tool calls. CPU time, so a busy machine spoils it less; texts are made from a fixed seed.
"""

import argparse
import json
import random
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

from gateway.core.assemble import Answer, assemble
from gateway.core.comparison import compare, excess
from gateway.core.quality import read_request

CHAT = {"messages": [{"role": "user", "content": "Explain it."}]}
WORD_LINE = (
    "the of and a to in is it that was for on are with they be at one have this from by hot word but what some we can "
    "out other were all there when up use your how said an each she which do their time if will way about many then "
    "them write would like so these her long make thing see him two has look more day could go come did number sound"
)
WORDS = WORD_LINE.split()


def answer(text: str = "", calls: list[dict[str, Any]] | None = None) -> Answer:
    message = {"role": "assistant", "content": text, "tool_calls": calls or []}
    body = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    return assemble(CHAT, json.dumps(body).encode())


def prose(rng: random.Random, size: int) -> list[str]:
    found: list[str] = []
    while sum(map(len, found)) + len(found) < size:
        found.append(rng.choice(WORDS) if rng.random() < 0.95 else str(rng.randrange(10_000)))
        if rng.random() < 0.1:
            found[-1] += "."
    return found


def changed(rng: random.Random, words: list[str]) -> list[str]:
    return [rng.choice(WORDS) if rng.random() < 0.2 else word for word in words]


def cost_us(repeats: int, work: Callable[..., object], *arguments: object) -> float:
    spent: list[float] = []
    for _ in range(repeats):
        start = time.process_time_ns()
        work(*arguments)
        spent.append((time.process_time_ns() - start) / 1000)
    return statistics.median(spent)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("repeats", type=int, nargs="?", default=50, help="of each comparison")
    repeats = parser.parse_args(arguments).repeats
    rng = random.Random(1)
    chat = read_request(CHAT)
    structured = read_request({**CHAT, "response_format": {"type": "json_object"}})
    for size in (1_000, 10_000):
        words = prose(rng, size)
        base, other, again = (answer(" ".join(text)) for text in (words, changed(rng, words), changed(rng, words)))
        print(f"text {size} B, words differ: {cost_us(repeats, compare, base, other, chat):.0f} µs")
        print(f"text {size} B, equal:        {cost_us(repeats, compare, base, base, chat):.0f} µs")
        print(f"text {size} B, three legs:   {cost_us(repeats, excess, base, other, again, chat):.0f} µs")
        rows = [{"id": n, "name": f"item {n}", "price": f"{n * 1.37:.2f}", "tags": [n]} for n in range(size // 60)]
        left = answer(json.dumps(rows))
        right = answer(json.dumps([row | {"price": "0"} if n % 5 == 0 else row for n, row in enumerate(rows)]))
        print(f"JSON {size} B, prices differ: {cost_us(repeats, compare, left, right, structured):.0f} µs")
    one, two = (answer(calls=[call(n, query) for n in range(4)]) for query in ("xyz", "xyzz"))
    print(f"4 tool calls, arguments differ: {cost_us(repeats, compare, one, two, chat):.0f} µs")


def call(number: int, query: str) -> dict[str, Any]:
    arguments = json.dumps({"id": number, "query": query})
    return {"id": f"c{number}", "type": "function", "function": {"name": f"f{number}", "arguments": arguments}}


if __name__ == "__main__":
    main()
