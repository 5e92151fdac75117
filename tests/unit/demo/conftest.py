"""Real weights and real servers, shared by the tests that need them (marker ``runtime``)."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.demo.fleet import Fleet, RunningServer, ServerSpec, demo_specs
from gateway.demo.weights import Variant, cache_dir, obtain


@pytest.fixture(scope="session")
def weights() -> dict[Variant, Path]:
    """The demo's weights: from the cache, or downloaded and made."""
    return obtain(cache_dir(os.environ))


@pytest.fixture(scope="session")
def servers(weights: dict[Variant, Path]) -> Iterator[dict[str, RunningServer]]:
    """The demo's three servers, and a fourth on the BF16 weights with a 4-bit KV cache."""
    coarse = ServerSpec("bf16-kv4", weights[Variant.BF16], "smollm2-135m", kv="q4_0", slots=1)
    with Fleet((*demo_specs(weights), coarse)) as fleet:
        yield {server.spec.name: server for server in fleet.servers}
