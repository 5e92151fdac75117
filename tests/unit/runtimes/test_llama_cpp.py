"""llama.cpp: real pages of a running server, and what they must not be taken for."""

from collections.abc import Callable

import orjson
import pytest

from gateway.model.precision import Precision
from gateway.runtimes.adapter import Answer, Answers, HealthState, Purpose
from gateway.runtimes.attestation import Confidence
from gateway.runtimes.compare import Verdict, compare, judge
from gateway.runtimes.llama_cpp import ADAPTER

LOADING = b'{"error":{"message":"Loading model","type":"unavailable_error","code":503}}'


@pytest.fixture
def pages(dump: Callable[[str], bytes]) -> dict[str, object]:
    """The recorded pages: Q4_1, two slots of 1,024 tokens, one of them busy."""
    return {
        "/health": {"status": "ok"},
        "/metrics": dump("llama_cpp-b11549.metrics.txt"),
        "/slots": dump("llama_cpp-b11549.slots.json"),
        "/v1/models": dump("llama_cpp-b11549.models.json"),
        "/props": dump("llama_cpp-b11549.props.json"),
        "/lora-adapters": [],
    }


def test_loading_is_told_from_broken(answers: Callable[..., Answers]) -> None:
    """503 with "Loading model" is a start; another 503 is a fault; 200 is ready."""
    assert ADAPTER.health(answers({"/health": Answer(503, LOADING)})).state is HealthState.LOADING
    assert ADAPTER.health(answers({"/health": 503})).state is HealthState.UNHEALTHY
    assert ADAPTER.health(answers({"/health": {"status": "ok"}})).state is HealthState.READY
    assert ADAPTER.health(answers({})).state is HealthState.UNHEALTHY


def test_load_of_a_busy_server(answers: Callable[..., Answers], pages: dict[str, object]) -> None:
    """One of two slots is busy with 79 of 2,048 tokens of context; nothing waits."""
    load = ADAPTER.load(answers(pages), 7.0)
    assert load is not None
    assert (load.running, load.waiting, load.slots, load.at) == (1, 0, 2, 7.0)
    assert load.kv_usage == pytest.approx(79 / 2048)
    assert (load.prefix_queries, load.prefix_hits) == (34.0, 0.0)


def test_load_without_metrics_comes_from_the_slots(answers: Callable[..., Answers], pages: dict[str, object]) -> None:
    """A server started without --metrics still tells its busy slots."""
    load = ADAPTER.load(answers({**pages, "/metrics": 501}), 0.0)
    assert load is not None
    assert (load.running, load.waiting) == (1, None)


def test_a_busy_slot_that_hides_its_tokens_gives_no_share(answers: Callable[..., Answers]) -> None:
    """An older server's busy slot tells no tokens: the share is unknown, not zero."""
    slots = [{"id": 0, "n_ctx": 1024, "is_processing": True}]
    load = ADAPTER.load(answers({"/slots": slots}), 0.0)
    assert load is not None
    assert (load.running, load.kv_usage) == (1, None)


def test_no_pages_no_load(answers: Callable[..., Answers]) -> None:
    """With neither metrics nor slots the load is unknown, not zero."""
    assert ADAPTER.load(answers({"/metrics": 501, "/slots": 501}), 0.0) is None


def test_attestation(answers: Callable[..., Answers], pages: dict[str, object]) -> None:
    """Label, honest bits, context per slot, build; the KV cache and activations stay unattested."""
    found = ADAPTER.attest(answers(pages))
    assert (found.weights.value, found.weights.confidence) == ("q4_1", Confidence.REPORTED)
    assert found.unattested == ("activations", "kv_cache")
    assert found.context_length == 1024
    assert found.weight_bits == pytest.approx(5.744, abs=0.001)
    assert [model.names for model in found.models] == [("smollm2", "smollm2")]
    assert found.device["file"] == "SmolLM2-135M-Instruct.Q4_1.gguf"
    assert found.device["tools_in_template"] == "false"
    assert found.adapters_listed


def test_a_declared_kv_cache_cannot_be_confirmed(answers: Callable[..., Answers], pages: dict[str, object]) -> None:
    """The right weights with any KV cache are partly attested: served, and visible as such."""
    found = ADAPTER.attest(answers(pages))
    mismatches = compare(Precision(weights="int4", activations="int8", kv_cache="q8_0"), found)
    assert mismatches == ()
    assert judge(found, mismatches) is Verdict.PARTIAL


def test_a_wrong_file_is_a_mismatch(answers: Callable[..., Answers], pages: dict[str, object]) -> None:
    """A pool declared bf16 whose server holds Q4_1 is caught, by label and by size."""
    found = ADAPTER.attest(answers(pages))
    mismatches = compare(Precision(), found)
    assert {(m.field, m.confidence) for m in mismatches} == {("weights", Confidence.REPORTED)}
    assert judge(found, mismatches) is Verdict.MISMATCH


def test_a_label_that_lies_is_caught_by_the_size(answers: Callable[..., Answers], pages: dict[str, object]) -> None:
    """A file labelled Q8_0 that holds 5.7 bits per weight is noted, and contradicts a declared q8_0."""
    models = orjson.loads(pages["/v1/models"])  # type: ignore[arg-type]
    models["data"][0]["meta"]["ftype"] = "Q8_0"
    found = ADAPTER.attest(answers({**pages, "/v1/models": models}))
    assert "5.7 bits" in found.notes[0]
    assert [m.observed for m in compare(Precision(weights="q8_0", activations="int8"), found)] == ["5.7 bits"]


def test_a_label_far_below_the_size_is_noted(answers: Callable[..., Answers], pages: dict[str, object]) -> None:
    """Q2_K of a model whose rows do not divide by 256 keeps most tensors wider: said, not punished."""
    models = orjson.loads(pages["/v1/models"])  # type: ignore[arg-type]
    models["data"][0]["meta"]["ftype"] = "Q2_K - Medium"
    found = ADAPTER.attest(answers({**pages, "/v1/models": models}))
    assert "kept wider" in found.notes[0]
    assert compare(Precision(weights="int2", activations="int8"), found) == ()


def test_adapters_have_ids(answers: Callable[..., Answers], pages: dict[str, object]) -> None:
    """A loaded LoRA is named by its file and carries the id that requests must use."""
    found = ADAPTER.attest(answers({**pages, "/lora-adapters": [{"id": 0, "path": "/a/sql.gguf", "scale": 0.0}, 3]}))
    assert [(a.name, a.id, a.parent) for a in found.adapters] == [("sql", 0, "smollm2")]


def test_silence_is_unattested(answers: Callable[..., Answers]) -> None:
    """A server that answers nothing attests nothing and contradicts nothing."""
    found = ADAPTER.attest(answers({"/props": 500, "/v1/models": b"oops", "/lora-adapters": 404}))
    assert judge(found, compare(Precision(weights="q4_0"), found)) is Verdict.UNATTESTED
    assert not found.adapters_listed


def test_metrics_are_read_gently() -> None:
    """Each read wakes the server's queue and resets its rate gauges: not more than every two seconds."""
    assert ADAPTER.load_interval_s >= 2.0
    assert {probe.path for probe in ADAPTER.probes_for(Purpose.METRICS)} == {"/metrics", "/slots"}
