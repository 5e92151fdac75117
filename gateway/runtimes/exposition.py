"""Reading the few samples one wants from a Prometheus text page, tolerantly and fast.

A page of vLLM holds about 700 lines of which a prober wants ten, each second, from each endpoint. One compiled
pattern finds the wanted names in C; only their labels are parsed here. Lines that do not parse are skipped: a
half-written or foreign page gives fewer samples, never an exception. Pure. Used by the adapters only.
"""

import math
import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeAlias

_LABEL = re.compile(r'([A-Za-z_][A-Za-z0-9_]*)\s*=\s*"((?:[^"\\]|\\.)*)"')
_ESCAPE = re.compile(r"\\(.)")
_ESCAPES = {"n": "\n", "\\": "\\", '"': '"'}


class Sample(NamedTuple):
    """One sample line. Values may be NaN or infinite, as on the page."""

    name: str
    labels: dict[str, str]
    value: float


Samples: TypeAlias = Mapping[str, list[Sample]]
"""Samples by metric name, in page order."""


def wanted(names: Iterable[str]) -> re.Pattern[str]:
    """Compile the names to look for. A name matches as a whole: ``a:running`` does not find ``a:running_total``."""
    alternatives = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    return re.compile(
        rf'^({alternatives})[ \t]*(?:\{{((?:[^"}}\n]|"(?:[^"\\\n]|\\.)*")*)\}})?[ \t]*(?<=[ \t}}])([^\s#]+)',
        re.MULTILINE,
    )


def read_samples(body: bytes, pattern: re.Pattern[str]) -> Samples:
    """The samples on the page whose names ``pattern`` knows."""
    found: dict[str, list[Sample]] = {}
    for match in pattern.finditer(body.decode("utf-8", "replace")):
        name, labels, text = match.groups()
        try:
            value = float(text)
        except ValueError:
            continue
        found.setdefault(name, []).append(Sample(name, _labels(labels), value))
    return found


def _labels(text: str | None) -> dict[str, str]:
    if not text:
        return {}
    return {name: _unescape(value) for name, value in _LABEL.findall(text)}


def _unescape(value: str) -> str:
    if "\\" not in value:
        return value
    return _ESCAPE.sub(lambda match: _ESCAPES.get(match[1], match[0]), value)


def first_named(samples: Samples, aliases: Iterable[str]) -> list[Sample]:
    """The samples of the first alias that the page has; runtimes rename metrics between versions."""
    for name in aliases:
        if name in samples:
            return samples[name]
    return []


def total(samples: Iterable[Sample]) -> float | None:
    """Sum of the finite values; ``None`` where there is none."""
    values = [sample.value for sample in samples if math.isfinite(sample.value)]
    return sum(values) if values else None


def mean(samples: Iterable[Sample]) -> float | None:
    """Mean of the finite values; ``None`` where there is none."""
    values = [sample.value for sample in samples if math.isfinite(sample.value)]
    return sum(values) / len(values) if values else None


def per_replica(samples: Iterable[Sample], replica_label: str) -> list[Sample]:
    """One sample per value of ``replica_label``: the largest. Ranks of one tensor- or pipeline-parallel engine repeat
    the same number, replicas (data parallel) each have their own."""
    best: dict[str, Sample] = {}
    for sample in samples:
        if not math.isfinite(sample.value):
            continue
        key = sample.labels.get(replica_label, "")
        if key not in best or sample.value > best[key].value:
            best[key] = sample
    return list(best.values())


def count(value: float | None) -> int | None:
    """A reported number of requests as a whole number, never negative."""
    return None if value is None else max(0, round(value))


def share(value: float | None) -> float | None:
    """A reported share held within 0 and 1."""
    return None if value is None or not math.isfinite(value) else min(1.0, max(0.0, value))
