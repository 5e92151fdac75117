"""Endpoints of a generation: state survives reloads by address, removal closes, reports steer, quarantine stays."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.dataplane.board import Board
from gateway.dataplane.fleet import Fleet, Generation
from gateway.model.enums import EndpointState
from gateway.model.messages import EndpointReport
from gateway.policy.compile import compile_table
from gateway.policy.load import load
from tests.unit.dataplane.plane import policy_of


@pytest.fixture
def board(tmp_path: Path) -> Iterator[Board]:
    board = Board(tmp_path / "board", 0, 1)
    yield board
    board.close()


class Setting:
    def __init__(self, folder: Path, board: Board) -> None:
        self.folder = folder
        self.now = 100.0
        self.fleet = Fleet(asyncio.get_event_loop(), board, lambda: self.now)

    def adopt(self, pools: dict[str, list[str]], *, prepare: bool = True, **more: object) -> Generation:
        import yaml

        path = self.folder / "p.yaml"
        path.write_text(yaml.safe_dump(policy_of(pools, **more)))
        slots = {f"endpoint:{pool}/{i}": i + 1 for pool, urls in pools.items() for i in range(len(urls))}
        table = compile_table(load(path).document, 1, slots, lambda _: "")
        if prepare:
            self.fleet.prepare(table)
        return self.fleet.adopt(table)


@pytest.fixture
async def setting(tmp_path: Path, board: Board) -> Setting:
    return Setting(tmp_path, board)


async def test_state_survives_a_reload_by_address(setting: Setting) -> None:
    """The same name and address keep breaker and connections; another address starts anew, and the old one closes."""
    before = setting.adopt({"a": ["http://h1:1", "http://h2:1"]}).pools["a"].endpoints
    after = setting.adopt({"a": ["http://h1:1", "http://h3:1"]}).pools["a"].endpoints
    assert after[0] is before[0]
    assert after[1] is not before[1]
    assert before[1].connections.closed
    assert not before[0].connections.closed


async def test_reports_decide_what_is_offered(setting: Setting) -> None:
    """Loading and unhealthy endpoints are passed over, but may be tried if nothing else is left; quarantined never."""
    pool = setting.adopt({"a": ["http://h1:1", "http://h2:1", "http://h3:1"]}).pools["a"]
    reports = [("a/0", "loading"), ("a/2", "quarantined")]
    setting.fleet.report([EndpointReport(name, state, -1, -1, -1, 0) for name, state in reports], 100.0)
    assert pool.healthy(100.0, ()) == [1]
    assert pool.possible(()) == [0, 1]
    for _ in range(5):
        pool.endpoints[1].breaker.failure(100.0)
    assert pool.healthy(100.0, ()) == []
    assert pool.endpoints[1].state(100.0) is EndpointState.EJECTED
    assert pool.healthy(131.0, ()) == [1]
    setting.fleet.report([EndpointReport("gone/7", "ready", -1, -1, -1, 0)], 100.0)


async def test_the_less_loaded_endpoint_is_picked(setting: Setting, board: Board) -> None:
    """In-flight over all workers and the runtime's own queue both count."""
    pool = setting.adopt({"a": ["http://h1:1", "http://h2:1"]}).pools["a"]
    for _ in range(9):
        board.enter(pool.endpoints[0].row)
    assert {pool.pick([0, 1], b"", 100.0, lambda: 0.3).endpoint.name for _ in range(5)} == {"a/1"}
    setting.fleet.report([EndpointReport("a/1", "ready", 30.0, 5.0, 0.5, 0.0)], 100.0)
    assert pool.pick([0, 1], b"", 100.0, lambda: 0.3).endpoint.name == "a/0"


async def test_the_pools_limit_counts_all_its_endpoints(setting: Setting, board: Board) -> None:
    """inflight is the pool's, over endpoints and workers."""
    pool = setting.adopt({"a": ["http://h1:1", "http://h2:1"]}, pool={"a": {"limits": {"inflight": 3}}}).pools["a"]
    board.enter(1)
    board.enter(2)
    assert not pool.full()
    board.enter(2)
    assert pool.full()


async def test_host_fields_name_the_port_unless_it_is_the_default(setting: Setting) -> None:
    """As RFC 9110 §7.2 wants it, IPv6 in brackets."""
    pool = setting.adopt({"a": ["http://h1:8000", "http://h2", "https://h3", "http://[::1]:5/base"]}).pools["a"]
    assert [view.head for view in pool.endpoints] == [
        b"Host: h1:8000\r\n",
        b"Host: h2\r\n",
        b"Host: h3\r\n",
        b"Host: [::1]:5\r\n",
    ]


async def test_a_table_that_was_not_the_last_one_prepared_still_balances(setting: Setting) -> None:
    """A later generation may be prepared and then refused elsewhere; the one that is applied keeps its rings."""
    setting.adopt({"b": ["http://h3:1", "http://h4:1"]})
    setting.fleet._rings = {}
    pool = setting.adopt({"a": ["http://h1:1", "http://h2:1"]}, prepare=False).pools["a"]
    picks = {pool.pick([0, 1], b"", 100.0, lambda at=at: at).endpoint.name for at in (0.1, 0.9)}
    assert picks == {"a/0", "a/1"}


async def test_length_classes_of_a_longer_list_are_the_longest(setting: Setting) -> None:
    """What a conversation reached under another policy has a meaning under this one."""
    generation = setting.adopt({"a": ["http://h1:1"]})
    assert generation.length_at(0) == generation.lengths[0]
    assert generation.length_at(200) == generation.lengths[-1]
