"""``quantgate rollout``: where rollouts stand, why, and what a person may do about it, over the admin API.

Owns options and how it looks on a terminal; every rule is the gateway's. Exit status: 0 = done, 1 = refused by the
gateway's rules, 2 = not reachable or wrong options.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any
from urllib.parse import quote

import orjson
import typer
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table as Grid

from gateway.cli.admin_port import TOKEN, UnreachableError, ask, token_of, without_token
from gateway.cli.telling import give_up, print_json
from gateway.policy.secret import SecretError

DONE, REFUSED = 0, 1
DEFAULT_ADMIN = "127.0.0.1:9090"
COMMANDS = {
    "hold": "Keep it where it is: it does not advance until it is resumed.",
    "pause": "Take the candidate out for a while, without a verdict.",
    "resume": "End a hold, a pause or a freeze.",
    "rollback": "Take the candidate out now; it stays out until it is reset.",
    "approve": "Agree to the next stage; it advances once enough different people have and the evidence holds.",
    "promote": "Go to the next stage without waiting for the evidence; takes as many people as the policy asks for.",
    "reset": "Let it in again, at the first stage.",
}
_COLOURS = {"rolled_back": "bold red", "promoted": "bold green", "holding": "yellow", "frozen": "bold yellow"}

app = typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode=None, help="Rollouts: see and act.")

Admin = Annotated[str, typer.Option(help="The gateway's admin port: HOST:PORT or a URL.", envvar="QUANTGATE_ADMIN")]
Token = Annotated[str, typer.Option(help=f"env:NAME or file:PATH of your token; default: env:{TOKEN}.")]
Reason = Annotated[str, typer.Option("--reason", "-r", help="Why: it goes on record with your name.")]
Rollout = Annotated[str, typer.Argument(help="Name of the rollout in the policy.")]
Bucket = Annotated[str, typer.Argument(help="A bucket, or '*' for all of the rollout.")]
AsJson = Annotated[bool, typer.Option("--json", help="The API's answer as it is.")]


@app.command()
def status(
    rollout: Annotated[str, typer.Argument(help="This rollout alone.")] = "",
    *,
    bucket: Annotated[str, typer.Option(help="This bucket alone, with every guard.")] = "",
    admin: Admin = DEFAULT_ADMIN,
    token: Token = "",
    as_json: AsJson = False,
) -> None:
    """Every bucket: state, share, suspicion, and what is missing before it advances."""
    query = {key: value for key, value in (("rollout", rollout), ("bucket", bucket)) if value}
    found = _ask(admin, "/api/v1/rollouts", token, query=query)
    if as_json:
        print_json(found)
        return
    console = _console()
    if not found["restored"]:
        console.print("[yellow]The stored standings are not known yet: nothing begins before they are.[/]")
    if found["brake_engaged_at"] is not None:
        console.print("[bold yellow]The brake is on: many buckets tripped together. Nothing advances.[/]")
    if not found["buckets"]:
        about = f" that fits --bucket {bucket}" if bucket else ""
        of = f"rollout {rollout}" if rollout else "a rollout"
        console.print(f"No bucket of {escape(of + about)} has been met yet, or the policy has no such rollout.")
        return
    console.print(_buckets(found["buckets"]))
    if bucket:
        for row in found["buckets"]:
            console.print(_guards(row))
    budget = found["budget"]
    console.print(
        f"[dim]budget: {budget['false_rollbacks_per_year']:g} false rollbacks a year over {budget['slots']} slots "
        f"({budget['slots_used']} used), lumps {budget['lumps_granted_this_year']:.2g} of "
        f"{budget['lumps_per_year']:.2g} this year[/]"
    )


@app.command()
def history(
    rollout: Rollout,
    *,
    bucket: Annotated[str, typer.Option(help="This bucket alone.")] = "",
    most: Annotated[int, typer.Option("--limit", min=1, max=500)] = 20,
    admin: Admin = DEFAULT_ADMIN,
    token: Token = "",
    as_json: AsJson = False,
) -> None:
    """The append-only record: who or what moved it, when, why, on which evidence."""
    query = {"limit": str(most), **({"bucket": bucket} if bucket else {})}
    found = _ask(admin, f"/api/v1/rollouts/{quote(rollout)}/history", token, query=query)
    if as_json:
        print_json(found)
        return
    if not found["events"]:
        about = f" of bucket {bucket}" if bucket else ""
        _console().print(f"Nothing is on record{escape(about)} for a rollout {escape(rollout)}.")
        return
    grid = Grid(box=box.SIMPLE)
    for column in ("when (UTC)", "bucket", "event", "state", "share", "who", "why"):
        grid.add_column(column, overflow="fold")
    for event in found["events"]:
        moved = f"{event['before']} → {event['after']}" if event["before"] != event["after"] else event["after"]
        grid.add_row(
            _moment(event["at"]),
            escape(event["bucket"]),
            event["event"],
            moved,
            _share(event["share_bp"]),
            escape(event["actor"]),
            escape(event["reason"]),
        )
    _console().print(grid)


@app.command()
def incident(rollout: Rollout, bucket: Bucket, *, admin: Admin = DEFAULT_ADMIN, token: Token = "") -> None:
    """The last rollback of a bucket as JSON: evidence, requests, and the command that replays those with kept texts."""
    found = _ask(admin, f"/api/v1/rollouts/{quote(rollout)}/incident", token, query={"bucket": bucket})
    print_json(found)


def _add_command(word: str, words: str) -> None:
    @app.command(name=word, help=words)
    def act(
        rollout: Rollout, bucket: Bucket, *, reason: Reason, admin: Admin = DEFAULT_ADMIN, token: Token = ""
    ) -> None:
        path = f"/api/v1/rollouts/{quote(rollout)}/{word}"
        found = _ask(admin, path, token, body={"bucket": bucket, "reason": reason})
        for name, answer in found["buckets"].items():
            typer.echo(f"{name}: {answer}")
        if any(answer.startswith("refused: ") for answer in found["buckets"].values()):
            raise typer.Exit(REFUSED)


for _word, _words in COMMANDS.items():
    _add_command(_word, _words)


def _ask(
    admin: str, path: str, token: str, *, query: Mapping[str, str] | None = None, body: Mapping[str, str] | None = None
) -> Any:
    """What the API says to a question or, with a body, to a command."""
    try:
        method = "GET" if body is None else "POST"
        secret = token_of(token, needed=body is not None)
        status, data = ask(admin, path, method=method, query=query, body=body, token=secret)
    except SecretError as error:
        give_up("rollout", f"Your operator's token cannot be read: {error}")
    except UnreachableError as error:
        give_up("rollout", error)
    try:
        found = orjson.loads(data)
    except orjson.JSONDecodeError:
        give_up("rollout", f"{admin} answered with something that is not JSON (status {status}).")
    if status not in (200, 409) or "error" in found:
        said = found.get("error", {}).get("message", found)
        give_up("rollout", f"The gateway says {status}: {said}{without_token(status, secret)}")
    return found


def _console() -> Console:
    console = Console()
    return console if console.is_terminal else Console(width=160)


def _buckets(rows: list[dict[str, Any]]) -> Grid:
    grid = Grid(box=box.SIMPLE)
    for column in ("rollout", "bucket", "state", "stage", "share", "suspicion", "missing or reason"):
        grid.add_column(column, overflow="fold")
    for row in rows:
        worst = max((series["suspicion"] for series in row["series"]), default=-10.0)
        state = row["state"] + (f" ({row['cause']})" if row["cause"] else "")
        grid.add_row(
            escape(row["rollout"]),
            escape(row["bucket"]),
            f"[{_COLOURS.get(row['state'], 'default')}]{state}[/]",
            f"{row['stage'] + 1} of {len(row['stages'])}",
            _share(row["share_bp"]),
            f"{worst:.1f}",
            escape(_why(row)),
        )
    return grid


def _why(row: dict[str, Any]) -> str:
    if row["refused"]:
        return str(row["refused"])
    if row.get("not_serving"):
        return f"{row['candidate']} does not serve: {row['not_serving']}; {row['baseline']} does, and nothing advances"
    if row["state"] in ("shadowing", "stepping"):
        missing = [
            f"{series['series']}: {series['reasons'][0]}"
            for series in row["series"]
            if series["asked"] and series["verdict"] != "pass"
        ]
        return "; ".join(missing[:3]) or "every guard passes"
    return str(row["reason"])


def _guards(row: dict[str, Any]) -> Grid:
    grid = Grid(title=escape(row["bucket"]), box=box.SIMPLE, title_justify="left")
    columns = ("series", "verdict", "bad", "outcomes", "limit", "95 % interval", "suspicion", "baseline", "reasons")
    for column in columns:
        grid.add_column(column, overflow="fold")
    for series in row["series"]:
        interval = series["interval"]
        twin = series.get("baseline")
        grid.add_row(
            series["series"],
            series["verdict"],
            f"{series['bad']:g}",
            str(series["outcomes"]),
            f"{series['limit']:.3g}" if series["limit"] else "-",
            f"{interval[0]:.2%} – {interval[1]:.2%}" if interval else "-",
            f"{series['suspicion']:.1f}",
            f"{twin['suspicion']:.1f}" if twin else "-",
            escape("; ".join(series["reasons"])),
        )
    return grid


def _share(share_bp: int) -> str:
    return "rolled back" if share_bp < 0 else f"{share_bp / 100:g} %"


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S")
