"""``quantgate demo``: options, the screen, and an exit status.

0 = every check holds, or ``--keep`` was ended; 1 = something failed; 2 = wrong usage; 128 + n = ended by signal n.
``gateway.cli`` registers it; the work is ``gateway.demo``'s.
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from gateway.app.addresses import Address, AddressError, parse_address, reserve
from gateway.app.children import die_with_parent
from gateway.demo.client import ClientError
from gateway.demo.fleet import FleetError
from gateway.demo.gateway_process import GatewayError
from gateway.demo.interrupt import Interrupted, Interrupts
from gateway.demo.policy import DemoPolicyError
from gateway.demo.run import Options
from gateway.demo.run import demo as run
from gateway.demo.screen import PLAIN_WIDTH, Screen, Trimmed
from gateway.demo.weights import WeightsError
from gateway.demo.workload import LEAST

GOOD, FAILED = 0, 1


def demo(
    *,
    requests: Annotated[int, typer.Option(min=LEAST, help="How many requests to send.")] = 72,
    seed: Annotated[int, typer.Option(help="Another seed makes another workload of the same kinds.")] = 7,
    keep: Annotated[bool, typer.Option("--keep", help="Leave everything running at the end, until Ctrl-C.")] = False,
    listen: Annotated[str, typer.Option(help="HOST:PORT of the gateway; port 0 = any free one.")] = "127.0.0.1:0",
    admin: Annotated[str, typer.Option(help="HOST:PORT of its metrics and admin API.")] = "127.0.0.1:0",
    workers: Annotated[int, typer.Option(min=0, max=16, help="Gateway workers; 0 = one per core.")] = 0,
    rollout: Annotated[bool, typer.Option(help="With the second part: a rollout, judged live.")] = True,
    rollout_s: Annotated[float, typer.Option(min=1, help="How many seconds its requests may take.")] = 240.0,
    folder: Annotated[
        Path | None, typer.Option(help="Where policy, logs and state go, and stay. Default: gone at the end.")
    ] = None,
) -> None:
    """Three real llama.cpp servers, the gateway in front of them, a mixed workload, and proof of where it went."""
    wanted = []
    for address, option in ((listen, "--listen"), (admin, "--admin")):
        try:
            wanted.append((parse_address(address, option), option))
        except AddressError as error:
            raise typer.BadParameter(str(error)) from error
    workers = workers or len(os.sched_getaffinity(0))
    options = Options(requests, seed, listen, admin, workers, keep, folder, rollout, rollout_s)
    raise typer.Exit(_run(options, wanted))


def _run(options: Options, wanted: Sequence[tuple[Address, str]]) -> int:
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=PLAIN_WIDTH, file=Trimmed(sys.stdout))
    with Interrupts() as interrupts:
        try:
            for address, option in wanted:
                reserve(address, option).release()  # to be told at once, and not when the servers have been started
            good = run(options, Screen(console), interrupts, die_with_parent(os.getpid()))
        except Interrupted as stopped:
            console.print(f"\n{stopped}: everything that was started is stopped.")
            return 128 + stopped.number
        except (AddressError, WeightsError, FleetError, GatewayError, ClientError, DemoPolicyError) as error:
            console.print(f"\n[bold red]The demo cannot go on[/]: {escape(str(error))}", soft_wrap=True)
            return FAILED
    return GOOD if good else FAILED
