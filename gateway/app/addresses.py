"""Listening addresses: parsing ``HOST:PORT`` and holding a port for processes that come and go.

A reserved port is bound but never listened on, so no connection reaches it, and the children can listen on it again
and again with ``SO_REUSEPORT`` while nobody else can take it between two restarts. Called by ``app.supervisor``.
"""

import errno
import socket

import msgspec

_EVERY_INTERFACE = frozenset({"0.0.0.0", "::"})


class Address(msgspec.Struct, frozen=True):
    """A TCP address to listen on. Port 0 = any free one."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


class AddressError(Exception):
    """An address that cannot be used; the message says which option and what to do."""


def parse_address(text: str, option: str) -> Address:
    """``HOST:PORT``, ``[V6]:PORT``, ``:PORT`` (all interfaces) or ``PORT``. Raises ``AddressError``."""
    host, colon, port = text.rpartition(":")
    if not colon:
        host, port = "", text
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise AddressError(f"{option} {text!r}: write an IPv6 address in brackets, as [::1]:8080")
    if not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise AddressError(f"{option} {text!r}: expected HOST:PORT with a port from 0 to 65535")
    return Address(host or "0.0.0.0", int(port))


class Reservation:
    """A port held for children. ``address`` has the real port."""

    def __init__(self, holder: socket.socket, address: Address) -> None:
        self._holder = holder
        self.address = address

    def covers(self, host: str, port: int) -> bool:
        """Whether connections to that numeric address could arrive here."""
        mine, at = self._holder.getsockname()[:2]
        return port == at and (host == mine or bool({host, mine} & _EVERY_INTERFACE))

    def release(self) -> None:
        """Give the port back to the system."""
        self._holder.close()


def reserve(address: Address, option: str, clients: Reservation | None = None) -> Reservation:
    """Hold ``address``. Raises ``AddressError`` if another program listens there, or it is not ours to take, or it is
    that of ``clients``: ports that are shared among children would be shared with it, and nobody would notice."""
    try:
        found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except socket.gaierror as error:
        raise AddressError(f"{option} {address}: {error.strerror}; give an address of this machine") from error
    family, kind, protocol, _, target = found[0]
    if clients is not None and clients.covers(str(target[0]), int(target[1])):
        raise AddressError(f"{option} {address}: that is the port for clients (--listen); choose another port")
    try:
        if address.port:
            # Without SO_REUSEPORT this fails if anybody at all listens there, another gateway of the same user
            # included.
            with socket.socket(family, kind, protocol) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(target)
                probe.listen(1)
        holder = socket.socket(family, kind, protocol)
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        holder.bind(target)
    except OSError as error:
        raise AddressError(f"{option} {address}: {_cause(error)}") from error
    return Reservation(holder, Address(address.host, holder.getsockname()[1]))


def _cause(error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return "the port is already in use; stop the program that listens there or choose another port"
    if error.errno == errno.EACCES:
        return "no permission to listen there; choose a port from 1024 upwards"
    if error.errno == errno.EADDRNOTAVAIL:
        return "no interface of this machine has that address"
    return error.strerror or str(error)
