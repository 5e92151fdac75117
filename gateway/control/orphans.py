"""No process of a pool outlives control. Runs in ``scorer_process`` and the report's process.

Such a process holds both ends of the pipe that its work comes through, so it never reads the end of it: once control is
killed, or out of memory, it would wait for ever with what it has imported.
"""

import multiprocessing
import os
import threading
from multiprocessing.connection import wait


def end_with_parent() -> None:
    """End this process as soon as the one that started it is gone. Costs a thread that sleeps."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_follow, args=(parent.sentinel,), name="parent-watch", daemon=True).start()


def _follow(sentinel: int) -> None:
    wait([sentinel])
    os._exit(0)  # there is nobody left to answer to
