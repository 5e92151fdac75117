"""Metric families to the text that Prometheus scrapes, through prometheus-client's encoders.

Owns the translation only. Works on copies, so it may run in a thread while counting goes on. Called by
``control.admin``.
"""

from collections.abc import Iterable
from itertools import accumulate

from prometheus_client import ProcessCollector
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import CollectorRegistry

from gateway.control.series import Family

_PROCESS = CollectorRegistry(auto_describe=False)
ProcessCollector(registry=_PROCESS)


def render(families: Iterable[Family], accept: str) -> tuple[bytes, str]:
    """The scrape and its content type, in the format that ``accept`` prefers. Control's own process metrics
    included."""
    encode, content_type = choose_encoder(accept)
    return encode(_Given(families)), content_type


class _Given(CollectorRegistry):
    """What the encoders expect of a registry, over families that are already there."""

    def __init__(self, families: Iterable[Family]) -> None:
        super().__init__(auto_describe=False)
        self._families = families

    def collect(self) -> Iterable[Metric]:
        for family in self._families:
            yield _metric(family)
        yield from _PROCESS.collect()


def _metric(family: Family) -> Metric:
    labels = family.labels
    if family.kind == "counter":
        counter = CounterMetricFamily(family.name, family.help, labels=labels)
        for key, row in family.samples.items():
            counter.add_metric(key, row[0])
        return counter
    if family.kind == "gauge":
        gauge = GaugeMetricFamily(family.name, family.help, labels=labels)
        for key, row in family.samples.items():
            gauge.add_metric(key, row[0])
        return gauge
    histogram = HistogramMetricFamily(family.name, family.help, labels=labels)
    bounds = [*(repr(float(bound)) for bound in family.bounds), "+Inf"]
    for key, row in family.samples.items():
        histogram.add_metric(key, list(zip(bounds, accumulate(row[:-1]), strict=True)), row[-1])
    return histogram
