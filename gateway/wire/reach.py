"""Connecting to a name that stands for several addresses, of which some may be dead (RFC 8305).

A name of both families whose network carries one of them, or of several machines of which one is gone, has addresses
that never answer. Tried one after the other, the first of these uses up the time of the whole dial, every time. So the
next address is tried soon beside it, and the first that accepts is taken. Called by ``wire.pool``.
"""

import asyncio
import socket
from collections.abc import Sequence
from ipaddress import ip_address
from typing import Any, Final

STAGGER_S: Final = 0.25  # RFC 8305 §5: how long an address has the field to itself

Address = tuple[Any, ...]  # as getaddrinfo gives it: family, type, protocol, name, socket address


def is_literal(host: str) -> bool:
    """Whether a host is one address, written down."""
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


async def connect(loop: asyncio.AbstractEventLoop, host: str, port: int) -> socket.socket:
    """A connected socket. ``OSError`` says why there is none, ``ValueError`` that no resolver takes the name."""
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return await first_of(loop, alternating(found), STAGGER_S)


def alternating(addresses: Sequence[Address]) -> list[Address]:
    """The families by turns, each in the order in which its addresses came."""
    families = list(dict.fromkeys(address[0] for address in addresses))
    places: dict[Any, int] = dict.fromkeys(families, 0)
    keyed: list[tuple[int, int, Address]] = []
    for address in addresses:
        family = address[0]
        keyed.append((places[family], families.index(family), address))
        places[family] += 1
    keyed.sort(key=lambda entry: entry[:2])
    return [address for _, _, address in keyed]


async def first_of(loop: asyncio.AbstractEventLoop, addresses: list[Address], stagger_s: float) -> socket.socket:
    """The first address that accepts; the others are given up. With none, the last one's ``OSError``."""
    left = list(addresses)
    waiting: set[asyncio.Task[socket.socket]] = set()
    error: BaseException = OSError("the name has no address")
    try:
        while left or waiting:
            if left:
                waiting.add(loop.create_task(_connected(loop, left.pop(0)), name="reach an address"))
            done, _ = await asyncio.wait(
                waiting, timeout=stagger_s if left else None, return_when=asyncio.FIRST_COMPLETED
            )
            for task in done:
                waiting.discard(task)
                fault = task.exception()
                if fault is None:
                    return task.result()
                error = fault
    finally:
        for task in waiting:
            task.add_done_callback(_close)
            task.cancel()
    raise error


async def _connected(loop: asyncio.AbstractEventLoop, address: Address) -> socket.socket:
    family, kind, protocol, _, target = address
    sock = socket.socket(family, kind, protocol)
    try:
        sock.setblocking(False)
        await loop.sock_connect(sock, target)
    except BaseException:
        sock.close()
        raise
    return sock


def _close(task: asyncio.Task[socket.socket]) -> None:
    """One that came too late."""
    if not task.cancelled() and task.exception() is None:
        task.result().close()
