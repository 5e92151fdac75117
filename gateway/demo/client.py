"""The demo's application side: requests through the official OpenAI client, and what came back of each.

Owns the clients, one per tenant, each with its key. Retries are off, so that a failure is seen as one. Proxies of the
environment do not apply: everything is on loopback. Called by ``gateway.demo.run``.
"""

import importlib
import time
from collections.abc import Mapping
from types import ModuleType, TracebackType
from typing import TYPE_CHECKING, Any, Self

import msgspec
import orjson

from gateway.demo import prompts
from gateway.demo.workload import Item, Kind

if TYPE_CHECKING:
    from openai import AsyncOpenAI

ANSWER_S = 600.0


class ClientError(Exception):
    """The OpenAI client is not there. The message says what to install."""


class Answer(msgspec.Struct, frozen=True):
    """What one request got. ``status`` 0 = no whole answer; ``error``: the code and message then, or of a refusal.

    ``pool``, ``rule``, ``bucket`` and ``request_id`` are the gateway's response headers. ``valid_json``: whether an
    answer that was to follow the weather's schema does; None where none was asked for.
    """

    number: int
    status: int
    took_s: float
    error: str = ""
    pool: str = ""
    rule: str = ""
    bucket: str = ""
    request_id: str = ""
    retry_after: str = ""
    ttft_s: float = -1.0
    text: str = ""
    valid_json: bool | None = None


def right(item: Item, answer: Answer) -> bool:
    """Whether the request got an answer that is right for it."""
    return answer.status in item.may_answer


def require_openai() -> ModuleType:
    """The OpenAI SDK, which is in the demo's extra. Raises ``ClientError`` where it is missing."""
    try:
        return importlib.import_module("openai")
    except ImportError as error:
        raise ClientError("openai is missing: install the demo extra, pip install 'quantgate[demo]'") from error


class Clients:
    """One OpenAI client per tenant, as a context."""

    def __init__(self, base_url: str, keys: Mapping[str, str]) -> None:
        openai = require_openai()
        self._error = openai.APIError
        self._status_error = openai.APIStatusError
        self.version = openai.__version__
        self._clients: dict[str, AsyncOpenAI] = {
            tenant: openai.AsyncOpenAI(
                base_url=base_url,
                api_key=key,
                max_retries=0,
                timeout=ANSWER_S,
                http_client=openai.DefaultAsyncHttpxClient(trust_env=False),
            )
            for tenant, key in keys.items()
        }

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for client in self._clients.values():
            await client.close()

    async def send(self, item: Item) -> Answer:
        """Send one request and read its answer to the end."""
        began = time.monotonic()
        try:
            return await self._ask(item, began)
        except self._status_error as error:
            headers = error.response.headers
            return Answer(
                item.number,
                error.status_code,
                time.monotonic() - began,
                error=_fault(error.body),
                request_id=headers.get("x-quantgate-request-id", ""),
                pool=headers.get("x-quantgate-pool", ""),
                rule=headers.get("x-quantgate-rule", ""),
                bucket=headers.get("x-quantgate-bucket", ""),
                retry_after=headers.get("retry-after", ""),
            )
        except self._error as error:
            return Answer(item.number, 0, time.monotonic() - began, error=f"{type(error).__name__}: {error}")

    async def judge(self, item: Item, answer: Answer, *, good: bool) -> bool:
        """Tell the gateway whether the answer was of use. True = it took the word."""
        word = {"request_id": answer.request_id, "label": "good" if good else "bad"}
        try:
            await self._clients[item.tenant].post("/feedback", cast_to=object, body=word)
        except self._error:
            return False
        return True

    async def _ask(self, item: Item, began: float) -> Answer:
        client = self._clients[item.tenant]
        if item.kind is Kind.EMBEDDINGS:
            embedded = await client.embeddings.with_raw_response.create(**item.body)
            return _answer(item, embedded.headers, time.monotonic() - began, -1.0, "")
        raw: Any = await client.chat.completions.with_raw_response.create(**item.body)
        parsed: Any = raw.parse()
        text, first_at = "", 0.0
        if item.stream:
            async for chunk in parsed:
                piece = chunk.choices[0].delta.content if chunk.choices else None
                if piece:
                    first_at = first_at or time.monotonic()
                    text += piece
        else:
            text = parsed.choices[0].message.content or ""
        ttft_s = first_at - began if first_at else -1.0
        return _answer(item, raw.headers, time.monotonic() - began, ttft_s, text)


def _answer(item: Item, headers: Mapping[str, str], took_s: float, ttft_s: float, text: str) -> Answer:
    return Answer(
        item.number,
        200,
        took_s,
        pool=headers.get("x-quantgate-pool", ""),
        rule=headers.get("x-quantgate-rule", ""),
        bucket=headers.get("x-quantgate-bucket", ""),
        request_id=headers.get("x-quantgate-request-id", ""),
        ttft_s=ttft_s,
        text=text,
        valid_json=follows_schema(text) if item.kind is Kind.JSON else None,
    )


def follows_schema(text: str) -> bool:
    """Whether an answer is what the demo's JSON schema asks for."""
    import jsonschema

    try:
        jsonschema.validate(orjson.loads(text), prompts.WEATHER)
    except (orjson.JSONDecodeError, jsonschema.ValidationError):
        return False
    return True


def _fault(body: object) -> str:
    """Code and message of an error in OpenAI's shape, as the SDK hands it over: without the envelope."""
    if not isinstance(body, dict):
        return str(body or "")
    code = body.get("code") if isinstance(body.get("code"), str) else body.get("type")
    return f"{code}: {body.get('message', '')}"
