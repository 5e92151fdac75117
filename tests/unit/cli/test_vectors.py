"""Promises of the vectors' runner: the engine matches, and nothing in a file goes unchecked."""

import copy
import json
from fractions import Fraction
from math import log, prod
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gateway.cli import app
from gateway.cli.vectors import check_vectors, main, run_vectors
from gateway.cli.vectors.report import VectorReport

FILE = Path(__file__).parents[2] / "data" / "stat_vectors.json"
CONTENT = json.loads(FILE.read_bytes())

INPUTS = {
    "limit",
    "tolerance",
    "dt",
    "beta_per_s",
    "lump_added_before_this_block",
    "counts",
    "pairs",
    "n_candidate",
    "n_baseline",
    "bad_candidate",
    "bad_baseline",
    "tolerance_ratio",
    "worker_1",
    "worker_2",
    "lump",
    "lcg_seed",
    "segments",
    "requests_per_block",
    "lump_before_first_block",
    "tripped",
    "n",
    "seconds",
    "alpha",
    "design_effect",
    "n_min",
    "s_min",
    "budget_per_year",
    "slots",
    "latency_ms",
    "control_quantile_ms",
    "agreement_baseline_baseline",
    "agreement_candidate_baseline",
}
"""Fields that are read; all other numbers and truths of a file are expectations."""


def test_the_engine_matches_every_vector(capsys):
    """All vectors in the repository agree to 1e-6 through the engine, and the output says how many and how far."""
    report = run_vectors(FILE)
    assert report.passed, (report.mismatches, report.unsupported)
    assert report.numbers > 700
    assert report.largest < 1e-6
    assert "734 numbers and 171 decisions checked" in capsys.readouterr().out


def test_the_command_exits_with_the_result(capsys, tmp_path):
    """Status 0 if all agree, 1 for a difference, a section nobody understands, an unreadable or an empty file."""
    wrong, unknown, broken, empty = (tmp_path / name for name in ("wrong", "unknown", "broken", "empty"))
    wrong.write_text(json.dumps({"budget": [{"budget_per_year": 1, "slots": 200, "beta_per_s": 1.6e-10}]}))
    unknown.write_text(json.dumps({**CONTENT, "horoscope": [{"mars": 1}]}))
    broken.write_text("{")
    empty.write_text("{}")
    for path, status in ((FILE, 0), (wrong, 1), (unknown, 1), (broken, 1), (empty, 1), (tmp_path / "absent", 1)):
        with pytest.raises(SystemExit) as exit_:
            main(path)
        assert exit_.value.code == status, path
    out = capsys.readouterr().out
    assert "MISMATCH budget[0].beta_per_s: expected 1.6e-10, measured 1.58" in out
    assert "UNSUPPORTED horoscope: unknown section" in out


def test_the_command_line_takes_the_file_as_its_argument():
    """``quantgate vectors FILE`` checks that file."""
    result = CliRunner().invoke(app, ["vectors", str(FILE)])
    assert result.exit_code == 0, result.output
    assert "all agree" in result.output


ONLY_EXPECTED = {"budget": "beta_per_s", "verdicts": "verdict", "pair_interval_display": "bounds"}
"""Sections whose other fields are inputs although they are expectations elsewhere."""


def _expectations(node, path=(), inputs=frozenset(INPUTS)):
    """Paths of all numbers, truths and verdicts that a file expects."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key not in inputs or (key == "limit" and "n_candidate" in node):
                yield from _expectations(value, (*path, key), inputs)
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from _expectations(value, (*path, index), inputs)
    elif isinstance(node, bool | int | float) or (path and path[-1] == "verdict"):
        yield path


def _spoil(content, path):
    spoiled = copy.deepcopy(content)
    node = spoiled
    for step in path[:-1]:
        node = node[step]
    value = node[path[-1]]
    if isinstance(value, bool):
        node[path[-1]] = not value
    elif isinstance(value, str):
        node[path[-1]] = "pass" if value != "pass" else "fail"
    else:
        node[path[-1]] = value * (1 + 1e-5) if value and not isinstance(value, int) else value + 1
    return spoiled


def _single_entries():
    for name, section in CONTENT.items():
        if isinstance(section, list):
            for index, entry in enumerate(section):
                if name != "long_run" or index == 2:  # the other long runs differ in numbers only
                    yield name, entry
        elif isinstance(section, dict):
            yield name, section


@pytest.mark.parametrize(
    ("name", "entry"), [pytest.param(*pair, id=f"{pair[0]}-{i}") for i, pair in enumerate(_single_entries())]
)
def test_a_change_of_any_expected_value_is_noticed(name, entry):
    """Every expectation is compared: spoiling any single one, by 1e-5, fails the file."""
    paths = [path for path in _expectations(entry) if not _is_unchecked(entry, path)]
    if name in ONLY_EXPECTED:
        paths = [path for path in _expectations(entry, inputs=frozenset()) if path[0] == ONLY_EXPECTED[name]]
    assert paths
    assert check_vectors({name: [entry]}).passed
    for path in paths:
        assert not check_vectors({name: [_spoil(entry, path)]}).passed, path


def _is_unchecked(entry, path) -> bool:
    """A share limit without one of the arms is undefined, and stakes below 1e-200 are all the same nothing."""
    node = entry
    for step in path[:-1]:
        node = node[step]
    value = node[path[-1]]
    no_limit = path[-1] == "limit" and 0 in (node.get("n_candidate"), node.get("n_baseline"))
    return no_limit or (isinstance(value, float) and 0.0 < abs(value) < 1e-190)


@pytest.mark.parametrize(
    ("section", "entry"),
    [
        ("meter", {**CONTENT["meter"][0], "ladder": "rope"}),
        ("meter", {**CONTENT["meter"][0], "temperature": 3}),
        ("meter", {**CONTENT["meter"][0], "blocks": []}),
        ("meter", {**CONTENT["meter"][0], "blocks": [{**CONTENT["meter"][0]["blocks"][0], "dt": 0}]}),
        (
            "meter",
            {
                **CONTENT["meter"][8],
                "blocks": [
                    *CONTENT["meter"][8]["blocks"][:1],
                    {**CONTENT["meter"][8]["blocks"][1], "tolerance_ratio": 2.0},
                ],
            },
        ),
        ("verdicts", {**CONTENT["verdicts"][0], "verdict": 3}),
        ("rate_interval", {"n": 3}),
        ("ladders", {"rope": []}),
        ("ladders", {"share": [{"n_candidate": 0, "n_baseline": 3, "limit": 0.5}]}),
        ("latency_events", {**CONTENT["latency_events"][0], "arm": "bystander"}),
    ],
)
def test_what_is_not_understood_is_a_failure(section, entry):
    """Unknown kinds, fields and malformed entries are reported with their place, not skipped and not a traceback."""
    report = check_vectors({section: [entry]})
    assert not report.passed
    assert all(place.startswith(section) for place in report.unsupported)
    assert report.unsupported


def test_a_file_must_be_a_mapping():
    """A list of numbers is no file of vectors."""
    assert check_vectors([1, 2]).unsupported


def test_comparison_is_relative_with_a_floor():
    """1e-6 relative, or 1e-200 absolute; not-a-number never agrees; words are no numbers."""
    for expected, measured, agrees in (
        (1.0, 1.0 + 9e-7, True),
        (1.0, 1.0 + 2e-6, False),
        (0.0, 1e-201, True),
        (0.0, 1e-199, False),
        (1.0, float("nan"), False),
        ("1", 1.0, False),
    ):
        report = VectorReport()
        report.number("x", expected, measured)
        assert (not report.mismatches) is agrees, (expected, measured)
    lists = VectorReport()
    lists.numbers_of("x", [1.0], [1.0, 2.0])
    assert lists.mismatches[0].path == "x (length)"


# ---- a file with other numbers, by definition in exact arithmetic


def _rate_bets(limit: Fraction) -> list[Fraction]:
    odds = limit / (1 - limit)
    cap = limit + Fraction(95, 100) * (1 - limit)
    targets = [min(odds * k / (1 + odds * k), cap) for k in map(Fraction, ("1.6", "3", "8", "30", "150"))] + [cap]
    return [(target - limit) / (limit * (1 - limit)) for target in targets]


def _pair_bets(limit: Fraction) -> list[Fraction]:
    return [Fraction(share) / (1 + limit) for share in ("0.05", "0.12", "0.30", "0.60", "0.95")]


def _meter_entry(ladder: str, feed: str, beta: str, blocks) -> dict:
    """Stakes as the sum over seeding times since the last trip: seed times all later factors."""
    seeds: list[Fraction] = []
    factors: list[list[Fraction]] = []
    written = []
    for dt, lump, limit, counts in blocks:
        m = Fraction(limit)
        bets = _pair_bets(m) if ladder == "pair" else _rate_bets(m)
        seeds.append(Fraction(lump) + Fraction(beta) * Fraction(dt))
        number = sum(counts.values())
        if feed == "product":
            factors.append([prod((1 + bet * (Fraction(v) - m)) ** n for v, n in counts.items()) for bet in bets])
        else:
            mean = sum(Fraction(v) * n for v, n in counts.items()) / number if number else m
            factors.append([1 + bet * (mean - m) for bet in bets])
        stakes = [
            sum(seed / len(bets) * prod(f[k] for f in factors[i:]) for i, seed in enumerate(seeds))
            for k in range(len(bets))
        ]
        trip = sum(stakes) >= 1
        written.append(
            {"dt": float(dt), "counts": counts, "limit": float(limit), "R": [float(s) for s in stakes]}
            | {"total": float(sum(stakes)), "trip": trip, "lump_added_before_this_block": float(lump)}
        )
        if trip:
            seeds, factors = [], []
    return {"name": "exact", "ladder": ladder, "feed": feed, "beta_per_s": float(Fraction(beta)), "blocks": written}


OTHER = [
    _meter_entry(
        "rate",
        "product",
        "0.000003",
        [
            ("7.5", "0.0004", "0.037", {"1": 1, "0": 9}),
            ("0.3", "0", "0.037", {"1": 0, "0": 0}),
            ("86401.2", "0", "0.037", {"1": 2, "0": 4}),
            ("7.5", "0.002", "0.037", {"1": 4, "0": 0}),
            ("7.5", "0", "0.037", {"0": 33}),
        ],
    ),
    _meter_entry(
        "rate",
        "vote",
        "0.00001",
        [("20", "0.01", "0.11", {"1": bad, "0": 31 - bad}) for bad in (1, 30, 31, 0, 16)],
    ),
    _meter_entry(
        "rate",
        "product",
        "0.0001",
        [("5", "0", limit, {"1": bad, "0": 12}) for limit, bad in (("0.01", 0), ("0.05", 3), ("0.2", 1), ("0.01", 2))],
    ),
    _meter_entry(
        "rate",
        "product",
        "0.0000001",
        [("60", "0.001", "0.04", {"0": 5, "0.25": 2, "1": 1}), ("60", "0", "0.04", {"0.05": 3, "0.6": 2})],
    ),
    _meter_entry(
        "pair",
        "vote",
        "0.0001",
        [("30", "0", "0.035", {"0.125": 4, "-0.7": 1}), ("15", "0.001", "0.035", {"1.0": 3, "0.0": 1})],
    ),
]


def test_another_file_of_the_format_runs_too():
    """Other limits, lengths, feeds, fractions, and limits that change between blocks agree with exact numbers."""
    report = check_vectors({"meter": OTHER})
    assert report.passed, (report.mismatches, report.unsupported)
    assert report.largest < 1e-9
    assert any(block["trip"] for entry in OTHER for block in entry["blocks"])


def test_a_long_run_of_other_numbers():
    """The generator, the trips and the totals of a long run follow the file, checked by a plain loop."""
    limit, beta, state, bets = 0.2, 1e-6, 99, [float(b) for b in _rate_bets(Fraction("0.2"))]
    stakes, trips, totals, bad_total = [0.0] * 6, [], {}, 0
    for number in range(1, 61):
        bad = 0
        for _ in range(7):
            state = (1103515245 * state + 12345) % 2**31
            bad += state / 2**31 < 0.5
        bad_total += bad
        stakes = [
            (stake + (beta * 4.0 + (1e-3 if number == 1 else 0.0)) / 6)
            * (1 + b * (1 - limit)) ** bad
            * (1 - b * limit) ** (7 - bad)
            for stake, b in zip(stakes, bets, strict=True)
        ]
        totals[str(number)] = sum(stakes)
        if sum(stakes) >= 1:
            trips.append(number)
            stakes = [0.0] * 6
    entry = {
        "feed": "product",
        "lcg_seed": 99,
        "segments": [{"blocks": 60, "p": 0.5}],
        "requests_per_block": 7,
        "limit": limit,
        "beta_per_s": beta,
        "dt": 4.0,
        "lump_before_first_block": 1e-3,
        "bad_total": bad_total,
        "total_after_block": totals,
        "trips_at_block": trips,
    }
    report = check_vectors({"long_run": [entry]})
    assert trips
    assert report.passed, (report.mismatches, report.unsupported)


def test_merging_three_workers_with_a_vote():
    """Any number of workers and either feed; the bytes of both orders are compared."""
    bets = _rate_bets(Fraction("0.1"))
    stakes = [float(Fraction("0.001") / 6 * (1 + bet * (Fraction(9, 60) - Fraction("0.1")))) for bet in bets]
    workers = {f"worker_{index}": {"n": 20, "bad": index} for index in (2, 3, 4)}
    entry = {
        "merged": {"n": 60, "bad": 9},
        "R": stakes,
        "total": sum(stakes),
        "beta_per_s": 0.0,
        "dt": 10,
        "limit": 0.1,
    }
    report = check_vectors({"merge": {**workers, **entry, "lump": 0.001, "feed": "vote"}})
    assert report.passed, (report.mismatches, report.unsupported)


def test_verdicts_may_carry_the_meters_total():
    """A nervous meter is not advanced even if the file says so explicitly."""
    entry = {**CONTENT["verdicts"][1], "total": 0.02, "verdict": "not enough"}
    assert check_vectors({"verdicts": [entry]}).passed
    zero = {**CONTENT["verdicts"][1], "evidence": 0.0, "verdict": "not enough"}
    assert check_vectors({"verdicts": [zero]}).passed
    assert log(20.0) == log(1 / 0.05)
