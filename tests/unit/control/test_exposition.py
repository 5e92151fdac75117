"""Families to text: complete, well-formed, and acceptable to Prometheus' own checker."""

import shutil
import subprocess

import pytest
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
    text, content_type = render(families, "")
    assert content_type.startswith("text/plain")
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


def test_openmetrics_is_served_to_who_asks(families):
    """Ends with its end mark, and names its version."""
    text, content_type = render(families, "application/openmetrics-text; version=1.0.0")
    assert content_type.startswith("application/openmetrics-text")
    assert text.endswith(b"# EOF\n")


def test_controls_own_process_metrics_are_there(families):
    """Memory, CPU and file descriptors of the process that answers."""
    assert b"process_resident_memory_bytes" in render(families, "")[0]


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
def test_promtool_has_nothing_to_say(families):
    """Names, types and help pass Prometheus' own lint."""
    text, _ = render(families, "")
    run = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, check=False)
    assert (run.returncode, run.stdout + run.stderr) == (0, b"")
