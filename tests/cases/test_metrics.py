"""Group 11 of the cases: metrics stay bounded, whole and monotonic."""

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cases.client import Client, call
from tests.cases.conftest import Lane
from tests.cases.gateway import Gateway, simple_policy, wait_for
from tests.cases.messages import OK, r0
from tests.cases.upstream import Endpoint, Upstream


@pytest.fixture
def endpoint(upstream: Upstream) -> Endpoint:
    """A healthy endpoint."""
    made = upstream.endpoint()
    made.default = OK
    return made


DRAWN = ("quantgate_checks", "quantgate_answer", "quantgate_records", "quantgate_database")


def test_b94_names_of_clients_are_no_labels(lane: Lane) -> None:
    """Model and user strings that clients make up add no series, and none of them appears in a scrape."""
    gateway = lane.gateway
    with gateway.connect() as client:

        def burst(start: int) -> None:
            for number in range(start, start + 300):
                body = r0(f"x-made-up-{number}", user=f"u-made-up-{number}")
                assert client.request(body).error["code"] == "model_not_found"
            for number in range(start, start + 50):
                body = r0(lane.model, user=f"u-made-up-{number}", metadata={"k": f"v-made-up-{number}"})
                assert client.request(body).json["choices"]

        before = gateway.total("quantgate_requests_total")
        burst(0)
        wait_for(lambda: gateway.total("quantgate_requests_total") >= before + 350, "the first burst is counted")
        series = set(gateway.metrics())
        burst(1000)
        wait_for(lambda: gateway.total("quantgate_requests_total") >= before + 700, "the second burst is counted")
    after = set(gateway.metrics())
    assert {key for key in after - series if "made-up" in str(key)} == set()
    assert "made-up" not in str(after)
    # Checks are drawn by chance, so a lane's first checked answer may fall into either burst; and a worker's own gauges
    # come once a second, whatever clients do.
    grown = [(name, dict(labels)) for name, labels in after - series if not name.startswith(DRAWN)]
    assert [(name, labels) for name, labels in grown if not labels.keys() & {"worker", "process"}] == []
    assert gateway.total("quantgate_requests_total", result="not_found") >= 600


def _send(gateway: Gateway, times: int) -> None:
    """Requests on connections of their own, so that they spread over the workers."""
    for _ in range(times):
        assert call(gateway.port, r0("m")).status == 200


def _counted(gateway: Gateway) -> float:
    return gateway.total("quantgate_requests_total")


def test_b96_workers_come_and_go(endpoint: Endpoint, start_gateway: Callable[..., Gateway]) -> None:
    """Counters survive the death of workers and never fall; a dead worker's gauges go; nothing piles up on disk."""
    gateway = start_gateway(simple_policy(endpoint.url), workers=2)
    _send(gateway, 40)
    wait_for(lambda: _counted(gateway) == 40, "all requests are counted")
    files = _files(gateway.folder / "state")
    seen = 40.0
    for turn in range(3):
        dead = gateway.worker_pids()[turn % 2]
        os.kill(dead, signal.SIGKILL)

        def replaced(gone: int = dead) -> bool:
            pids = gateway.worker_pids()
            return len(pids) == 2 and gone not in pids

        wait_for(replaced, "the dead worker is replaced", 15)
        now = _counted(gateway)
        assert now >= seen
        seen = now
        _send(gateway, 40)
        wait_for(lambda wanted=seen + 40: _counted(gateway) >= wanted, "requests are counted on")  # type: ignore[misc]
        seen = _counted(gateway)
    assert seen == 160

    def reporting() -> set[str]:
        return {dict(pairs)["worker"] for name, pairs in gateway.metrics() if name == "quantgate_connections"}

    wait_for(lambda: reporting() == {"0", "1"}, "both workers have their gauges, and no dead one")
    assert _files(gateway.folder / "state") <= files, "dead workers leave files behind"


def _files(folder: Path) -> set[str]:
    """Names of everything kept on disk, but for what control writes when it has something to write."""
    names = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    return {name for name in names if not name.startswith(("rollout", "records"))}


def test_b97_every_scrape_is_the_whole(endpoint: Endpoint, start_gateway: Callable[..., Gateway]) -> None:
    """With several workers every scrape shows the sum of all, and it never falls while requests come."""
    gateway = start_gateway(simple_policy(endpoint.url), workers=3)
    scrapes: list[float] = []
    failures: list[BaseException] = []

    def load() -> None:
        try:
            _send(gateway, 100)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=load) for _ in range(3)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        scrapes.append(_counted(gateway))
    for thread in threads:
        thread.join()
    assert failures == []
    assert scrapes == sorted(scrapes)
    wait_for(lambda: _counted(gateway) == 300, "all requests are counted")
    assert {_counted(gateway) for _ in range(20)} == {300}
    served = {outcome["worker"] for outcome in gateway.outcomes()}
    assert len(served) >= 2, "one worker did it all: the test shows nothing"


def test_b97_control_dies_under_load(endpoint: Endpoint, start_gateway: Callable[..., Gateway]) -> None:
    """kill -9 of control fails no request; it comes back and counts on."""
    gateway = start_gateway(simple_policy(endpoint.url), workers=1)
    with Client(gateway.port) as client:
        for number in range(200):
            if number == 50:
                os.kill(gateway.pids["control"], signal.SIGKILL)
            assert client.request(r0("m")).json["choices"]
    wait_for(lambda: _alive(gateway), "control is back", 20)
    before = _counted(gateway)
    _send(gateway, 10)
    wait_for(lambda: _counted(gateway) >= before + 10, "counting goes on")


def _alive(gateway: Gateway) -> bool:
    try:
        return bool(gateway.ready()["workers"]["on_current_generation"] == 1)
    except Exception:  # not back yet
        return False
