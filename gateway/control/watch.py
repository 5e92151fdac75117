"""What the policy files hold at this moment, cheap enough to look several times a second.

Owns the reading and the question whether somebody is still writing; decides nothing, and leaves to ``policy.snapshot``
which files make up a set. Content is compared, never times alone: a ConfigMap is swapped by a symlink, editors save
through a rename, and both can leave every time stamp older than before. Called by ``control.reload`` in a thread,
because file systems may hang.
"""

import fcntl
import hashlib
import os
import signal
import stat
from collections.abc import Iterable
from pathlib import Path

import msgspec

from gateway.errors import PolicyError, PolicyRejectedError
from gateway.policy.document import Snapshot, snapshot

# Smaller files are read each time; of larger ones (vocabularies) only the stat is compared.
READ_MOST_BYTES = 1024 * 1024


class Reading(msgspec.Struct, frozen=True):
    """One look. ``source`` None = there is no set to read, and ``findings`` say why. ``extra`` is a digest of further
    files that the policy used. ``busy`` = a writer has one of the files open."""

    source: Snapshot | None
    extra: str = ""
    busy: bool = False
    findings: tuple[PolicyError, ...] = ()

    def same_content(self, other: "Reading | None") -> bool:
        """Nothing a policy depends on differs."""
        return other is not None and self._content() == other._content()

    def _content(self) -> tuple[object, ...]:
        return (self.source, self.extra, self.findings)


def read_policy_files(path: Path, extra: Iterable[Path] = ()) -> Reading:
    """Read the policy set at ``path`` and stamp the ``extra`` files (secrets, vocabularies)."""
    try:
        source = snapshot(path)
    except PolicyRejectedError as error:
        return Reading(source=None, findings=error.findings)
    digest = hashlib.sha256()
    for file in sorted(set(extra)):
        digest.update(str(file).encode() + b"\0" + _stamp(file) + b"\0")
    return Reading(
        source=source,
        extra=digest.hexdigest(),
        busy=any(_being_written_at(Path(file.name)) for file in source.files),
    )


def _stamp(file: Path) -> bytes:
    """Something that differs when the content does."""
    try:
        status = file.stat()
        if stat.S_ISREG(status.st_mode) and status.st_size <= READ_MOST_BYTES:  # reading a pipe would wait for ever
            return hashlib.sha256(file.read_bytes()).digest()
    except OSError as error:
        return str(error.errno).encode()
    return f"{status.st_dev} {status.st_ino} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}".encode()


def _being_written_at(file: Path) -> bool:
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        return _being_written(descriptor)
    finally:
        os.close(descriptor)


def _being_written(descriptor: int) -> bool:
    """Ask the kernel for a read lease: it is refused with EAGAIN exactly while a writer has the file open.

    Best effort: leases need the file's owner and a local Linux file system; elsewhere the answer is no, and the
    settling time of the reload is the guard. A writer that opens during the lease waits for its release, microseconds
    later; the kernel's notice of that is sent as SIGURG, which is ignored by default.
    """
    if not hasattr(fcntl, "F_SETLEASE"):
        return False
    try:
        fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except BlockingIOError:
        return True
    except OSError:
        return False
    fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    return False
