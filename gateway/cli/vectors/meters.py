"""Vectors that need a running series: meters, merged workers, long runs, promotion evidence.

Owns how blocks of the file become outcomes of an engine's series. Called through ``sections``.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from math import gcd, lcm
from typing import Any

from gateway.cli.vectors.report import Entry, VectorReport
from gateway.core.evidence.blocks import BAD, GOOD, BlockRecord, OpenBlock, merge
from gateway.core.evidence.feeds import Feed
from gateway.core.evidence.ladders import (
    promotion_pair_ladder,
    promotion_rate_ladder,
)
from gateway.core.evidence.pairs import Leg, Missing, PairLoss, in_hundredths, pair_loss
from gateway.core.evidence.readings import Form
from gateway.core.evidence.series import Series
from gateway.core.evidence.shares import share_limit
from gateway.core.evidence.values import FedBlock, SeriesSpec


class _Runner:
    """A series of the engine that is fed one block after the other, with a clock made of the blocks' lengths."""

    def __init__(
        self, form: Form, feed: str, beta: float, *, steps_s: Iterable[float], limit: float, ratio: float = 1.0
    ) -> None:
        lengths = [Fraction(str(step)) for step in steps_s]
        if not lengths or min(lengths) <= 0:
            raise ValueError("every block needs a positive dt")
        # The engine's blocks are of equal length; a longer dt is a run of empty blocks before the one that is given.
        common = lcm(*(length.denominator for length in lengths))
        self.block_s = float(Fraction(gcd(*(int(length * common) for length in lengths)), common))
        self.now = Fraction(0)
        spec = SeriesSpec(form, limit, Feed(feed), self.block_s, 0.0, tolerated_ratio=ratio)
        self.series = Series(spec, beta, 0.0)

    def move(self, dt: float, lump: float) -> float:
        """Go to the end of the next block; returns a moment inside it."""
        self.now += Fraction(str(dt))
        inside = float(self.now) - self.block_s / 2.0
        if lump:
            self.series.grant(inside, lump)
        return inside

    def settle(self) -> tuple[Sequence[float], bool]:
        """Feed what is ripe; the stakes (before a reset) and whether it tripped."""
        fed: list[FedBlock] = []
        self.series.advance(float(self.now), fed.append)
        if fed:
            return fed[-1].step.bets, fed[-1].step.tripped
        return self.series.bets_at(float(self.now)), False


def _values(counts: Mapping[str, int]) -> dict[float, int]:
    return {float(value): count for value, count in counts.items()}


def _form_of(ladder: str, blocks: Sequence[Entry]) -> Form:
    if ladder == "pair":
        return Form.PAIR
    if ladder.startswith("rate, at the share limit"):
        return Form.SHARE
    if ladder != "rate":
        raise ValueError(f"unknown ladder {ladder!r}")
    if len({block["limit"] for block in blocks}) > 1:
        return Form.SLICE
    values = {value for block in blocks for value in _values(block["counts"])}
    return Form.RATE if values <= {GOOD, BAD} else Form.SESSION


def check_meter(report: VectorReport, path: str, entry: Entry) -> None:
    """Feed every block of a meter and compare its stakes."""
    report.fields(path, entry, "name ladder feed beta_per_s blocks")
    blocks = entry["blocks"]
    form = _form_of(entry["ladder"], blocks)
    ratio = blocks[0].get("tolerance_ratio", 1.0)
    limit = blocks[0]["limit"]
    runner = _Runner(
        form, entry["feed"], entry["beta_per_s"], steps_s=[block["dt"] for block in blocks], limit=limit, ratio=ratio
    )
    for index, block in enumerate(blocks):
        place = f"{path}.blocks[{index}]"
        report.fields(place, block, _BLOCK_FIELDS)
        inside = runner.move(block["dt"], block.get("lump_added_before_this_block", 0.0))
        _FILL[form](report, place, runner.series, inside, block)
        _check_step(report, place, block, *runner.settle())


_BLOCK_FIELDS = (
    "dt counts limit R total trip lump_added_before_this_block n bad pairs y y_for_promotion n_candidate n_baseline "
    "bad_candidate bad_baseline tolerance_ratio"
)


def _check_step(report: VectorReport, place: str, block: Entry, bets: Sequence[float], tripped: bool) -> None:
    report.exact(f"{place}.trip", block["trip"], tripped)
    # Words stand for stakes beyond a double, where only the trip can be compared.
    if not isinstance(block["R"], str):
        report.numbers_of(f"{place}.R", block["R"], bets)
    if not isinstance(block["total"], str):
        report.number(f"{place}.total", block["total"], sum(bets))


def _fill_values(report: VectorReport, place: str, series: Series, inside: float, block: Entry) -> None:
    counts = _values(block["counts"])
    lane = block["limit"] if series.spec.form is Form.SLICE else 0.0
    for value, count in counts.items():
        if count:
            series.accept(inside, value, count, lane)
    if "n" in block:
        report.exact(f"{place}.n", block["n"], sum(counts.values()))
    if "bad" in block:
        report.number(f"{place}.bad", block["bad"], sum(value * count for value, count in counts.items()))


def _fill_pairs(report: VectorReport, place: str, series: Series, inside: float, block: Entry) -> None:
    counts = _values(block["counts"])
    losses = [pair_loss(leg_of(baseline), leg_of(candidate)) for baseline, candidate in block.get("pairs", ())]
    if "pairs" in block:
        _check_losses(report, place, block, losses)
    for value, count in counts.items():
        if count:
            series.accept(inside, value, count)
    unscored = sum(loss.unscored for loss in losses)
    if unscored:
        series.accept_unscored(inside, unscored)


def _check_losses(report: VectorReport, place: str, block: Entry, losses: Sequence[PairLoss]) -> None:
    for field, measured in (
        ("y", [loss.trip for loss in losses]),
        ("y_for_promotion", [loss.promotion for loss in losses]),
    ):
        if field not in block:
            continue
        report.exact(f"{place}.{field} (length)", len(block[field]), len(measured))
        for index, (expected, loss) in enumerate(zip(block[field], measured, strict=False)):
            if expected is None or loss is None:
                report.exact(f"{place}.{field}[{index}]", expected, loss)
            else:
                report.number(f"{place}.{field}[{index}]", expected, loss)
    staked = [loss.trip for loss in losses if loss.trip is not None]
    given = {round(value, 9): count for value, count in _values(block["counts"]).items() if count}
    # A file may keep the exact losses or the hundredths that production stores.
    bags = [_bag(round(loss, 9) + 0.0 for loss in staked), _bag(in_hundredths(loss) for loss in staked)]
    report.exact(f"{place}.counts", given, bags[0] if bags[0] == given else bags[1])


def _bag(values: Iterable[float]) -> dict[float, int]:
    bag: dict[float, int] = {}
    for value in values:
        bag[value] = bag.get(value, 0) + 1
    return bag


def leg_of(written: Any) -> Leg:
    """A leg as the file writes it: a score, or why there is none."""
    return Missing(written) if isinstance(written, str) else float(written)


def _fill_share(report: VectorReport, place: str, series: Series, inside: float, block: Entry) -> None:
    ratio = block.get("tolerance_ratio", 1.0)
    if ratio != series.spec.tolerated_ratio:
        raise ValueError("the tolerance ratio of a share cannot change within a series")
    for candidate, arm in ((True, "candidate"), (False, "baseline")):
        number, bad = block[f"n_{arm}"], block[f"bad_{arm}"]
        series.accept_share(inside, candidate=candidate, bad=True, count=bad)
        series.accept_share(inside, candidate=candidate, bad=False, count=number - bad)
    limit = share_limit(block["n_candidate"], block["n_baseline"], ratio)
    if limit is not None:
        report.number(f"{place}.limit", block["limit"], limit)
    bad = {BAD: block["bad_candidate"], GOOD: block["bad_baseline"]}
    staked = bad if limit is not None and any(bad.values()) else {}
    given = _values(block["counts"])
    report.exact(f"{place}.counts", {value: given.get(value, 0) for value in (GOOD, BAD)}, {GOOD: 0, BAD: 0} | staked)


_FILL: dict[Form, Callable[[VectorReport, str, Series, float, Entry], None]] = {
    Form.RATE: _fill_values,
    Form.SESSION: _fill_values,
    Form.SLICE: _fill_values,
    Form.PAIR: _fill_pairs,
    Form.SHARE: _fill_share,
}


def check_merge(report: VectorReport, path: str, entry: Entry) -> None:
    """Merge workers' records in two orders and feed the result."""
    workers = sorted(key for key in entry if key.startswith("worker"))
    report.fields(path, entry, " ".join(["merged R total trip beta_per_s dt limit lump feed", *workers]))
    runner = _Runner(
        Form.RATE, entry.get("feed", "product"), entry["beta_per_s"], steps_s=[entry["dt"]], limit=entry["limit"]
    )
    runner.move(entry["dt"], entry.get("lump", 0.0))
    records = [_worker_record(entry[worker]) for worker in workers]
    merged = merge(records)
    report.exact(f"{path}.merged (bytes in any order)", merge(reversed(records)).encode(), merged.encode())
    counts = {value: count for _, value, count in merged.cells}
    report.exact(f"{path}.merged.n", entry["merged"]["n"], sum(counts.values()))
    report.exact(f"{path}.merged.bad", entry["merged"]["bad"], counts.get(BAD, 0))
    runner.series.absorb(merged)
    bets, tripped = runner.settle()
    _check_step(report, path, {"trip": False, **entry}, bets, tripped)


def _worker_record(worker: Entry) -> BlockRecord:
    block = OpenBlock()
    block.add(BAD, worker["bad"])
    block.add(GOOD, worker["n"] - worker["bad"])
    return block.record(0)


_LCG_FACTOR, _LCG_STEP, _LCG_RANGE = 1103515245, 12345, 2**31


def check_long_run(report: VectorReport, path: str, entry: Entry) -> None:
    """Feed a long run from the generator that the file describes."""
    report.fields(
        path,
        entry,
        "name feed lcg_seed segments requests_per_block limit beta_per_s dt lump_before_first_block bad_total "
        "total_after_block trips_at_block note",
    )
    runner = _Runner(Form.RATE, entry["feed"], entry["beta_per_s"], steps_s=[entry["dt"]], limit=entry["limit"])
    lump, state, number, bad_total = entry.get("lump_before_first_block", 0.0), entry["lcg_seed"], 0, 0
    trips, totals = [], {}
    for segment in entry["segments"]:
        for _ in range(segment["blocks"]):
            number += 1
            bad = 0
            for _ in range(entry["requests_per_block"]):
                state = (_LCG_FACTOR * state + _LCG_STEP) % _LCG_RANGE
                bad += state / _LCG_RANGE < segment["p"]
            bad_total += bad
            inside = runner.move(entry["dt"], lump if number == 1 else 0.0)
            runner.series.accept(inside, BAD, bad)
            runner.series.accept(inside, GOOD, entry["requests_per_block"] - bad)
            bets, tripped = runner.settle()
            totals[str(number)] = sum(bets)
            if tripped:
                trips.append(number)
    report.exact(f"{path}.bad_total", entry["bad_total"], bad_total)
    report.exact(f"{path}.trips_at_block", entry["trips_at_block"], trips)
    for block, total in entry["total_after_block"].items():
        report.number(f"{path}.total_after_block.{block}", total, totals[block])


def check_promotion(report: VectorReport, path: str, entry: Entry) -> None:
    """Feed blocks and compare the running promotion evidence."""
    report.fields(path, entry, "name ladder limit mus blocks")
    blocks = [{"limit": entry["limit"], **block} for block in entry["blocks"]]
    form = _form_of(entry["ladder"], blocks)
    runner = _Runner(form, "product", 0.0, steps_s=[1.0], limit=entry["limit"])
    if "mus" in entry:
        ladder = (promotion_pair_ladder if form is Form.PAIR else promotion_rate_ladder)(entry["limit"])
        report.numbers_of(f"{path}.mus", entry["mus"], [-bet for bet in ladder.bets])
    for index, block in enumerate(entry["blocks"]):
        place = f"{path}.blocks[{index}]"
        report.fields(place, block, "counts evidence")
        inside = runner.move(1.0, 0.0)
        for value, count in _values(block["counts"]).items():
            runner.series.accept(inside, value, count)
        runner.settle()
        report.number(f"{place}.evidence", block["evidence"], runner.series.evidence.value)
