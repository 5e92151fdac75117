"""Loops over columns of numbers, compiled: what is done for every finished request and cannot be left to a builtin.

Columns beside each other have one length. Knows nothing of requests; used by ``core.batch`` and by those parts of
control that read its batches.
"""

Row = list[float]


def milliseconds(seconds: list[float], unknown: object = -1.0) -> list[object]:
    """To the microsecond; ``unknown``, this very object, for what is below zero."""
    # Whole numbers by ``int``, not by a division, whose time depends on the digits.
    return [int(value * 1e6 + 0.5) / 1e3 if value >= 0.0 else unknown for value in seconds]


def per_token(spans_s: list[float], tokens: list[int]) -> list[float]:
    """The time of each token after the first; -1 where there is no other, or nobody knows."""
    found = [-1.0] * len(tokens)
    for index in range(len(tokens)):
        number, span_s = tokens[index], spans_s[index]
        if number > 1 and span_s >= 0.0:
            found[index] = span_s / (number - 1)
    return found


def observe(bounds: tuple[float, ...], rows: tuple[Row | None, ...], values: list[float]) -> None:
    """Count each value in the histogram row beside it: one number per ascending upper bound, one above, then the sum.

    A value below zero is unknown and counts nowhere, as does a value without a row.
    """
    for index in range(len(values)):
        value, row = values[index], rows[index]
        if row is not None and value >= 0.0:
            low, high = 0, len(bounds)
            while low < high:
                middle = (low + high) >> 1
                if bounds[middle] < value:
                    low = middle + 1
                else:
                    high = middle
            row[low] += 1.0
            row[-1] += value


def add(rows: tuple[Row, ...], amounts: list[int]) -> None:
    """Add each amount to the first number of the row beside it; none below zero, which is unknown."""
    for index in range(len(amounts)):
        amount = amounts[index]
        if amount > 0:
            rows[index][0] += amount


def gather(lists: tuple[list[float] | None, ...], values: list[float]) -> None:
    """Put each value into the list beside it, if there is one; none below zero, which is unknown."""
    for index in range(len(values)):
        value, found = values[index], lists[index]
        if found is not None and value >= 0.0:
            found.append(value)


def count_parts(rows: tuple[list[int] | None, ...], wholes: list[int], parts: list[int]) -> None:
    """Count each whole whose part is known in the row beside it: how many, how many with a part, their sum, the parts'.

    A whole of nothing and a part below zero are unknown.
    """
    for index in range(len(wholes)):
        whole, part, row = wholes[index], parts[index], rows[index]
        if row is not None and whole > 0 and part >= 0:
            row[0] += 1
            row[1] += 1 if part > 0 else 0
            row[2] += whole
            row[3] += part
