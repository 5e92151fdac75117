"""The demo's policy is edited by text, so that it stays the file that a person reads, and says what the proof needs."""

import sys
from pathlib import Path

import orjson
import pytest

import gateway
from gateway.demo.policy import (
    EDITED_ROUTE,
    DemoPolicyError,
    bans,
    compiled,
    find_policy,
    key_variable,
    place,
    with_addresses,
    with_order,
)
from gateway.demo.proof import Ban
from gateway.demo.workload import TENANTS
from gateway.policy.load import load

POLICY = Path("routing_policies/demo.yaml")
TEXT = POLICY.read_text()
URLS = {"bf16": "http://127.0.0.1:1001", "q8": "http://127.0.0.1:1002", "q4": "http://127.0.0.1:1003"}


def changed(before: str, after: str) -> int:
    """How many lines differ."""
    return sum(a != b for a, b in zip(before.splitlines(), after.splitlines(), strict=True))


def test_the_servers_addresses_are_put_in(tmp_path: Path) -> None:
    """Each pool gets its own URL, and nothing else changes: comments stay."""
    text = with_addresses(TEXT, URLS)
    assert changed(TEXT, text) == 3
    place(tmp_path / "demo.yaml", text)
    pools = compiled(tmp_path / "demo.yaml").pools
    assert {name: f"http://{pool.endpoints[0].host}:{pool.endpoints[0].port}" for name, pool in pools.items()} == URLS


def test_a_routes_order_is_changed_and_back(tmp_path: Path) -> None:
    """One line changes, the table follows, and the way back gives the same file."""
    text = with_order(TEXT, EDITED_ROUTE, ("bf16", "q8", "q4"))
    assert changed(TEXT, text) == 1
    place(tmp_path / "demo.yaml", text)
    routes = {route.name: route.pools for route in compiled(tmp_path / "demo.yaml").routes}
    assert routes[EDITED_ROUTE] == ("bf16", "q8", "q4")
    assert with_order(text, EDITED_ROUTE, ("q4", "q8", "bf16")) == TEXT


@pytest.mark.parametrize("name", ["q16", "models"])
def test_an_entry_that_is_not_there(name: str) -> None:
    """A file without the expected entry is refused, not half edited."""
    with pytest.raises(DemoPolicyError, match=name):
        with_addresses(TEXT, {name: "http://127.0.0.1:1"})
    with pytest.raises(DemoPolicyError, match=name):
        with_order(TEXT, name, ("q4",))


def test_a_broken_policy_is_told_with_its_place(tmp_path: Path) -> None:
    """The findings come with file, line and suggestion."""
    place(tmp_path / "demo.yaml", with_order(TEXT, EDITED_ROUTE, ("q44", "q8", "bf16")))
    with pytest.raises(DemoPolicyError, match=r"demo.yaml:\d+:\d+: .*no pool 'q44'.*q4"):
        compiled(tmp_path / "demo.yaml")


def test_a_placed_file_leaves_no_draft(tmp_path: Path) -> None:
    """The file is there in one step, and nothing beside it."""
    place(tmp_path / "demo.yaml", "a")
    place(tmp_path / "demo.yaml", "b")
    assert [path.name for path in tmp_path.iterdir()] == ["demo.yaml"]
    assert (tmp_path / "demo.yaml").read_text() == "b"


def test_the_constraints_and_whom_they_forbid() -> None:
    """Read from the policy itself: privileged tools only on 16 bits, long contexts off the quantised KV cache."""
    assert bans(POLICY) == (
        Ban("privileged-tools-stay-16-bit", ("q4", "q8"), 0),
        Ban("long-context-no-kv-quant", ("q4",), 1024),
    )


def test_a_policy_without_them_is_not_the_demos(tmp_path: Path) -> None:
    """Without one of the two constraints there is nothing to prove, and the demo says so."""
    place(tmp_path / "demo.yaml", TEXT[: TEXT.index("  - name: long-context")] + TEXT[TEXT.index("# The first that") :])
    with pytest.raises(DemoPolicyError, match="constraints"):
        bans(tmp_path / "demo.yaml")


def test_every_tenants_key_comes_from_its_variable() -> None:
    """The names that the demo sets are those that the policy reads."""
    for tenant in TENANTS:
        assert f'"env:{key_variable(tenant)}"' in TEXT


def test_the_second_parts_policy_is_the_same_but_for_what_is_new() -> None:
    """What is served, who may call, what nothing bypasses: it can be written over the first one while that serves."""
    first, second = (orjson.loads(load(path).document) for path in (POLICY, POLICY.with_name("demo-rollout.yaml")))
    for section in ("models", "pools", "tenants", "constraints"):
        assert first[section] == second[section]
    for key in ("lengths", "output_tokens", "tools", "buckets"):
        assert first["classify"][key] == second["classify"][key]
    assert {"rollouts", "guards", "evidence"} <= second.keys() - first.keys()


def test_where_the_policy_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """In a checkout beside the package, else where a wheel puts it, else the person is told."""
    assert find_policy().samefile(POLICY)
    monkeypatch.setattr(gateway, "__file__", str(tmp_path / "site" / "gateway" / "__init__.py"))
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    with pytest.raises(DemoPolicyError, match="checkout"):
        find_policy()
    shared = tmp_path / "share" / "quantgate" / "routing_policies" / "demo.yaml"
    shared.parent.mkdir(parents=True)
    shared.write_text(TEXT)
    assert find_policy() == shared
