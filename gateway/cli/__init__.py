"""The ``quantgate`` command: which commands there are, and where each lives.

Owns the list and nothing else. A command's module is imported when it is run or asked for its own help, so that
``quantgate --help`` and ``serve`` start at once and need none of the extras that the demo needs.
"""

import importlib
from typing import Any

import click
import typer
from typer.core import TyperGroup

from gateway import __version__
from gateway.app.compiled import describe
from gateway.app.descriptors import raise_descriptor_limit

# name: (module, function or typer application in it, one line of help)
COMMANDS: dict[str, tuple[str, str, str]] = {
    "serve": ("gateway.cli.serve", "serve", "Run the gateway: supervisor, control and workers."),
    "check": ("gateway.cli.check", "check", "Check a policy: every fault with file, line, column and a mend."),
    "explain": ("gateway.cli.explain", "explain", "Say in words which pools one request gets, and why."),
    "test": ("gateway.cli.policy_test", "test", "Run the *.test.yaml beside a policy."),
    "inspect": ("gateway.cli.inspect_answer", "inspect_answer", "Run every quality check on a stored answer."),
    "compare": ("gateway.cli.compare", "compare", "Hold a candidate's answer against the baseline's, part by part."),
    "report": ("gateway.cli.report", "report", "Pools by bucket against the baseline: latency, errors, quality."),
    "record": ("gateway.cli.record", "record", "The deployment record of each pool, and what is missing in it."),
    "replay": ("gateway.cli.replay", "replay", "Send stored or given requests to chosen pools and compare."),
    "rollout": ("gateway.cli.rollout", "app", "Rollouts: where they stand and why; hold, approve, roll back, reset."),
    "rehearse": ("gateway.cli.rehearse", "rehearse", "Rehearse a policy's rollouts: when they trip, whom it hurts."),
    "diff": ("gateway.cli.diff", "diff", "Show a shadow pair side by side: scores, parts, and texts if kept."),
    "simulate": ("gateway.cli.simulate", "simulate", "Run a simulated runtime, for tests, load and rehearsal."),
    "demo": ("gateway.cli.demo", "demo", "Three real llama.cpp pools, the gateway, a mixed workload, a report."),
    "vectors": ("gateway.cli.vectors", "main", "Check the judge's statistics against a file of test vectors."),
}


class _LazyCommand(click.Command):
    """Stands for a command until it is run; then hands over to the real one."""

    def __init__(self, name: str, module: str, attribute: str, summary: str) -> None:
        super().__init__(name, help=summary, short_help=summary, add_help_option=False)
        self._module = module
        self._attribute = attribute

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """The context of the real command, which the group then invokes."""
        return self._load().make_context(info_name, args, parent=parent, **extra)

    def _load(self) -> Any:
        target = getattr(importlib.import_module(self._module), self._attribute)
        if isinstance(target, typer.Typer):
            return typer.main.get_command(target)
        single = typer.Typer(add_completion=False, rich_markup_mode=None)
        single.command(name=self.name)(target)
        return typer.main.get_command(single)


class _Commands(TyperGroup):
    """The group over ``COMMANDS``, in their order."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Every name."""
        return [*COMMANDS]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """A stand-in; None for an unknown name."""
        known = COMMANDS.get(cmd_name)
        return None if known is None else _LazyCommand(cmd_name, *known)


app = typer.Typer(cls=_Commands, no_args_is_help=True, add_completion=False, rich_markup_mode=None)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"quantgate {__version__} ({describe()})")
        raise typer.Exit


@app.callback()
def root(
    version: bool = typer.Option(False, "--version", help="Print the version.", callback=_print_version, is_eager=True),
) -> None:
    """The entrypoint in front of LLM serving pools of different precision."""


def main() -> None:
    """Entry of the installed command."""
    raise_descriptor_limit()
    app(prog_name="quantgate")
