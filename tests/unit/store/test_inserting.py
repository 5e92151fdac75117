"""Many rows at once: all or none, and values that no database takes are told from its troubles."""

import pytest
from sqlalchemy import Engine, text

from gateway.store.aftermath import Consequence, inserter
from gateway.store.inserting import ROWS
from gateway.store.tables import aftermath

ROW = Consequence(1.0, "r", "feedback", "t", "b", "p")


def stored(engine: Engine) -> list[str]:
    with engine.connect() as connection:
        return list(connection.execute(text("SELECT request_id FROM aftermath ORDER BY id")).scalars())


@pytest.mark.parametrize("number", [0, 1, ROWS - 1, ROWS, ROWS + 1, 3 * ROWS + 7])
def test_any_number_of_rows_arrives_once_and_in_order(engine: Engine, number: int) -> None:
    """Full statements and what is left over."""
    inserter(engine).add([ROW._replace(request_id=str(index)) for index in range(number)])
    assert stored(engine) == [str(index) for index in range(number)]


@pytest.mark.parametrize("at", [0, ROWS, ROWS + 5])
def test_a_batch_is_all_or_nothing(engine: Engine, at: int) -> None:
    """A row that the database refuses takes its batch with it, and nothing of it stays behind."""
    rows = [ROW] * (ROWS + 6)
    rows[at] = ROW._replace(request_id=None)  # type: ignore[arg-type]
    insert = inserter(engine)
    with pytest.raises(insert.refusals, match=r"(?i)null"):
        insert.add(rows)
    assert stored(engine) == []
    insert.add([ROW])
    assert stored(engine) == ["r"]


def test_a_row_can_be_made_to_fit(engine: Engine) -> None:
    """Texts longer than their column and NUL, which PostgreSQL refuses: cut and taken out, the rest as it was."""
    insert = inserter(engine)
    fitted = insert.fitted(ROW._replace(bucket="b\0c", label="l" * 500, score=0.5))
    assert fitted == ROW._replace(bucket="bc", label="l" * 64, score=0.5)
    assert insert.fitted(fitted) == fitted
    insert.add([fitted])
    assert stored(engine) == ["r"]


def test_a_missing_table_is_no_fault_of_a_row(engine: Engine) -> None:
    """Then it is the database that must be waited for, and no row is given up."""
    with engine.begin() as connection:
        aftermath.drop(connection)
    insert = inserter(engine)
    with pytest.raises(Exception, match="aftermath") as caught:
        insert.add([ROW])
    assert not isinstance(caught.value, insert.refusals)
