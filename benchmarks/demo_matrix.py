"""Where does low precision hurt? One real model in three precisions, mixed requests, the report.

    python -m benchmarks.demo_matrix [--requests 1002] [--folder DIR] [--nice 15]

Starts the demo's llama.cpp servers (SmolLM2-135M in BF16, Q8_0, and Q4_0 with an 8-bit KV cache) and a gateway whose
policy sends a tenant's requests to one pool each. Every prompt goes to all three pools, greedy, in rotating order, so
that the pools see the same traffic at the same time. Prompts with a known answer are judged here, as an application
would, and the judgement goes back through ``/v1/feedback``. Then the report is printed from what the gateway recorded.
"""

import argparse
import asyncio
import json
import os
import random
import re
import secrets
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp

from gateway.cli.report import Format, write
from gateway.core.report import Tally, build
from gateway.core.report.html import to_html
from gateway.demo.fleet import Fleet, demo_specs
from gateway.demo.gateway_process import GatewayOptions, GatewayProcess
from gateway.demo.weights import cache_dir, obtain
from gateway.store.engine import open_reader, url_of
from gateway.store.gathering import gather
from gateway.store.records import Filter

POOLS = ("bf16", "q8", "q4")
AT_ONCE = 2

POLICY = """
version: 1
models: {{smollm2-135m: {{context_window: 8k, tokenizer: {{tiktoken: cl100k_base}}, baseline: bf16}}}}
pools:
  bf16:
    model: smollm2-135m
    runtime: llama.cpp
    precision: {{weights: bf16, activations: bf16, kv_cache: fp16}}
    hardware: {{device: cpu}}
    endpoints: ["{bf16}"]
    timeouts: {{first_byte: 10m, idle: 10m}}
  q8:
    model: smollm2-135m
    runtime: llama.cpp
    precision: {{weights: q8_0, activations: q8_0, kv_cache: fp16, dynamic_scales: false}}
    hardware: {{device: cpu}}
    endpoints: ["{q8}"]
    timeouts: {{first_byte: 10m, idle: 10m}}
  q4:
    model: smollm2-135m
    runtime: llama.cpp
    precision: {{weights: q4_0, activations: q8_0, kv_cache: q8_0, dynamic_scales: false}}
    hardware: {{device: cpu}}
    endpoints: ["{q4}"]
    timeouts: {{first_byte: 10m, idle: 10m}}
tenants:
  for-bf16: {{keys: ["env:MATRIX_BF16"], trusted: true}}
  for-q8: {{keys: ["env:MATRIX_Q8"], trusted: true}}
  for-q4: {{keys: ["env:MATRIX_Q4"], trusted: true}}
classify:
  lengths: {{short: 1k, long: 8k}}
  output_tokens: 64
  tasks:
    - {{task: extract, marks: [json_schema]}}
    - {{task: code, text: ['Python function']}}
    - {{task: json, text: ['json block']}}
    - {{task: lookup, text: ['extension']}}
    - {{task: rag, system: ['only from the documents']}}
  buckets: {{by: [task], most: 50}}
routes:
  - {{name: to-bf16, when: {{tenant: for-bf16}}, pools: [bf16]}}
  - {{name: to-q8, when: {{tenant: for-q8}}, pools: [q8]}}
  - {{name: to-q4, when: {{tenant: for-q4}}, pools: [q4]}}
evidence: {{check: {{structured: 100%, tools: 100%, other: 100%}}}}
"""

FIRST = [
    "Anna",
    "Ben",
    "Carla",
    "David",
    "Ella",
    "Frank",
    "Greta",
    "Hugo",
    "Iris",
    "Jonas",
    "Karin",
    "Leo",
    "Mara",
    "Nils",
    "Olga",
    "Paul",
    "Rosa",
    "Sven",
    "Tina",
    "Udo",
]
CITIES = [
    "Rome",
    "Oslo",
    "Porto",
    "Quebec",
    "Lima",
    "Cairo",
    "Delhi",
    "Kyoto",
    "Perth",
    "Bergen",
    "Turin",
    "Lyon",
    "Ghent",
    "Malmo",
    "Split",
]
DAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
DAY_NAMES = dict(zip(DAYS, ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"], strict=True))
SKIES = {"sun": "Sunny", "rain": "Rain", "snow": "Snow", "wind": "Wind"}
CAPITALS = {
    "France": "Paris", "Italy": "Rome", "Spain": "Madrid", "Japan": "Tokyo", "Egypt": "Cairo", "Norway": "Oslo",
    "Germany": "Berlin", "Greece": "Athens", "Cuba": "Havana", "Peru": "Lima", "Austria": "Vienna", "Poland": "Warsaw",
    "Portugal": "Lisbon", "Russia": "Moscow", "China": "Beijing", "Ireland": "Dublin", "Sweden": "Stockholm",
    "Finland": "Helsinki", "Turkey": "Ankara", "Kenya": "Nairobi", "Canada": "Ottawa", "Australia": "Canberra",
}  # fmt: skip
FUNCTIONS = (
    "multiplies every number of a list by {n}",
    "adds {n} to a number",
    "returns the numbers of a list above {n}",
    "counts the words of a text longer than {n} letters",
    "repeats a string {n} times",
    "returns the first {n} items of a list",
    "divides a number by {n}",
    "checks whether a number is a multiple of {n}",
    "returns the sum of the numbers up to {n}",
)


class Prompt(NamedTuple):
    """One request, and how an application judges its answer (None: it does not)."""

    body: dict[str, Any]
    judge: Callable[[str], bool] | None


def prompts(count: int, seed: int) -> list[Prompt]:
    """``count`` prompts of six kinds."""
    rng = random.Random(seed)
    makers = (_extract, _lookup, _rag, _json_block, _chat, _code)
    made: dict[str, Prompt] = {}
    for index in range(count):
        # Greedy answers to one prompt are one observation, so no prompt comes twice.
        for _ in range(1000):
            prompt = makers[index % len(makers)](rng)
            if made.setdefault(json.dumps(prompt.body), prompt) is prompt:
                break
    found = list(made.values())
    rng.shuffle(found)
    return found


def _body(text: str, max_tokens: int, system: str = "", **more: Any) -> dict[str, Any]:
    messages = [{"role": "system", "content": system}] if system else []
    messages.append({"role": "user", "content": text})
    return {"model": "smollm2-135m", "messages": messages, "max_tokens": max_tokens, "temperature": 0, **more}


def _extract(rng: random.Random) -> Prompt:
    sky, day, celsius = rng.choice(list(SKIES)), rng.choice(DAYS), rng.randint(0, 40)
    text = f"As JSON: {SKIES[sky]} in {rng.choice(CITIES)} on {DAY_NAMES[day]}, {celsius} degrees."
    schema = {
        "type": "object",
        "properties": {
            "sky": {"enum": list(SKIES)},
            "day": {"enum": DAYS},
            "celsius": {"type": "integer", "minimum": 0, "maximum": 40},
        },
        "required": ["sky", "day", "celsius"],
        "additionalProperties": False,
    }
    form = {"type": "json_schema", "json_schema": {"name": "weather", "strict": True, "schema": schema}}
    wanted = {"sky": sky, "day": day, "celsius": celsius}
    return Prompt(_body(text, 48, response_format=form), lambda answer: _parsed(answer) == wanted)


def _lookup(rng: random.Random) -> Prompt:
    names = rng.sample(FIRST, 6)
    numbers = [str(rng.randint(100, 999)) for _ in names]
    listing = "\n".join(f"{name}: {number}" for name, number in zip(names, numbers, strict=True))
    at = rng.randrange(6)
    text = f"Here are the phone numbers.\n{listing}\nWhat is the extension of {names[at]}?"
    return Prompt(_body(text, 20), lambda answer: _numbers(answer)[:1] == [numbers[at]])


def _rag(rng: random.Random) -> Prompt:
    city, other = rng.sample(CITIES, 2)
    year, metres, minutes = rng.randint(1850, 1990), rng.randint(80, 900), rng.randint(8, 70)
    system = (
        "Answer only from the documents, and cite them as [1] or [2].\n"
        f"[1] The bridge at {city} was opened in {year}. It is {metres} metres long.\n"
        f"[2] The ferry to {other} takes {minutes} minutes."
    )
    question, wanted = rng.choice(
        (
            (f"In which year was the bridge at {city} opened?", str(year)),
            (f"How long is the bridge at {city}?", str(metres)),
            (f"How many minutes does the ferry to {other} take?", str(minutes)),
        )
    )
    return Prompt(_body(question, 32, system), lambda answer: wanted in _numbers(answer))


def _json_block(rng: random.Random) -> Prompt:
    name, city, age = rng.choice(FIRST), rng.choice(CITIES), rng.randint(18, 80)
    text = (
        f"{name} is {age} years old and lives in {city}. Write this as a json block with the keys name, age and city."
    )
    wanted = {"name": name, "age": age, "city": city}
    return Prompt(_body(text, 64), lambda answer: _parsed(answer) == wanted)


def _chat(rng: random.Random) -> Prompt:
    """A capital, or a small sum."""
    if rng.random() < 0.5:
        country = rng.choice(list(CAPITALS))
        return Prompt(_body(f"What is the capital of {country}?", 24), lambda answer: CAPITALS[country] in answer)
    one, two = rng.randint(2, 60), rng.randint(2, 60)
    return Prompt(_body(f"What is {one} plus {two}?", 24), lambda answer: str(one + two) in _numbers(answer))


def _code(rng: random.Random) -> Prompt:
    what = rng.choice(FUNCTIONS).format(n=rng.randint(2, 40))
    return Prompt(_body(f"Write a short Python function that {what}. Only the code.", 96), None)


def _numbers(answer: str) -> list[str]:
    """The numbers of an answer in order, without citations."""
    return re.findall(r"\d+", re.sub(r"\[\d\]", " ", answer))


def _parsed(answer: str) -> Any:
    """The JSON of an answer, with or without a fence around it."""
    text = (
        answer.partition("```json")[2].partition("```")[0] or answer.partition("```")[2].partition("```")[0] or answer
    )
    try:
        return json.loads(text)
    except ValueError:
        return None


async def send(session: aiohttp.ClientSession, url: str, key: str, prompt: Prompt, stream: bool) -> bool:
    """One request and, where it can be judged, the feedback on it. True = it was answered."""
    headers = {"Authorization": f"Bearer {key}"}
    body = prompt.body | {"stream": stream}
    async with session.post(f"{url}/v1/chat/completions", json=body, headers=headers) as answer:
        raw = await answer.read()
        request_id = answer.headers.get("x-quantgate-request-id", "")
        if answer.status != 200:
            print(f"{answer.status}: {raw[:200]!r}")
            return False
    if prompt.judge is not None:
        label = "good" if prompt.judge(_text(raw, stream)) else "bad"
        feedback = {"request_id": request_id, "label": label}
        async with session.post(f"{url}/v1/feedback", json=feedback, headers=headers) as told:
            told.raise_for_status()
    return True


def _text(raw: bytes, stream: bool) -> str:
    if not stream:
        return str(json.loads(raw)["choices"][0]["message"]["content"])
    parts = []
    for line in raw.splitlines():
        if line.startswith(b"data: {"):
            choices = json.loads(line[6:]).get("choices") or [{}]
            parts.append((choices[0].get("delta") or {}).get("content") or "")
    return "".join(parts)


async def run(url: str, keys: dict[str, str], wanted: list[Prompt]) -> None:
    """Every prompt to every pool."""
    timeout = aiohttp.ClientTimeout(total=1200)
    began, done, failed = time.monotonic(), 0, 0
    queue = list(enumerate(wanted))
    queue.reverse()

    async def client(session: aiohttp.ClientSession) -> None:
        nonlocal done, failed
        while queue:
            index, prompt = queue.pop()
            for step in range(len(POOLS)):
                pool = POOLS[(index + step) % len(POOLS)]
                failed += not await send(session, url, keys[pool], prompt, stream=index % 4 != 0)
                done += 1
            if done % 60 < len(POOLS):
                print(f"{done} requests, {failed} failed, {time.monotonic() - began:.0f} s", flush=True)

    async with aiohttp.ClientSession(timeout=timeout) as session:
        await asyncio.gather(*(client(session) for _ in range(AT_ONCE)))


def main() -> None:
    """Servers, gateway, requests, report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=1002, help="all pools together")
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--folder", type=Path, default=Path("var/demo_matrix"))
    parser.add_argument("--nice", type=int, default=15)
    options = parser.parse_args()
    os.nice(options.nice)
    folder = options.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    files = obtain(cache_dir(os.environ), print)
    keys = {pool: f"matrix-{pool}-{secrets.token_hex(8)}" for pool in POOLS}
    with Fleet(demo_specs(files), log_dir=folder / "servers", start_s=300.0) as fleet:
        policy = folder / "policy.yaml"
        policy.write_text(POLICY.format(**{server.spec.name: server.url for server in fleet.servers}))
        environment = {f"MATRIX_{pool.upper()}": key for pool, key in keys.items()}
        gateway = GatewayProcess(GatewayOptions(policy, folder, "127.0.0.1:0", "127.0.0.1:0", 1, environment))
        gateway.launch()
        try:
            gateway.wait_ready()
            asyncio.run(run(gateway.url, keys, prompts(options.requests // len(POOLS), options.seed)))
        finally:
            gateway.stop()
    tally = Tally()
    gather(open_reader(url_of(None, folder / "state")), Filter(), tally)
    report = build(tally, time.time())  # noqa: TID251 - a program of its own
    (folder / "report.html").write_text(to_html(report))
    write(report, Format.JSON, folder / "report.json")
    write(report, Format.TEXT, None)


if __name__ == "__main__":
    main()
