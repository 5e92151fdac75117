"""Several processes' reports become the very blocks that one process would have seen."""

from collections.abc import Iterator

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.evidence import Budget, Judge, KeyedBlock, Merger, Report, SeriesKey, SeriesSpec, Watched, name_of
from gateway.core.evidence.blocks import BlockRecord
from gateway.core.evidence.merging import GONE_REPORTS, UNKNOWN_S, Moved
from gateway.core.evidence.readings import Form

KEY = SeriesKey("errors", "b", "int4")
SPEC = SeriesSpec(Form.RATE, 0.05, block_s=2.0, deadline_s=20.0, announced=True)
NAME = name_of(KEY, SPEC, "s")
WATCHED = {NAME: Watched(KEY, SPEC.block_s, SPEC.lag_s)}
END_S = 60

requests = st.lists(
    # (second of dispatch, seconds until it is resolved, bad, which process serves it)
    st.tuples(st.integers(0, END_S - 1), st.integers(0, 15), st.booleans(), st.integers(0, 2)),
    max_size=120,
)


class Process:
    """One gateway's judge, reporting each second."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.judge = Judge(Budget())
        self.judge.register(KEY, SPEC, 0.0)

    def report(self, now_s: float) -> Report:
        """What it closed, and what it still holds."""
        blocks = tuple((NAME, block.record) for block in self.judge.collect(now_s))
        held = {NAME if key == KEY else "?": first for key, first in self.judge.held(now_s).items()}
        return Report(self.name, now_s, blocks, held)


def happen(processes: list[Process], served: list[tuple[int, int, bool, int]], second: int) -> None:
    """Dispatches and ends of one second."""
    for dispatched, took, bad, which in served:
        judge = processes[which % len(processes)].judge
        if dispatched == second:
            judge.announce(KEY, float(dispatched))
        if dispatched + took == second:
            judge.accept(KEY, float(dispatched), float(bad))


def merged(processes: list[Process], served: list[tuple[int, int, bool, int]], order: list[int]) -> list[KeyedBlock]:
    """Everything that the merge closes; ``order`` is the order in which the processes report each second."""
    merger = Merger()
    found: list[KeyedBlock] = []
    for second in range(END_S + 40):
        happen(processes, served, second)
        for index in order:
            if index < len(processes):
                found += merger.take(processes[index].report(second + 0.9), WATCHED)
    assert merger.late == 0
    return found


def counted(blocks: Iterator[KeyedBlock] | list[KeyedBlock]) -> list[tuple[int, tuple[tuple[float, float, int], ...]]]:
    return [(block.record.number, block.record.cells) for block in blocks]


@given(requests, st.permutations([0, 1, 2]))
def test_parts_make_the_same_blocks_as_one_that_saw_all(
    served: list[tuple[int, int, bool, int]], order: list[int]
) -> None:
    """In the order of their numbers, whichever process served what, and whoever reports first."""
    alone = merged([Process("a")], served, [0])
    parts = merged([Process("a"), Process("b"), Process("c")], served, order)
    assert counted(parts) == counted(alone)
    numbers = [block.record.number for block in parts]
    assert numbers == sorted(set(numbers))


@given(requests, st.permutations([0, 1, 2]))
def test_a_meter_fed_by_parts_is_the_meter_that_saw_all(
    served: list[tuple[int, int, bool, int]], order: list[int]
) -> None:
    """To the last bit: so copies of it trip together."""
    states = []
    for processes in (1, 3):
        judge = Judge(Budget())
        judge.register(KEY, SPEC, 0.0)
        judge.start_stage(KEY, 0.0, 1e-3)
        judge.feed(merged([Process(str(number)) for number in range(processes)], served, order), END_S + 40.0)
        states.append(msgspec.structs.replace(judge.series(KEY).state(), next_block=0))
    assert states[0] == states[1]


def record(number: int, bad: int = 1) -> tuple[str, BlockRecord]:
    return NAME, BlockRecord(number, ((0.0, 1.0, bad),))


def take(merger: Merger, report: Report) -> list[tuple[int, int]]:
    """Numbers and counts of what a report completes."""
    return [(block.record.number, block.record.outcomes) for block in merger.take(report, WATCHED)]


def test_a_block_waits_for_everybody_who_is_alive() -> None:
    """Also for one that holds it open, and says so."""
    merger = Merger()
    assert take(merger, Report("b", 10.0)) == []
    assert take(merger, Report("a", 17.0, (record(5),))) == []
    assert take(merger, Report("b", 18.0, held={NAME: 5})) == []
    assert take(merger, Report("b", 19.0, (record(5, 4),))) == [(5, 5)]
    assert merger.alive == 2


def test_who_has_gone_is_not_waited_for_and_who_leaves_says_so() -> None:
    """What the gone one brings later is late, and counted."""
    merger = Merger()
    take(merger, Report("b", 10.0))
    found = [take(merger, Report("a", 14.0 + turn, (record(5),) if not turn else ())) for turn in range(GONE_REPORTS)]
    assert found == [[]] * GONE_REPORTS
    assert merger.alive == 2
    assert take(merger, Report("a", 30.0)) == [(5, 1)]
    assert merger.alive == 1
    assert take(merger, Report("b", 31.0, (record(5, 3),))) == []
    assert merger.late == 3
    take(merger, Report("a", 40.0, (record(17),)))
    assert take(merger, Report("b", 40.0, (record(17),), {NAME: 9}, leaving=True)) == [(17, 2)]


@pytest.mark.parametrize("skew_s", [-500.0, -30.0, 30.0, 500.0])
def test_a_wrong_clock_delays_and_loses_nothing(skew_s: float) -> None:
    """Of one among three: everybody's outcomes are judged, some of them late in the day."""
    merger, judged = Merger(), 0
    clocks = {"a": 0.0, "b": 0.0, "wrong": skew_s}
    for process, skew in clocks.items():  # who joins with a clock that is behind loses what lies between, once
        take(merger, Report(process, 999.5 + skew))
    for second in range(1_000, 1_100):
        for process, skew in clocks.items():
            at = second + skew
            blocks = (record(int(at) // 2 - 1),) if second % 2 == 0 else ()
            judged += sum(number for _, number in take(merger, Report(process, at + 0.5, blocks)))
    assert (merger.alive, merger.late) == (3, 0)
    assert merger.behind_s == pytest.approx(abs(skew_s))
    for second in range(1_100, 1_700):
        for process, skew in clocks.items():
            judged += sum(number for _, number in take(merger, Report(process, second + skew + 0.5)))
    assert (judged, merger.late) == (150, 0)


def test_while_nobody_reports_nobody_goes() -> None:
    """The database was away: all of them come back together."""
    merger = Merger()
    for process in ("a", "b"):
        take(merger, Report(process, 10.0))
    assert take(merger, Report("a", 500.0, (record(245),))) == []
    assert merger.alive == 2
    assert take(merger, Report("b", 500.5)) == [(245, 1)]


def test_said_twice_counts_once() -> None:
    """A report whose writing seemed to fail is written again; one from before a kill is said anew, in part."""
    merger = Merger()
    take(merger, Report("b", 10.0))
    take(merger, Report("a", 14.0, (record(5, 3),)))
    take(merger, Report("a", 15.0, (record(5, 2), record(6))))
    assert take(merger, Report("b", 16.0, (record(5, 1),))) == [(5, 4), (6, 1)]
    assert merger.late == 0


def test_a_clock_that_is_behind_holds_back_and_breaks_nothing() -> None:
    """A process speaks of its own seconds; the others wait for them."""
    merger = Merger()
    take(merger, Report("slow", 15.0))
    assert take(merger, Report("a", 18.0, (record(7),))) == []
    assert take(merger, Report("slow", 17.5)) == [(7, 1)]


def test_blocks_of_a_series_that_is_not_watched_yet_wait_for_it() -> None:
    """A bucket is met elsewhere first; after a while nobody asks for them any more."""
    merger = Merger()
    assert list(merger.take(Report("a", 20.0, (record(3),)), {})) == []
    assert take(merger, Report("a", 21.0)) == [(3, 1)]
    list(merger.take(Report("a", 22.0, (("other", BlockRecord(1, ((0.0, 1.0, 1),))),)), {}))
    list(merger.take(Report("a", 23.0 + UNKNOWN_S), {}))
    assert set(merger._waiting) == set()


def test_a_report_survives_its_journey() -> None:
    """As bytes."""
    report = Report("a", 20.5, (record(3, 2),), {NAME: 9}, leaving=True)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(report), type=Report) == report


def test_a_name_is_another_one_for_another_question() -> None:
    """Limit, cut, policy: what is not the same is never added up."""
    others = [
        name_of(KEY, msgspec.structs.replace(SPEC, limit=0.1), "s"),
        name_of(KEY, msgspec.structs.replace(SPEC, block_s=1.0), "s"),
        name_of(KEY, SPEC, "other policy"),
        name_of(msgspec.structs.replace(KEY, bucket="c"), SPEC, "s"),
    ]
    assert len({NAME, *others}) == 5
    assert name_of(KEY, msgspec.structs.replace(SPEC, deadline_s=99.0, measures_dependence=True), "s") == NAME


def word(process: str, at_s: float, *numbers: int, set_back: bool = False) -> Report:
    """A report of blocks with one outcome each."""
    blocks = tuple((NAME, BlockRecord(number, ((0.0, 0.0, 1),))) for number in numbers)
    return Report(process, at_s, blocks, set_back=set_back)


def numbers(found: Iterator[KeyedBlock | Moved]) -> list[int]:
    return [one.record.number if isinstance(one, KeyedBlock) else one.now - one.was for one in found]


def test_a_clock_that_is_set_back_is_followed_where_all_waited_for_it() -> None:
    """And by nobody where another's was right; what it says of the same blocks then is no second word."""
    merger = Merger()
    list(merger.take(word("b", 4_000.0), WATCHED))
    assert numbers(merger.take(word("a", 4_000.0, 1_990), WATCHED)) == [1_990]
    assert numbers(merger.take(word("a", 4_010.0, 1_999), WATCHED)) == []
    assert numbers(merger.take(word("a", 400.0, set_back=True), WATCHED)) == [-1_800]
    assert numbers(merger.take(word("b", 400.0, set_back=True), WATCHED)) == []
    assert numbers(merger.take(word("a", 402.0, 199), WATCHED)) == []
    assert numbers(merger.take(word("b", 402.0, 199), WATCHED)) == [199]
    assert merger.late == 0
    right = Merger()
    list(right.take(word("a", 400.0, 190), WATCHED))
    list(right.take(word("b", 4_000.0, 1_990, 205), WATCHED))
    list(right.take(word("a", 402.0), WATCHED))
    assert numbers(right.take(word("b", 402.0, set_back=True), WATCHED)) == []
    list(right.take(word("b", 414.0, 205), WATCHED))
    (block,) = right.take(word("a", 414.0), WATCHED)
    assert isinstance(block, KeyedBlock) and block.record.outcomes == 2
    assert Moved(KEY, 100, 10).block(KeyedBlock(KEY, BlockRecord(99))).record.number == 9


def test_the_clock_of_one_alone_takes_along_what_waits() -> None:
    """Ahead or back, nothing is complete before its time, or late."""
    merger = Merger()
    list(merger.take(word("a", 4_000.0, 1_998, 1_999), WATCHED))
    merger.shift(WATCHED, 4_000.0, 400.0)
    assert merger.behind_s == 0.0
    assert numbers(merger.take(word("a", 402.0, 200), WATCHED)) == [199]
    merger.shift(WATCHED, 402.0, 4_002.0)
    assert numbers(merger.take(word("a", 4_010.0), WATCHED)) == [2_000]
    assert merger.late == 0
