"""``/sim/*``: look into the simulator and change it while it runs.

Owns that surface. ``routes`` calls ``answer_control`` for paths under ``/sim/``; ``server`` offers the same on the
control port, which faults never touch.
"""

from typing import Any, Protocol

import msgspec
import orjson

from gateway.simulator.config import patched
from gateway.simulator.connection import Connection, Request
from gateway.simulator.fault import Armed, Fault
from gateway.simulator.service import Service


class Port(Protocol):
    """What a fault of the whole server needs from the server."""

    def refuse(self, for_s: float | None) -> None:
        """Close the door."""

    def crash(self, for_s: float | None) -> None:
        """Reset every connection and close the door."""

    def reopen(self) -> None:
        """Open the door again."""


def arm(service: Service, faults: "tuple[Fault, ...] | list[Fault]", port: Port) -> None:
    """Put these faults in force in place of the present ones. Faults of the whole server strike here."""
    now = service.engine.loop.time()
    service.armed = [Armed(fault, now) for fault in faults if fault.kind not in ("refuse", "crash")]
    port.reopen()
    for fault in faults:
        if fault.kind == "refuse":
            port.refuse(fault.for_s)
        elif fault.kind == "crash":
            port.crash(fault.for_s)


def answer_control(service: Service, port: Port, connection: Connection, request: Request) -> None:
    """Answer one request under ``/sim/``. Bad input gets a 400 that names the key."""
    try:
        answer, after = _answer(service, request)
    except (msgspec.ValidationError, msgspec.DecodeError, ValueError) as error:
        service.refuse(connection, 400, "BadRequestError", str(error))
        return
    if answer is None:
        service.refuse(connection, 404, "NotFoundError", f"Nothing at {request.method} {request.path}.")
        return
    connection.respond(200, orjson.dumps(answer))
    if after is not None:
        arm(service, after, port)


def _answer(service: Service, request: Request) -> tuple[Any, list[Fault] | None]:
    """(answer, faults to arm once it is sent: a crash would swallow it)."""
    match request.method, request.path:
        case "GET", "/sim/state":
            return state(service), None
        case "GET", "/sim/requests":
            return {"requests": msgspec.to_builtins(list(service.seen))}, None
        case "GET", "/sim/config":
            return msgspec.to_builtins(service.config), None
        case "POST", "/sim/config":
            patch = msgspec.json.decode(request.body, type=dict[str, Any])
            service.engine.config = patched(service.config, patch)
            return msgspec.to_builtins(service.config), None
        case "GET", "/sim/faults":
            return {"faults": [_armed(entry) for entry in service.armed]}, None
        case "POST", "/sim/faults":
            faults = msgspec.json.decode(request.body, type=_Faults).faults
            return {"faults": msgspec.to_builtins(faults)}, faults
        case "DELETE", "/sim/faults":
            return {"faults": []}, []
    return None, None


class _Faults(msgspec.Struct, forbid_unknown_fields=True):
    """Body of ``POST /sim/faults``."""

    faults: list[Fault]


def _armed(entry: Armed) -> dict[str, Any]:
    return {**msgspec.to_builtins(entry.fault), "strikes": entry.strikes}


def state(service: Service) -> dict[str, Any]:
    """Everything countable about the simulator at this moment."""
    engine = service.engine
    meters = engine.meters
    return {
        "model": engine.config.model,
        "running": len(engine.running),
        "waiting": len(engine.waiting),
        "kv_usage": engine.kv_usage,
        "requests": dict(meters.requests),
        "statuses": {str(status): number for status, number in meters.statuses.items()},
        "aborts": meters.aborts,
        "rejections": meters.rejections,
        "finished": dict(meters.finished),
        "struck": dict(meters.struck),
        "connections": meters.connections,
        "tokens": {
            "prompt": meters.prompt_tokens,
            "cached": meters.cached_tokens,
            "generated": meters.generation_tokens,
        },
        "faults": [_armed(entry) for entry in service.armed],
    }
