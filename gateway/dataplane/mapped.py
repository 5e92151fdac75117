"""Files that the workers of a host map into memory together. Called by ``board`` and ``conversations``.

A file is only ever made longer: whoever has it mapped dies of a bus error when it touches a page that was cut off.
"""

import mmap
import os
from pathlib import Path


def map_shared(path: Path, size: int) -> mmap.mmap:
    """The first ``size`` bytes of a file, shared with every process that maps it; new bytes are zero."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if os.fstat(descriptor).st_size < size:
            os.ftruncate(descriptor, size)  # two workers that find it short make it equally long
        return mmap.mmap(descriptor, size)
    finally:
        os.close(descriptor)
