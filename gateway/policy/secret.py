"""Secrets by reference: ``env:NAME`` or ``file:PATH``.

Policies hold references only; values never appear in errors or logs.

Called by the composition root, which binds it to the process's environment, and by ``compile`` and ``oversight``
through a function.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

from gateway.errors import PolicyError
from gateway.policy.plain_file import read_plain_file

Secret = Callable[[str], str]

_MOST_BYTES = 64 * 1024


class SecretError(Exception):
    """A reference that cannot be resolved. The message names the reference, never a value."""


def secrets_of(environ: Mapping[str, str], base: Path) -> Secret:
    """Resolves ``env:NAME`` from ``environ`` and ``file:PATH`` relative to ``base``.

    Surrounding white space is cut off.
    """

    def resolve(reference: str) -> str:
        kind, _, name = reference.partition(":")
        if kind == "env":
            value = environ.get(name)
            if value is None:
                raise SecretError(f"{reference}: the environment variable is not set")
        elif kind == "file":
            value = _content(base / name, reference)
        else:
            raise SecretError("a secret reference begins with env: or file:")
        value = value.strip()
        if not value or any(ord(character) < 0x20 or ord(character) == 0x7F for character in value):
            raise SecretError(f"{reference}: it is empty or not one line of text")
        return value

    return resolve


def _content(path: Path, reference: str) -> str:
    try:
        return read_plain_file(path, _MOST_BYTES).decode()
    except OSError as error:
        raise SecretError(f"{reference}: {error.strerror or 'cannot be read'}") from None
    except UnicodeDecodeError:
        raise SecretError(f"{reference}: not UTF-8 text") from None


class SecretReader:
    """Resolves the references of a document. ``findings`` fill with what could not be resolved, and with what is wrong
    with what could."""

    def __init__(self, secret: Secret, document: str) -> None:
        self._secret = secret
        self._document = document
        self.findings: list[PolicyError] = []

    def read(self, reference: str, where: str) -> str | None:
        """The secret behind a reference at a dotted path; None with a finding if there is none."""
        try:
            return self._secret(reference)
        except SecretError as error:
            self.refuse(where, str(error), "set it where the gateway runs")
            return None

    def refuse(self, where: str, message: str, mend: str) -> None:
        """A finding at a dotted path. The canonical document has no lines."""
        self.findings.append(PolicyError(self._document, 1, 1, f"{where}: {message}", mend))


def unresolved(reference: str) -> str:
    """Stands in where only the shape of a policy matters: a value that differs for different references."""
    return f"unresolved-{reference}"
