"""The report out of a tally: baselines, estimates, comparisons, findings.

Owns which pool is the baseline of which model, and the order of sections and columns. Pure; called once per report.
"""

from collections.abc import Callable, Iterable, Mapping

from gateway.core.report import judging
from gateway.core.report.metrics import CONSEQUENCES, ERROR_RATE, LATENCIES, METRICS, QUALITY, QUANTILES
from gateway.core.report.tally import OTHER, Cell, Tally
from gateway.core.report.values import Bar, Column, Estimate, Figure, Finding, Report, Section, Verdict
from gateway.core.sketch import STEPS, Sketch, edges_of
from gateway.model.precision import bits

# Bars to each power of two in a plot: as many as the durations can fill.
BARS = ((100, 2), (2_000, 4))
BARS_MOST = 8
_PLOTTED = ("ttft", "tpot", "total", "gap")


class UnknownBaselineError(Exception):
    """A pool was named as baseline that served nothing in this span."""


def build(
    tally: Tally,
    made_at: float,
    *,
    baselines: Iterable[str] = (),
    since: float | None = None,
    until: float | None = None,
) -> Report:
    """The report. ``baselines`` names pools; models without one among them get their widest precision's.

    Raises ``UnknownBaselineError``.
    """
    chosen, guessed = _baselines(tally, tuple(baselines))
    sections = [
        _section(tally, bucket, chosen)
        for bucket in sorted({*(bucket for bucket, _ in tally.cells), *tally.unserved}, key=_by_bucket(tally))
    ]
    findings, comparisons = _findings(sections)
    return Report(
        made_at=made_at,
        since=since,
        until=until,
        first_at=tally.first_at,
        last_at=tally.last_at,
        requests=tally.requests,
        interval_level=1.0 - tally.alpha,
        comparison_level=1.0 - 2.0 * tally.alpha,
        baselines=chosen,
        comparisons=comparisons,
        decided=len(findings),
        findings=findings,
        sections=sections,
        notes=_notes(tally, sections, guessed),
    )


def _baselines(tally: Tally, named: tuple[str, ...]) -> tuple[dict[str, str], list[str]]:
    """Baseline by model, and the models for which it was guessed."""
    unknown = [pool for pool in named if pool not in tally.models]
    if unknown and tally.models:
        raise UnknownBaselineError(
            f"{', '.join(unknown)} served nothing in this span. Pools that did: {', '.join(sorted(tally.models))}"
        )
    chosen = {tally.models[pool]: pool for pool in reversed(named) if pool in tally.models}
    guessed = []
    for model in sorted(set(tally.models.values())):
        if model not in chosen:
            pools = [pool for pool, of in tally.models.items() if of == model]
            chosen[model] = min(pools, key=lambda pool: (-_width(tally, pool), -_served(tally, pool), pool))
            guessed.append(chosen[model])
    return chosen, guessed


def _width(tally: Tally, pool: str) -> int:
    """Bits of the coarsest part of a pool's precision, as its label tells."""
    label = _precision([cell for (_, name), cell in tally.cells.items() if name == pool])
    return min((bits(part.removeprefix("kv-")) for part in label.split("+") if part), default=0)


def _served(tally: Tally, pool: str) -> int:
    return sum(cell.requests for (_, name), cell in tally.cells.items() if name == pool)


def _precision(cells: Iterable[Cell]) -> str:
    counts: dict[str, int] = {}
    for cell in cells:
        for label, count in cell.precisions.items():
            counts[label] = counts.get(label, 0) + count
    return max(counts, key=lambda label: (counts[label], label), default="")


def _by_bucket(tally: Tally) -> Callable[[str], tuple[bool, int, str]]:
    totals: dict[str, int] = {}
    for (bucket, _), cell in tally.cells.items():
        totals[bucket] = totals.get(bucket, 0) + cell.requests
    return lambda bucket: (bucket in ("", OTHER), -totals.get(bucket, 0), bucket)


def _section(tally: Tally, bucket: str, chosen: Mapping[str, str]) -> Section:
    cells = {pool: cell for (name, pool), cell in tally.cells.items() if name == bucket}
    order = sorted(cells, key=lambda pool: (tally.models[pool], chosen[tally.models[pool]] != pool, pool))
    estimates = {pool: _estimates(cell, tally.alpha) for pool, cell in cells.items()}
    columns = []
    for pool in order:
        baseline = chosen[tally.models[pool]]
        against = "" if pool == baseline else baseline
        columns.append(_column(tally, pool, cells[pool], against, estimates))
    return Section(bucket, columns, tally.unserved.get(bucket, {}))


def _column(
    tally: Tally, pool: str, cell: Cell, against: str, estimates: Mapping[str, Mapping[str, Estimate]]
) -> Column:
    reference = estimates.get(against, {}) if against else None
    emulated = any(_emulated(tally.records.get(digest, {})) for digest in cell.deployments)
    return Column(
        pool=pool,
        precision=_precision([cell]),
        against=against,
        requests=cell.requests,
        results=dict(sorted(cell.results.items())),
        attempts=cell.attempts,
        failed_attempts=dict(sorted(cell.failed_attempts.items())),
        checked=cell.checked,
        prompt_tokens=cell.prompt_tokens,
        output_tokens=cell.output_tokens,
        deployments=tuple(sorted(cell.deployments)),
        emulated=emulated,
        figures={name: _figure(name, found, reference, emulated) for name, found in estimates[pool].items()},
        checks={
            name: judging.share(found.failed, found.number, tally.alpha)
            for name, found in sorted(cell.checks().items())
        },
        distributions={name: _bars(cell.latencies[name]) for name in _PLOTTED if cell.latencies[name].count},
    )


def _figure(name: str, found: Estimate, against: Mapping[str, Estimate] | None, emulated: bool) -> Figure:
    if against is None:
        return Figure(found)
    return Figure(found, judging.compare(METRICS[name], against.get(name, Estimate(0)), found, emulated=emulated))


def _estimates(cell: Cell, alpha: float) -> dict[str, Estimate]:
    """Every metric of a cell by name, in the metrics' order."""
    found = {ERROR_RATE: judging.share(sum(cell.failed_attempts.values()), cell.attempts, alpha)}
    for name in LATENCIES:
        for short, at in QUANTILES:
            found[f"{name}_{short}"] = judging.quantile(cell.latencies[name], at, alpha)
    span_s = cell.last_at - cell.first_at
    if span_s > 0.0:
        found["requests_per_second"] = Estimate(cell.requests, cell.requests / span_s)
        found["output_tokens_per_second"] = Estimate(cell.requests, cell.output_tokens / span_s)
    if cell.cache_told_tokens:
        # Tokens of one prompt hit or miss together, so an interval over tokens would be far too narrow.
        found["cached_share"] = Estimate(cell.cache_told_tokens, cell.cached_tokens / cell.cache_told_tokens)
    found[QUALITY] = judging.mean(cell.quality)
    for name, shares in cell.classes().items():
        found[name] = judging.share(shares.failed, shares.number, alpha)
    for kind in CONSEQUENCES:
        count = cell.consequences.get(kind, 0)
        over = cell.checked if kind == "re_ask" else cell.calls
        found[kind] = judging.share(count, max(over, count), alpha)
    found["feedback"] = judging.share(cell.feedback.failed, cell.feedback.number, alpha)
    return {name: found.get(name, Estimate(0)) for name in METRICS}


def _bars(sketch: Sketch) -> list[Bar]:
    """The sketch's bins joined to coarser ones, as a plot needs them."""
    step = STEPS // next((bars for below, bars in BARS if sketch.count < below), BARS_MOST)
    counts: dict[int, int] = {}
    for number, count in sketch.bins.items():
        counts[number // step] = counts.get(number // step, 0) + count
    return [
        Bar(edges_of(place * step)[0], edges_of(place * step + step - 1)[1], counts[place]) for place in sorted(counts)
    ]


def _emulated(record: Mapping[str, object]) -> bool:
    precision = record.get("precision")
    return isinstance(precision, Mapping) and precision.get("emulated") is True


def _findings(sections: Iterable[Section]) -> tuple[list[Finding], int]:
    """What is decided, worse first, and how many comparisons had data on the pool's side."""
    found, asked = [], 0
    for section in sections:
        for column in section.columns:
            for metric, figure in column.figures.items():
                comparison = figure.comparison
                if comparison is None or not figure.estimate.number:
                    continue
                asked += 1
                if comparison.verdict is not Verdict.NOT_ENOUGH:
                    found.append(Finding(section.bucket, column.pool, column.against, metric, comparison.verdict))
    return sorted(found, key=lambda finding: finding.verdict is not Verdict.WORSE), asked


def _notes(tally: Tally, sections: Iterable[Section], guessed: Iterable[str]) -> list[str]:
    notes = [
        "Intervals hold at every look and take requests as independent; latencies under load are not, so take theirs "
        "with care.",
        "Pools are compared on what they served: unless a rollout or a replay gave them the same traffic, requests "
        "within a bucket may differ.",
    ]
    notes += [f"{pool} was taken as baseline: the widest precision of its model." for pool in guessed]
    mixed = sorted({c.pool for section in sections for c in section.columns if len(c.deployments) > 1})
    notes += [f"{pool} ran more than one deployment in this span; its numbers mix them." for pool in mixed]
    if tally.folded:
        notes.append("There were more buckets than a report holds; the rest is counted as other.")
    return notes
