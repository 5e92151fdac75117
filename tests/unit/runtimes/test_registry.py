"""Every runtime of the policy is there, and every adapter keeps the contract."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.runtimes import ADAPTERS
from gateway.runtimes.adapter import Adapter, Answer, Purpose
from gateway.runtimes.reading import no_load

SPELLINGS = {
    "vllm",
    "sglang",
    "tensorrt-llm",
    "llama.cpp",
    "lightllm",
    "onnxruntime-genai",
    "transformers",
    "lmdeploy",
    "openai",
}
every = pytest.mark.parametrize("adapter", ADAPTERS.values(), ids=ADAPTERS)


def test_the_policys_spellings() -> None:
    """The registry's keys are the policy's words, and each adapter knows its own."""
    assert set(ADAPTERS) == SPELLINGS
    assert all(name == adapter.runtime for name, adapter in ADAPTERS.items())


@every
def test_probes_are_usable(adapter: Adapter) -> None:
    """Paths are relative, no probe stands twice, and the one for health ends before its next turn."""
    probes = [(probe.path, probe.purpose) for probe in adapter.probes]
    assert len(probes) == len(set(probes))
    assert all(path.startswith("/") for path, _ in probes)
    (health,) = adapter.probes_for(Purpose.HEALTH)
    assert health.timeout_s < adapter.health_interval_s
    assert 200 in health.expected


@every
def test_load_is_promised_only_where_it_is_probed(adapter: Adapter) -> None:
    """A runtime that reports load has a probe for it, and one that does not has none."""
    probed = bool(adapter.probes_for(Purpose.METRICS))
    assert probed is (adapter.load is not no_load)


@every
def test_unanswered_probes_are_survived(adapter: Adapter) -> None:
    """No answers at all: unhealthy, no load, nothing attested, no exception."""
    for answers in ({}, {probe.path: Answer(0, error="refused") for probe in adapter.probes}):
        assert not adapter.health(answers).ready
        assert adapter.load(answers, 0.0) is None
        assert adapter.attest(answers).unattested == ("weights", "activations", "kv_cache")


@every
@given(data=st.data())
def test_any_answers_are_survived(adapter: Adapter, data: st.DataObject) -> None:
    """Whatever bytes and statuses come back, no reader raises and the numbers stay in range."""
    odd = st.sampled_from(
        [
            b"[]",
            b"{}",
            b'{"data":[{"id":"m","meta":[],"aliases":5}]}',
            b'{"vllm_config":{"model_config":{"quantization":5,"dtype":7},"cache_config":[]}}',
            b'{"vllm_config":{"model_config":{"quantization":"online","quantization_config":{"linear":{"weight":3}}}}}',
            b'{"current_load":[null],"quantization":"","dtype":[]}',
            b'vllm:num_requests_running{a="b"} -3\nvllm:kv_cache_usage_perc 7\n',
            b"sglang:num_running_reqs NaN\nllamacpp:requests_processing 1e400\n",
            b'[{"is_processing":true,"n_ctx":0,"n_prompt_tokens":3}]',
        ]
    )
    status = st.sampled_from([0, 200, 200, 200, 404, 500, 503])
    answers = {
        probe.path: Answer(data.draw(status), data.draw(st.binary(max_size=60) | odd)) for probe in adapter.probes
    }
    adapter.health(answers)
    load = adapter.load(answers, 1.0)
    if load is not None:
        assert load.running is None or load.running >= 0
        assert load.kv_usage is None or 0.0 <= load.kv_usage <= 1.0
    assert adapter.attest(answers).runtime == adapter.runtime
