"""``quantgate serve``: options to ``app.supervisor``.

Owns their spelling and defaults; ``gateway.cli`` registers it.
"""

import os
from pathlib import Path
from typing import Annotated

import typer

from gateway.app.addresses import AddressError, parse_address
from gateway.app.logs import LEVELS
from gateway.app.supervisor import Exit, ServeOptions
from gateway.app.supervisor import serve as supervise


def serve(
    *,
    config: Annotated[Path, typer.Option(help="Policy: one YAML file or a folder of them.")] = Path("routing_policies"),
    listen: Annotated[str, typer.Option(help="HOST:PORT for clients.")] = "0.0.0.0:8080",
    admin: Annotated[str, typer.Option(help="HOST:PORT for metrics, health and the admin API.")] = "127.0.0.1:9090",
    workers: Annotated[int, typer.Option(min=0, max=256, help="Worker processes; 0 = one per core.")] = 0,
    state_dir: Annotated[Path, typer.Option(help="What must survive a restart; one per gateway.")] = Path(
        "var/quantgate"
    ),
    drain_s: Annotated[float, typer.Option(min=0.0, help="Seconds that requests get to finish on SIGTERM.")] = 30.0,
    access_log: Annotated[str, typer.Option(help="'-' = standard output, 'off', or a file.")] = "-",
    log_level: Annotated[str, typer.Option(help=f"One of {', '.join(LEVELS)}.")] = "info",
    use_snapshot: Annotated[
        bool,
        typer.Option(help="If the policy files are broken at start, serve the last good policy instead of exiting."),
    ] = False,
) -> None:
    """Run the gateway: supervisor, control and workers, until SIGTERM. SIGHUP reloads the policy now."""
    if log_level not in LEVELS:
        raise typer.BadParameter(f"expected one of {', '.join(LEVELS)}", param_hint="--log-level")
    try:
        options = ServeOptions(
            config=config,
            listen=parse_address(listen, "--listen"),
            admin=parse_address(admin, "--admin"),
            workers=workers or len(os.sched_getaffinity(0)),
            state_dir=state_dir,
            drain_s=drain_s,
            access_log=access_log,
            log_level=log_level,
            use_snapshot=use_snapshot,
        )
    except AddressError as error:
        typer.echo(f"quantgate: {error}", err=True)
        raise typer.Exit(Exit.ADDRESS) from error
    raise typer.Exit(supervise(options))
