"""Files that the workers of a host map into memory together. Called by ``board`` and ``conversations``.

Whoever has a file mapped dies of a bus error when it touches a page that the file system cannot give: so a file is only
ever made longer, and has all of its blocks before it is mapped. A disk that fills up later takes no worker with it.
"""

import errno
import fcntl
import mmap
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

OnError = Callable[[str, BaseException], None]
BLOCK: Final = 512  # what ``st_blocks`` counts in


def map_shared(path: Path, size: int, on_error: OnError | None = None) -> mmap.mmap:
    """The first ``size`` bytes of a file, shared with every process that maps it; new bytes are zero.

    Memory of this process alone if there is no room for the file, which ``on_error`` hears: better limits per worker
    than no worker.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            _allocate(descriptor, size)
            return mmap.mmap(descriptor, size)
        finally:
            os.close(descriptor)
    except OSError as error:
        if on_error is not None:
            on_error(f"state_not_shared ({error.strerror}): limits and conversations of this worker alone", error)
        return mmap.mmap(-1, size)


def _allocate(descriptor: int, size: int) -> None:
    """Give the file its blocks. One process at a time: some systems allocate by writing, and a neighbour that is
    through may have begun to count."""
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        found = os.fstat(descriptor)
        if found.st_size >= size and found.st_blocks * BLOCK >= size:
            return
        try:
            os.posix_fallocate(descriptor, 0, size)
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):
                raise
            if found.st_size < size:  # a file system that promises nothing
                os.ftruncate(descriptor, size)
    finally:
        fcntl.flock(descriptor, fcntl.LOCK_UN)
