"""The rollout as it runs: on a terminal a board that moves, in a log a line for each bucket now and then.

Decisions of the gateway are told as they come, and stay. Owns the words and the widths; what is told is ``standing``'s
and ``traffic``'s. Called by ``chapter``.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from rich.console import Group, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from gateway.demo.rollout.notes import TITLES, Way
from gateway.demo.rollout.standing import Bucket, Event, Guard
from gateway.demo.rollout.traffic import Tally
from gateway.demo.screen import LABEL_CHARS, Screen

PLAIN_EVERY_S = 10.0
WIDE_COLUMNS = 100
_BAR = 8
_STIRRED = 0.01
_COLOURS = {"promoted": "bold green", "rolled_back": "bold red", "stepping": "bold", "holding": "bold yellow"}

Buckets = Mapping[Way, Bucket]


class Board:
    """Tells where the rollout stands, in plain lines."""

    def __init__(self, screen: Screen, candidate: str, baseline: str) -> None:
        self._screen = screen
        self._candidate = candidate
        self._baseline = baseline
        self._told_s = 0.0

    @contextmanager
    def shown(self) -> Iterator[None]:
        """While the rollout runs."""
        yield

    def event(self, way: Way, event: Event, tally: Tally) -> None:
        """A decision of the gateway, with the words that it put on record."""
        colour = _COLOURS.get(event.after, "bold")
        count = tally.answers[way, self._candidate]
        line = f"[{colour}]{TITLES[way]}: {self._candidate} {escape(event.title)}[/]"
        if event.event == "begin":
            self._screen.labelled("", line)
            return
        self._screen.labelled("", f"{line} after {tally.of(way)} answers, {count} of them by {self._candidate}")
        self._screen.labelled("", f"[dim]{escape(event.reason)}[/]")

    def show(self, buckets: Buckets, tally: Tally, took_s: float) -> None:
        """How it stands now."""
        if took_s - self._told_s < PLAIN_EVERY_S:
            return
        self._told_s = took_s
        lines = [self._line(way, bucket, tally) for way, bucket in buckets.items() if not bucket.decided]
        for index, line in enumerate(lines):
            self._screen.labelled(f"{took_s:.0f} s" if index == 0 else "", line)

    def _line(self, way: Way, bucket: Bucket, tally: Tally) -> str:
        count = f"{tally.answers[way, self._candidate]} of {tally.of(way)} by {self._candidate}"
        said = f"{TITLES[way]}: {bucket.share}, {count}"
        if not bucket.guards:
            return said
        worst = max(bucket.guards, key=lambda guard: guard.suspicion)
        if worst.against > _STIRRED:
            return f"{said}; {worst.series} {_bad(worst)}, suspicion {worst.suspicion:.1f} (0 = out)"
        least = min(bucket.guards, key=lambda guard: guard.log_evidence)
        return f"{said}; {least.series} {_bad(least)}, evidence {number(least.e_value)} ({least.enough:.0f} = enough)"


class MovingBoard(Board):
    """The same on a terminal: a table for each bucket that is drawn over itself."""

    def __init__(self, screen: Screen, candidate: str, baseline: str) -> None:
        super().__init__(screen, candidate, baseline)
        self._live = Live(console=screen.console, refresh_per_second=4, transient=True)

    @contextmanager
    def shown(self) -> Iterator[None]:
        """While the rollout runs."""
        with self._live:
            yield

    def show(self, buckets: Buckets, tally: Tally, took_s: float) -> None:
        """How it stands now."""
        parts: list[RenderableType] = [Text(f"{took_s:.0f} s, {len(tally.sent)} requests", style="dim")]
        for way, bucket in buckets.items():
            parts.append(self._title(way, bucket, tally))
            if not bucket.decided:
                parts.append(Padding(self._guards(bucket), (0, 0, 1, 0)))
        self._live.update(Padding(Group(*parts), (1, 0, 0, LABEL_CHARS + 2 if self._wide else 0)))

    @property
    def _wide(self) -> bool:
        return self._screen.console.width >= WIDE_COLUMNS

    def _title(self, way: Way, bucket: Bucket, tally: Tally) -> Text:
        state = bucket.state.replace("_", " ")
        if bucket.state == "stepping":
            state = f"{bucket.share} to {self._candidate}, stage {bucket.stage + 1} of {len(bucket.stages)}"
        pools = " · ".join(
            f"{pool} {tally.answers[way, pool]} ({tally.wrong[way, pool]} wrong)"
            for pool in (self._candidate, self._baseline)
        )
        return Text.assemble(
            (TITLES[way], "bold"),
            (f"  {bucket.bucket}" if self._wide else "", "dim"),
            (f"  {state}\n", _COLOURS.get(bucket.state, "bold")),
            (f"answers: {pools}", "dim"),
        )

    def _guards(self, bucket: Bucket) -> Table:
        grid = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
        enough = max((guard.enough for guard in bucket.guards), default=0.0)
        columns = ["guard", self._candidate, self._baseline, "limit", *(["95 % range"] if self._wide else [])]
        for column in (*columns, "suspicion: 0 = out", f"evidence: {enough:.0f} = on"):
            grid.add_column(column, no_wrap=True)
        for guard in bucket.guards:
            suspicion = Text.assemble(_bar(guard.against, "red"), f" {guard.suspicion:.1f}")
            evidence = Text.assemble(_bar(guard.proven, "green"), f" {number(guard.e_value)}")
            interval = [_interval(guard)] if self._wide else []
            counts = _bad(guard), f"{guard.baseline.bad:g} of {guard.baseline.outcomes}"
            grid.add_row(guard.series, *counts, f"{guard.limit * 100:g} %", *interval, suspicion, evidence)
        return grid


def _bar(share: float, colour: str) -> Text:
    filled = round(share * _BAR)
    return Text.assemble(("━" * filled, colour), ("━" * (_BAR - filled), "bright_black"))


def _bad(guard: Guard) -> str:
    return f"{guard.bad:g} of {guard.outcomes}"


def _interval(guard: Guard) -> str:
    if guard.interval is None:
        return "–"
    lower, upper = guard.interval
    return f"{lower * 100:.0f} – {upper * 100:.0f} %"


def number(value: float) -> str:
    """Two digits that matter, and no exponents where they can be helped."""
    return f"{value:.0f}" if 100.0 <= value < 1e6 else f"{value:.2g}"


def board_for(screen: Screen, candidate: str, baseline: str) -> Board:
    """The board that fits where the demo prints."""
    return (MovingBoard if screen.moving else Board)(screen, candidate, baseline)
