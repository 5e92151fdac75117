"""Reports stand in one order for all readers, whoever writes at the same time; on both databases."""

import threading
from concurrent.futures import ThreadPoolExecutor

from sqlalchemy import Engine

from gateway.store import reports
from gateway.store.reports import Meters, Stored

WRITERS, EACH = 4, 15


def test_reports_come_back_in_their_order(engine: Engine) -> None:
    """From any position on."""
    assert [reports.append(engine, float(number), b"%d" % number) for number in range(3)] == [1, 2, 3]
    assert reports.read(engine, 0) == [Stored(1, b"0"), Stored(2, b"1"), Stored(3, b"2")]
    assert reports.read(engine, 2) == [Stored(3, b"2")]
    assert reports.read(engine, 3) == []


def test_a_reader_never_passes_over_a_report(engine: Engine) -> None:
    """While several write at once: positions have no gaps, and what was read once never gets something in between."""
    seen: list[Stored] = []
    done = threading.Event()

    def write(writer: int) -> None:
        for number in range(EACH):
            reports.append(engine, 1.0, b"%d/%d" % (writer, number))

    def follow() -> None:
        while True:
            last_round = done.wait(0.001)  # who reads without a pause keeps the writers from the processor
            seen.extend(reports.read(engine, seen[-1].position if seen else 0))
            if last_round:
                return

    with ThreadPoolExecutor(WRITERS + 1) as pool:
        reader = pool.submit(follow)
        try:
            for future in [pool.submit(write, writer) for writer in range(WRITERS)]:
                future.result()
        finally:  # or the reader of a test that fails would follow for ever
            done.set()
        reader.result()
    assert [one.position for one in seen] == list(range(1, WRITERS * EACH + 1))
    for writer in range(WRITERS):
        mine = [one.body for one in seen if one.body.startswith(b"%d/" % writer)]
        assert mine == [b"%d/%d" % (writer, number) for number in range(EACH)]


def test_a_long_way_behind_is_read_in_parts(engine: Engine, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    """Bounded memory for who was away."""
    monkeypatch.setattr(reports, "READ_MOST", 2)
    for _ in range(3):
        reports.append(engine, 1.0, b"x")
    assert [one.position for one in reports.read(engine, 0)] == [1, 2]
    assert [one.position for one in reports.read(engine, 2)] == [3]


def test_who_joins_begins_at_a_moment(engine: Engine) -> None:
    """Before the first report of that time; behind everything if there is none."""
    assert reports.position_at(engine, 0.0) == 0
    for at in (10.0, 20.0, 30.0):
        reports.append(engine, at, b"x")
    assert [reports.position_at(engine, at) for at in (0.0, 20.0, 25.0, 31.0)] == [0, 1, 2, 3]


def test_old_reports_are_forgotten_and_positions_go_on(engine: Engine, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    """A position is never given twice."""
    monkeypatch.setattr(reports, "LATEST", 1)
    for at in (10.0, 20.0):
        reports.append(engine, at, b"x")
    assert reports.forget(engine, 20.0, 5.0) == 1
    assert [one.position for one in reports.read(engine, 0)] == [2]
    assert reports.append(engine, 30.0, b"y") == 3
    assert reports.forget(engine, 99.0, 5.0) == 1, "of the latest one nothing is known to be over"
    assert reports.append(engine, 31.0, b"y") == 4


def test_a_clock_that_is_ahead_takes_nothing_from_the_others(engine: Engine) -> None:
    """What is old by its own time may be unread by those whose clocks are right; and its meters give way to theirs."""
    for at in (10.0, 3_700.0, 11.0, 3_701.0):
        reports.append(engine, at, b"x")
    assert reports.forget(engine, 3_701.0, 1_800.0) == 0
    reports.put_meters(engine, Meters(3_701.0, b"ahead"))
    reports.put_meters(engine, Meters(12.0, b"right"))
    assert reports.meters(engine) == Meters(12.0, b"right")


def test_the_newest_meters_are_kept_for_who_joins(engine: Engine) -> None:
    """One row, and an older state never replaces a newer one."""
    assert reports.meters(engine) is None
    for at, body in ((5.0, b"a"), (9.0, b"b"), (7.0, b"c")):
        reports.put_meters(engine, Meters(at, body))
    assert reports.meters(engine) == Meters(9.0, b"b")
