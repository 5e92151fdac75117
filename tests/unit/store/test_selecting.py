"""What selects share: spans of time, values, pages; on both databases."""

import pytest
from sqlalchemy import Engine, select

from gateway.store import samples
from gateway.store.samples import SampleRow
from gateway.store.selecting import between, having, newest_first
from gateway.store.tables import samples as table


@pytest.fixture
def filled(engine: Engine) -> Engine:
    """Four samples a second apart, of two tenants."""
    rows = [SampleRow(f"r{at}", float(at), 99.0, "ab"[at % 2], "x", "p", "share", b"s") for at in range(4)]
    samples.inserter(engine).add(rows)
    return engine


def names(engine: Engine, statement: object) -> list[str]:
    with engine.connect() as connection:
        return [row.request_id for row in connection.execute(statement)]  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("since", "until", "found"),
    [(None, None, [0, 1, 2, 3]), (1.0, None, [1, 2, 3]), (None, 2.0, [0, 1]), (1.0, 3.0, [1, 2]), (9.0, None, [])],
)
def test_a_span_begins_with_its_first_moment_and_ends_before_its_last(
    filled: Engine, since: float | None, until: float | None, found: list[int]
) -> None:
    """So that spans that follow each other count nothing twice."""
    statement = between(select(table), table, since, until).order_by(table.c.id)
    assert names(filled, statement) == [f"r{at}" for at in found]


def test_an_empty_value_matches_all(filled: Engine) -> None:
    """Others must be equal, all of them."""
    assert len(names(filled, having(select(table), table, tenant="", pool=""))) == 4
    assert names(filled, having(select(table).order_by(table.c.id), table, tenant="b", pool="p")) == ["r1", "r3"]
    assert names(filled, having(select(table), table, tenant="b", pool="other")) == []


def test_pages_go_back_from_the_newest(filled: Engine) -> None:
    """The last row's id asks for the next page."""
    assert names(filled, newest_first(select(table), table, None, 3)) == ["r3", "r2", "r1"]
    with filled.connect() as connection:
        last = connection.execute(select(table.c.id).where(table.c.request_id == "r1")).scalar_one()
    assert names(filled, newest_first(select(table), table, last, 3)) == ["r0"]
