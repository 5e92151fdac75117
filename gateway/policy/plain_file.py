"""Files that people name: read only if they are files, because opening a pipe waits for a writer, for ever.

Called by ``document`` and ``secret``.
"""

import errno
import os
import stat
from pathlib import Path


def read_plain_file(path: Path, most_bytes: int) -> bytes:
    """At most ``most_bytes`` of a regular file, links followed. Raises ``OSError`` with the path as its ``filename``,
    also for a folder, a pipe, a socket or a device."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, "a folder stands where a file is expected", str(path))
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "a pipe or device, and no file", str(path))
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(most_bytes)
    finally:
        os.close(descriptor)
