"""``quantgate record``: what is written down of each pool's deployment, and what is missing.

Owns options and printing; the list of what must be known is ``core.deployment``'s. From a policy alone it shows what is
declared; from a running gateway also what the runtimes told and which buckets have evidence. Exit status: 0 = shown,
1 = something is missing and ``--strict`` was given, 2 = nothing to show.
"""

import json
import sys
from pathlib import Path
from typing import Annotated, Any, TextIO

import msgspec
import orjson
import typer
from rich import box
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from gateway.cli.stored import StoredError, ask_admin
from gateway.cli.telling import give_up
from gateway.control.evidence import deployment_record
from gateway.core.deployment import Entry, State, entries, plan_of
from gateway.errors import PolicyRejectedError
from gateway.policy.compile import compile_table
from gateway.policy.load import load
from gateway.policy.oversight import compile_oversight
from gateway.policy.secret import unresolved
from gateway.store.deployments import hash_of

SHOWN, INCOMPLETE = 0, 1
PLAIN_WIDTH = 140


class PoolRecord(msgspec.Struct, frozen=True):
    """One pool's record. ``hash`` stands in every request row that it served."""

    pool: str
    hash: str
    entries: list[Entry]


class _Answer(msgspec.Struct, frozen=True):
    deployments: list[PoolRecord]


def record(
    *,
    config: Annotated[Path, typer.Option(help="Policy: one YAML file or a folder of them.")] = Path("routing_policies"),
    admin: Annotated[str | None, typer.Option(help="Ask a running gateway's admin port instead: HOST:PORT.")] = None,
    pool: Annotated[list[str] | None, typer.Option(help="This pool alone; may be repeated.")] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit 1 if anything is missing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The same as JSON.")] = False,
) -> None:
    """The deployment record of each pool: declared, attested, and what is missing in it."""
    try:
        found = _from_admin(admin) if admin is not None else _from_policy(config)
        if pool:
            unknown = set(pool) - {one.pool for one in found}
            if unknown:
                known = ", ".join(one.pool for one in found)
                raise StoredError(f"there is no pool {', '.join(sorted(unknown))}; known: {known}")
            found = [one for one in found if one.pool in pool]
    except (StoredError, PolicyRejectedError, OSError) as error:
        give_up("record", error)
    if as_json:
        sys.stdout.write(json.dumps([_values(one) for one in found], indent=2, ensure_ascii=False) + "\n")
    else:
        show(found, sys.stdout, attested=admin is not None)
    gaps = any(entry.state is State.MISSING for one in found for entry in one.entries)
    raise typer.Exit(INCOMPLETE if strict and gaps else SHOWN)


def show(found: list[PoolRecord], out: TextIO, *, attested: bool) -> None:
    """One table a pool, then what to write into the policy."""
    console = Console(file=out, highlight=False, width=None if out.isatty() else PLAIN_WIDTH)
    for one in found:
        console.print(_grid(one, attested=attested))
        gaps = [entry for entry in one.entries if entry.state is State.MISSING]
        if not gaps:
            console.print(Text(f"{one.pool}: nothing is missing.", "green"))
        else:
            names = ", ".join(f"{entry.group} {entry.name}" for entry in gaps)
            console.print(Text(f"{one.pool}: {len(gaps)} missing: {names}", "red"))
        keys = [entry.write for entry in gaps if entry.write]
        if keys:
            console.print(Text(f"Write what you know into pools: {one.pool}: record: {{{', '.join(keys)}}}", "dim"))
        console.print()
    if not attested:
        hint = "Declared alone: a running gateway (--admin HOST:PORT) also tells what runtimes attest."
        console.print(Text(hint, "dim"))


def _grid(one: PoolRecord, *, attested: bool) -> Grid:
    title = Text(f"{one.pool}  ", "bold").append(one.hash[:16], "dim")
    grid = Grid(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("", "", "declared", *(["attested"] if attested else [])):
        grid.add_column(column, overflow="fold")
    group = ""
    for entry in one.entries:
        shown = entry.group if entry.group != group else ""
        group = entry.group
        if entry.state is State.KNOWN:
            cells = [Text(entry.declared or "–"), Text(entry.attested or "–")]
        elif entry.state is State.MISSING:
            cells = [Text("missing", "bold red"), Text("")]
        else:
            cells = [Text("not applicable", "dim"), Text("")]
        grid.add_row(Text(shown, "bold"), entry.name, *cells[: 2 if attested else 1])
    return grid


def _from_policy(config: Path) -> list[PoolRecord]:
    document = load(config).document
    table = compile_table(document, 0, {}, unresolved)
    kept = compile_oversight(document, unresolved).samples
    found = []
    for name, pool in table.pools.items():
        declared = deployment_record(pool)
        found.append(PoolRecord(name, hash_of(declared), entries(declared, None, plan_of(table, kept, name, None))))
    return found


def _from_admin(admin: str) -> list[PoolRecord]:
    try:
        return msgspec.json.decode(ask_admin(admin, "/api/v1/deployments"), type=_Answer).deployments
    except msgspec.MsgspecError as error:
        raise StoredError(f"the gateway at {admin} sent no deployments that this version reads: {error}") from None


def _values(one: PoolRecord) -> dict[str, Any]:
    found: dict[str, Any] = orjson.loads(msgspec.json.encode(one))
    return found | {"missing": [f"{e.group}: {e.name}" for e in one.entries if e.state is State.MISSING]}
