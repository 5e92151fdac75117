"""``quantgate replay`` as a command: never without a target, against pools on real sockets."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gateway.cli import app
from gateway.store import samples
from gateway.store.engine import open_engine, url_of
from gateway.store.migrate import upgrade
from gateway.store.samples import Sample, SampleRow, Sealer
from tests.unit.cli.replay.pools import PoolServer, chat, serving

KEY = "0123456789abcdef0123"


def run(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["replay", *arguments])
    assert result.exit_code == code, result.output
    return result.output


@pytest.fixture
def requests(tmp_path: Path) -> str:
    """Three requests and a line that cannot be sent."""
    file = tmp_path / "requests.jsonl"
    file.write_text("\n".join([*(json.dumps(chat(f"q{index}", stream=index == 1)) for index in range(3)), "nonsense"]))
    return str(file)


def test_requests_go_to_every_pool_and_are_compared(requests: str, tmp_path: Path) -> None:
    """With the baseline's second run; the table, the lines, and what was not sent."""
    a, b = PoolServer(lambda _: (200, "Paris.")), PoolServer(lambda _: (200, "Lyon."))
    out = tmp_path / "out.jsonl"
    with serving(a, b):
        said = run(requests, "--pool", f"a={a.url}", "--pool", f"b={b.url}", "--noise", "-o", str(out))
    assert (len(a.asked), len(b.asked)) == (6, 3)
    assert "a, baseline" in said and "a (again)" in said and "not sent: line-4: not JSON" in said
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert {line["id"] for line in lines} == {"line-1", "line-2", "line-3"}
    assert all(line["pools"]["b"]["agreement"]["score"] < 1 for line in lines)


def test_totals_as_json(requests: str) -> None:
    """For other programs."""
    a, b = PoolServer(lambda _: (200, "Paris.")), PoolServer(lambda _: (500, "no"))
    with serving(a, b):
        found = json.loads(run(requests, "--pool", f"a={a.url}", "--pool", f"b={b.url}", "--json", "--most", "2"))
    assert [pool["pool"] for pool in found["pools"]] == ["a", "b"]
    assert found["pools"][1]["failed"]["value"] == 1.0
    assert found["pools"][0]["sent"] == 2
    assert [pool["why_failed"] for pool in found["pools"]] == [{}, {"status 500": 2}]


def test_one_pool_alone_shows_its_throughput(requests: str) -> None:
    """With several that take turns nobody knows how many were under way at one."""
    a, b = PoolServer(lambda _: (200, "Paris.")), PoolServer(lambda _: (200, "Paris."))
    with serving(a, b):
        alone = run(requests, "--pool", f"a={a.url}", "--at-once", "2")
        assert "output tokens/s" not in run(requests, "--pool", f"a={a.url}", "--pool", f"b={b.url}")
    assert "a: 3 answers in " in alone and "output tokens/s" in alone


def test_why_requests_failed_is_said(requests: str) -> None:
    """A wrong port looks like a bad pool otherwise."""
    b = PoolServer(lambda _: (503, "busy"))
    with serving(b):
        said = run(requests, "--pool", "a=http://127.0.0.1:1", "--pool", f"b={b.url}")
    assert "a: 3 failed: Connection refused" in said.replace("Connect call failed", "Connection refused")
    assert "b: 3 failed: status 503" in said


def test_stored_samples_with_their_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From a state directory; the key from the environment only."""
    engine = open_engine(url_of(None, tmp_path))
    upgrade(engine)
    sealed = Sealer(KEY).seal("s1", Sample("chat", json.dumps(chat("stored")).encode(), b"old"))
    samples.inserter(engine).add([tuple(SampleRow("s1", 1.0, 9e9, "t", "x", "p", "share", sealed))])
    engine.dispose()
    pool = PoolServer(lambda _: (200, "new"))
    with serving(pool):
        where = ["--samples", "--state-dir", str(tmp_path), "--pool", f"a={pool.url}"]
        assert "QUANTGATE_SAMPLES_KEY" in run(*where, code=2)
        assert pool.asked == []
        monkeypatch.setenv("QUANTGATE_SAMPLES_KEY", KEY)
        run(*where)
        run("--requests", "s1,gone", *where[1:])
        assert "nothing to replay: gone: its texts were not kept" in run("--requests", "gone", *where[1:], code=2)
    assert pool.asked == [chat("stored")] * 2


def test_pools_of_a_policy(requests: str, tmp_path: Path) -> None:
    """Named by --to, with the model's name that each pool knows."""
    a, b = PoolServer(lambda _: (200, "x")), PoolServer(lambda _: (200, "x"))
    with serving(a, b):
        policy = tmp_path / "policy.yaml"
        precision = "precision: {weights: bf16, activations: bf16, kv_cache: bf16}"
        policy.write_text(
            "version: 1\nmodels: {m: {baseline: a}}\npools:\n"
            f"  a: {{model: m, runtime: openai, {precision}, endpoints: ['{a.url}'], upstream_model: up-a}}\n"
            f"  b: {{model: m, runtime: openai, {precision}, endpoints: ['{b.url}']}}\n"
            "tenants: {anonymous: {allow: true}}\nroutes: [{name: all, pools: [a, b]}]\n"
        )
        run(requests, "--config", str(policy), "--to", "a,b")
    assert {body["model"] for body in a.asked} == {"up-a"}
    assert {body["model"] for body in b.asked} == {"m"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "nothing is sent without a target"),
        (["--config", "p.yaml"], "belong together"),
        (["--to", "a"], "belong together"),
        (["--pool", "a=http://h:1", "--pool", "a=http://h:2"], "two targets are called a"),
        (["--pool", "nonsense"], "NAME=http"),
        (["--config", "/nowhere.yaml", "--to", "a"], "nowhere"),
    ],
)
def test_nothing_is_sent_by_accident(requests: str, arguments: list[str], words: str) -> None:
    """Exit 2, in a line."""
    assert words in run(requests, *arguments, code=2)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "a FILE, --samples, or --requests"),
        (["FILE", "--samples"], "a FILE, --samples, or --requests"),
        (["FILE", "--requests", "a"], "a FILE, --samples, or --requests"),
        (["/nowhere.jsonl"], "nowhere"),
    ],
)
def test_what_is_replayed_must_be_said(requests: str, arguments: list[str], words: str) -> None:
    """One source."""
    given = [requests if word == "FILE" else word for word in arguments]
    assert words in run(*given, "--pool", "a=http://127.0.0.1:1", code=2)


def test_a_file_without_any_request_is_refused(tmp_path: Path) -> None:
    """With the first reason."""
    file = tmp_path / "empty.jsonl"
    file.write_text("nonsense\n")
    assert "nothing to replay: line-1: not JSON" in run(str(file), "--pool", "a=http://127.0.0.1:1", code=2)
