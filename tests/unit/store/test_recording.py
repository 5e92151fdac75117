"""Requests as rows: a kind once, whoever writes it, and told anew now and then for as long as it is in use."""

import msgspec
import pytest
from sqlalchemy import Engine, text

from gateway.core.batch import Kinds, by_column
from gateway.model.outcome import Attempt, Kind
from gateway.store import recording as module
from gateway.store.recording import REFRESH_S, RequestInserter, kind_row, rows_of
from gateway.store.records import Filter, page
from gateway.store.tables import request_facts, request_kinds
from tests.unit.dataplane.outcome_values import columns, make_outcome
from tests.unit.store.outcome_rows import Record, put, row_of


def kinds(engine: Engine) -> list[float]:
    """The times of the kinds that are stored."""
    with engine.connect() as connection:
        return list(connection.execute(text('SELECT "at" FROM request_kinds ORDER BY "at"')).scalars())


def test_every_column_is_filled() -> None:
    """None is left to a default by mistake."""
    assert {"id", "at", *module._KIND_COLUMNS} == set(request_kinds.c.keys())
    assert {"id", *module._FACT_COLUMNS, *module._CHECKED_COLUMNS} == set(request_facts.c.keys())


def test_a_kind_is_stored_once(engine: Engine) -> None:
    """Over batches and over several gateways of one database; what differs makes another."""
    first, second = RequestInserter(engine), RequestInserter(engine)
    for number, insert in enumerate((first, first, second)):
        insert.add([row_of(Record(make_outcome(request_id=f"{number}{more}", at=5.0))) for more in "ab"])
    assert kinds(engine) == [5.0]
    first.add([row_of(Record(make_outcome(pool="other"))), row_of(Record(make_outcome(), deployment="d"))])
    assert len(kinds(engine)) == 3
    assert len(page(engine, Filter())) == 8


def test_each_field_of_a_kind_and_its_deployment_make_its_number() -> None:
    """Two that differ in anything must not be taken for one."""
    kind = make_outcome().kind
    others = {str: "other", int: 99, bool: True, tuple: ("x",)}
    numbers = {
        kind_row(msgspec.structs.replace(kind, **{name: others[type(getattr(kind, name))]}), "").number
        for name in Kind.__struct_fields__
    }
    assert len(numbers | {kind_row(kind, "").number, kind_row(kind, "d").number}) == len(Kind.__struct_fields__) + 2
    assert all(0 <= number < 2**63 for number in numbers)


def test_a_kind_that_is_in_use_is_told_anew(engine: Engine) -> None:
    """So that retention does not take away what younger requests are of."""
    insert = RequestInserter(engine)
    for at in (0.0, REFRESH_S / 2, REFRESH_S + 1.0):
        insert.add([row_of(Record(make_outcome(at=at)))])
    assert kinds(engine) == [REFRESH_S + 1.0]


def test_what_is_remembered_of_kinds_is_bounded(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that makes up models grows no memory; every request keeps its own."""
    monkeypatch.setattr(module, "KINDS_MOST", 5)
    insert = RequestInserter(engine)
    for number in range(20):
        insert.add([row_of(Record(make_outcome(request_id=str(number), model=f"m{number}")))])
        assert len(insert._told_at) <= 5
    assert {row["model"] for row in page(engine, Filter())} == {f"m{number}" for number in range(20)}


def test_a_failed_batch_leaves_its_kinds_to_the_next(engine: Engine) -> None:
    """What was rolled back is not taken for stored."""
    insert = RequestInserter(engine)
    kind, fact = row_of(Record(make_outcome(request_id="r")))
    with pytest.raises(insert.refusals):
        insert.add([(kind, (*fact[:-1], None))])
    assert kinds(engine) == []
    insert.add([(kind, fact)])
    assert [row["request_id"] for row in page(engine, Filter())] == ["r"]


def test_texts_that_a_client_made_up_fit(engine: Engine) -> None:
    """Those of the kind from the start, the request's own when they were refused: cut, and without NUL."""
    put(engine, Record(make_outcome(model="m" * 500, bucket="b\0c", total_s=1.5)))
    (found,) = page(engine, Filter())
    assert (found["model"], found["bucket"], found["total_s"]) == ("m" * 128, "bc", 1.5)
    kind, fact = row_of(Record(make_outcome(trace_id="t" * 500)))
    fitted = RequestInserter(engine).fitted((kind, fact))
    assert fitted == (kind, tuple("t" * 32 if value == "t" * 500 else value for value in fact))


def test_a_name_may_hold_any_character(engine: Engine) -> None:
    """Attempts are written a line each, and a separator of lines in a name is none."""
    attempts = [(Attempt(f"p{odd}", "e", 200, "", 0.0, 1.0),) for odd in ("\u2028", "\x85", "\n", "\x0c")]
    put(engine, *(Record(make_outcome(attempts=one)) for one in attempts))
    found = [msgspec.json.decode(row["attempts"])[0][0] for row in page(engine, Filter())]
    assert found == [one[0].pool for one in reversed(attempts)]


def test_the_attempt_that_answered_is_stored_as_any_other(engine: Engine) -> None:
    """Its JSON is made in part once a kind; a reader sees no difference."""
    tried = (Attempt('odd "pool"', "e/0", 200, "", 0.25, 1e-7),)
    made = make_outcome(pool='odd "pool"', endpoint="e/0", attempts=tried)
    other = make_outcome(attempts=tried * 2)
    travelled = Kinds().batch([msgspec.msgpack.encode(columns(made, other, made))])
    assert travelled.attempts == [None, tried * 2, None]
    RequestInserter(engine).add(list(rows_of(travelled, [kind_row(kind, "") for kind in travelled.kind])))
    found = [msgspec.json.decode(row["attempts"], type=tuple[Attempt, ...]) for row in page(engine, Filter())]
    assert found == [tried, tried * 2, tried]
    assert page(engine, Filter())[0]["attempts"] == msgspec.json.encode(tried).decode()


def test_a_batch_is_one_row_each(engine: Engine) -> None:
    """In its order, and nothing of another request in it."""
    outcomes = [make_outcome(request_id=str(number), at=float(number), events=number) for number in range(100)]
    batch = by_column(outcomes)
    RequestInserter(engine).add(list(rows_of(batch, [kind_row(kind, "") for kind in batch.kind])))
    found = page(engine, Filter(), most=200)[::-1]
    told = [(row["request_id"], row["at"], row["events"]) for row in found]
    assert told == [(str(number), float(number), number) for number in range(100)]
