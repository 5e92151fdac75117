"""A path becomes a policy that is known to be good, or a rejection with every fault."""

import copy
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.errors import PolicyRejectedError
from gateway.policy.compile import compile_table
from gateway.policy.document import snapshot
from gateway.policy.load import load, load_snapshot
from gateway.policy.schema import Policy
from gateway.policy.secret import unresolved


def test_a_folder_is_loaded(policies: Any, tmp_path: Path) -> None:
    """The result names its files, carries the fingerprint of the bytes, and is JSON."""
    (tmp_path / "policy.yaml").write_text(yaml.safe_dump(policies.data()))
    loaded = load(str(tmp_path))
    assert loaded.files == (str(tmp_path / "policy.yaml"),)
    assert loaded.fingerprint == snapshot(tmp_path).fingerprint
    assert orjson.loads(loaded.document)["version"] == 1


def test_the_digest_follows_meaning(policies: Any) -> None:
    """Comments, order of keys and spellings of numbers change nothing; a changed number does."""
    plain = policies.load()
    text = "# a comment\n" + yaml.safe_dump(policies.data(), sort_keys=True).replace("128k", "131072")
    assert policies.text(policy=text).digest == plain.digest
    assert policies.load(lambda data: data["models"]["qwen"].update(context_window="64k")).digest != plain.digest


def test_the_document_is_its_own_normal_form(policies: Any) -> None:
    """Reading the published document gives the same document: workers and control agree on its digest."""
    document = policies.load().document
    policy = Policy.model_validate_json(document)
    assert orjson.dumps(policy.canonical(), option=orjson.OPT_SORT_KEYS) == document
    assert compile_table(document, 3, {}, unresolved).digest == policies.load().digest


@pytest.mark.parametrize("path", ["routing_policies", "routing_policies/demo-rollout.yaml"])
def test_what_people_are_shown_reads_back_as_the_same_policy(path: str, tmp_path: Path) -> None:
    """The admin API's document, kept as a file, is the policy that is in force, with every unit that a file needs."""
    policy = Policy.model_validate_json(load(path).document)
    data = policy.in_words()
    data["pools"]["bf16"]["timeouts"] = {"connect": "250ms", "first_byte_per_1k_tokens": "0.00001s", "total": "100y"}
    slow = {"metric": "total", "quantile": "99%", "limit": "1h30m", "block": "10s", "deadline": "90s"}
    data["guards"] |= {"false_rollbacks": {"at_most": "1 per month"}, "slow": slow}
    data |= {"gateway": {"queue": {"wait": "1m30s"}}, "records": {"retention": "30d"}}
    policy = Policy.model_validate(data)
    (tmp_path / "kept.yaml").write_bytes(orjson.dumps(policy.in_words()))
    kept = load(tmp_path / "kept.yaml").document
    assert kept == orjson.dumps(policy.canonical(), option=orjson.OPT_SORT_KEYS)


def test_findings_come_in_the_order_of_the_files(policies: Any) -> None:
    """The reader walks through the set once."""
    data = policies.data()
    data["routes"][0]["pools"] = ["gone"]
    extra = "version: 1\nshadow:\n  - {name: s, sample: 1%, candidate: lost}\n"
    found = policies.refused(b=yaml.safe_dump(data), a=extra)
    assert [error.file for error in found] == ["b.yaml", "a.yaml"]


def test_the_shipped_policies_are_good() -> None:
    """The production example and the demo load without an error; the folder leaves the demo out."""
    folder = load(Path("routing_policies"))
    assert not any("demo" in file for file in folder.files)
    assert folder.warnings == ()
    assert load(Path("routing_policies/demo.yaml")).warnings == ()


def paths_of(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return [path, *(found for key, value in inner for found in paths_of(value, (*path, key)))]


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 10**12) | st.floats() | st.text(max_size=8)
    | st.sampled_from(["present", "off", "5%", "2k", "1h", "qwen", "bf16", "env:X", "http://x", "chat"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from(["when", "not", "name", "model", "gte", "tools", "a b"]), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_no_policy_makes_the_loader_fail_in_another_way(data: Any, policies: Any) -> None:
    """A good policy with any parts replaced by junk loads and compiles, or is rejected with places in its file."""
    policy = copy.deepcopy(policies.data())
    for _ in range(data.draw(st.integers(1, 3))):
        *above, last = data.draw(st.sampled_from(paths_of(policy)[1:]))
        target = policy
        for step in above:
            target = target[step]
        target[last] = data.draw(JUNK)
    try:
        loaded = policies.text(policy=yaml.safe_dump(policy, sort_keys=False))
    except PolicyRejectedError as error:
        assert error.findings
        assert all(finding.file == "policy.yaml" and finding.line > 0 for finding in error.findings)
    else:
        compile_table(loaded.document, 1, {}, unresolved)


@given(st.binary(max_size=200))
def test_any_bytes_are_loaded_or_rejected(content: bytes) -> None:
    """Whatever stands in the file."""
    from gateway.policy.document import Snapshot, SourceFile

    with pytest.raises(PolicyRejectedError):
        load_snapshot(Snapshot("p.yaml", False, (SourceFile("p.yaml", content),)))
