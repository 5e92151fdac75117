"""What is known of one endpoint, and what workers are told."""

import msgspec
import pytest

from gateway.control.endpoints import LOAD_STALE_S, EndpointView
from gateway.model.enums import EndpointState
from gateway.runtimes.adapter import Load
from gateway.runtimes.attestation import Confidence
from gateway.runtimes.compare import Mismatch, Verdict

VIEW = EndpointView("bf16", "bf16/0", "http://h:1", "vllm", enforce=True, health=EndpointState.READY)


@pytest.mark.parametrize("verdict", list(Verdict))
def test_only_a_proven_mismatch_quarantines_and_only_where_enforced(verdict):
    """A suspicion, a partial or missing attestation is visible and served."""
    enforced = msgspec.structs.replace(VIEW, verdict=verdict)
    quarantined = verdict is Verdict.MISMATCH
    assert enforced.state is (EndpointState.QUARANTINED if quarantined else EndpointState.READY)
    assert msgspec.structs.replace(enforced, enforce=False).state is EndpointState.READY


def test_a_quarantine_says_what_was_proven_and_other_states_what_the_check_said():
    """A suspicion beside it is no reason for being out."""
    proven = Mismatch("kv_cache", "bf16", "fp8", Confidence.REPORTED, "the cache is fp8")
    guessed = Mismatch("weights", "bf16", "int4", Confidence.INFERRED, "the name says int4")
    out = msgspec.structs.replace(VIEW, verdict=Verdict.MISMATCH, mismatches=(guessed, proven), health_reason="503")
    assert out.reason == "the cache is fp8"
    assert msgspec.structs.replace(out, enforce=False).reason == "503"


def test_the_report_holds_load_with_its_age():
    """Workers judge for themselves how far an old load counts."""
    view = msgspec.structs.replace(VIEW, load=Load(at=10.0, running=3, waiting=0, kv_usage=0.25))
    report = view.report(12.5)
    assert (report.endpoint, report.state) == ("bf16/0", "ready")
    assert (report.running, report.waiting, report.kv_usage, report.age_s) == (3.0, 0.0, 0.25, 2.5)


@pytest.mark.parametrize("load", [None, Load(at=0.0, running=3)])
def test_no_load_and_a_stale_one_are_unknown(load):
    """Minus one, never a zero that would attract traffic."""
    report = msgspec.structs.replace(VIEW, load=load).report(LOAD_STALE_S + 1.0)
    assert (report.running, report.waiting, report.kv_usage, report.age_s) == (-1.0, -1.0, -1.0, -1.0)


def test_a_part_the_runtime_does_not_report_is_unknown():
    """llama.cpp reports no KV usage; that is not an empty cache."""
    report = msgspec.structs.replace(VIEW, load=Load(at=1.0, running=0)).report(1.0)
    assert (report.running, report.waiting, report.kv_usage) == (0.0, -1.0, -1.0)
