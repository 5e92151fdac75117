"""People told: generic JSON, Slack-style text, Alertmanager v2, with retry and signature.

Owns the queue and the sending; nothing here delays a decision. A message that cannot be delivered after all tries is
dropped and counted. The body is signed with HMAC-SHA-256 over ``timestamp.body`` where the policy gives a secret, so a
receiver can refuse forgeries and replays. Bodies hold names and numbers, never texts of requests.
"""

import asyncio
import hashlib
import hmac
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import aiohttp
import msgspec
import orjson
import structlog

from gateway.control.series import Counter
from gateway.model.proving import Webhook

RETRY_S = (1.0, 5.0, 15.0, 60.0, 180.0)
WAITING_MOST = 1_000
SENDERS = 4
FIRING_S = 86_400.0
SIGNATURE = "X-Quantgate-Signature"
_SEVERITY = {"rollback": "critical", "incident": "critical", "quarantine": "critical", "promotion": "info"}

_log = structlog.get_logger("control.webhooks")


class Message(msgspec.Struct, frozen=True):
    """What happened, for people and machines. ``labels`` identify it: equal labels are the same alert, which a message
    with ``resolved`` ends."""

    event: str
    at_s: float
    summary: str
    labels: dict[str, str] = {}
    details: dict[str, Any] = {}
    resolved: bool = False


# Series that alerts watch begin at 0: an increase from nothing to 1 is none to a monitoring system.
FAILED = ("given_up", "refused", "queue_full", "failed")


class Webhooks:
    """The sender. ``wall`` is the wall clock, ``sleep`` waits between tries."""

    def __init__(self, wall: Callable[[], float], sleep: Callable[[float], Any] = asyncio.sleep) -> None:
        self.sent = Counter(
            "quantgate_notifications_total", "Notifications by webhook and how they ended.", ("webhook", "outcome")
        )
        self._wall = wall
        self._sleep = sleep
        self._targets: tuple[Webhook, ...] = ()
        self._queue: asyncio.Queue[tuple[Webhook, Message]] = asyncio.Queue(WAITING_MOST)

    def configure(self, targets: tuple[Webhook, ...]) -> None:
        """The policy's webhooks."""
        self._targets = targets
        for target in targets:
            for outcome in FAILED:
                self.sent.row((target.name, outcome))

    def tell(self, message: Message) -> None:
        """Queue a message for everybody who wants that event. Never waits."""
        for target in self._targets:
            if target.events and message.event not in target.events:
                continue
            try:
                self._queue.put_nowait((target, message))
            except asyncio.QueueFull:
                self.sent.add((target.name, "queue_full"))

    async def run(self) -> None:
        """Send until cancelled."""
        async with aiohttp.ClientSession() as session, asyncio.TaskGroup() as group:
            for number in range(SENDERS):
                group.create_task(self._send_forever(session), name=f"webhooks {number}")

    async def _send_forever(self, session: aiohttp.ClientSession) -> None:
        while True:
            target, message = await self._queue.get()
            try:
                await self._send(session, target, message)
            except Exception:  # one message must not end all sending
                self.sent.add((target.name, "failed"))
                _log.exception("webhook_failed", webhook=target.name)

    async def _send(self, session: aiohttp.ClientSession, target: Webhook, message: Message) -> None:
        for pause_s in (*RETRY_S, None):
            ended = await self._attempt(session, target, message)
            if ended:
                self.sent.add((target.name, ended))
                return
            if pause_s is None:
                break
            self.sent.add((target.name, "retried"))
            await self._sleep(pause_s)
        self.sent.add((target.name, "given_up"))
        _log.error("webhook_given_up", webhook=target.name, notification=message.event)

    async def _attempt(self, session: aiohttp.ClientSession, target: Webhook, message: Message) -> str:
        """``sent``, or ``refused`` for good (the same would be refused again); empty = try again."""
        body = body_of(target.style, message)
        headers = {"Content-Type": "application/json"}
        if target.secret:
            headers[SIGNATURE] = sign(target.secret, body, int(self._wall()))
        try:
            timeout = aiohttp.ClientTimeout(total=target.timeout_s)
            async with session.post(target.url, data=body, headers=headers, timeout=timeout) as answer:
                status = answer.status
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            _log.warning("webhook_unreachable", webhook=target.name, error=type(error).__name__)
            return ""
        if status >= 500 or status in (408, 425, 429):
            return ""
        if status >= 300:
            _log.error("webhook_refused", webhook=target.name, status=status)
            return "refused"
        return "sent"


def sign(secret: str, body: bytes, at: int) -> str:
    """``t=<unix seconds>,v1=<hex>``: HMAC-SHA-256 of ``t.body``."""
    digest = hmac.new(secret.encode(), b"%d." % at + body, hashlib.sha256).hexdigest()
    return f"t={at},v1={digest}"


def body_of(style: str, message: Message) -> bytes:
    """The body in one of the three styles."""
    if style == "slack":
        return orjson.dumps({"text": _slack(message)})
    if style == "alertmanager":
        return orjson.dumps([_alert(message)])
    return orjson.dumps(
        {
            "event": message.event,
            "at": _time(message.at_s),
            "summary": message.summary,
            "resolved": message.resolved,
            "labels": message.labels,
            "details": message.details,
        }
    )


def _slack(message: Message) -> str:
    mark = ":white_check_mark:" if message.resolved or message.event == "promotion" else ":rotating_light:"
    where = ", ".join(f"{name} `{value}`" for name, value in message.labels.items() if name != "alertname")
    return f"{mark} *{message.event}*: {_escaped(message.summary)}" + (f"\n{_escaped(where)}" if where else "")


def _escaped(text: str) -> str:
    """Slack's three control characters."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _alert(message: Message) -> dict[str, Any]:
    camel = "".join(part.capitalize() for part in message.event.split("_"))
    alert: dict[str, Any] = {
        "labels": {
            "alertname": f"Quantgate{camel}",
            "service": "quantgate",
            "severity": _SEVERITY.get(message.event, "warning"),
            **message.labels,
        },
        "annotations": {"summary": message.summary, **{k: str(v) for k, v in message.details.items() if v}},
        "startsAt": _time(message.at_s),
    }
    # Alertmanager ends an alert by itself that is not repeated; a rollback stays until somebody answers it.
    alert["endsAt"] = _time(message.at_s if message.resolved else message.at_s + FIRING_S)
    return alert


def _time(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).isoformat()
