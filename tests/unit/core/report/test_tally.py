"""Counting rows: failures belong to the pool that failed, shares to the answers they apply to, memory is bounded."""

import random

import pytest

from gateway.core.report import ConsequenceRow, Tally, tally
from tests.unit.core.report.report_rows import BROKEN, PASSED, attempts, int4, row


def counted(*rows):
    made = Tally()
    made.add_requests(rows)
    return made


def test_a_failure_that_another_pool_made_good_counts_against_the_one_that_failed():
    """Failover hides nothing: the request is the second pool's, the failed attempt the first one's."""
    made = counted(row(attempts=attempts(("int4", "connect"), ("bf16", ""))))
    first, second = made.cell("chat", "int4"), made.cell("chat", "bf16")
    assert (first.requests, first.attempts, first.failed_attempts) == (0, 1, {"connect": 1})
    assert (second.requests, second.attempts, second.failed_attempts) == (1, 1, {})


@pytest.mark.parametrize("failure", sorted(tally.NOT_THE_POOLS_FAULT))
def test_some_failed_attempts_are_not_the_pools(failure):
    """A bad request, our own limit and a stale connection say nothing about it."""
    made = counted(row(attempts=attempts(("int4", failure), ("bf16", ""))))
    assert made.cell("chat", "int4").attempts == 0


def test_shares_are_of_the_answers_they_apply_to():
    """An answer without a JSON check is no evidence for JSON, one that could not be judged neither."""
    made = counted(
        row(findings=PASSED),
        row(findings=BROKEN),
        row(findings='[["json","skip"]]'),
        row(findings='[["empty","pass"]]'),
        row(score=None, findings="[]"),
    ).cell("chat", "bf16")
    found = made.classes()["format_error"]
    assert (found.number, found.failed) == (2, 1)
    assert (made.checks()["empty"].number, made.checked) == (3, 4)


def test_a_class_fails_once_an_answer():
    """Two failed checks of a class, or two choices of one answer, are one bad answer."""
    made = counted(row(findings='[["json","fail"],["schema","fail"],["json","pass"]]')).cell("chat", "bf16")
    assert (made.classes()["format_error"].number, made.classes()["format_error"].failed) == (1, 1)
    assert made.checks()["json"].failed == 1


def test_many_different_findings_need_no_memory():
    """They are counted as soon as there are too many to hold, and none is lost."""
    made = Tally()
    rng = random.Random(1)
    checks = [
        "json",
        "empty",
        "repetition",
        "garbage",
        "script",
        "refusal",
        "numbers",
        "sql",
        "python",
        "fences",
        "schema",
    ]
    for _ in range(4000):
        findings = ",".join(f'["{check}","{rng.choice(("pass", "fail"))}"]' for check in checks)
        made.add(row(findings=f"[{findings}]"))
    cell = made.cell("chat", "bf16")
    assert len(cell._bag) <= tally.BAG_MOST
    assert cell.checks()["sql"].number == 4000


def test_latency_is_of_whole_answers_and_of_streams():
    """Errors are quick and tell nothing; a whole answer has no first token; -1 is unknown and not zero."""
    made = counted(
        row(),
        row(stream=False),
        row(result="upstream_error"),
        row(ttft_s=-1.0, first_to_last_s=-1.0, longest_gap_s=-1.0, completion_tokens=1, queue_s=-1.0, overhead_s=-1.0),
    ).cell("chat", "bf16")
    counts = {name: sketch.count for name, sketch in made.latencies.items()}
    assert counts == {"ttft": 1, "tpot": 1, "gap": 1, "total": 3, "queue": 3, "overhead": 3}
    assert made.latencies["tpot"].most == 0.02


def test_the_time_that_a_failed_pool_took_is_not_the_next_ones():
    """A candidate that hangs for a second before another pool answers would look fast beside that pool."""
    tries = '[["int4","int4/0",0,"first_byte_timeout",0.5,1.0],["bf16","bf16/0",200,"",1.5,1.1]]'
    made = counted(row(attempts=tries, ttft_s=1.6, total_s=2.6)).cell("chat", "bf16")
    assert made.latencies["ttft"].most == pytest.approx(0.6)  # with the half second that it waited for room
    assert made.latencies["total"].most == pytest.approx(1.6)


def test_tokens_are_summed_where_told():
    """Prefix-cache hits count over the prompts of runtimes that tell them."""
    made = counted(row(), row(cached_tokens=-1), row(prompt_tokens=-1, completion_tokens=-1)).cell("chat", "bf16")
    assert (made.prompt_tokens, made.output_tokens) == (200, 102)
    assert (made.cached_tokens, made.cache_told_tokens) == (50, 100)


def test_requests_that_reached_no_pool_are_told_apart():
    """They are nobody's failure and nobody's success."""
    made = counted(row(pool="", result="shed", attempts="[]"), row(pool="", result="shed", attempts="[]"))
    assert made.unserved == {"chat": {"shed": 2}}
    assert made.cells == {}


def test_consequences_count_for_the_pool_that_answered():
    """Feedback that only has a label judges nothing; what belongs to no cell is left out."""
    made = counted(row(), row())
    made.add_consequences(
        [
            ConsequenceRow("feedback", "chat", "bf16", 0.2),
            ConsequenceRow("feedback", "chat", "bf16", 1.0),
            ConsequenceRow("feedback", "chat", "bf16", None),
            ConsequenceRow("tool_error", "chat", "bf16", None),
            ConsequenceRow("re_ask", "gone", "bf16", None),
        ]
    )
    cell = made.cell("chat", "bf16")
    assert (cell.feedback.failed, cell.feedback.number, cell.consequences) == (1, 2, {"tool_error": 1})


def test_buckets_over_the_bound_are_counted_together(monkeypatch):
    """No history of names can grow the memory; nothing is lost, and the report will say so."""
    monkeypatch.setattr(tally, "CELLS_MOST", 3)
    made = counted(*(row(bucket=f"b{index}") for index in range(10)))
    assert len(made.cells) == 4
    assert made.folded
    assert sum(cell.requests for cell in made.cells.values()) == 10


def test_the_order_of_rows_does_not_matter():
    """But for the quality score's interval, which follows the order of arrival by its method."""
    rows = [row(at=float(i), ttft_s=0.01 * i, findings=PASSED if i % 3 else BROKEN) for i in range(60)] + [int4()] * 5
    shuffled = rows[:]
    random.Random(4).shuffle(shuffled)
    one, two = counted(*rows), counted(*shuffled)
    for key, cell in one.cells.items():
        other = two.cells[key]
        assert {n: s.encode() for n, s in cell.latencies.items()} == {n: s.encode() for n, s in other.latencies.items()}
        assert {n: (s.failed, s.number) for n, s in cell.checks().items()} == {
            n: (s.failed, s.number) for n, s in other.checks().items()
        }
        assert (cell.first_at, cell.last_at, cell.requests) == (other.first_at, other.last_at, other.requests)
