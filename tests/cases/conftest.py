"""One scripted upstream and one real gateway for the whole folder; every test gets a lane of its own.

A lane is a model with two pools of one endpoint each, so that breakers, pools and scripts of one test never meet
another's. Lanes come in kinds that differ in their timeouts: ``plain`` (patient), ``quick`` (tenths of a second) and
``slow`` (to begin).
"""

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.cases.client import Client, Reply
from tests.cases.gateway import Gateway, policy, pool, write_policy
from tests.cases.messages import OK
from tests.cases.upstream import Endpoint, Upstream

KINDS: dict[str, dict[str, Any]] = {
    "plain": {"timeouts": {"connect": "2s", "first_byte": "20s", "idle": "20s"}},
    "quick": {
        "timeouts": {"connect": "300ms", "first_byte": "600ms", "first_byte_per_1k_tokens": "0s", "idle": "500ms"}
    },
    "slow": {"timeouts": {"first_byte": "3s", "first_byte_per_1k_tokens": "0s", "idle": "500ms"}},
    "narrow": {"limits": {"inflight": 1}},
}
COUNTS = {"plain": 250, "quick": 11, "slow": 3, "narrow": 2}
MAX_BODY_BYTES = 24 * 1024 * 1024


@dataclass
class Lane:
    """A model of the policy with its two endpoints: ``first`` is preferred, ``second`` is where failover leads."""

    gateway: Gateway
    model: str
    first: Endpoint
    second: Endpoint

    def request(self, body: object, client: Client | None = None, **options: Any) -> Reply:
        """One request, answer read whole."""
        own = client or self.gateway.connect()
        reply = own.request(body, **options)
        reply.read()
        if client is None:
            own.close()
        return reply

    def outcome(self, count: int = 1, **wanted: Any) -> dict[str, Any]:
        """The ``count``-th outcome of this lane."""
        return self.gateway.outcome(count, model=self.model, **wanted)


@pytest.fixture(scope="session")
def upstream() -> Iterator[Upstream]:
    """All scripted endpoints."""
    running = Upstream()
    running.start()
    yield running
    running.stop()


@pytest.fixture(scope="session")
def lanes(upstream: Upstream) -> dict[str, list[tuple[str, Endpoint, Endpoint]]]:
    """Every lane of the session's policy, by kind, not yet taken."""
    made: dict[str, list[tuple[str, Endpoint, Endpoint]]] = defaultdict(list)
    for kind, count in COUNTS.items():
        for number in range(count):
            first, second = upstream.endpoint(), upstream.endpoint()
            first.default = second.default = OK
            made[kind].append((f"{kind}-{number}", first, second))
    return made


@pytest.fixture(scope="session")
def gateway(
    lanes: dict[str, list[tuple[str, Endpoint, Endpoint]]], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Gateway]:
    """The gateway that all lanes share."""
    models: dict[str, Any] = {}
    pools: dict[str, Any] = {}
    routes: list[dict[str, Any]] = []
    for kind, members in lanes.items():
        for model, first, second in members:
            models[model] = {"tokenizer": {"tiktoken": "cl100k_base"}, "baseline": f"{model}-a"}
            pools[f"{model}-a"] = pool(model, first.url, **KINDS[kind])
            pools[f"{model}-b"] = pool(model, second.url, **KINDS[kind])
            routes.append({"name": model, "when": {"model": model}, "pools": [f"{model}-a", f"{model}-b"]})
    first_model = lanes["plain"][0][0]
    models[first_model]["aliases"] = ["org/name:q4"]
    document = policy(
        models,
        pools,
        routes,
        tenants={"keyed": {"keys": ["sha256:" + _digest("secret-key")]}},
        classify={"buckets": {"by": ["length", "task"]}},
        gateway={"max_body": MAX_BODY_BYTES, "queue": {"wait": "300ms", "most": 4}},
    )
    folder = tmp_path_factory.mktemp("gateway")
    running = Gateway(folder, write_policy(folder / "policy.yaml", document)).start()
    yield running
    running.stop()


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


@pytest.fixture
def take(gateway: Gateway, lanes: dict[str, list[tuple[str, Endpoint, Endpoint]]]) -> Callable[[str], Lane]:
    """Take a fresh lane of a kind."""

    def taken(kind: str = "plain") -> Lane:
        assert lanes[kind], f"no {kind} lanes left: raise COUNTS"
        model, first, second = lanes[kind].pop()
        return Lane(gateway, model, first, second)

    return taken


@pytest.fixture
def lane(take: Callable[[str], Lane]) -> Lane:
    """A fresh patient lane."""
    return take("plain")


@pytest.fixture
def quick(take: Callable[[str], Lane]) -> Lane:
    """A fresh lane with short timeouts."""
    return take("quick")


@pytest.fixture
def start_gateway(tmp_path: Path) -> Iterator[Callable[..., Gateway]]:
    """Start further gateways with a policy of their own; they stop with the test."""
    running: list[Gateway] = []

    def start(document: dict[str, Any] | None = None, *, config: Path | None = None, **options: Any) -> Gateway:
        folder = tmp_path / f"gateway-{len(running)}"
        folder.mkdir()
        path = config or write_policy(folder / "policy.yaml", document or {})
        started = Gateway(folder, path, **options).start()
        running.append(started)
        return started

    yield start
    for gateway in running:
        gateway.stop()
