"""The server's process: its command line, its failures in words, and that it never outlives its parent."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.demo.llama_server import KV_TYPES, Arguments, main, parse


@given(
    st.builds(
        Arguments,
        port=st.integers(0, 65535),
        model=st.sampled_from([Path("/m/a.gguf"), Path("b c.gguf")]),
        alias=st.from_regex(r"[a-z][a-z0-9.-]{0,10}", fullmatch=True),
        kv=st.sampled_from(KV_TYPES),
        slots=st.integers(1, 64),
        ctx=st.integers(256, 1 << 20),
        with_parent=st.booleans(),
        log_tasks=st.booleans(),
    )
)
def test_the_command_line_gives_back_what_went_in(arguments: Arguments) -> None:
    """What a fleet asks for is what the process reads."""
    python, dash_m, name, *words = arguments.command()
    assert (python, dash_m, name) == (sys.executable, "-m", "gateway.demo.llama_server")
    assert parse(words) == arguments


@pytest.mark.parametrize("argv", [[], ["--port", "x"], ["--port", "1", "--model", "m", "--alias", "a", "--kv", "q9"]])
def test_a_wrong_command_line_is_explained(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """A missing or wrong argument ends with usage and status 2."""
    with pytest.raises(SystemExit) as caught:
        parse(argv)
    assert caught.value.code == 2
    assert "usage:" in capsys.readouterr().err


def test_a_missing_wheel_names_the_extra(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Without xllamacpp the process says what to install."""
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    assert main(["--port", "0", "--model", "m", "--alias", "a"]) == 3
    assert "quantgate[demo]" in capsys.readouterr().err


@pytest.mark.runtime
def test_a_closed_pipe_ends_it(weights: dict[object, Path]) -> None:
    """When the parent's end of the pipe closes, the process ends by itself, also in the middle of its start."""
    model = next(iter(weights.values()))
    arguments = Arguments(port=0, model=model, alias="a", ctx=512, slots=1, with_parent=True)
    child = subprocess.Popen(
        arguments.command(), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    assert child.stdin is not None
    child.stdin.close()
    assert child.wait(60) == -15


@pytest.mark.runtime
def test_a_killed_parent_takes_it_along(weights: dict[object, Path]) -> None:
    """kill -9 of the parent leaves no server behind, even where another process holds the pipe open."""
    model = next(iter(weights.values()))
    script = (
        "import subprocess, sys, os, signal\n"
        "from pathlib import Path\n"
        "from gateway.demo.llama_server import Arguments\n"
        f"model = Path({str(model)!r})\n"
        "server = Arguments(port=0, model=model, alias='a', ctx=512, slots=1, with_parent=True)\n"
        "child = subprocess.Popen(server.command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE)\n"
        "child.stdout.readline()\n"
        "os.set_inheritable(child.stdin.fileno(), True)\n"
        "holder = subprocess.Popen(['sleep', '60'], close_fds=False, stdout=subprocess.DEVNULL)\n"
        "print(child.pid, holder.pid, flush=True)\n"
        "signal.pause()\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    server, holder = map(int, parent.stdout.readline().split())
    try:
        parent.kill()
        parent.wait()
        subprocess.run(["timeout", "30", "tail", f"--pid={server}", "-f", "/dev/null"], check=True)
    finally:
        subprocess.run(["kill", str(holder)], check=False)
        parent.stdout.close()
