"""Policy files as they are on disk: read whole, at one moment, before anything looks at them.

A set is one file, or all ``*.yaml``/``*.yml`` of one folder (the case of the ending does not count) without
``*.test.yaml`` and hidden files. What has such a name is never left out, for its constraints would be missing unseen: a
folder of that name, as container engines make one where a mounted file is not there, is an error. The set is read until
two readings agree, so that a ConfigMap's symlink swap between two files cannot give a mixture. This module does not
know what the bytes mean. Called by ``load``, and by control's reload to see cheaply whether anything changed.
"""

import hashlib
from pathlib import Path

import msgspec

from gateway.errors import PolicyError, PolicyRejectedError
from gateway.policy.plain_file import read_plain_file

FILE_BYTES_MOST = 4 << 20
SET_BYTES_MOST = 16 << 20
FILES_MOST = 500
_READINGS_MOST = 6


class SourceFile(msgspec.Struct, frozen=True):
    """One file: its path as a person would write it, and its bytes."""

    name: str
    content: bytes


class Snapshot(msgspec.Struct, frozen=True):
    """A policy set at one moment. ``fingerprint`` changes with any byte or name."""

    path: str
    folder: bool
    files: tuple[SourceFile, ...]

    @property
    def fingerprint(self) -> str:
        """SHA-256 over names and contents, hex."""
        digest = hashlib.sha256()
        for file in self.files:
            digest.update(f"{file.name}\0{len(file.content)}\0".encode("utf-8", "surrogateescape"))
            digest.update(file.content)
        return digest.hexdigest()


def rejected(file: str, message: str, mend: str = "", line: int = 1, column: int = 1) -> PolicyRejectedError:
    """A rejection with one finding."""
    return PolicyRejectedError([PolicyError(file, line, column, message, mend)])


def snapshot(path: Path) -> Snapshot:
    """Read the set at ``path``.

    Raises ``PolicyRejectedError`` if it is missing, empty, too large or will not stand still.
    """
    previous: Snapshot | None = None
    for _ in range(_READINGS_MOST):
        current = _read(path)
        if current == previous:
            return current
        previous = current
    raise rejected(str(path), "the files change while they are being read", "replace them in one step, by rename")


def _read(path: Path) -> Snapshot:
    try:
        folder = path.is_dir()
        names = _members(path) if folder else [path]
        files = tuple(SourceFile(str(name), _content(name)) for name in names)
    except FileNotFoundError as error:
        raise rejected(
            str(error.filename or path),
            "the file does not exist, or vanished while the set was read",
            "check the path, and where links lead",
        ) from error
    except OSError as error:
        message = f"cannot be read: {error.strerror or error}"
        mend = "it must be a file, or a folder of them, that this user may read"
        raise rejected(str(error.filename or path), message, mend) from error
    if sum(len(file.content) for file in files) > SET_BYTES_MOST:
        raise rejected(str(path), f"the set is larger than {SET_BYTES_MOST >> 20} MiB", "is it the right folder?")
    return Snapshot(str(path), folder, files)


def _members(folder: Path) -> list[Path]:
    names = sorted(
        entry
        for entry in folder.iterdir()
        if entry.suffix.lower() in (".yaml", ".yml")
        and not entry.name.startswith((".", "#"))
        and not entry.stem.endswith(".test")
    )
    if not names:
        raise rejected(str(folder), "the folder holds no policy", "put *.yaml files into it (not *.test.yaml)")
    if len(names) > FILES_MOST:
        raise rejected(str(folder), f"the folder holds more than {FILES_MOST} files", "is it the right folder?")
    return names


def _content(name: Path) -> bytes:
    content = read_plain_file(name, FILE_BYTES_MOST + 1)
    if len(content) > FILE_BYTES_MOST:
        raise rejected(str(name), f"the file is larger than {FILE_BYTES_MOST >> 20} MiB", "is it a policy at all?")
    return content
