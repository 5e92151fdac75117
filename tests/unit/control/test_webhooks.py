"""People are told: in their style, signed, again after failures, and never at the cost of a decision."""

import asyncio
import hashlib
import hmac
from collections.abc import AsyncIterator, Callable

import orjson
import pytest
from aiohttp import web

from gateway.control.webhooks import RETRY_S, WAITING_MOST, Message, Webhooks, body_of, sign
from gateway.model.proving import Webhook

AT = 1_700_000_000.0
ROLLBACK = Message("rollback", AT, "int4 is out <b>", {"rollout": "r", "bucket": "b"}, {"headroom": "room for 3"})


class Receiver:
    """Answers with the given statuses, then 200; keeps what came."""

    def __init__(self) -> None:
        self.statuses: list[int] = []
        self.got: list[tuple[bytes, str | None]] = []
        self.news = asyncio.Event()
        self.url = ""

    async def handle(self, request: web.Request) -> web.Response:
        """One notification."""
        self.got.append((await request.read(), request.headers.get("X-Quantgate-Signature")))
        self.news.set()
        return web.Response(status=self.statuses.pop(0) if self.statuses else 200)

    async def until(self, count: int) -> None:
        """Wait until so many have come."""
        async with asyncio.timeout(10):
            while len(self.got) < count:
                self.news.clear()
                await self.news.wait()


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    """A listening receiver."""
    made = Receiver()
    application = web.Application()
    application.router.add_post("/hook", made.handle)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    made.url = f"http://127.0.0.1:{runner.addresses[0][1]}/hook"
    yield made
    await runner.cleanup()


def hook(url: str, style: str = "generic", events: tuple[str, ...] = (), secret: str | None = None) -> Webhook:
    return Webhook("pager", url, style, frozenset(events), secret, 5.0)


class Running:
    """Webhooks that are being sent; pauses are noted instead of waited for."""

    def __init__(self, *targets: Webhook) -> None:
        self.pauses: list[float] = []
        self.webhooks = Webhooks(lambda: AT, self._pause)
        self.webhooks.configure(targets)

    async def _pause(self, seconds: float) -> None:
        self.pauses.append(seconds)

    async def __aenter__(self) -> "Running":
        self._task = asyncio.create_task(self.webhooks.run())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def ended(self, outcome: str) -> None:
        """Wait until a notification ended so."""
        async with asyncio.timeout(10):
            while not self.webhooks.sent.row(("pager", outcome))[0]:
                await asyncio.sleep(0.005)


async def test_a_notification_is_signed_over_time_and_body(receiver: Receiver) -> None:
    """The receiver can check both, and refuse replays."""
    async with Running(hook(receiver.url, secret="s3cret")) as running:
        running.webhooks.tell(ROLLBACK)
        await receiver.until(1)
    body, signature = receiver.got[0]
    at, digest = int(AT), hmac.new(b"s3cret", b"%d." % int(AT) + body, hashlib.sha256).hexdigest()
    assert signature == f"t={at},v1={digest}" == sign("s3cret", body, at)
    assert orjson.loads(body)["labels"] == {"rollout": "r", "bucket": "b"}


async def test_failures_are_tried_again_with_growing_pauses_and_refusals_are_not(receiver: Receiver) -> None:
    """5xx and 429 pass; a 400 would be a 400 again."""
    receiver.statuses = [500, 429, 200, 400]
    async with Running(hook(receiver.url)) as running:
        running.webhooks.tell(ROLLBACK)
        await running.ended("sent")
        assert running.pauses == list(RETRY_S[:2])
        running.webhooks.tell(ROLLBACK)
        await running.ended("refused")
    assert len(receiver.got) == 4


async def test_what_cannot_be_delivered_is_given_up_and_counted(receiver: Receiver) -> None:
    """After all tries; the next message goes on."""
    receiver.statuses = [503] * (len(RETRY_S) + 1)
    async with Running(hook(receiver.url)) as running:
        running.webhooks.tell(ROLLBACK)
        await running.ended("given_up")
        running.webhooks.tell(ROLLBACK)
        await running.ended("sent")
    assert running.pauses == list(RETRY_S)


async def test_an_unreachable_receiver_stops_nobody() -> None:
    """A refused connection is a failure like any other."""
    async with Running(hook("http://127.0.0.1:1/hook")) as running:
        running.webhooks.tell(ROLLBACK)
        await running.ended("given_up")


def test_what_an_alert_watches_begins_at_zero() -> None:
    """An increase from nothing to 1 is none: the first message that is lost would wake nobody."""
    webhooks = Webhooks(lambda: AT)
    webhooks.configure((hook("http://127.0.0.1:1/hook"),))
    found = webhooks.sent.family().samples
    assert found == {("pager", outcome): (0.0,) for outcome in ("given_up", "refused", "queue_full", "failed")}


async def test_only_wanted_events_are_sent_and_a_full_queue_drops(receiver: Receiver) -> None:
    """No events named = all; telling never waits."""
    webhooks = Webhooks(lambda: AT)
    webhooks.configure((hook(receiver.url, events=("promotion",)), hook(receiver.url)))
    webhooks.tell(ROLLBACK)
    assert webhooks._queue.qsize() == 1
    for _ in range(WAITING_MOST + 5):
        webhooks.tell(ROLLBACK)
    assert webhooks.sent.rows["pager", "queue_full"][0] == 6.0


@pytest.mark.parametrize(
    ("style", "holds"),
    [
        ("generic", lambda body: body["event"] == "rollback" and body["at"].startswith("2023-11-14T22:13:20")),
        ("slack", lambda body: "*rollback*" in body["text"] and "&lt;b&gt;" in body["text"]),
        (
            "alertmanager",
            lambda body: (
                body[0]["labels"]["alertname"] == "QuantgateRollback"
                and body[0]["labels"]["severity"] == "critical"
                and body[0]["annotations"]["headroom"] == "room for 3"
                and body[0]["endsAt"] > body[0]["startsAt"]
            ),
        ),
    ],
)
def test_each_style_is_what_its_receiver_reads(style: str, holds: Callable[[object], bool]) -> None:
    """Generic JSON, Slack's text with its three characters escaped, Alertmanager's list."""
    assert holds(orjson.loads(body_of(style, ROLLBACK)))


def test_what_is_over_ends_the_alert() -> None:
    """The same labels, ended now."""
    over = Message("rollback", AT, "in again", ROLLBACK.labels, resolved=True)
    first, last = (orjson.loads(body_of("alertmanager", one))[0] for one in (ROLLBACK, over))
    assert first["labels"] == last["labels"]
    assert last["endsAt"] == last["startsAt"]
    assert ":white_check_mark:" in orjson.loads(body_of("slack", over))["text"]
