"""``quantgate simulate``: run one simulated runtime until it is told to stop.

Owns the command's options. The simulator itself is ``gateway.simulator``. ``gateway.cli`` registers ``simulate``.
"""

import asyncio
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
import uvloop
import yaml

from gateway.simulator.config import Config, patched, read_config
from gateway.simulator.server import Server

NO_PORT = 3  # as of ``serve``


class _PortError(Exception):
    """A port that cannot be listened on."""


def simulate(
    *,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to serve on; 0 lets the system choose.")] = 8000,
    host: Annotated[str, typer.Option(help="Address to bind.")] = "127.0.0.1",
    config: Annotated[Path | None, typer.Option(help="YAML file with the runtime's settings.", exists=True)] = None,
    model: Annotated[str | None, typer.Option(help="Name of the served model.")] = None,
    ttft: Annotated[float | None, typer.Option(help="Seconds to the first token, constant.")] = None,
    tpot: Annotated[float | None, typer.Option(help="Seconds per further token, constant.")] = None,
    output_tokens: Annotated[float | None, typer.Option(help="Natural length of prose, in tokens.")] = None,
    context_length: Annotated[int | None, typer.Option(help="Context window in tokens.")] = None,
    quantization: Annotated[str | None, typer.Option(help="Method reported in /server_info.")] = None,
    kv_cache_dtype: Annotated[str | None, typer.Option(help="KV cache dtype reported.")] = None,
    seed: Annotated[int | None, typer.Option(help="Answers are a function of request and seed.")] = None,
    control_port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Second port for /sim/*, untouched by faults; 0 = any.")
    ] = None,
) -> None:
    """Run a simulated runtime: OpenAI-compatible, vLLM-like, with faults on demand."""
    given = {
        "model": model,
        "ttft": ttft,
        "tpot": tpot,
        "output_tokens": output_tokens,
        "context_length": context_length,
        "quantization": quantization,
        "kv_cache_dtype": kv_cache_dtype,
        "seed": seed,
    }
    try:
        settings = read_config(config.read_bytes()) if config is not None else Config()
        settings = patched(settings, _patch(given))
    except (msgspec.ValidationError, yaml.YAMLError, ValueError, OSError) as error:
        typer.echo(f"{config or 'options'}: {error}", err=True)
        raise typer.Exit(2) from None
    try:
        uvloop.run(_serve(settings, host, port, control_port))
    except _PortError as error:
        typer.echo(f"quantgate simulate: {error}", err=True)
        raise typer.Exit(NO_PORT) from None


def _patch(given: Mapping[str, Any]) -> dict[str, Any]:
    """The options that were given, in the shape of the configuration."""
    patch: dict[str, Any] = {}
    for name, value in given.items():
        if value is None:
            continue
        if name in ("ttft", "tpot", "output_tokens"):
            patch[name] = {"constant": value}
        elif name in ("quantization", "kv_cache_dtype"):
            patch.setdefault("precision", {})[name] = value
        else:
            patch[name] = value
    return patch


async def _serve(settings: Config, host: str, port: int, control_port: int | None) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    server = Server(settings, time.time, time.time_ns())  # noqa: TID251 - this is the process's composition root
    try:
        await server.start(host, port, control_port)
    except OSError as error:
        raise _PortError(
            f"cannot listen at {host}: {error.strerror or error}; choose another --port or --host"
        ) from None
    where = {"model": settings.model, "host": host, "port": server.bound, "control_port": server.control_bound}
    typer.echo(msgspec.json.encode({"event": "listening", **where}).decode())
    await stop.wait()
    await server.stop()


if __name__ == "__main__":
    typer.run(simulate)
