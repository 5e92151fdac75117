"""``/metrics`` in the Prometheus text format, with the names and labels of vLLM 0.32.

Owns that text. Pure. ``routes`` calls ``metrics``.
"""

from collections.abc import Iterator, Mapping

from gateway.simulator.config import Config
from gateway.simulator.engine import Engine
from gateway.simulator.identity import cache_config
from gateway.simulator.meters import Histogram

_REASONS = ("stop", "length", "abort", "error", "repetition")


def metrics(engine: Engine, wall_s: float) -> bytes:
    """The whole exposition at this moment. ``wall_s`` is the wall clock, for the LoRA series' value."""
    return ("\n".join(_lines(engine, wall_s)) + "\n").encode()


def _labels(values: Mapping[str, str]) -> str:
    return ",".join(f'{name}="{value}"' for name, value in values.items())


def _series(name: str, kind: str, help_text: str, samples: Iterator[tuple[str, float]]) -> Iterator[str]:
    yield f"# HELP vllm:{name} {help_text}"
    yield f"# TYPE vllm:{name} {kind}"
    for labels, value in samples:
        yield f"vllm:{name}{{{labels}}} {float(value)}"


def _lines(engine: Engine, wall_s: float) -> Iterator[str]:
    config, meters = engine.config, engine.meters
    base = _labels({"engine": "0", "model_name": config.model})

    def one(name: str, kind: str, help_text: str, value: float) -> Iterator[str]:
        return _series(name, kind, help_text, iter([(base, value)]))

    yield from one("num_requests_running", "gauge", "Requests in model execution.", len(engine.running))
    yield from one("num_requests_waiting", "gauge", "Requests waiting.", len(engine.waiting))
    by_reason = [(f'{base},reason="capacity"', len(engine.waiting)), (f'{base},reason="deferred"', 0)]
    yield from _series("num_requests_waiting_by_reason", "gauge", "Requests waiting, by reason.", iter(by_reason))
    awake = [(f'{base},sleep_state="awake"', 1), (f'{base},sleep_state="weights_offloaded"', 0)]
    yield from _series("engine_sleep_state", "gauge", "Whether the engine sleeps.", iter(awake))
    yield from one("kv_cache_usage_perc", "gauge", "KV cache usage, 1 = 100 percent.", engine.kv_usage)
    yield from one("prefix_cache_queries_total", "counter", "Prefix cache queries, in tokens.", meters.prefix_queries)
    yield from one("prefix_cache_hits_total", "counter", "Prefix cache hits, in tokens.", meters.prefix_hits)
    yield from one("num_preemptions_total", "counter", "Preemptions.", 0)
    yield from one("prompt_tokens_total", "counter", "Prefill tokens processed.", meters.prompt_tokens)
    yield from one("prompt_tokens_cached_total", "counter", "Prompt tokens from cache.", meters.cached_tokens)
    sources = [
        (f'{base},source="local_compute"', meters.prompt_tokens - meters.cached_tokens),
        (f'{base},source="local_cache_hit"', meters.cached_tokens),
    ]
    yield from _series("prompt_tokens_by_source_total", "counter", "Prompt tokens, by source.", iter(sources))
    yield from one("generation_tokens_total", "counter", "Generation tokens processed.", meters.generation_tokens)
    # vLLM 0.32 leaves finished_reason="abort" at zero when clients go away; the simulator counts them under /sim/state.
    finished = [
        (f'engine="0",finished_reason="{reason}",model_name="{config.model}"', meters.finished[reason])
        for reason in _REASONS
    ]
    yield from _series("request_success_total", "counter", "Finished requests.", iter(finished))
    rejected = [(f'model_name="{config.model}",reason="max_num_queued_reqs"', meters.rejections)]
    yield from _series("admission_rejections_total", "counter", "Requests refused at the door.", iter(rejected))
    for name, histogram, help_text in (
        ("request_prompt_tokens", meters.request_prompt_tokens, "Prefill tokens per request."),
        ("request_generation_tokens", meters.request_generation_tokens, "Generation tokens per request."),
        ("time_to_first_token_seconds", meters.ttft, "Time to first token."),
        ("inter_token_latency_seconds", meters.inter_token, "Time between tokens."),
        ("request_time_per_output_token_seconds", meters.per_output_token, "Mean time per output token."),
        ("e2e_request_latency_seconds", meters.end_to_end, "End-to-end latency."),
        ("request_queue_time_seconds", meters.queue_time, "Time in the queue."),
        ("request_inference_time_seconds", meters.inference_time, "Time in the engine."),
        ("request_prefill_time_seconds", meters.prefill_time, "Time in prefill."),
        ("request_decode_time_seconds", meters.decode_time, "Time in decode."),
    ):
        yield from _histogram(name, histogram, help_text, base)
    cache = _labels(cache_config(config))
    yield from _series("cache_config_info", "gauge", "Configuration of the cache.", iter([(cache, 1)]))
    yield from _adapters(config, wall_s)


def _histogram(name: str, histogram: Histogram, help_text: str, base: str) -> Iterator[str]:
    yield f"# HELP vllm:{name} {help_text}"
    yield f"# TYPE vllm:{name} histogram"
    count = 0
    for bound, number in zip((*map(str, map(float, histogram.bounds)), "+Inf"), histogram.counts, strict=True):
        count += number
        yield f'vllm:{name}_bucket{{{base},le="{bound}"}} {float(count)}'
    yield f"vllm:{name}_count{{{base}}} {float(count)}"
    yield f"vllm:{name}_sum{{{base}}} {histogram.total}"


def _adapters(config: Config, wall_s: float) -> Iterator[str]:
    """``lora_requests_info``: the value is a time stamp; it exists only where adapters are enabled."""
    if config.adapters:
        labels = _labels(
            {"max_lora": str(len(config.adapters)), "running_lora_adapters": "", "waiting_lora_adapters": ""}
        )
        yield from _series("lora_requests_info", "gauge", "Running stats on LoRA requests.", iter([(labels, wall_s)]))
