"""The workload as it runs: several requests at once, and the two edits of the policy in between.

Owns the order in time: the wrong edit after a fifth of the steps, the right one after two fifths, and the last third
of the steps only after it, so that both generations see every kind of traffic. Called by ``gateway.demo.run``.
"""

import asyncio
from collections.abc import Sequence

from gateway.demo import report
from gateway.demo.client import Answer, Clients
from gateway.demo.edit import Editor, Edits
from gateway.demo.gateway_process import GatewayProcess
from gateway.demo.screen import Tally
from gateway.demo.workload import Item, Kind, Step

AT_ONCE = 6


class Runner:
    """Steps in their order, several at once. The last third waits until the edits are made."""

    def __init__(self, clients: Clients, steps: Sequence[Step], tally: Tally) -> None:
        self.answers: dict[int, Answer] = {}
        self.edited = asyncio.Event()
        self._clients = clients
        self._tally = tally
        self._waiting = list(enumerate(steps))
        self._steps = len(steps)
        self._done = 0
        self._moved = asyncio.Condition()

    async def work(self) -> None:
        """Take one step after another."""
        while self._waiting:
            index, step = self._waiting.pop(0)
            if index >= self._steps * 2 // 3:
                await self.edited.wait()
            if step[0].kind is Kind.TRIAL:  # all at once: one after another may take longer than the limit's minute
                await asyncio.gather(*map(self._send, step))
            else:
                for item in step:
                    await self._send(item)
            async with self._moved:
                self._done += 1
                self._moved.notify_all()

    async def _send(self, item: Item) -> None:
        answer = self.answers[item.number] = await self._clients.send(item)
        self._tally.came(item, answer)

    async def reached(self, share: float) -> None:
        """Wait until this share of the steps is done."""
        async with self._moved:
            await self._moved.wait_for(lambda: self._done >= self._steps * share)


async def edit(editor: Editor, runner: Runner, tally: Tally, gateway: GatewayProcess) -> Edits:
    """Make both edits at their time; whatever comes of them, the rest of the workload is let go."""
    try:
        await runner.reached(0.2)
        before = int((await asyncio.to_thread(gateway.state)).get("generation") or 0)
        refusal, kept = await editor.misspell()
        tally.event(report.edit_refused(editor.misspelt, refusal, kept))
        await runner.reached(0.4)
        after, took_s, applied_at = await editor.reverse(before)
        tally.event(report.edit_applied(editor.order_before, editor.order_after, before, after, took_s))
        return Edits(editor.order_before, editor.order_after, refusal, before, kept, after, took_s, applied_at)
    finally:
        runner.edited.set()
