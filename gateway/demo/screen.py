"""What a person sees while the demo runs: steps with their times, and the requests as they come back.

On a terminal a bar and the last requests move; elsewhere (a CI log) the same is told in plain lines, now and then.
Knows nothing of servers. Called by ``gateway.demo.run``.
"""

import io
import re
import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TextIO

from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from gateway.demo.client import Answer, right
from gateway.demo.workload import Item

PLAIN_WIDTH = 100
LAST = 6
PLAIN_PARTS = 8
LABEL_CHARS = 10
_TRAILING = re.compile(r" +$", re.MULTILINE)


class Trimmed(io.StringIO):
    """A stream for logs: without the spaces that fill a table's lines, and written at once."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self._stream = stream

    def write(self, text: str) -> int:
        """Write whole lines, as rich does."""
        self._stream.write(_TRAILING.sub("", text))
        self._stream.flush()
        return len(text)


class Screen:
    """Prints to ``console``."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.moving = console.is_terminal

    def line(self, text: str = "") -> None:
        """One line of rich markup."""
        self.console.print(text)

    @contextmanager
    def step(self, label: str, doing: str) -> Iterator[list[str]]:
        """A step that takes a while. What is put into the list is printed under its label when it is done."""
        began = time.monotonic()
        lines: list[str] = []
        if self.moving:
            with self.console.status(f"{label}: {doing}"):
                yield lines
        else:
            yield lines
        took = f"[dim]{time.monotonic() - began:.1f} s[/]"
        for index, text in enumerate(lines or [doing]):
            self.labelled(label if index == 0 else "", f"{text}  {took}" if index == 0 else text)

    def labelled(self, label: str, text: str) -> None:
        """A line with its label in the left column; what does not fit continues under the text."""
        grid = Table.grid(padding=(0, 2))
        grid.add_column(width=LABEL_CHARS, style="bold")
        grid.add_column(overflow="fold")
        grid.add_row(label, text)
        self.console.print(grid)

    @contextmanager
    def workload(self, total: int, pools: Sequence[str]) -> Iterator["Tally"]:
        """The requests of the workload as they come back."""
        tally = MovingTally(self, total, pools) if self.moving else Tally(self, total, pools)
        with tally.shown():
            yield tally


class Tally:
    """Counts what came back, and tells it in plain lines."""

    def __init__(self, screen: Screen, total: int, pools: Sequence[str]) -> None:
        self._screen = screen
        self._total = total
        self._began = time.monotonic()
        self._told = 0
        self.done = 0
        self.wrong = 0
        self.by_pool = Counter(dict.fromkeys(pools, 0))

    @contextmanager
    def shown(self) -> Iterator[None]:
        """While requests run."""
        yield

    def came(self, item: Item, answer: Answer) -> None:
        """One request has its answer."""
        self.done += 1
        self.wrong += not right(item, answer)
        if answer.pool:
            self.by_pool[answer.pool] += 1
        if not right(item, answer):
            self.event(f"[red]request {item.number} ({item.kind}) got {answer.status}[/] {escape(answer.error)[:200]}")
        self._show(item, answer)

    def event(self, text: str) -> None:
        """Something else that happened meanwhile."""
        self._screen.labelled("", text)

    def _show(self, item: Item, answer: Answer) -> None:
        del item, answer
        part = self.done * PLAIN_PARTS // self._total
        if part > self._told:
            self._told = part
            took_s = time.monotonic() - self._began
            self._screen.labelled("", f"{self.done:3d} of {self._total} done after {took_s:3.0f} s: {self.where()}")

    def where(self) -> str:
        """How many answers each pool gave."""
        return " · ".join(f"{pool} {count}" for pool, count in self.by_pool.items())


class MovingTally(Tally):
    """The same on a terminal: a bar, and the last requests under it."""

    def __init__(self, screen: Screen, total: int, pools: Sequence[str]) -> None:
        super().__init__(screen, total, pools)
        self._last: deque[tuple[Item, Answer]] = deque(maxlen=LAST)
        self._bar = Progress(
            TextColumn(" " * (LABEL_CHARS + 1)),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[where]}"),
            console=screen.console,
        )
        self._task = self._bar.add_task("", total=total, where="")
        self._live = Live(console=screen.console, refresh_per_second=8, transient=True)

    @contextmanager
    def shown(self) -> Iterator[None]:
        """While requests run."""
        self._live.update(self._view())
        with self._live:
            yield

    def _show(self, item: Item, answer: Answer) -> None:
        self._last.append((item, answer))
        self._bar.update(self._task, completed=self.done, where=self.where())
        self._live.update(self._view())

    def _view(self) -> Group:
        grid = Table.grid(padding=(0, 2))
        for width in (LABEL_CHARS, 4, 27, 8, 6, 7, 9):
            grid.add_column(width=width, no_wrap=True)
        for item, answer in self._last:
            where = f"[green]{answer.pool}[/]" if answer.status == 200 else f"[yellow]{answer.status}[/]"
            first = f"{answer.ttft_s:.2f} s" if answer.ttft_s >= 0 else f"{answer.took_s:.2f} s"
            grid.add_row("", f"{item.number}", item.kind, item.tenant, where, answer.rule, first)
        return Group(self._bar, grid)
