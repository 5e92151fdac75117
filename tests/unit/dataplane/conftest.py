"""Upstreams and planes that are stopped whatever the test did."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.unit.dataplane.plane import Plane, Upstream, policy_of

Make = Callable[..., Awaitable[Plane]]


@pytest.fixture
async def first() -> AsyncIterator[Upstream]:
    upstream = await Upstream().start()
    yield upstream
    upstream.server.close()


@pytest.fixture
async def second() -> AsyncIterator[Upstream]:
    upstream = await Upstream().start()
    yield upstream
    upstream.server.close()


@pytest.fixture
async def make(tmp_path: Path) -> AsyncIterator[Make]:
    """Start a plane for a policy of pools."""
    planes: list[Plane] = []

    async def start(pools: dict[str, list[str]], **more: Any) -> Plane:
        folder = tmp_path / str(len(planes))
        folder.mkdir()
        plane = await Plane(folder, policy_of(pools, **more)).start()
        planes.append(plane)
        return plane

    yield start
    for plane in planes:
        await plane.stop()
        assert plane.errors == []
