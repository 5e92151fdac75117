"""What the selects of this package share: a span of time, columns that must have a value, pages newest first.

Pure statement building. Called by the modules that own the tables.
"""

from typing import Any

from sqlalchemy import Table

PAGE_MOST = 1000


def between(statement: Any, table: Table, since: float | None, until: float | None) -> Any:
    """Rows from ``since`` on and before ``until``; None = no bound."""
    if since is not None:
        statement = statement.where(table.c.at >= since)
    return statement if until is None else statement.where(table.c.at < until)


def having(statement: Any, table: Table, **values: str) -> Any:
    """Rows with these values; an empty one matches all."""
    for name, value in values.items():
        if value:
            statement = statement.where(table.c[name] == value)
    return statement


def newest_first(statement: Any, table: Table, before: int | None, most: int) -> Any:
    """At most so many rows, before the row with that id."""
    statement = statement.order_by(table.c.id.desc()).limit(most)
    return statement if before is None else statement.where(table.c.id < before)
