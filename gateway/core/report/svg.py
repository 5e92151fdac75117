"""Plots as SVG text: where latencies lie, and rates with their intervals.

Owns drawing; colours are CSS variables of the page (``--s0`` … ``--s5``, ``--ink``, ``--line``), so that plots follow
its light or dark scheme. No scripts, no fonts, nothing from outside. Called by `html`.
"""

from collections.abc import Sequence
from html import escape
from math import ceil, floor, log10
from typing import Final, NamedTuple

from gateway.core.report.layout import duration
from gateway.core.report.values import Bar

SERIES: Final = 6  # distinct colours; further pools begin again
_WIDTH: Final = 440.0
_HEIGHT: Final = 130.0
_LEFT: Final = 8.0
_BASE: Final = _HEIGHT - 20.0
_LABEL_WIDTH: Final = 130.0
_ROW: Final = 15.0


class Curve(NamedTuple):
    """One pool's distribution. ``ticks``: P50, P95, P99 in seconds."""

    name: str
    series: int
    bars: Sequence[Bar]
    ticks: Sequence[float | None]


class Point(NamedTuple):
    """One pool's rate with its interval, all in [0, 1]."""

    name: str
    series: int
    value: float
    lower: float
    upper: float


class Group(NamedTuple):
    """One metric with its pools."""

    label: str
    points: Sequence[Point]


def distribution(title: str, curves: Sequence[Curve]) -> str:
    """Densities over a logarithmic axis of time, one filled line a pool; marks below it are P50, P95 and P99."""
    bars = [bar for curve in curves for bar in curve.bars if bar.upper > 0.0]
    if not bars:
        return ""
    low = min(_log(bar.lower, bar.upper) for bar in bars)
    high = max(log10(bar.upper) for bar in bars)
    if high - low < 0.3:
        middle = 0.5 * (low + high)
        low, high = middle - 0.15, middle + 0.15
    scale = (_WIDTH - 2 * _LEFT) / (high - low)
    tallest = max(max(_heights(curve.bars), default=0.0) for curve in curves)
    parts = [_open(_HEIGHT, title), _time_axis(low, high, scale)]
    for curve in curves:
        parts.append(_area(curve, low, scale, tallest))
    parts += [_ticks(curve, low, scale, index) for index, curve in enumerate(curves)]
    return "".join([*parts, "</svg>"])


def rates(title: str, groups: Sequence[Group]) -> str:
    """A dot with whiskers for every pool of every metric, on one linear axis from zero."""
    rows = sum(len(group.points) for group in groups)
    if not rows:
        return ""
    most = max(point.value for group in groups for point in group.points)
    typical = sorted(point.upper for group in groups for point in group.points)[(rows - 1) // 2]
    top = _round_up(min(1.0, max(most * 1.25, typical * 1.25, 0.01)))
    height = rows * _ROW + len(groups) * 7.0 + 24.0
    scale = (_WIDTH - _LABEL_WIDTH - 14.0) / top
    parts = [_open(height, title), _share_axis(top, scale, height)]
    y = 14.0
    for group in groups:
        middle = y + (len(group.points) - 1) * _ROW / 2
        parts.append(f'<text x="{_LABEL_WIDTH - 8:.0f}" y="{middle + 4:.1f}" text-anchor="end">{escape(group.label)}')
        parts.append("</text>")
        for point in group.points:
            parts.append(_whisker(point, y, scale, top))
            y += _ROW
        y += 7.0
    return "".join([*parts, "</svg>"])


def _open(height: float, title: str) -> str:
    return (
        f'<svg viewBox="0 0 {_WIDTH:.0f} {height:.0f}" width="{_WIDTH:.0f}" height="{height:.0f}" role="img" '
        f'aria-label="{escape(title)}"><title>{escape(title)}</title>'
    )


def _log(lower: float, upper: float) -> float:
    """The first bin begins at zero, which no logarithmic axis has."""
    return log10(lower) if lower > 0.0 else log10(upper) - 0.05


def _heights(bars: Sequence[Bar]) -> list[float]:
    """Share of all per width on the axis."""
    total = sum(bar.number for bar in bars) or 1
    return [bar.number / total / max(log10(bar.upper) - _log(bar.lower, bar.upper), 1e-6) for bar in bars]


def _area(curve: Curve, low: float, scale: float, tallest: float) -> str:
    points: list[tuple[float, float]] = []
    before: float | None = None
    for bar, height in zip(curve.bars, _heights(curve.bars), strict=True):
        left, right = (_LEFT + (_log(bar.lower, bar.upper) - low) * scale, _LEFT + (log10(bar.upper) - low) * scale)
        top = _BASE - height / tallest * (_BASE - 12.0)
        if before is None or left - before > 0.5:
            if before is not None:
                points.append((before, _BASE))
            points.append((left, _BASE))
        points += [(left, top), (right, top)]
        before = right
    if before is not None:
        points.append((before, _BASE))
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polygon class="s{curve.series % SERIES}" points="{path}"><title>{escape(curve.name)}</title></polygon>'


def _ticks(curve: Curve, low: float, scale: float, index: int) -> str:
    marks = []
    for name, at in zip(("P50", "P95", "P99"), curve.ticks, strict=False):
        if at:
            x = _LEFT + (log10(at) - low) * scale
            y = 4.0 + index * 3.0
            label = f"{curve.name} {name} {duration(at)}"
            marks.append(
                f'<circle class="d{curve.series % SERIES}" cx="{x:.1f}" cy="{y:.1f}" r="2.6">'
                f"<title>{escape(label)}</title></circle>"
            )
    return "".join(marks)


def _time_axis(low: float, high: float, scale: float) -> str:
    parts = [f'<line class="axis" x1="{_LEFT}" x2="{_WIDTH - _LEFT}" y1="{_BASE}" y2="{_BASE}"/>']
    steps = (1.0, 2.0, 5.0) if high - low < 2.2 else (1.0,)
    for decade in range(floor(low), ceil(high) + 1):
        for step in steps:
            at = decade + log10(step)
            if low <= at <= high:
                x = _LEFT + (at - low) * scale
                parts.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="12" y2="{_BASE}"/>')
                parts.append(
                    f'<text x="{x:.1f}" y="{_BASE + 14:.0f}" text-anchor="middle">{_short(step * 10.0**decade)}</text>'
                )
    return "".join(parts)


def _short(seconds: float) -> str:
    if seconds >= 1.0:
        return f"{seconds:g} s"
    return f"{seconds * 1000.0:.4g} ms" if seconds >= 0.001 else f"{seconds * 1e6:.4g} µs"


def _share_axis(top: float, scale: float, height: float) -> str:
    base = height - 18.0
    parts = []
    for step in range(5):
        share = top * step / 4
        x = _LABEL_WIDTH + share * scale
        parts.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="6" y2="{base:.1f}"/>')
        parts.append(f'<text x="{x:.1f}" y="{base + 14:.1f}" text-anchor="middle">{100 * share:.3g} %</text>')
    return "".join(parts)


def _whisker(point: Point, y: float, scale: float, top: float) -> str:
    left, right = _LABEL_WIDTH + point.lower * scale, _LABEL_WIDTH + min(point.upper, top) * scale
    value = _LABEL_WIDTH + min(point.value, top) * scale
    label = f"{point.name}: {100 * point.value:.2f} % [{100 * point.lower:.2f}–{100 * point.upper:.2f}]"
    series = point.series % SERIES
    beyond = f'<text x="{right + 2:.1f}" y="{y + 4:.1f}">›</text>' if point.upper > top else ""
    return (
        f'<g><title>{escape(label)}</title><line class="w{series}" x1="{left:.1f}" x2="{max(right, left + 1):.1f}" '
        f'y1="{y:.1f}" y2="{y:.1f}"/><circle class="d{series}" cx="{value:.1f}" cy="{y:.1f}" r="3.4"/>{beyond}</g>'
    )


def _round_up(share: float) -> float:
    for step in (0.01, 0.02, 0.04, 0.08, 0.12, 0.2, 0.32, 0.4, 0.6, 0.8):
        if share <= step:
            return step
    return 1.0
