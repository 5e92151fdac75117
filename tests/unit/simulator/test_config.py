"""Settings: read, checked, patched."""

import msgspec
import pytest

from gateway.simulator.config import Config, Slowdown, patched, read_config

FILE = b"""
model: m
aliases: [gpt-x]
adapters: [sql-lora]
precision: {quantization: fp8, kv_cache_dtype: fp8}
capacity: {running: 4, queue: 2}
ttft: {median: 0.05, sigma: 0.4}
tpot: {quantiles: {"0.5": 0.02, "0.99": 0.1}}
slowdown: {at_full: 1.5, power: 2}
faults:
  - {kind: broken_json, probability: 0.02, when: {min_prompt_tokens: 8000, tasks: [json]}}
"""


def test_a_whole_file() -> None:
    """Every part of a file ends in its field."""
    config = read_config(FILE)
    assert config.names == ("m", "gpt-x", "sql-lora")
    assert (config.precision.quantization, config.capacity.queue, config.ttft.sigma) == ("fp8", 2, 0.4)
    assert config.faults[0].when.tasks == ("json",)
    assert config.tpot.sample(0.5) == 0.02


@pytest.mark.parametrize("text", [b"", b"# nothing\n", b"{}"])
def test_nothing_gives_the_defaults(text: bytes) -> None:
    """An empty file is a simulator with the defaults."""
    assert read_config(text) == Config()


@pytest.mark.parametrize(
    "text",
    [
        b"modle: m",
        b"capacity: {running: 0}",
        b"tool_call_rate: 2",
        b"ttft: {}",
        b"faults: [{kind: x}]",
        b"bytes_per_token: 0",
    ],
)
def test_mistakes_are_named(text: bytes) -> None:
    """A wrong key or value is refused, with its place."""
    with pytest.raises(msgspec.ValidationError, match=r"\$|unknown field|least|between"):
        read_config(text)


def test_patch_merges_objects_and_replaces_distributions() -> None:
    """One number can be set alone; a distribution is replaced whole, because its shapes exclude each other."""
    config = read_config(FILE)
    changed = patched(config, {"capacity": {"running": 9}, "ttft": {"constant": 1.0}, "healthy": False})
    assert (changed.capacity.running, changed.capacity.queue) == (9, 2)
    assert (changed.ttft.constant, changed.ttft.median) == (1.0, None)
    assert changed.healthy is False
    assert changed.faults == config.faults
    with pytest.raises(msgspec.ValidationError):
        patched(config, {"capacity": {"runing": 9}})


def test_slowdown_grows_with_load() -> None:
    """Nothing at an idle engine, 1 + at_full at a full one, by the power between."""
    slow = Slowdown(at_full=2.0, power=2.0)
    assert [slow.factor(share) for share in (0.0, 0.5, 1.0)] == [1.0, 1.5, 3.0]
    assert Slowdown().factor(1.0) == 1.0
