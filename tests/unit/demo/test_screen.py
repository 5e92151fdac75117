"""The same is told on a terminal and in a log; a log gets plain lines, now and then."""

import io

import pytest
from rich.console import Console

from gateway.demo.client import Answer
from gateway.demo.screen import LAST, PLAIN_PARTS, Screen, Trimmed
from gateway.demo.workload import Item, Kind, items_of, workload

ITEMS = items_of(workload(72, 7))


def answered(item: Item) -> Answer:
    """The right answer."""
    status = min(item.may_answer)
    return Answer(item.number, status, 0.5, pool="q4" if status == 200 else "", rule="talk", ttft_s=0.1)


def run(terminal: bool) -> str:
    """Everything that is written while the workload runs."""
    out = io.StringIO()
    screen = Screen(Console(file=out, width=100, force_terminal=terminal))
    with screen.workload(len(ITEMS), ("bf16", "q4")) as tally:
        for item in ITEMS:
            tally.came(item, answered(item))
        tally.event("Edited the policy")
    assert tally.done == len(ITEMS)
    assert tally.wrong == 0
    return out.getvalue()


def test_a_log_gets_a_few_plain_lines() -> None:
    """As many lines as there are parts, without control characters, the last one complete."""
    text = run(terminal=False)
    told = [line for line in text.splitlines() if " of 72 done" in line]
    assert len(told) == PLAIN_PARTS
    assert "72 of 72 done" in told[-1]
    assert "\x1b" not in text
    assert "Edited the policy" in text


def test_a_terminal_moves() -> None:
    """The bar and the last requests are drawn over each other; events stay."""
    text = run(terminal=True)
    assert "\x1b[" in text
    assert "72/72" in text
    assert all(item.kind in text for item in ITEMS[-LAST:])
    assert "Edited the policy" in text


def test_a_wrong_answer_is_told_at_once() -> None:
    """Which request, what it got, and why."""
    out = io.StringIO()
    with Screen(Console(file=out, width=100)).workload(1, ("q4",)) as tally:
        tally.came(Item(9, Kind.CODE, "acme", {}), Answer(9, 502, 0.1, error="upstream_error: [broke]"))
    assert tally.wrong == 1
    assert "request 9 (code) got 502 upstream_error: [broke]" in out.getvalue()


@pytest.mark.parametrize("terminal", [True, False])
def test_a_step_tells_what_it_did_and_how_long(terminal: bool) -> None:
    """What the step says stands beside its label, with the time; without words, what it was doing."""
    out = io.StringIO()
    screen = Screen(Console(file=out, width=100, force_terminal=terminal))
    with screen.step("pools", "starting"):
        pass
    with screen.step("gateway", "starting") as said:
        said += ["ready", "twice"]
    text = out.getvalue()
    assert "starting" in text
    assert "ready" in text
    assert "twice" in text
    assert "0.0 s" in text


def test_a_step_that_fails_says_nothing_of_success() -> None:
    """An error goes through, and no time is told for what was not done."""
    out = io.StringIO()
    with pytest.raises(ValueError, match="no"), Screen(Console(file=out)).step("pools", "starting"):
        raise ValueError("no")
    assert out.getvalue() == ""


def test_logs_have_no_trailing_spaces() -> None:
    """Tables fill their lines with spaces; a log does without."""
    out = io.StringIO()
    console = Console(file=Trimmed(out), width=40)
    console.print("a   ")
    console.print("b\n  c   \n")
    assert out.getvalue() == "a\nb\n  c\n\n"
