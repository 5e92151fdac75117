"""What the simulated runtime says it is, read by the adapter that reads real vLLM."""

import json

from gateway.runtimes import ADAPTERS
from gateway.runtimes.adapter import Answer
from gateway.simulator.config import Config, ReportedPrecision
from gateway.simulator.identity import fingerprint, model_entry, models, server_info

FP8 = Config(model="m", adapters=("sql-lora",), precision=ReportedPrecision(quantization="fp8", kv_cache_dtype="fp8"))


def test_models_have_vllms_fields() -> None:
    """Base models tell their length, adapters their parent."""
    listed = json.loads(models(FP8, 1))["data"]
    assert [(entry["id"], entry["parent"], entry["max_model_len"]) for entry in listed] == [
        ("m", None, 131_072),
        ("sql-lora", "m", None),
    ]
    assert model_entry(FP8, "m", 1)["root"] == "/models/m"


def test_fingerprint_follows_the_precision() -> None:
    """Stable for the same settings, another one for another precision."""
    assert fingerprint(FP8) == fingerprint(FP8)
    assert fingerprint(FP8) != fingerprint(Config(model="m"))
    assert fingerprint(FP8).startswith("vllm-0.32.0-")


def test_vllm_adapter_attests_what_is_reported() -> None:
    """The gateway's vLLM adapter reads the simulator's answers as it reads vLLM's."""
    adapter = ADAPTERS["vllm"]
    bodies = {"/v1/models": models(FP8, 1), "/version": b'{"version":"0.32.0"}', "/health": b""}
    answers = {}
    for probe in adapter.probes:
        path = probe.path.partition("?")[0]
        answers[probe.path] = Answer(200, server_info(FP8) if path == "/server_info" else bodies.get(path, b""))
    text = repr(adapter.attest(answers))
    assert "fp8" in text
    assert "sql-lora" in text
    assert "131072" in text
