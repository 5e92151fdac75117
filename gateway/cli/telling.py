"""How commands tell what they found, and that they cannot.

Owns JSON for programs, and the one way in which a command gives up: a line on standard error that names it, and exit
status 2. What is said is the command's own.
"""

import sys
from typing import NoReturn, TextIO

import orjson
import typer

UNUSABLE = 2


def print_json(value: object, stream: TextIO | None = None) -> None:
    """The value as indented JSON, on standard output unless told otherwise."""
    (stream or sys.stdout).write(orjson.dumps(value, option=orjson.OPT_INDENT_2).decode() + "\n")


def give_up(command: str, why: object) -> NoReturn:
    """Say why nothing can be done, and end with ``UNUSABLE``."""
    typer.echo(f"quantgate {command}: {why}", err=True)
    raise typer.Exit(UNUSABLE) from None
