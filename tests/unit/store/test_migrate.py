"""Migrations end in exactly the schema of ``tables``, can be repeated, and refuse what is newer."""

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Engine, column, insert, select, table, text

from gateway.store.engine import StoreError
from gateway.store.migrate import config_for, require_current, upgrade
from gateway.store.records import Filter, page
from gateway.store.tables import metadata, requests
from tests.unit.dataplane.outcome_values import make_outcome
from tests.unit.store.outcome_rows import Record, put


def test_migrations_and_tables_agree(engine: Engine) -> None:
    """A change of the schema without a migration, or the reverse, is found here."""
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True, "compare_server_default": False})
        assert compare_metadata(context, metadata) == []


def test_upgrade_twice_changes_nothing(engine: Engine) -> None:
    """Every start of control runs it."""
    upgrade(engine)


def test_a_newer_database_is_refused_with_the_mend(engine: Engine) -> None:
    """An older program must not write into a schema it does not know."""
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(StoreError, match="newer than this version"):
        upgrade(engine)


def test_readers_insist_on_this_versions_schema(engine: Engine) -> None:
    """A report over another schema would fail in the middle, or worse, not fail."""
    require_current(engine)
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '0001'"))
    with pytest.raises(StoreError, match="has schema 0001"):
        require_current(engine)
    with engine.begin() as connection:
        connection.execute(text("DELETE FROM alembic_version"))
    with pytest.raises(StoreError, match="holds no records"):
        require_current(engine)


def test_requests_survive_being_stored_in_two_parts(empty: Engine) -> None:
    """Every row of the one table is in the view, ids included, and counting goes on after them; and back again."""
    names = list(requests.c.keys())
    rows = [make_row(number) for number in range(50)]
    with empty.begin() as connection:
        command.upgrade(config_for(connection), "0006")
        for row in rows:
            connection.execute(insert(table("requests", *map(column, row))), row)
    before = whole(empty, names)
    assert len(before) == 50
    upgrade(empty)
    assert whole(empty, names) == before
    put(empty, Record(make_outcome(request_id="next")))
    assert page(empty, Filter())[0]["id"] == before[-1][0] + 1
    with empty.begin() as connection:
        connection.execute(text("DELETE FROM request_facts WHERE request_id = 'next'"))
        command.downgrade(config_for(connection), "0006")
    assert whole(empty, names) == before
    upgrade(empty)
    assert whole(empty, names) == before


def make_row(number: int) -> dict[str, object]:
    """A request as it stands in one table, in one of ten kinds."""
    words = {"tenant": f"t{number % 5}", "pool": f"p{number % 2}", "model": "m", "constraints": '["c"]'}
    flags = {"generation": 1, "worker": 0, "stream": number % 2 == 0, "seed": False, "status": 200, "temperature": 0.5}
    return {"request_id": f"r{number}", "at": float(number), "total_s": number / 7, "events": number, **words, **flags}


def whole(engine: Engine, names: list[str]) -> list[tuple[object, ...]]:
    """Everything there is, in the columns' order."""
    statement = select(table("requests", *map(column, names))).order_by(text("id"))
    with engine.connect() as connection:
        return [tuple(row) for row in connection.execute(statement)]
