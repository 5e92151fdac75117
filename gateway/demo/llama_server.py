"""One llama.cpp server as a process of its own: ``python -m gateway.demo.llama_server --port 0 --model FILE --alias
NAME``.

It is the real C++ server of the ``xllamacpp`` wheel on a loopback port, with one compute thread: more threads spin
against each other on a shared machine and are a hundred times slower. Prints one JSON line (``Listening``) when it
serves. With ``--with-parent`` it ends when its parent does, however that happened. Started by ``fleet``, or by hand.
"""

import argparse
import os
import select
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import msgspec

KV_TYPES = ("f16", "bf16", "q8_0", "q5_0", "q4_0")
HTTP_THREADS = 16
"""Each open connection holds a thread of the server, idle keep-alive ones too."""
_LOG_WARNINGS, _LOG_TASKS = 2, 4
_PARENT_CHECK_S = 1.0


class Listening(msgspec.Struct, frozen=True):
    """The line that tells the parent where the server listens."""

    url: str
    pid: int


class Arguments(msgspec.Struct, frozen=True):
    """The command line. ``ctx`` is the context of all slots together, in tokens, as llama.cpp counts it.

    ``log_tasks``: the log on standard error names every request that is computed, with its sampling and its tokens, and
    no text of it.
    """

    port: int
    model: Path
    alias: str
    kv: str = "f16"
    slots: int = 2
    ctx: int = 4096
    host: str = "127.0.0.1"
    with_parent: bool = False
    log_tasks: bool = False

    def command(self) -> tuple[str, ...]:
        """The command line that gives these arguments back."""
        words = [sys.executable, "-m", "gateway.demo.llama_server"]
        for name in ("port", "model", "alias", "kv", "slots", "ctx", "host"):
            words += [f"--{name}", str(getattr(self, name))]
        flags = {"--with-parent": self.with_parent, "--log-tasks": self.log_tasks}
        return (*words, *(flag for flag, wanted in flags.items() if wanted))


def parse(argv: Sequence[str]) -> Arguments:
    """Read the command line; a wrong one ends the process with usage and status 2."""
    parser = argparse.ArgumentParser(prog="python -m gateway.demo.llama_server", description="One llama.cpp server.")
    parser.add_argument("--port", type=int, required=True, help="port to listen on; 0 = any free one")
    parser.add_argument("--model", type=Path, required=True, help="GGUF file")
    parser.add_argument("--alias", required=True, help="name of the model in the API")
    parser.add_argument("--kv", choices=KV_TYPES, default="f16", help="format of the KV cache")
    parser.add_argument("--slots", type=int, default=2, help="requests at once")
    parser.add_argument("--ctx", type=int, default=4096, help="tokens of context, shared out over the slots")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
    parser.add_argument(
        "--with-parent", action="store_true", help="end when standard input closes or the parent is gone"
    )
    parser.add_argument("--log-tasks", action="store_true", help="log every request that is computed")
    found = parser.parse_args(argv)
    return Arguments(**vars(found))


def serve(arguments: Arguments) -> int:
    """Serve until killed. Returns the exit status where the server could not start; its log is on standard error."""
    try:
        import xllamacpp
    except ImportError:
        sys.stderr.write("xllamacpp is missing: install the demo extra, pip install 'quantgate[demo]'\n")
        return 3
    params = xllamacpp.CommonParams()
    params.model.path = str(arguments.model)
    params.model_alias = {arguments.alias}
    params.hostnames = [arguments.host]
    params.port = arguments.port
    params.n_parallel = arguments.slots
    params.n_ctx = arguments.ctx
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.n_threads_http = HTTP_THREADS
    kind = getattr(xllamacpp.ggml_type, f"GGML_TYPE_{arguments.kv.upper()}")
    params.cache_type_k = params.cache_type_v = kind
    params.cache_ram_mib = 0  # prompts of finished conversations would be kept in up to 8 GiB
    params.endpoint_metrics = params.endpoint_slots = True
    params.warmup = True
    params.offline = True
    params.ui = False
    params.verbosity = _LOG_TASKS if arguments.log_tasks else _LOG_WARNINGS
    try:
        server = xllamacpp.Server(params)
    except RuntimeError as error:
        sys.stderr.write(f"llama.cpp did not start: {error}\n")
        return 4
    line = Listening(server.listening_address, os.getpid())
    sys.stdout.write(msgspec.json.encode(line).decode() + "\n")
    sys.stdout.flush()
    while True:
        signal.pause()


def _die_with_parent(parent: int) -> None:
    """End the process when the pipe from the parent closes, or when the process has another parent than at first.

    The second catches a pipe whose other end was inherited by a third process. SIGTERM ends the process at once:
    requests in flight have nobody to go to.
    """
    while os.getppid() == parent:
        readable, _, _ = select.select([sys.stdin.fileno()], [], [], _PARENT_CHECK_S)
        if readable and not os.read(sys.stdin.fileno(), 4096):
            break
    os.kill(os.getpid(), signal.SIGTERM)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the process."""
    parent = os.getppid()
    arguments = parse(sys.argv[1:] if argv is None else argv)
    if arguments.with_parent:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's Ctrl-C goes to the parent, which stops its children
        threading.Thread(target=_die_with_parent, args=(parent,), name="parent-watch", daemon=True).start()
    return serve(arguments)


if __name__ == "__main__":
    sys.exit(main())
