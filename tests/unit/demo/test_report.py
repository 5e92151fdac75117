"""The report fits 100 columns, says what the accounts say, and does not hide a failure."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from gateway.demo import report
from gateway.demo.edit import check_edits
from gateway.demo.fleet import RunningServer, ServerSpec
from gateway.demo.proof import Evidence, checks
from gateway.demo.screen import Screen
from gateway.demo.weights import Variant
from tests.unit.demo.accounts import LONG, PRIVILEGED, good_edits, good_evidence, spoil_answer


def shown(evidence: Evidence) -> str:
    """The whole report as text."""
    found = (*checks(evidence, PRIVILEGED, LONG), check_edits(good_edits(), evidence.entries, 0))
    out = io.StringIO()
    report.show(Console(file=out, width=100), report.Result(evidence, good_edits(), found, 12.0))
    return out.getvalue()


def test_it_fits_a_hundred_columns() -> None:
    """No line is wider, also with the longest names that the demo has."""
    assert max(len(line.rstrip()) for line in shown(good_evidence()).splitlines()) <= 100


def test_every_check_is_told() -> None:
    """Each claim with its mark and its accounts, and the sum at the end."""
    text = shown(good_evidence())
    assert text.count("holds  ") == 7
    assert "7 of 7 checks hold: 7 requests in 12 s." in text
    assert "llama.cpp" in text


def test_a_failure_stands_out() -> None:
    """A check that fails is marked, and the sum says so."""
    text = shown(spoil_answer(good_evidence(), 1, status=500, error="upstream_error: broke"))
    assert "FAILS  Every request got the answer" in text
    assert "6 of 7 checks hold" in text
    assert "request 1 (chat) got 500 upstream_error: broke" in text


def test_constraints_are_named_below_the_table() -> None:
    """What narrowed a choice is told by number, so that rows stay short."""
    text = shown(good_evidence())
    assert "talk (1)" in text or "talk (2)" in text
    assert "narrowed by long" in text
    assert "narrowed by privileged" in text


def test_refusals_are_told_with_their_words() -> None:
    """Each kind with its count, its answer and when to come again."""
    text = shown(good_evidence())
    assert "429 code_429: no (Retry-After: 30)" in text
    assert "501 code_501: no" in text


def test_requests_are_summed_over_all_labels() -> None:
    """Every series of the counter, and nothing that only looks like it."""
    metrics = (
        "# TYPE quantgate_requests_total counter\n"
        'quantgate_requests_total{bucket="a",pool="q4",rule="r",result="ok"} 40.0\n'
        'quantgate_requests_total{bucket="b",pool="q8",rule="r",result="ok"} 2\n'
        'quantgate_request_seconds_count{bucket="a",pool="q4"} 99\n'
    )
    assert report.requests_counted(metrics) == 42


@pytest.mark.parametrize(
    ("endpoint", "said"),
    [
        ({}, "nothing"),
        ({"attestation": {"weights": {"value": "q8_0"}}}, "q8_0: as declared"),
        (
            {"attestation": {"weights": {"value": "q4_0"}, "weight_bits": 5.26}, "mismatches": ["x"]},
            "q4_0, 5.3 bits per weight: not as declared",
        ),
    ],
)
def test_what_a_server_told(endpoint: dict[str, object], said: str) -> None:
    """Its weights by label and by size; silence is nothing, and a contradiction is one."""
    assert report.attested(endpoint) == said


def test_the_steps_before_the_workload() -> None:
    """The head, the pools and the workload fit the width too."""
    out = io.StringIO()
    screen = Screen(Console(file=out, width=100))
    report.show_head(screen.console)
    model = Path(f"SmolLM2-135M-Instruct.{Variant.BF16}.r1.gguf")
    servers = [RunningServer(ServerSpec("bf16", model, "m"), "http://127.0.0.1:40002", 1)]
    report.show_pools(screen, servers, [{"pool": "bf16", "attestation": {"weights": {"value": "bf16"}}}])
    report.show_workload(screen, good_evidence().items, "3.0", 6, 7)
    text = out.getvalue()
    assert max(len(line.rstrip()) for line in text.splitlines()) <= 100
    assert "bf16: as declared" in text
    assert "2 chat" in text


def test_edits_are_told_as_they_happen() -> None:
    """Both with their orders, and what became of them; a gateway that does not react is told too."""
    assert "generation 1 goes on" in report.edit_refused(("q44", "q8"), "no pool 'q44'", 1)
    assert "did not refuse" in report.edit_refused(("q44", "q8"), "", 0)
    assert "generation 1 → 2" in report.edit_applied(("q4",), ("q8",), 1, 2, 0.5)
    assert "did not take it up" in report.edit_applied(("q4",), ("q8",), 1, 0, -1.0)
