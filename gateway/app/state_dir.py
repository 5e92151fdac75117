"""The state directory of one gateway: held by one supervisor, and where its processes meet.

Owns the lock and the place of the socket; what else lies in the directory belongs to who writes it
(``control.durable``). Called by ``app.supervisor``.
"""

import fcntl
import os
from pathlib import Path
from typing import IO

# A socket's path must fit into 108 bytes.
SOCKET_PATH_MOST = 100


class StateDirError(Exception):
    """The state directory cannot be used; the message says why and what to do."""


class StateDirInUseError(StateDirError):
    """Another supervisor holds the state directory."""


def lock_state_dir(state_dir: Path) -> IO[str]:
    """Take the directory for this supervisor alone, for as long as the returned file is open. Raises
    ``StateDirError``."""
    try:
        state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        return _locked(state_dir)
    except OSError as error:
        why = error.strerror or error
        raise StateDirError(
            f"--state-dir {state_dir} cannot be used: {why}; give a folder that this user may create or write to"
        ) from error


def _locked(state_dir: Path) -> IO[str]:
    lock = (state_dir / "lock").open("a+")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.seek(0)
        holder = lock.read().strip() or "unknown"
        lock.close()
        raise StateDirInUseError(
            f"--state-dir {state_dir} is in use by another quantgate serve (pid {holder}); give each its own"
        ) from None
    lock.truncate(0)
    lock.write(f"{os.getpid()}\n")
    lock.flush()
    return lock


def socket_path(state_dir: Path) -> Path:
    """Where control listens for workers: in the state directory, or in a short private one if that path is too long."""
    path = state_dir.resolve() / "control.sock"
    if len(os.fsencode(path)) <= SOCKET_PATH_MOST:
        return path
    runtime = Path(os.environ.get("XDG_RUNTIME_DIR") or "/tmp")  # noqa: S108 - the directory below is private
    private = runtime / f"quantgate-{os.getuid()}-{os.getpid()}"
    private.mkdir(mode=0o700, exist_ok=False)
    return private / "control.sock"
