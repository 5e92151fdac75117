"""The sections of a file of statistical test vectors, each run through the judge's own engine.

Owns the table of sections and the simple ones: one function each, which feeds an entry's inputs to the engine and
hands every expected value with the measured one to the report. Called by ``gateway.cli.vectors``.
"""

from collections.abc import Callable
from math import inf, log
from typing import Any

from gateway.cli.vectors.meters import check_long_run, check_merge, check_meter, check_promotion, leg_of
from gateway.cli.vectors.report import Entry, VectorReport, entries_of
from gateway.core.evidence.blocks import BASELINE, CANDIDATE
from gateway.core.evidence.budget import drip_per_s
from gateway.core.evidence.intervals import MeanInterval, rate_interval
from gateway.core.evidence.ladders import (
    Ladder,
    pair_ladder,
    promotion_pair_ladder,
    promotion_rate_ladder,
    rate_ladder,
)
from gateway.core.evidence.latency import is_slow_for_arm
from gateway.core.evidence.pairs import three_leg_loss
from gateway.core.evidence.promotion import PromotionRule, decide_promotion
from gateway.core.evidence.shares import share_limit

_LADDERS: dict[str, Callable[[Entry], Ladder]] = {
    "rate": lambda entry: rate_ladder(entry["limit"]),
    "pair": lambda entry: pair_ladder(entry["tolerance"]),
    "promotion_rate": lambda entry: promotion_rate_ladder(entry["limit"]),
    "promotion_pair": lambda entry: promotion_pair_ladder(entry["tolerance"]),
    "share": lambda entry: rate_ladder(_share_limit(entry)),
}


def _check_ladders(report: VectorReport, path: str, section: Entry) -> None:
    for kind, entries in section.items():
        if kind not in _LADDERS:
            report.unsupported.append(f"{path}.{kind}: unknown kind of ladder")
            continue
        for place, entry in entries_of(f"{path}.{kind}", entries):
            report.fields(place, entry, "limit tolerance targets lambdas mus n_candidate n_baseline tolerance_ratio")
            ladder = _LADDERS[kind](entry)
            if kind == "share":
                report.number(f"{place}.limit", entry["limit"], ladder.limit)
            if "targets" in entry:
                report.numbers_of(f"{place}.targets", entry["targets"], ladder.targets)
            if "lambdas" in entry:
                report.numbers_of(f"{place}.lambdas", entry["lambdas"], ladder.bets)
            if "mus" in entry:
                report.numbers_of(f"{place}.mus", entry["mus"], [-bet for bet in ladder.bets])


def _share_limit(entry: Entry) -> float:
    limit = share_limit(entry["n_candidate"], entry["n_baseline"], entry.get("tolerance_ratio", 1.0))
    if limit is None:
        raise ValueError("an arm without traffic has no share limit")
    return limit


def _check_verdict(report: VectorReport, path: str, entry: Entry) -> None:
    report.fields(path, entry, "tripped evidence n seconds alpha design_effect n_min s_min verdict total")
    rule = PromotionRule(entry["alpha"], entry["n_min"], entry["s_min"], entry["design_effect"])
    verdict = decide_promotion(
        tripped=entry["tripped"],
        log_evidence=log(entry["evidence"]) if entry["evidence"] > 0.0 else -inf,
        number=entry["n"],
        stage_s=entry["seconds"],
        total=entry.get("total", 0.0),
        rule=rule,
    )
    report.exact(f"{path}.verdict", entry["verdict"].replace(" ", "_"), verdict.outcome.value)


def _check_budget(report: VectorReport, path: str, entry: Entry) -> None:
    report.fields(path, entry, "budget_per_year slots beta_per_s")
    report.number(f"{path}.beta_per_s", entry["beta_per_s"], drip_per_s(entry["budget_per_year"], entry["slots"]))


def _check_rate_interval(report: VectorReport, path: str, entry: Entry) -> None:
    report.fields(path, entry, "n bad alpha lower upper")
    interval = rate_interval(entry["n"], entry["bad"], entry["alpha"])
    report.number(f"{path}.lower", entry["lower"], interval.lower)
    report.number(f"{path}.upper", entry["upper"], interval.upper)


def _check_pair_interval(report: VectorReport, path: str, entry: Entry) -> None:
    report.fields(path, entry, "alpha y bounds note")
    mean = MeanInterval(entry["alpha"])
    report.exact(f"{path}.bounds (length)", len(entry["bounds"]), len(entry["y"]))
    for index, (loss, bounds) in enumerate(zip(entry["y"], entry["bounds"], strict=False)):
        mean.add((loss + 1.0) / 2.0)
        interval = mean.loss_interval()
        report.numbers_of(f"{path}.bounds[{index}]", bounds, [interval.lower, interval.upper])


def _check_latency(report: VectorReport, path: str, entry: Entry) -> None:
    report.fields(path, entry, "arm latency_ms control_quantile_ms tolerance slow")
    arm = {"candidate": CANDIDATE, "control": BASELINE}[entry["arm"]]
    slow = is_slow_for_arm(
        entry["latency_ms"],
        candidate=arm == CANDIDATE,
        control_quantile=entry["control_quantile_ms"],
        tolerated_ratio=entry["tolerance"],
    )
    report.exact(f"{path}.slow", entry["slow"], slow)


def _check_three_legs(report: VectorReport, path: str, entry: Entry) -> None:
    report.fields(path, entry, "agreement_baseline_baseline agreement_candidate_baseline y")
    loss = three_leg_loss(leg_of(entry["agreement_baseline_baseline"]), leg_of(entry["agreement_candidate_baseline"]))
    trip = None if loss is None else loss.trip
    if trip is None or entry["y"] is None:
        report.exact(f"{path}.y", entry["y"], trip)
    else:
        report.number(f"{path}.y", entry["y"], trip)


SECTIONS: dict[str, Callable[[VectorReport, str, Any], None]] = {
    "ladders": _check_ladders,
    "meter": check_meter,
    "merge": check_merge,
    "long_run": check_long_run,
    "promotion": check_promotion,
    "verdicts": _check_verdict,
    "budget": _check_budget,
    "rate_interval": _check_rate_interval,
    "pair_interval_display": _check_pair_interval,
    "latency_events": _check_latency,
    "three_legs": _check_three_legs,
}
