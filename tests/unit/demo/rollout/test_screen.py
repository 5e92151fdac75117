"""The rollout is told while it runs: a board on a terminal, plain lines in a log, and decisions in both."""

import io

import pytest
from rich.console import Console

from gateway.demo.rollout.notes import TITLES, Way
from gateway.demo.rollout.screen import PLAIN_EVERY_S, board_for, number
from gateway.demo.rollout.traffic import Tally
from gateway.demo.screen import Screen
from tests.unit.demo.rollout.story import EVENTS, bucket, guard, sent

SUSPECT = guard(bad=8.0, outcomes=11, suspicion=-1.2, log_evidence=-4.0)
BUCKETS = {
    Way.SCHEMA: bucket(Way.SCHEMA, series=(guard("errors"), guard(log_evidence=2.0))),
    Way.FREE: bucket(Way.FREE, series=(guard("errors"), SUSPECT)),
}


def tally() -> Tally:
    """What came back until now."""
    found = Tally()
    for one in sent():
        found.came(one)
    return found


def shown(*, terminal: bool, width: int = 100, buckets: object = None) -> str:
    """Everything that is written while it runs."""
    out = io.StringIO()
    board = board_for(Screen(Console(file=out, width=width, force_terminal=terminal)), "q4", "bf16")
    with board.shown():
        for at in (1.0, PLAIN_EVERY_S, PLAIN_EVERY_S + 1.0, 2 * PLAIN_EVERY_S):
            board.show(buckets or BUCKETS, tally(), at)  # type: ignore[arg-type]
        for way in Way:
            for event in EVENTS[way]:
                board.event(way, event, tally())
    return out.getvalue()


def test_a_log_gets_a_line_for_each_bucket_now_and_then() -> None:
    """Share, counts, and the guard that says most: how near it is to a rollback, else how far from enough."""
    text = shown(terminal=False)
    good = "JSON by a schema: 25 %, 3 of 4 by q4; wrong 0 of 30, evidence 7.4 (89 = enough)"
    bad = "JSON in free form: 25 %, 2 of 5 by q4; wrong 8 of 11, suspicion -1.2 (0 = out)"
    assert text.count(good) == text.count(bad) == 2
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= 100


def test_a_decided_bucket_has_no_more_lines_in_a_log() -> None:
    """Its decision was told."""
    decided = {Way.SCHEMA: bucket(Way.SCHEMA, "promoted", 10_000), Way.FREE: bucket(Way.FREE, "rolled_back", -1)}
    text = shown(terminal=False, buckets=decided)
    assert "= enough" not in text and "= out" not in text
    assert text.count(TITLES[Way.FREE]) == len(EVENTS[Way.FREE])


@pytest.mark.parametrize("terminal", [True, False])
def test_decisions_are_told_in_both(terminal: bool) -> None:
    """With the number of answers and the reason that the gateway put on record."""
    text = shown(terminal=terminal)
    for said in ("q4 enters at 25 %", "q4 stepped to 50 %", "q4 promoted", "q4 rolled back"):
        assert said in text
    assert "after 5 answers, 2 of them by q4" in text
    assert "because of fail" in text


@pytest.mark.parametrize(("width", "wide"), [(80, False), (100, True), (140, True)])
def test_the_board_fits(width: int, wide: bool) -> None:
    """Nothing is cut off where the terminal is narrow; the rest is left out there."""
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=True, color_system=None)
    board = board_for(Screen(console), "q4", "bf16")
    with board.shown():
        board.show(BUCKETS, tally(), 12.0)
    text = out.getvalue()
    assert "…" not in text
    assert "stage 1 of 3" in text
    assert "8 of 11" in text and "1 of 80" in text and "15 %" in text and "-1.2" in text
    assert ("95 % range" in text) is ("0 – 20 %" in text) is wide
    assert "evidence: 89 = on" in text


def test_a_bucket_before_its_first_outcome() -> None:
    """No guard has anything to tell yet, and nothing breaks."""
    empty = {Way.FREE: bucket(Way.FREE, "pending", 0, series=(), stages=())}
    assert "nothing, 2 of 5 by q4" in shown(terminal=False, buckets=empty)
    assert "pending" in shown(terminal=True, buckets=empty)


def test_an_interval_that_is_not_known() -> None:
    """Is a dash."""
    unknown = {Way.FREE: bucket(Way.FREE, series=(guard(interval=None),))}
    assert "–" in shown(terminal=True, buckets=unknown)


@pytest.mark.parametrize(
    ("value", "text"), [(0.0021, "0.0021"), (7.38, "7.4"), (89.4, "89"), (518.2, "518"), (2.5e9, "2.5e+09")]
)
def test_numbers_are_short(value: float, text: str) -> None:
    """An e-value goes over many orders of magnitude."""
    assert number(value) == text
