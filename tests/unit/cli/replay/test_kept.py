"""Where a replay finds its samples: the command line first, then the policy, then the defaults."""

import json
from pathlib import Path

import pytest
import yaml

from gateway.cli.replay.kept import Kept
from gateway.cli.stored import StoredError
from gateway.policy.secret import SecretError
from gateway.store import samples
from gateway.store.engine import open_engine, url_of
from gateway.store.migrate import upgrade
from gateway.store.samples import Sample, SampleRow, Sealer
from tests.unit.cli.replay.pools import chat

KEY, OTHER = "0123456789abcdef0123", "another-key-another-key"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A state directory with one sample, and a policy that names it and its key by files."""
    engine = open_engine(url_of(None, tmp_path))
    upgrade(engine)
    sealed = Sealer(KEY).seal("s1", Sample("chat", json.dumps(chat("stored")).encode(), b"old"))
    samples.inserter(engine).add([tuple(SampleRow("s1", 1.0, 9e9, "t", "x", "p", "incident", sealed))])
    engine.dispose()
    (tmp_path / "samples.key").write_text(KEY)
    (tmp_path / "url").write_text(f"sqlite:///{tmp_path / 'records.sqlite'}")
    return tmp_path


def policy(folder: Path, **records: object) -> Path:
    precision = {"weights": "bf16", "activations": "bf16", "kv_cache": "bf16"}
    pool = {"model": "m", "runtime": "openai", "precision": precision, "endpoints": ["http://127.0.0.1:1"]}
    document = {
        "version": 1,
        "models": {"m": {"baseline": "a"}},
        "pools": {"a": pool},
        "tenants": {"anonymous": {"allow": True}},
        "routes": [{"name": "all", "pools": ["a"]}],
        "records": records,
    }
    path = folder / "policy.yaml"
    path.write_text(yaml.safe_dump(document))
    return path


def test_the_policy_names_database_and_key(folder: Path) -> None:
    """Whoever has the gateway's policy at hand needs to say no more."""
    key = {"samples": {"keep": "incidents", "key": f"file:{folder / 'samples.key'}"}}
    kept = Kept(policy(folder, url=f"file:{folder / 'url'}", **key), None, None, None)
    assert [item.body for item in kept.requests(["s1"])] == [chat("stored")]
    assert [item.id for item in kept.matching("x", "", "", 10)] == ["s1"]
    assert kept.matching("y", "", "", 10) == []


def test_the_command_line_wins(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Over what the policy says of both."""
    (folder / "other.key").write_text(OTHER)
    key = {"samples": {"keep": "incidents", "key": f"file:{folder / 'other.key'}"}}
    config = policy(folder, url="sqlite:////nowhere/records.sqlite", **key)
    kept = Kept(config, None, folder, f"file:{folder / 'samples.key'}")
    assert [item.id for item in kept.requests(["s1"])] == ["s1"]
    with pytest.raises(StoredError, match="nowhere"):
        Kept(config, None, None, None)


def test_without_either_the_defaults_are_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that it can be seen what is missing."""
    monkeypatch.delenv("QUANTGATE_SAMPLES_KEY", raising=False)
    with pytest.raises(SecretError, match="QUANTGATE_SAMPLES_KEY"):
        Kept(None, None, folder, None)
    monkeypatch.setenv("QUANTGATE_SAMPLES_KEY", KEY)
    monkeypatch.chdir(folder)
    with pytest.raises(StoredError, match="var/quantgate"):
        Kept(None, None, None, None)
