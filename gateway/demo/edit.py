"""Two edits of the policy while requests run: one with a typing error, which must change nothing, and one that takes a
route back from the smallest weights to the baseline, which must take effect without a failed request.

Owns when the file is written and how long it waits for the gateway to say what became of it. Called by
``gateway.demo.run`` beside the workload.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from gateway.demo.access import Entry
from gateway.demo.policy import EDITED_ROUTE, place, with_order
from gateway.demo.proof import CLIENT, GATEWAY, Check

WAIT_S = 30.0
_POLL_S = 0.1


class Edits(msgspec.Struct, frozen=True):
    """What became of both. ``refusal``: the finding on the wrong one, empty = it was not refused in time.

    ``generation_*``: in force before, after the wrong edit, and after the right one; 0 = it was not applied in time.
    ``took_s``: from the rename of the file until the gateway named the new generation. ``applied_at``: wall clock.
    """

    order_before: tuple[str, ...]
    order_after: tuple[str, ...]
    refusal: str
    generation_before: int
    generation_refused: int
    generation_after: int
    took_s: float
    applied_at: datetime | None


class Editor:
    """Edits ``path``. ``state`` reads the gateway's ``/readyz`` and may block."""

    def __init__(self, path: Path, order: Sequence[str], workers: int, state: Callable[[], dict[str, Any]]) -> None:
        self._path = path
        self._workers = workers
        self._state = state
        self.order_before = tuple(order)
        self.order_after = tuple(reversed(order))
        self.misspelt = (order[0] + order[0][-1], *order[1:])

    async def misspell(self) -> tuple[str, int]:
        """Write a policy that names an unknown pool: the finding that refuses it, and the generation still served."""
        good = self._path.read_text()
        place(self._path, with_order(good, EDITED_ROUTE, self.misspelt))
        state = await self._until(lambda state: (state.get("reload") or {}).get("result") == "rejected")
        if state is None:
            return "", 0
        findings = state["reload"]["findings"]
        finding = next(finding for finding in findings if finding["severity"] == "error")
        where = f"{Path(finding['file']).name}:{finding['line']}:{finding['column']}"
        mend = f" ({finding['mend']})" if finding.get("mend") else ""
        return f"{where}: {finding['message']}{mend}", int(state["generation"])

    async def reverse(self, before: int) -> tuple[int, float, datetime | None]:
        """Write the policy with the route's pools in reverse order: the new generation, how long it took, when."""
        place(self._path, with_order(self._path.read_text(), EDITED_ROUTE, self.order_after))
        began = time.monotonic()
        state = await self._until(lambda state: (state.get("generation") or 0) > before)
        took_s = time.monotonic() - began
        # Workers had prepared it before it was applied, and say about once a second by which one they decide.
        if state is None or await self._until(self._on_every_worker) is None:
            return 0, -1.0, None
        return int(state["generation"]), took_s, datetime.fromisoformat(state["applied_at"])

    def _on_every_worker(self, state: dict[str, Any]) -> bool:
        return bool(state.get("workers", {}).get("on_current_generation") == self._workers)

    async def _until(self, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any] | None:
        deadline = time.monotonic() + WAIT_S
        while time.monotonic() < deadline:
            state = await asyncio.to_thread(self._state)
            if holds(state):
                return state
            await asyncio.sleep(_POLL_S)
        return None


def check_edits(edits: Edits, entries: Sequence[Entry], failed: int) -> Check:
    """Whether the wrong edit changed nothing, the right one everything, and no request failed over either."""
    old = [entry for entry in entries if entry.generation == edits.generation_before]
    new = [entry for entry in entries if entry.generation == edits.generation_after]
    first = {
        generation: {
            entry.pool
            for entry in entries
            if entry.generation == generation and entry.rule == EDITED_ROUTE and not entry.constraints and entry.pool
        }
        for generation in (edits.generation_before, edits.generation_after)
    }
    old_first, new_first = edits.order_before[0], edits.order_after[0]
    before, after = first[edits.generation_before], first[edits.generation_after]
    # A pool that looks unready on a busy machine is stood in for by the next one: that is not the edit's doing.
    moved = old_first in before and new_first in after and old_first not in after and new_first not in before
    moved = moved and edits.generation_after > edits.generation_before
    whole = len(old) + len(new) == len(entries)
    decided = f"{len(old)} decided by generation {edits.generation_before}, {len(new)} by {edits.generation_after}"
    kept = bool(edits.refusal) and edits.generation_refused == edits.generation_before
    return Check(
        "The policy was edited under load, and no request failed over it",
        kept and moved and whole and not failed,
        (
            (GATEWAY, decided),
            (CLIENT, f"{failed} failed"),
        ),
    )


def in_flight(edits: Edits, entries: Sequence[Entry]) -> int:
    """Requests that were running when the right edit took effect: they ended on the generation they began with."""
    if edits.applied_at is None:
        return 0
    return sum(
        entry.generation == edits.generation_before
        and entry.at.timestamp() + entry.total_ms / 1000 > edits.applied_at.timestamp()
        for entry in entries
    )
