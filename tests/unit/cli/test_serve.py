"""``quantgate serve``: options to the supervisor."""

import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gateway import cli
from gateway.app.addresses import Address
from gateway.cli import serve as serve_module


@pytest.fixture
def asked(monkeypatch):
    """The options that the supervisor was given."""
    seen = []
    monkeypatch.setattr(serve_module, "supervise", lambda options: seen.append(options) or 0)
    return seen


def run(*arguments):
    """Run a command line."""
    return CliRunner().invoke(cli.app, ["serve", *arguments], prog_name="quantgate")


def test_the_defaults_are_those_of_the_documentation(asked):
    """Clients on all interfaces, the admin port on this machine alone, one worker per core."""
    assert run().exit_code == 0
    (options,) = asked
    assert options.config == Path("routing_policies")
    assert (options.listen, options.admin) == (Address("0.0.0.0", 8080), Address("127.0.0.1", 9090))
    assert options.workers == len(os.sched_getaffinity(0))
    assert (options.drain_s, options.access_log, options.use_snapshot) == (30.0, "-", False)


def test_every_option_reaches_the_supervisor(asked):
    """None is swallowed."""
    arguments = "--config p --listen h:1 --admin [::1]:2 --workers 3 --state-dir s --drain-s 4 --access-log f"
    assert run(*arguments.split(), "--log-level", "debug", "--use-snapshot").exit_code == 0
    (options,) = asked
    assert (options.config, options.listen, options.admin) == (Path("p"), Address("h", 1), Address("::1", 2))
    assert (options.workers, options.state_dir, options.drain_s) == (3, Path("s"), 4.0)
    assert (options.access_log, options.log_level, options.use_snapshot) == ("f", "debug", True)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("--listen", "x"), 3, "--listen"),
        (("--admin", "h:99999"), 3, "--admin"),
        (("--log-level", "loud"), 2, "debug, info"),
        (("--workers", "-1"), 2, "workers"),
    ],
)
def test_a_wrong_option_is_named(asked, arguments, code, words):
    """Nothing is started."""
    result = run(*arguments)
    assert result.exit_code == code
    assert words in result.output
    assert asked == []


def test_the_exit_code_is_the_supervisors(monkeypatch):
    """An orchestrator tells a broken policy from a taken port."""
    monkeypatch.setattr(serve_module, "supervise", lambda options: 2)
    assert run().exit_code == 2
