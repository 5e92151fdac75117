"""Metric families to the text that Prometheus scrapes (text format 0.0.4).

Owns the translation only. Works on copies, so it may run in a thread while counting goes on. prometheus-client encodes
the families of the process itself; ours are written here, because its encoder takes some 30 µs a line and a full scrape
of this gateway has tens of thousands of lines. Called by ``control.admin``.
"""

import math
from collections.abc import Iterable, Iterator, Sequence

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest

from gateway.control.series import Family, Key

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_PROCESS = CollectorRegistry(auto_describe=False)
ProcessCollector(registry=_PROCESS)

_QUOTED = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
_QUOTED_HELP = str.maketrans({"\\": r"\\", "\n": r"\n"})


def render(families: Iterable[Family]) -> bytes:
    """The whole scrape, control's own process metrics included."""
    text = "\n".join(line for family in families for line in _lines(family))
    return text.encode() + b"\n" + generate_latest(_PROCESS)


def _lines(family: Family) -> Iterator[str]:
    name = family.name
    yield f"# HELP {name} {family.help.translate(_QUOTED_HELP)}"
    yield f"# TYPE {name} {family.kind}"
    for key, row in family.samples.items():
        labels = _labels(family.labels, key)
        if family.kind == "histogram":
            yield from _histogram(name, labels, row, family.bounds)
        else:
            yield f"{name}{{{labels}}} {_number(row[0])}" if labels else f"{name} {_number(row[0])}"


def _histogram(name: str, labels: str, row: Sequence[float], bounds: Sequence[float]) -> Iterator[str]:
    """Cumulative buckets, then count and sum."""
    opening = f'{name}_bucket{{{labels}{"," if labels else ""}le="'
    total = 0.0
    for bound, count in zip(bounds, row, strict=False):
        total += count
        yield f'{opening}{bound!r}"}} {total:.0f}'
    total += row[len(bounds)]
    yield f'{opening}+Inf"}} {total:.0f}'
    closing = f"{{{labels}}}" if labels else ""
    yield f"{name}_count{closing} {total:.0f}"
    yield f"{name}_sum{closing} {_number(row[-1])}"


def _labels(names: Key, values: Key) -> str:
    return ",".join([f'{name}="{value.translate(_QUOTED)}"' for name, value in zip(names, values, strict=True)])


def _number(value: float) -> str:
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return "NaN" if math.isnan(value) else repr(float(value))
