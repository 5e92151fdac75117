"""The evidence pipeline wired: from a worker's outcomes and feedback to counters, rows and samples."""

import dataclasses
import time
from pathlib import Path

import pytest
from sqlalchemy import text

from gateway.control.endpoints import EndpointView
from gateway.control.evidence import Evidence, deployment_record
from gateway.core.quality import Check
from gateway.model.messages import Feedback
from gateway.model.precision import Precision
from gateway.model.proving import Oversight, Samples
from gateway.model.table import Pool
from gateway.runtimes.attestation import Attestation, reported
from gateway.store.deployments import hash_of
from tests.unit.control.conftest import compiled, load_text, policy_text
from tests.unit.control.exchanges import SECRET, batch, captured, until

KEY = "0123456789abcdef0123"


async def test_everything_that_hears_an_outcome(tmp_path: Path) -> None:
    """Checked in a real process, counted, joined with feedback that came first, sampled, stored; no text in any row."""
    evidence = Evidence(tmp_path, processes=1, monotonic=time.monotonic, wall=time.time, rand=lambda: 0.0)
    table = compiled(load_text(policy_text()).document, 1, {})
    oversight = Oversight(None, 1e12, Samples(keep="incidents", key=KEY), (), (), 1.0, 10)
    evidence.apply(table, oversight)
    evidence.start()
    evidence.take_feedback(Feedback(0, 1_700_000_000.0, "acme", "good", "down", 0.0))
    evidence.take_batch(batch(captured("good", f'{{"a": "{SECRET}"}}'), captured("bad", SECRET)))
    written = evidence.archive.written
    await until(lambda: [written.row((name,))[0] for name in ("requests", "aftermath", "samples")] == [2, 1, 1], 120.0)
    await evidence.stop()
    counters = {counter.name: counter for counter in evidence.counters}
    assert counters["quantgate_answer_failures_total"].rows == {("m/short", "bf16", "format_error"): [1.0]}
    assert counters["quantgate_consequences_total"].rows == {("m/short", "bf16", "feedback", "bad"): [1.0]}
    gauges = {family.name: family for family in evidence.families()}
    assert gauges["quantgate_database_up"].samples == {(): (1.0,)}
    assert gauges["quantgate_records_waiting"].samples == {(): (0.0,)}
    assert sum(gauges["quantgate_database_write_seconds"].samples[("requests",)][:-1]) >= 1
    assert evidence.archive.engine is not None
    with evidence.archive.engine.connect() as connection:
        for name in ("requests", "aftermath", "deployments", "samples"):
            assert SECRET not in str(connection.execute(text(f"select * from {name}")).all())  # noqa: S608
        rows = connection.execute(text("select request_id, score, failures from requests order by id")).all()
    assert [tuple(row) for row in rows] == [("good", 1.0, ""), ("bad", pytest.approx(0.2), ",format_error,")]
    assert Check.JSON.value in {key[2] for key in counters["quantgate_checks_total"].rows}


async def test_without_processes_and_before_a_database_nothing_breaks(tmp_path: Path) -> None:
    """Outcomes are counted and wait; the gauge says that nothing can be written."""
    evidence = Evidence(tmp_path, processes=0, monotonic=time.monotonic, wall=time.time, rand=lambda: 0.0)
    evidence.take_batch(batch(captured("a")))
    gauges = {family.name: family.samples for family in evidence.families()}
    assert gauges["quantgate_database_up"] == {(): (0.0,)}
    assert gauges["quantgate_records_waiting"] == {(): (1.0,)}
    assert len(evidence.latency.cells()) == 1
    await evidence.stop()


def test_the_deployment_record_is_the_policys_word() -> None:
    """Precision in parts, hardware, and the pool's own record; its hash changes with any of it."""
    pool = Pool("int4", "m", "vllm", Precision(weights="int4", method="awq"), (), record={"cuda": "13.0"}, gpu="A100")
    found = deployment_record(pool)
    assert (found["precision"]["weights"], found["record.cuda"], found["gpu"]) == ("int4", "13.0", "A100")
    for other in (dataclasses.replace(pool, record={"cuda": "13.1"}), dataclasses.replace(pool, gpu_count=2)):
        assert hash_of(found) != hash_of(deployment_record(other))


def view(version: str, weights: str = "int4", cache_tokens: int = 1) -> EndpointView:
    told = Attestation("vllm", weights=reported(weights, "config"), version=version, kv_tokens=cache_tokens)
    return EndpointView("bf16", f"bf16/{version}", "http://h:1", "vllm", enforce=True, attestation=told)


def test_what_runtimes_attest_is_part_of_what_ran() -> None:
    """Two versions in one pool show; what changes by itself, such as a cache's size, does not."""
    pool = Pool("bf16", "m", "vllm", Precision(), ())
    attestations = [found.attestation for found in (view("0.25"), view("0.26"), view("0.26", cache_tokens=2))]
    found = deployment_record(pool, [told for told in attestations if told is not None])
    assert (found["attested.version"], found["attested.weights"]) == (['"0.25"', '"0.26"'], ['"int4"'])
    assert "attested.kv_tokens" not in found


def test_another_runtime_is_another_deployment_in_rows_and_the_same_one_for_rollouts(tmp_path: Path) -> None:
    """A row tells what ran when it ran. A rollout goes by the policy's word, or every restart would begin it anew."""
    evidence = Evidence(tmp_path, processes=0, monotonic=time.monotonic, wall=time.time, rand=lambda: 0.0)
    evidence.take_views([view("0.25")])  # before any policy: nothing to note
    evidence.apply(compiled(load_text(policy_text()).document, 1, {}), Oversight(None, 1e9, Samples(), (), (), 1.0, 10))
    declared, first = evidence.archive.hashes["bf16"], evidence.archive.running["bf16"]
    evidence.take_views([view("0.25")])
    assert evidence.archive.running["bf16"] == first != declared
    evidence.take_views([view("0.26")])
    assert evidence.archive.running["bf16"] not in (first, declared)
    assert evidence.archive.hashes["bf16"] == declared
