"""A glance at the policy files: whether a look could find anything, without reading them and without waking the loop.

Owns a thread that compares what the file system says of each file. It may be mistaken in one way only, to see a change
where there is none: what was touched a moment ago counts as changed, because a file system's clock may stand still
while a file is written twice. Owned by ``control.reload``, which then reads and compares the content itself.
"""

import stat
import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

YOUNG_S = 2.0  # a stamp of this age may be shared by a later change; coarse file systems count in seconds

Stamp = tuple[object, ...]
_FOLDER = stat.S_IFDIR


class Glance:
    """Calls ``changed``, in its own thread, whenever something differs."""

    def __init__(self, path: Path, changed: Callable[[], object], wall: Callable[[], float], every_s: float) -> None:
        self.extra: Sequence[Path] = ()
        self._before: tuple[Stamp, ...] | None = None
        self._path = path
        self._changed = changed
        self._wall = wall
        self._every_s = every_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="policy-glance", daemon=True)

    def start(self) -> None:
        """Glance from now on."""
        self._thread.start()

    def stop(self) -> None:
        """Not any more; does not wait for a file system that hangs."""
        self._stop.set()

    def differs(self) -> bool:
        """Whether this glance differs from the last one, or cannot tell."""
        stamps, now = tuple(stamps_of(self._path, self.extra)), self._wall()
        before, self._before = self._before, stamps
        return stamps != before or any(is_young(stamp, now) for stamp in stamps)

    def _run(self) -> None:
        while not self._stop.wait(self._every_s):
            if self.differs() and not self._stop.is_set():
                self._changed()


def stamps_of(path: Path, extra: Iterable[Path]) -> Iterable[Stamp]:
    """What tells a file of the policy from another one, or from another version of it: the path's, if it is a folder
    those of what may belong to the set, and of the ``extra`` files."""
    whole = _stamp(path)
    yield whole
    for file in (*(_members(path) if whole[-1] == _FOLDER else ()), *extra):
        yield _stamp(file)


def is_young(stamp: Stamp, now: float) -> bool:
    """Touched so lately, or in what is the future here, that another change may look the same."""
    touched_ns = stamp[-2]
    return isinstance(touched_ns, int) and touched_ns > (now - YOUNG_S) * 1e9


def _members(folder: Path) -> list[Path]:
    try:
        return sorted(file for file in folder.iterdir() if file.suffix.lower() in (".yaml", ".yml"))
    except OSError:
        return []


def _stamp(file: Path) -> Stamp:
    """Its name, what tells versions apart, when it was touched, and what it is."""
    try:
        found = file.stat()
    except OSError as error:
        return (file.name, error.errno, "", "")
    kind = stat.S_IFMT(found.st_mode)
    return (file.name, found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns, kind)
