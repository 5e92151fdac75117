"""A report as one HTML page that needs nothing else: styles inside, plots as SVG, no scripts, light and dark.

Owns the page. Every name in it is escaped: buckets and models may hold what a client wrote. Called by the command line.
"""

from collections.abc import Sequence
from html import escape
from typing import Final

from gateway.core.report import layout, svg
from gateway.core.report.metrics import LATENCIES, METRICS, QUANTILES, Unit
from gateway.core.report.values import Column, Report, Section, Verdict

_STYLE: Final = """
:root{color-scheme:light dark;--paper:#fff;--ink:#1d2733;--soft:#5b6b7b;--line:#dde3ea;--head:#f4f6f9;--bad:#b3261e;
--badbg:#fdecea;--good:#146c43;--goodbg:#e7f5ec;--s0:#64748b;--s1:#2563eb;--s2:#d97706;--s3:#059669;--s4:#9333ea;
--s5:#db2777}
@media (prefers-color-scheme:dark){:root{--paper:#12171e;--ink:#e3e9f0;--soft:#93a1b1;--line:#2b3542;--head:#1a212b;
--bad:#ff8a80;--badbg:#3a1d1c;--good:#7bd8a2;--goodbg:#15301f;--s0:#94a3b8;--s1:#60a5fa;--s2:#fbbf24;--s3:#34d399;
--s4:#c084fc;--s5:#f472b6}}
body{margin:0;background:var(--paper);color:var(--ink);font:14px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif}
main{max-width:1180px;margin:0 auto;padding:28px 24px 64px}
h1{font-size:24px;margin:0 0 8px}h2{font-size:17px;margin:40px 0 10px;padding-top:16px;border-top:1px solid var(--line)}
p{margin:6px 0;max-width:900px}.soft,small{color:var(--soft)}
ul.verdicts{list-style:none;padding:0;margin:14px 0}ul.verdicts li{padding:7px 12px;margin:5px 0;border-radius:6px}
li.worse{background:var(--badbg);border-left:4px solid var(--bad)}
li.better{background:var(--goodbg);border-left:4px solid var(--good)}
.scroll{overflow-x:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums;min-width:60%}
th,td{padding:4px 12px;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap}
thead th{background:var(--head);position:sticky;top:0;vertical-align:bottom}tbody th{text-align:left;font-weight:500}
tr.group th{background:none;color:var(--soft);font-size:11px;text-transform:uppercase;letter-spacing:.06em;
padding-top:12px;text-align:left}
td small{margin-left:6px}td .delta{margin-left:6px}td b{margin-left:6px;font-weight:600}
td b.worse{color:var(--bad)}td b.better{color:var(--good)}td b.unknown{color:var(--soft);font-weight:400}
.key{display:inline-block;width:10px;height:10px;border-radius:2px;margin-right:6px}
.plots{display:flex;flex-wrap:wrap;gap:18px 28px;margin:18px 0}figure{margin:0}
figcaption{font-weight:600;margin-bottom:2px}
svg{max-width:100%;height:auto;display:block}svg text{font-size:10px;fill:var(--soft)}.grid{stroke:var(--line)}
.axis{stroke:var(--soft)}
"""


def to_html(report: Report) -> str:
    """The whole page."""
    pools = sorted({column.pool for section in report.sections for column in section.columns if not column.baseline})
    first = sorted({column.pool for section in report.sections for column in section.columns if column.baseline})
    series = {pool: index for index, pool in enumerate([*first, *(pool for pool in pools if pool not in first)])}
    body = [
        "<h1>Pools by bucket</h1>",
        *(f"<p>{escape(line)}</p>" for line in layout.summary(report)),
        _verdicts(report),
        f'<p class="soft">{escape(layout.LEGEND)}</p>' if report.sections else "",
        *(_section(section, series) for section in report.sections),
        "<h2>Notes</h2><ul>",
        *(f"<li>{escape(note)}</li>" for note in report.notes),
        "</ul>",
        f'<p class="soft">Made {escape(layout.moment(report.made_at))} by quantgate.</p>',
    ]
    styles = _STYLE + "".join(_series_style(index) for index in range(svg.SERIES))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1"><title>Quantgate report</title>'
        f"<style>{styles}</style></head><body><main>{''.join(body)}</main></body></html>\n"
    )


def _series_style(index: int) -> str:
    colour = f"var(--s{index})"
    return (
        f".s{index}{{fill:{colour};fill-opacity:.16;stroke:{colour};stroke-width:1.4}}.d{index}{{fill:{colour}}}"
        f".w{index}{{stroke:{colour};stroke-width:2}}.k{index}{{background:{colour}}}"
    )


def _verdicts(report: Report) -> str:
    items = [
        f'<li class="{line.partition(":")[0]}">{escape(line)}</li>'  # a line begins with its verdict
        for line in layout.finding_lines(report)
    ]
    if not items:
        return "<p>No comparison is decided yet.</p>" if report.comparisons else ""
    return f'<ul class="verdicts">{"".join(items)}</ul>'


def _section(section: Section, series: dict[str, int]) -> str:
    parts = [f"<section><h2>{escape(layout.named(section.bucket))}</h2>"]
    if section.columns:
        parts += [_table(section, series), _plots(section, series)]
    if section.unserved:
        parts.append(f"<p>Reached no pool: {escape(layout.results(section.unserved.items()))}.</p>")
    return "".join([*parts, "</section>"])


def _table(section: Section, series: dict[str, int]) -> str:
    heads = "".join(
        f'<th scope="col"><span class="key k{series[column.pool] % svg.SERIES}"></span>'
        f"{escape(layout.heading(column))}{_footing(column)}</th>"
        for column in section.columns
    )
    rows, group = [], ""
    for line in layout.lines(section):
        if line.group != group:
            group = line.group
            rows.append(f'<tr class="group"><th colspan="{len(section.columns) + 1}">{escape(group)}</th></tr>')
        cells = "".join(f"<td{_title(cell.reason)}>{_cell(cell)}</td>" for cell in line.cells)
        rows.append(f'<tr><th scope="row"{_title(line.of)}>{escape(line.label)}</th>{cells}</tr>')
    head, body = f"<thead><tr><th></th>{heads}</tr></thead>", f"<tbody>{''.join(rows)}</tbody>"
    return f'<div class="scroll"><table>{head}{body}</table></div>'


def _footing(column: Column) -> str:
    failed = {name: count for name, count in column.results.items() if name != "ok"}
    words = [layout.results(failed.items())] if failed else []
    if column.emulated:
        words.append("emulated: latency is not judged")
    return f"<br><small>{escape('; '.join(words))}</small>" if words else ""


def _cell(cell: layout.Cell) -> str:
    parts = [escape(cell.value)]
    if cell.interval:
        parts.append(f"<small>{escape(cell.interval)}</small>")
    if cell.delta:
        parts.append(f'<span class="delta">{escape(cell.delta)}</span>')
    if cell.verdict is not None:
        kind = "unknown" if cell.verdict is Verdict.NOT_ENOUGH else cell.verdict.value
        parts.append(f'<b class="{kind}">{layout.MARKS[cell.verdict]}</b>')
    return "".join(parts)


def _title(text: str) -> str:
    return f' title="{escape(text)}"' if text else ""


def _plots(section: Section, series: dict[str, int]) -> str:
    figures = []
    for name, (label, _, _) in LATENCIES.items():
        curves = [_curve(name, column, series) for column in section.columns if name in column.distributions]
        figures.append((label, svg.distribution(f"{label}, {layout.named(section.bucket)}", curves)))
    figures.append(
        ("Rates with intervals", svg.rates(f"Rates, {layout.named(section.bucket)}", _groups(section, series)))
    )
    drawn = [f"<figure><figcaption>{escape(name)}</figcaption>{plot}</figure>" for name, plot in figures if plot]
    note = '<p class="soft">Dots above a distribution: P50, P95 and P99. Whiskers: the intervals.</p>' if drawn else ""
    return f'<div class="plots">{"".join(drawn)}</div>{note}'


def _curve(name: str, column: Column, series: dict[str, int]) -> svg.Curve:
    ticks = [column.figures[f"{name}_{short}"].estimate.value for short, _ in QUANTILES]
    return svg.Curve(column.pool, series[column.pool], column.distributions[name], ticks)


def _groups(section: Section, series: dict[str, int]) -> Sequence[svg.Group]:
    """Rates at which something happened at all."""
    groups = []
    for metric in METRICS.values():
        if metric.unit is not Unit.SHARE or metric.name == "cached_share":
            continue
        points = []
        for column in section.columns:
            found = column.figures[metric.name].estimate
            if found.value is not None and found.lower is not None and found.upper is not None:
                points.append(svg.Point(column.pool, series[column.pool], found.value, found.lower, found.upper))
        if any(point.value > 0.0 for point in points):
            groups.append(svg.Group(metric.label, points))
    return groups
