"""The metrics are readable, and have the names, types and labels of a real vLLM 0.32."""

import asyncio
from pathlib import Path
from random import Random

from prometheus_client.parser import text_string_to_metric_families

from gateway.simulator.config import Config, ReportedPrecision
from gateway.simulator.engine import Engine
from gateway.simulator.exposition import metrics

REAL = Path(__file__).parents[2] / "data" / "runtimes" / "vllm-0.32-cpu.metrics.txt"


async def _text(config: Config) -> str:
    engine = Engine(config, asyncio.get_running_loop(), Random(1))
    engine.meters.finished["stop"] = 3
    engine.meters.prompt_tokens = 7
    return metrics(engine, 1_700_000_000.0).decode()


async def test_every_family_exists_in_vllm() -> None:
    """Each family of the simulator is one of vLLM's, with the same type and the same label names."""
    real = {family.name: family for family in text_string_to_metric_families(REAL.read_text())}
    checked = 0
    for family in text_string_to_metric_families(await _text(Config(model="m"))):
        assert family.name in real, family.name
        assert family.type == real[family.name].type, family.name
        if family.name != "vllm:cache_config_info":
            labels = {frozenset(sample.labels) - {"le"} for sample in family.samples}
            assert labels <= {frozenset(sample.labels) - {"le"} for sample in real[family.name].samples}, family.name
        checked += 1
    assert checked > 20


async def test_numbers_are_the_engines() -> None:
    """Samples show what was counted, and the cache's dtype is the reported one."""
    precision = ReportedPrecision(kv_cache_dtype="fp8_e4m3")
    text = await _text(Config(model="m", precision=precision, adapters=("a",)))
    samples = {
        (sample.name, sample.labels.get("finished_reason", "")): (sample.value, sample.labels)
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert samples["vllm:request_success_total", "stop"][0] == 3
    assert samples["vllm:prompt_tokens_total", ""][0] == 7
    assert samples["vllm:cache_config_info", ""][1]["cache_dtype"] == "fp8_e4m3"
    assert samples["vllm:lora_requests_info", ""][1]["max_lora"] == "1"
