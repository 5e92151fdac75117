"""The worker's end of the socket: tables in, outcomes out, and nothing lost when control comes and goes."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec

from gateway.dataplane.link import ControlLink
from gateway.dataplane.outcomes import OutcomeBuffer
from gateway.dataplane.pairs import PairBuffer
from gateway.dataplane.starts import StartCounts
from gateway.model.messages import Apply, Endpoints, Feedback, Outcomes, Prepare, Rollouts, Stats, ToControl, ToWorker
from gateway.model.outcome import Capture, Columns
from tests.unit.dataplane.outcome_values import ended, make_outcome

DECODER = msgspec.msgpack.Decoder(ToControl)


def columns_of(message: Outcomes) -> Columns:
    return msgspec.msgpack.decode(message.batch, type=Columns)


def ids(message: Outcomes) -> list[str]:
    return columns_of(message).request_id


class Control:
    """A stand-in for control that records frames."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.heard: list[Any] = []
        self.writers: list[asyncio.StreamWriter] = []

    async def start(self) -> "Control":
        self.server = await asyncio.start_unix_server(self._serve, str(self.path))
        return self

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.append(writer)
        try:
            while True:
                length = int.from_bytes(await reader.readexactly(4), "big")
                self.heard.append(DECODER.decode(await reader.readexactly(length)))
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    def say(self, message: ToWorker) -> None:
        data = msgspec.msgpack.encode(message)
        self.writers[-1].write(len(data).to_bytes(4, "big") + data)

    def stop(self) -> None:
        self.server.close()
        for writer in self.writers:
            writer.transport.abort()
        self.path.unlink(missing_ok=True)

    async def until(self, kind: str, count: int = 1) -> list[Any]:
        async with asyncio.timeout(5):
            while len(found := [one for one in self.heard if type(one).__name__ == kind]) < count:
                await asyncio.sleep(0.005)
        return found


class Side:
    """A link with everything it calls recorded."""

    def __init__(self, path: Path, compiled: Any = str) -> None:
        self.applied: list[Any] = []
        self.reports: list[Endpoints] = []
        self.shares: list[Rollouts] = []
        self.errors: list[BaseException] = []
        self.outcomes = OutcomeBuffer()
        self.link: ControlLink[Any] = ControlLink(
            path,
            3,
            99,
            outcomes=self.outcomes,
            pairs=PairBuffer(),
            starts=StartCounts(),
            compile=compiled,
            apply=self.applied.append,
            generation=lambda: len(self.applied),
            report=self.reports.append,
            rollouts=self.shares.append,
            stats=lambda: Stats(3, 0, 0, 0, 0, {}, [], 0.0, False),
            on_error=self.errors.append,
        )
        self.tasks = [asyncio.create_task(self.link.run()), asyncio.create_task(self._tick_forever())]

    async def _tick_forever(self) -> None:
        while True:
            self.link.tick(asyncio.get_running_loop().time())
            await asyncio.sleep(0.01)

    def stop(self) -> None:
        for task in self.tasks:
            task.cancel()


async def test_a_table_is_prepared_then_applied(tmp_path: Path) -> None:
    """Prepare answers and uses nothing; Apply of the same generation uses it; of another one does nothing."""
    control = await Control(tmp_path / "s").start()
    side = Side(tmp_path / "s", lambda message: f"table {message.generation}")
    await control.until("Hello")
    control.say(Prepare(7, b"{}", {}))
    (prepared,) = await control.until("Prepared")
    assert (prepared.worker, prepared.generation, prepared.error) == (3, 7, "")
    assert side.applied == []
    control.say(Apply(6))
    control.say(Apply(7))
    control.say(Rollouts(1, {"r": {"b": -1}}))
    control.say(Endpoints([]))
    async with asyncio.timeout(5):
        while not (side.applied and side.shares and side.reports):
            await asyncio.sleep(0.005)
    assert side.applied == ["table 7"]
    side.stop()
    control.stop()


async def test_a_table_that_does_not_compile_is_refused_with_the_reason(tmp_path: Path) -> None:
    """Control hears why; the link lives on."""

    def broken(_message: Prepare) -> str:
        raise ValueError("no such pool")

    control = await Control(tmp_path / "s").start()
    side = Side(tmp_path / "s", broken)
    await control.until("Hello")
    control.say(Prepare(7, b"{}", {}))
    (prepared,) = await control.until("Prepared")
    assert prepared.error == "ValueError: no such pool"
    control.say(Apply(7))
    await control.until("Stats")
    assert side.applied == []
    side.stop()
    control.stop()


async def test_outcomes_wait_for_a_control_that_is_away(tmp_path: Path) -> None:
    """Buffered while nobody listens, sent in order when control is back, drops included."""
    side = Side(tmp_path / "s")
    for index in range(1200):
        side.outcomes.add(ended(make_outcome(request_id=str(index))))
    side.outcomes.dropped = 5
    side.link.say(Feedback(3, 1.0, "t", "r", "bad", 0.0))
    control = await Control(tmp_path / "s").start()
    async with asyncio.timeout(5):
        while sum(len(ids(one)) for one in control.heard if type(one).__name__ == "Outcomes") < 1200:
            await asyncio.sleep(0.005)
    batches = await control.until("Outcomes")
    assert [request_id for batch in batches for request_id in ids(batch)] == [str(i) for i in range(1200)]
    assert sum(batch.dropped for batch in batches) == 5
    assert [word.label for word in await control.until("Feedback")] == ["bad"]
    side.stop()
    control.stop()


async def test_a_control_that_dies_is_dialled_again(tmp_path: Path) -> None:
    """The link says hello to the next one, with the generation it serves."""
    first = await Control(tmp_path / "s").start()
    side = Side(tmp_path / "s")
    await first.until("Hello")
    first.stop()
    second = await Control(tmp_path / "s").start()
    (hello,) = await second.until("Hello")
    assert (hello.worker, hello.pid) == (3, 99)
    side.stop()
    second.stop()


async def test_the_last_outcomes_are_sent_before_the_end(tmp_path: Path) -> None:
    """finish() flushes what is buffered and closes."""
    control = await Control(tmp_path / "s").start()
    side = Side(tmp_path / "s")
    await control.until("Hello")
    side.tasks[1].cancel()
    side.outcomes.add(ended(make_outcome(request_id="last")))
    await side.link.finish(2.0)
    batches = await control.until("Outcomes")
    assert ids(batches[-1]) == ["last"]
    side.stop()
    control.stop()


async def test_a_message_that_cannot_be_used_does_not_end_the_link(tmp_path: Path) -> None:
    """A control of another version says something that is unknown here; the next table is applied all the same."""
    control = await Control(tmp_path / "s").start()
    side = Side(tmp_path / "s")

    def unknown(_message: Endpoints) -> None:
        raise ValueError("no such state")

    side.link._report = unknown
    await control.until("Hello")
    control.say(Endpoints([]))
    control.say(Prepare(7, b"{}", {}))
    await control.until("Prepared")
    control.say(Apply(7))
    async with asyncio.timeout(5):
        while not side.applied:
            await asyncio.sleep(0.005)
    assert [str(error) for error in side.errors] == ["no such state"]
    side.stop()
    control.stop()


async def test_a_record_that_cannot_be_sent_does_not_keep_back_the_others(tmp_path: Path) -> None:
    """What no encoder takes is reported and lost; what comes after it is sent."""
    control = await Control(tmp_path / "s").start()
    side = Side(tmp_path / "s")
    await control.until("Hello")
    side.outcomes.add(ended(make_outcome(request_id="\ud800")))
    async with asyncio.timeout(5):
        while not side.errors:
            await asyncio.sleep(0.005)
    side.outcomes.add(ended(make_outcome(request_id="good")))
    (sent,) = await control.until("Outcomes")
    assert ids(sent) == ["good"]
    side.stop()
    control.stop()


async def test_texts_given_up_for_room_are_told_once(tmp_path: Path) -> None:
    """Control counts them as checks that were skipped: an outcome without its texts looks like an unchecked one."""
    side = Side(tmp_path / "s")
    side.outcomes = side.link._outcomes = OutcomeBuffer(capture_most=10)
    for name in ("kept", "stripped", "stripped too"):
        side.outcomes.add(ended(make_outcome(request_id=name, capture=Capture(b"12345", b"678", False))))
    control = await Control(tmp_path / "s").start()
    (first,) = await control.until("Outcomes")
    assert (ids(first), list(columns_of(first).capture), first.captures_dropped) == (
        ["kept", "stripped", "stripped too"],
        [0],
        2,
    )
    side.outcomes.add(ended(make_outcome(request_id="later")))
    _, second = await control.until("Outcomes", 2)
    assert second.captures_dropped == 0
    side.stop()
    control.stop()
