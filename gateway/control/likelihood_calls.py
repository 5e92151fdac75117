"""The HTTP calls that ask a runtime for scores: one at a time, each on a connection of its own, read within bounds.

Owns the session, and tells ``Caution`` of a server that failed under a call. What to ask is
``core.comparison.scoring``'s, whether to ask ``control.likelihood``'s.
"""

from typing import Final

import aiohttp

from gateway.control.likelihood_caution import Caution
from gateway.core.comparison import Call, Reply
from gateway.model.pair import Pair
from gateway.model.table import Endpoint, Pool

REPLY_MOST_BYTES: Final = 64 * 1024 * 1024  # log-probabilities of a long prompt
BUSY: Final = 503  # an engine's word for having enough to do


class Calls:
    """Makes them. Raises ``aiohttp.ClientError`` where there is no reply, ``OSError`` where it is too long."""

    def __init__(self, caution: Caution) -> None:
        self._caution = caution
        self._session: aiohttp.ClientSession | None = None

    async def post(self, pair: Pair, pool: Pool, endpoint: Endpoint, call: Call) -> Reply:
        """The reply, whatever its status."""
        try:
            reply = await self._reply(pair, pool, endpoint, call)
        except aiohttp.ClientConnectorError:
            raise  # nothing was asked
        except aiohttp.ClientError as error:
            self._caution.broke(pool.name, type(error).__name__)
            raise
        if reply.status >= 500 and reply.status != BUSY:
            self._caution.broke(pool.name, f"status {reply.status}")
        return reply

    async def close(self) -> None:
        """No more of them."""
        if self._session is not None:
            await self._session.close()

    async def _reply(self, pair: Pair, pool: Pool, endpoint: Endpoint, call: Call) -> Reply:
        if self._session is None:
            # Nothing is kept alive: a connection that breaks was broken by its own call, and not by its age.
            self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True))
        headers = {"Content-Type": "application/json", "x-quantgate-shadow": pair.rule}
        headers["x-request-id"] = f"{pair.request_id}.likelihood"
        if pool.authorization is not None:
            headers["Authorization"] = pool.authorization.decode("latin-1")
        url = f"{url_of(endpoint)}{call.path}"
        async with self._session.post(url, data=call.body, headers=headers, allow_redirects=False) as response:
            body = b""
            async for piece in response.content.iter_any():
                body += piece
                if len(body) > REPLY_MOST_BYTES:
                    raise OSError("the reply is longer than is read")
            return Reply(response.status, body)


def url_of(endpoint: Endpoint) -> str:
    """An endpoint's base URL without a trailing slash."""
    host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
    return f"{endpoint.scheme}://{host}:{endpoint.port}{endpoint.base_path.rstrip('/')}"
