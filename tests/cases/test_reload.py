"""Group 10 of the cases: configuration and its reload."""

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cases.client import call
from tests.cases.gateway import Gateway, policy, pool, simple_policy, wait_for, write_policy
from tests.cases.messages import DONE, FIN, OK, SSE_HEAD, c, chunk, r0, r0s
from tests.cases.upstream import Endpoint, Gate, Upstream

APPLY_S = 10.0  # N of the cases: within this a change is in force


@pytest.fixture
def endpoint(upstream: Upstream) -> Endpoint:
    """A healthy endpoint."""
    made = upstream.endpoint()
    made.default = OK
    return made


def _named(url: str, model: str) -> dict[str, Any]:
    """A policy that serves exactly this model name."""
    return policy({model: {"tokenizer": {"bytes": True}}}, {"a": pool(model, url)}, [{"name": "all", "pools": ["a"]}])


def _serves(gateway: Gateway, model: str) -> bool:
    return call(gateway.port, r0(model)).status == 200


def _digest(gateway: Gateway) -> str:
    return str(gateway.ready()["digest"])


def test_b88_symlink_swap(endpoint: Endpoint, tmp_path: Path, start_gateway: Callable[..., Gateway]) -> None:
    """A ConfigMap's swap of its data link is seen each time, and the digest in force can be read."""
    folder = tmp_path / "mounted"
    (folder / "..1").mkdir(parents=True)
    write_policy(folder / "..1" / "policy.yaml", _named(endpoint.url, "m1"))
    (folder / "..data").symlink_to("..1")
    (folder / "policy.yaml").symlink_to("..data/policy.yaml")
    gateway = start_gateway(config=folder / "policy.yaml")
    assert _serves(gateway, "m1")
    digests = {_digest(gateway)}
    for number in (2, 3, 4):
        fresh = folder / f"..{number}"
        fresh.mkdir()
        write_policy(fresh / "policy.yaml", _named(endpoint.url, f"m{number}"))
        (folder / "..data_tmp").symlink_to(fresh.name)
        (folder / "..data_tmp").replace(folder / "..data")
        shutil.rmtree(folder / f"..{number - 1}")
        wait_for(lambda wanted=f"m{number}": _serves(gateway, wanted), f"m{number} is served", APPLY_S)  # type: ignore[misc]
        assert not _serves(gateway, f"m{number - 1}")
        digests.add(_digest(gateway))
    assert len(digests) == 4
    labels = [
        dict(pairs) for (name, pairs), value in gateway.metrics().items() if name == "quantgate_policy_info" and value
    ]
    assert [entry["digest"] for entry in labels] == [_digest(gateway)]


@pytest.mark.parametrize("as_folder", [True, False], ids=["folder", "file"])
def test_b89_saved_by_rename(
    endpoint: Endpoint, tmp_path: Path, start_gateway: Callable[..., Gateway], as_folder: bool
) -> None:
    """Editors write a swap file and rename it over the old: that reloads as a write in place does."""
    folder = tmp_path / "policies"
    folder.mkdir()
    path = write_policy(folder / "policy.yaml", _named(endpoint.url, "m1"))
    gateway = start_gateway(config=folder if as_folder else path)
    swap = folder / ".policy.yaml.swp"
    for number in (2, 3):
        write_policy(swap, _named(endpoint.url, f"m{number}"))
        swap.replace(path)
        wait_for(lambda wanted=f"m{number}": _serves(gateway, wanted), f"m{number} is served", APPLY_S)  # type: ignore[misc]
    write_policy(path, _named(endpoint.url, "m4"))
    wait_for(lambda: _serves(gateway, "m4"), "m4 is served", APPLY_S)


EMPTIES = {
    "empty": "",
    "object": "{}",
    "null": "null",
    "comments": "# nothing\n# here\n",
    "list": "[]",
    "broken": "a: [b",
}


def test_b91_absent_or_empty_keeps_the_last_good(
    endpoint: Endpoint, tmp_path: Path, start_gateway: Callable[..., Gateway]
) -> None:
    """A file that is gone for a moment, empty or meaningless leaves the last good policy in force, and says so in log,
    metric and readiness detail."""
    folder = tmp_path / "policies"
    folder.mkdir()
    good = yaml.safe_dump(_named(endpoint.url, "m1"), sort_keys=False)
    path = folder / "policy.yaml"
    path.write_text(good)
    gateway = start_gateway(config=path)
    digest = _digest(gateway)

    def failing() -> bool:
        return gateway.ready()["reload"]["success"] is False

    for name, text in EMPTIES.items():
        path.write_text(text)
        wait_for(failing, f"{name} is reported", APPLY_S)
        assert (_serves(gateway, "m1"), _digest(gateway)) == (True, digest), name
        assert gateway.total("quantgate_reload_success") == 0, name
        path.write_text(good)
        wait_for(lambda: not failing(), f"good again after {name}", APPLY_S)
    path.unlink()
    wait_for(failing, "the missing file is reported", APPLY_S)
    assert (_serves(gateway, "m1"), _digest(gateway)) == (True, digest)
    path.write_text(good)
    wait_for(lambda: gateway.total("quantgate_reload_success") == 1, "good again", APPLY_S)
    assert any("reload" in str(line.get("event")) or "policy" in str(line.get("event")) for line in gateway.log_lines())
    wait_for(lambda: gateway.ready()["workers"]["on_current_generation"] == 1, "the worker has told so", APPLY_S)


def test_b93_old_backends_are_let_go(
    upstream: Upstream, endpoint: Endpoint, start_gateway: Callable[..., Gateway], tmp_path: Path
) -> None:
    """After a reload nothing probes the old backend, its running streams end normally, and twenty reloads leave one
    prober per endpoint."""
    old = upstream.endpoint()
    old.probe_status = endpoint.probe_status = 503  # unhealthy endpoints are probed eagerly, so probes are soon seen
    models = {name: {"tokenizer": {"bytes": True}} for name in ("gone", "kept")}
    pools = {"old": pool("gone", old.url), "b": pool("kept", endpoint.url)}
    routes: list[dict[str, Any]] = [
        {"name": "old", "when": {"model": "gone"}, "pools": ["old"]},
        {"name": "rest", "pools": ["b"]},
    ]
    path = write_policy(tmp_path / "policy.yaml", policy(models, pools, routes))
    gateway = start_gateway(config=path)
    gate = Gate()
    old.play([SSE_HEAD, chunk(c("x")), gate, chunk(c("y") + FIN + DONE), b"0\r\n\r\n"])
    with gateway.connect() as client:
        events = client.request(r0s("gone")).events()
        next(events)
        write_policy(path, _named(endpoint.url, "renamed"))
        wait_for(lambda: _serves(gateway, "renamed"), "the renamed model is served", APPLY_S)
        assert not _serves(gateway, "kept")
        assert not _serves(gateway, "gone")
        gate.open()
        assert [event.data for event in events][-1] == b"[DONE]"
    assert gateway.outcome(model="gone", status=200)["result"] == "ok"
    for number in range(20):
        write_policy(path, _named(endpoint.url, f"renamed-{number}"))
        wait_for(lambda wanted=f"renamed-{number}": _serves(gateway, wanted), "the reload", APPLY_S)  # type: ignore[misc]
    probed, kept, since = len(old.probes), len(endpoint.probes), time.monotonic()
    wait_for(lambda: len(endpoint.probes) >= kept + 3, "the endpoint that stayed is probed on")
    assert len(old.probes) == probed, "the removed endpoint is still probed"
    took_s = time.monotonic() - since
    assert len(endpoint.probes) - kept <= 2 * (took_s + 1), "one prober asks about once a second"
    wait_for(lambda: old.open_connections == 0, "no connection to the removed endpoint is left")
    states = {
        dict(pairs)["pool"] for (name, pairs), _ in gateway.metrics().items() if name == "quantgate_endpoint_state"
    }
    assert states == {"a"}


@pytest.fixture
def editing(endpoint: Endpoint, tmp_path: Path) -> Iterator[tuple[Path, list[str]]]:
    """Texts for a policy under edit: two good ones and three broken ones."""
    good = [
        yaml.safe_dump(simple_policy(endpoint.url, gateway={"attempts": number}), sort_keys=False) for number in (2, 3)
    ]
    broken = ["", "version: 1\nmodels: {", good[0].replace("pools:", "pols:", 1)]
    path = tmp_path / "policy.yaml"
    path.write_text(good[0])
    yield path, [good[0], broken[0], good[1], broken[1], good[0], broken[2]]


def test_b93_edits_under_load_fail_no_request(
    editing: tuple[Path, list[str]], start_gateway: Callable[..., Gateway]
) -> None:
    """While the policy changes again and again, half of the time to something broken, every request is served."""
    path, texts = editing
    gateway = start_gateway(config=path)
    due = time.monotonic() + 4.0
    number = 0
    next_edit = 0.0
    with gateway.connect() as client:
        while time.monotonic() < due:
            if time.monotonic() >= next_edit:
                scratch = path.with_suffix(".tmp")
                scratch.write_text(texts[number % len(texts)])
                scratch.replace(path)
                number += 1
                next_edit = time.monotonic() + 0.2
            reply = client.request(r0("m"))
            assert (reply.status, bool(reply.json["choices"])) == (200, True)
    assert number >= 10
    generations = {outcome["generation"] for outcome in gateway.outcomes()}
    assert len(generations) >= 2, "no edit was ever applied under load"
