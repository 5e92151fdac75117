"""The metrics of a report: complete, named once, and the same words as checks and consequences."""

from gateway.core.consequence import Kind
from gateway.core.quality import FailureClass
from gateway.core.report.metrics import CONSEQUENCES, METRICS


def test_every_failure_class_and_consequence_is_a_metric() -> None:
    """A class that a new check brings must show up in the report."""
    assert {kind.value for kind in FailureClass} <= METRICS.keys()
    assert {kind.value for kind in Kind} == set(CONSEQUENCES) <= METRICS.keys()


def test_labels_are_told_apart() -> None:
    """Two rows of one name would be read as one."""
    labels = [metric.label for metric in METRICS.values()]
    assert len(labels) == len(set(labels))
    assert all(metric.of for metric in METRICS.values())
