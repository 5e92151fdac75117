"""Families to text: complete, well-formed, and acceptable to Prometheus' own checker."""

import math
import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from gateway.control.exposition import render
from gateway.control.series import Counter, Histogram, gauge


@pytest.fixture
def families():
    """One of each kind, with an awkward label."""
    counter = Counter("quantgate_a_total", "Help with \\ and\nline.", ("x",))
    counter.add(('va"l\\ue\n',), 3)
    histogram = Histogram("quantgate_wait_seconds", "Seconds.", ("x",), (0.1, 1.0))
    row = histogram.row(("a",))
    for value in (0.05, 0.1, 0.5, 7.0):
        histogram.observe(row, value)
    return [counter.family(), histogram.family(), gauge("quantgate_g", "Now.", (), {(): 2.5})]


def test_values_come_back_as_they_were(families):
    """Buckets are cumulative, label values survive their quoting."""
    text = render(families)
    parsed = {family.name: family for family in text_string_to_metric_families(text.decode())}
    (sample,) = parsed["quantgate_a"].samples
    assert (sample.labels, sample.value) == ({"x": 'va"l\\ue\n'}, 3.0)
    histogram = {
        (sample.name.removeprefix("quantgate_wait_seconds"), sample.labels.get("le")): sample.value
        for sample in parsed["quantgate_wait_seconds"].samples
    }
    assert histogram == {
        ("_bucket", "0.1"): 2.0,
        ("_bucket", "1.0"): 3.0,
        ("_bucket", "+Inf"): 4.0,
        ("_count", None): 4.0,
        ("_sum", None): pytest.approx(7.65),
    }
    assert parsed["quantgate_g"].samples[0].value == 2.5


@given(st.text(), st.floats(allow_nan=False))
def test_any_label_and_any_number_survive(label, value):
    """Whatever a policy's names contain, the text parses back to it."""
    text = render([gauge("quantgate_x", "Any.", ("x",), {(label,): value})]).decode()
    (sample,) = next(f for f in text_string_to_metric_families(text) if f.name == "quantgate_x").samples
    assert (sample.labels["x"], sample.value) == (label, value)


def test_labels_are_optional_for_every_kind():
    """A family without labels has no braces, a histogram only those of its bounds."""
    histogram = Histogram("quantgate_wait_seconds", "Seconds.", (), (1.0,))
    histogram.observe(histogram.row(()), 0.5)
    text = render([histogram.family(), gauge("quantgate_g", "Now.", (), {(): math.inf})]).decode()
    assert 'quantgate_wait_seconds_bucket{le="1.0"} 1\n' in text
    assert "quantgate_wait_seconds_sum 0.5\n" in text
    assert "quantgate_g +Inf\n" in text


def test_controls_own_process_metrics_are_there(families):
    """Memory, CPU and file descriptors of the process that answers."""
    assert b"process_resident_memory_bytes" in render(families)


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
def test_promtool_has_nothing_to_say(families):
    """Names, types and help pass Prometheus' own lint."""
    text = render(families)
    run = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, check=False)
    assert (run.returncode, run.stdout + run.stderr) == (0, b"")
