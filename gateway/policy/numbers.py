"""Numbers that remember how they were written, for where a number is a word: a driver 580.10, a commit 12e4567.

Made by ``reading``; read by the schema where text is wanted. Everywhere else they are numbers like any other.
"""


class _WrittenInt(int):
    text: str


class WrittenFloat(float):
    """A number with a fraction or an exponent that a person wrote; the normal form of a policy has plain ones."""

    text: str


def written(number: int | float, text: str) -> int | float:
    """``number``, which remembers ``text`` if that says more."""
    if isinstance(number, int) and str(number) == text:
        return number
    kept = _WrittenInt(number) if isinstance(number, int) else WrittenFloat(number)
    kept.text = text
    return kept


def as_written(value: object) -> object:
    """The text of a number or a truth value as a person wrote it; anything else as it is."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return value.text if isinstance(value, _WrittenInt | WrittenFloat) else str(value)
    return value
