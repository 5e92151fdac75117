"""vLLM: health and load on real pages (attestation: ``test_vllm_info``)."""

from collections.abc import Callable

import pytest

from gateway.runtimes.adapter import Answer, Answers, HealthState
from gateway.runtimes.vllm import ADAPTER


def test_health(answers: Callable[..., Answers]) -> None:
    """200 is ready; 503 is a dead engine; no port is unhealthy."""
    assert ADAPTER.health(answers({"/health": b""})).state is HealthState.READY
    assert ADAPTER.health(answers({"/health": 503})).state is HealthState.UNHEALTHY
    assert ADAPTER.health(answers({"/health": Answer(0, error="refused")})).reason == "refused"


def test_a_sleeping_engine_is_not_offered(answers: Callable[..., Answers]) -> None:
    """/health is 200 while the weights are off the device; the metrics tell, and the engine counts as loading."""
    page = b'vllm:engine_sleep_state{engine="0",sleep_state="awake"} %d\n'
    asleep = answers({"/health": b"", "/metrics": page % 0})
    assert ADAPTER.health(asleep).state is HealthState.LOADING
    assert ADAPTER.health(answers({"/health": b"", "/metrics": page % 1})).ready


def test_load_of_a_real_page(answers: Callable[..., Answers], dump: Callable[[str], bytes]) -> None:
    """An idle server of 0.32 reports zeros, not unknowns."""
    load = ADAPTER.load(answers({"/metrics": dump("vllm-0.32-cpu.metrics.txt")}), 5.0)
    assert load is not None
    assert (load.running, load.waiting, load.kv_usage) == (0, 0, 0.0)
    assert (load.prefix_queries, load.prefix_hits, load.preemptions, load.at) == (0.0, 0.0, 0.0, 5.0)


def test_engines_add_up(answers: Callable[..., Answers]) -> None:
    """A data-parallel server's engines are summed, their KV usage averaged."""
    page = b"".join(
        b'vllm:num_requests_running{engine="%d"} %d\nvllm:num_requests_waiting{engine="%d"} 1\n'
        b'vllm:kv_cache_usage_perc{engine="%d"} %f\n' % (e, 3 + e, e, e, 0.2 + 0.2 * e)
        for e in range(2)
    )
    load = ADAPTER.load(answers({"/metrics": page}), 0.0)
    assert load is not None
    assert (load.running, load.waiting) == (7, 2)
    assert load.kv_usage == pytest.approx(0.3)


def test_renamed_metrics_are_found(answers: Callable[..., Answers]) -> None:
    """The names of older versions are read where the new ones are missing, and ignored beside them."""
    old = b"vllm:num_requests_running 1\nvllm:gpu_cache_usage_perc 0.7\nvllm:gpu_prefix_cache_queries_total 8\n"
    load = ADAPTER.load(answers({"/metrics": old}), 0.0)
    assert load is not None
    assert (load.kv_usage, load.prefix_queries) == (0.7, 8.0)
    both = ADAPTER.load(answers({"/metrics": old + b"vllm:kv_cache_usage_perc 0.1\n"}), 0.0)
    assert both is not None
    assert both.kv_usage == 0.1


def test_adapters_in_use_are_those_of_the_newest_line(answers: Callable[..., Answers]) -> None:
    """Old label sets stay on the page; the value is their time."""
    page = (
        b"vllm:num_requests_running 1\n"
        b'vllm:lora_requests_info{max_lora="2",running_lora_adapters="a,b",waiting_lora_adapters="c"} 1.7e9\n'
        b'vllm:lora_requests_info{max_lora="2",running_lora_adapters="b",waiting_lora_adapters=""} 1.8e9\n'
    )
    load = ADAPTER.load(answers({"/metrics": page}), 0.0)
    assert load is not None
    assert load.adapters == ("b",)


def test_a_foreign_page_gives_no_load(answers: Callable[..., Answers]) -> None:
    """Another runtime's metrics, or none, are unknown load."""
    assert ADAPTER.load(answers({"/metrics": b"sglang:num_running_reqs 4\n"}), 0.0) is None
    assert ADAPTER.load(answers({"/metrics": 404}), 0.0) is None
