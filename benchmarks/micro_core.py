"""What reading, classifying, editing and watching cost per request and per streamed read, in microseconds of one core.

    python -m benchmarks.micro_core [--seconds 0.02]

Takes seconds. Every figure is the median of repeated loops: the medians move with the machine's load, their proportions
do not. The budget of a whole request in all processes is about 117 µs.
"""

import argparse
import json
import statistics
import time
import timeit
from collections.abc import Callable, Iterator, Sequence
from itertools import chain

from gateway.core.classify import classify
from gateway.core.edit import rewrite
from gateway.core.openai import read
from gateway.core.sse import Scanner, UsageStripper
from gateway.core.tokens import Correction, plan
from gateway.model.enums import Api
from gateway.model.facts import Principal
from gateway.model.table import Classifier, Settings, Table, TaskRule, Tenant, marks_of
from gateway.policy.patterns import pattern_set
from gateway.policy.tokenizer_files import load_tokenizer

_REPEATS = 15
_SENTENCE = "Please explain how the quarterly revenue table should be read: the second column holds figures in EUR, "
_EVENT = (
    b'data: {"id":"chatcmpl-0123456789abcdef0123456789abcdef","object":"chat.completion.chunk","created":1760000000,'
    b'"model":"qwen2.5-32b","choices":[{"index":0,"delta":{"content":" token"},"logprobs":null,"finish_reason":null,'
    b'"token_ids":null}]}\n\n'
)
_RESPONSE_EVENT = (
    b"event: response.output_text.delta\n"
    b'data: {"type":"response.output_text.delta","item_id":"msg_1","output_index":0,"content_index":0,'
    b'"delta":"hello","sequence_number":12,"logprobs":[]}\n\n'
)
_ENDING = (
    _EVENT.replace(b'null,"token_ids"', b'"stop","token_ids"')
    + b'data: {"id":"x","object":"chat.completion.chunk","choices":[],"usage":{"prompt_tokens":10,'
    b'"completion_tokens":20,"total_tokens":30,"prompt_tokens_details":{"cached_tokens":5}}}\n\ndata: [DONE]\n\n'
)


Work = Callable[[], object]


def median_us(work: Work, seconds: float) -> float:
    """Median microseconds of one call, over loops of so many seconds."""
    timer = timeit.Timer(work, timer=time.process_time)
    loops = max(1, int(seconds / max(1e-7, timer.timeit(20) / 20)))
    return statistics.median(timer.repeat(_REPEATS, loops)) / loops * 1e6


def chat_body(text_chars: int, **fields: object) -> dict[str, object]:
    """A chat request with about that much user text."""
    text = (_SENTENCE * (text_chars // len(_SENTENCE) + 1))[:text_chars]
    return {
        "messages": [
            {"role": "system", "content": "You are a helpful assistant. Answer briefly.\nSay so when you do not know."},
            {"role": "user", "content": text},
        ],
        "model": "gpt-4o",
        "temperature": 0.2,
        "max_tokens": 256,
        "stream": True,
        **fields,
    }


def table() -> Table:
    """One model with an alias, and a classifier of ordinary size."""
    patterns = ["```", r"\bdef \w+\(", r"(?i)\btranslate\b", r"(?i)\bsummari[sz]e\b"]
    classifier = Classifier(
        lengths=(("short", 2048), ("medium", 8192), ("long", 32768), ("huge", 131072)),
        over="over",
        tasks=(
            TaskRule("code", text=(0, 1), marks=marks_of(["code_fence"])),
            TaskRule("translate", text=(2,)),
            TaskRule("summary", text=(3,)),
            TaskRule("rag", system=(0,), marks=marks_of(["citations"])),
        ),
        default_task="chat",
        hint_tasks=frozenset({"chat", "code"}),
        user_patterns=pattern_set(patterns),
        system_patterns=pattern_set([r"(?i)answer .*only from the (context|documents)"]),
        privilege=lambda tool, tenant: "high" if tool.startswith("payment_") else "low",
        bucket_by=("model", "length", "task", "privilege", "adapter", "tier"),
        bucket_most=200,
    )
    acme = Tenant("acme", tier="gold")
    return Table(
        generation=1,
        digest="",
        models={},
        pools={},
        tenants={"acme": acme},
        keys={},
        anonymous=None,
        names={"gpt-4o": ("qwen2.5-32b", None), "qwen2.5-32b": ("qwen2.5-32b", None)},
        classifier=classifier,
        constraints=(),
        routes=(),
        settings=Settings(),
    )


def bodies() -> dict[str, bytes]:
    """Chat requests as clients write them."""
    function = {"name": "look_up", "description": _SENTENCE, "parameters": {"type": "object", "properties": {}}}
    tools = [{"type": "function", "function": {**function, "name": f"look_up_{index}"}} for index in range(8)]
    return {
        "compact": json.dumps(chat_body(980), separators=(",", ":"), ensure_ascii=False).encode(),
        "spaced": json.dumps(chat_body(980)).encode(),
        "escaped": json.dumps(chat_body(980, user="é")).encode(),
        "tools": json.dumps(chat_body(980, tools=tools), separators=(",", ":")).encode(),
        "long": json.dumps(chat_body(100_000), separators=(",", ":")).encode(),
    }


def requests() -> Iterator[tuple[str, Work]]:
    """What is done to a request."""
    policy, caller, written = table(), Principal("acme", tier="gold"), bodies()
    for name, body in written.items():
        yield f"read, {name} body of {len(body)} bytes", _read(body)
    compact = written["compact"]
    reading = read(Api.CHAT, compact)
    yield "classify", lambda: classify(policy, reading.facts, reading.texts, caller, 250)
    yield "read + classify, compact", lambda: _both(policy, caller, compact)
    tokenizer, correction = load_tokenizer(("tiktoken", "cl100k_base")), Correction()
    bounds = (2048, 8192, 32768, 131072)
    yield "plan, decided by bytes", lambda: plan(reading.facts, reading.texts, bounds, tokenizer, correction)
    middle = read(Api.CHAT, json.dumps(chat_body(12_000)).encode())
    yield "plan, sampled (12 kB)", lambda: plan(middle.facts, middle.texts, bounds, tokenizer, correction)
    yield "rewrite, model and usage", lambda: rewrite(compact, model="qwen", ask_usage=True)


def streams() -> Iterator[tuple[str, Work]]:
    """What is done to a stream."""
    scanner, named, stripper = Scanner(), Scanner(), UsageStripper()
    scanner.feed(_EVENT)
    named.feed(_RESPONSE_EVENT)
    yield f"scan a read of one event ({len(_EVENT)} bytes)", lambda: scanner.feed(_EVENT)
    yield "scan a read of four events", lambda: scanner.feed(_EVENT * 4)
    yield "scan a read of one named event", lambda: named.feed(_RESPONSE_EVENT)
    yield "strip a read of one event", lambda: stripper.feed(_EVENT)
    yield "a stream's start: scanner and first event", lambda: Scanner().feed(_EVENT)
    for _ in range(16):
        scanner.feed(_EVENT)
    scanner.feed(_ENDING)
    yield "a stream's end: info", scanner.info
    yield "a stream's end: strip usage", lambda: stripper.feed(_ENDING)


def _read(body: bytes) -> Work:
    return lambda: read(Api.CHAT, body)


def _both(policy: Table, caller: Principal, body: bytes) -> object:
    reading = read(Api.CHAT, body)
    return classify(policy, reading.facts, reading.texts, caller, 250)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=0.02, help=f"of each of {_REPEATS} loops of each line")
    seconds = parser.parse_args(arguments).seconds
    print(f"{'µs':>68}")
    for name, work in chain(requests(), streams()):
        print(f"{name:<58}{median_us(work, seconds):>10.2f}")


if __name__ == "__main__":
    main()
