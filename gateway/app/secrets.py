"""The secrets of this process, read when a policy is compiled: ``env:NAME`` and ``file:PATH`` (relative to the working
directory). The values live in tables only.

Owns the binding of ``policy.secret`` to the environment, and the memory of which files were named, so that control can
watch them. Called by the composition roots of control and of every worker.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from gateway.policy.secret import secrets_of


class Secrets:
    """Reads references. ``files`` are those that any reference has named so far."""

    def __init__(self, environment: Mapping[str, str] | None = None, base: Path | None = None) -> None:
        self.files: set[Path] = set()
        self._base = Path.cwd() if base is None else base
        self._resolve = secrets_of(os.environ if environment is None else environment, self._base)

    def read(self, reference: str) -> str:
        """The secret behind a reference. Raises ``policy.secret.SecretError``, which never holds a value."""
        kind, _, name = reference.partition(":")
        if kind == "file":
            self.files.add(self._base / name)
        return self._resolve(reference)
