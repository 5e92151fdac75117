"""Inserting many rows at once, past SQLAlchemy's per-row machinery: that makes thousands a second affordable.

Rows are plain tuples in column order, several to a statement. The statements are few and always the same, so that the
driver prepares each once; and the driver gives up the interpreter lock once a statement: with one for each row the
writer and control's loop would hand it to and fro thousands of times a second.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, Table

ROWS = 32  # of a full statement; more are not cheaper, and the fewer that are left over go one by one
PARAMETERS_MOST = 16_000  # of one statement; SQLite takes 32,766, PostgreSQL 65,535

Row = Sequence[Any]
T = TypeVar("T")


class Joined(Collection[T]):
    """Pieces one after the other, as they came."""

    def __init__(self, pieces: Sequence[Collection[T]]) -> None:
        self.pieces = pieces

    def __len__(self) -> int:
        return sum(map(len, self.pieces))

    def __iter__(self) -> Iterator[T]:
        return chain.from_iterable(self.pieces)

    def __contains__(self, item: object) -> bool:
        return any(item in piece for piece in self.pieces)


class Inserter:
    """Inserts for one table and its columns. Not for concurrent use: it belongs to the writer thread.

    Raises the driver's own errors; ``refusals`` are those that say that a value does not fit, where trying again would
    never help. ``suffix`` ends the statement.
    """

    def __init__(self, engine: Engine, table: Table, columns: Sequence[str], suffix: str = "") -> None:
        self._engine = engine
        self._fit = fitting(table, columns)
        quote = engine.dialect.identifier_preparer.quote
        mark = "?" if engine.dialect.paramstyle == "qmark" else "%s"
        head = f"INSERT INTO {quote(table.name)} ({', '.join(map(quote, columns))}) VALUES "  # noqa: S608 - names of the schema
        row = f"({', '.join([mark] * len(columns))})"
        self._one = f"{head}{row} {suffix}"
        self._many = f"{head}{', '.join([row] * ROWS)} {suffix}"

    @property
    def refusals(self) -> tuple[type[Exception], ...]:
        """What is raised for a row that this database never takes."""
        driver: Any = self._engine.dialect.dbapi
        return (driver.DataError, driver.IntegrityError, OverflowError, ValueError, TypeError)

    def fitted(self, row: Row) -> tuple[Any, ...]:
        """The row with texts cut to their columns' length and without NUL, which PostgreSQL insists on."""
        return self._fit(row)

    def add(self, rows: Collection[Row]) -> None:
        """Insert all rows in one transaction, or none."""
        if rows:
            with self._engine.begin() as connection:
                self.put(connection, rows)

    def put(self, connection: Connection, rows: Iterable[Row]) -> None:
        """Insert all rows in the caller's transaction. No more than a statement's are looked at at a time."""
        cursor, left = connection.connection.cursor(), iter(rows)
        try:
            while len(some := list(islice(left, ROWS))) == ROWS:
                cursor.execute(self._many, tuple(chain.from_iterable(some)))
            if some:
                cursor.executemany(self._one, some)
        finally:
            cursor.close()


def fitting(table: Table, columns: Sequence[str]) -> Callable[[Row], tuple[Any, ...]]:
    """What cuts a row of these columns so that any database takes its texts."""
    lengths = [getattr(table.c[name].type, "length", None) for name in columns]

    def fit(row: Row) -> tuple[Any, ...]:
        return tuple(
            value.replace("\0", "")[:length] if isinstance(value, str) else value
            for value, length in zip(row, lengths, strict=True)
        )

    return fit
