"""``--keep``: what to try by hand while the demo's gateway and servers go on, and the waiting.

The printed lines work as they are, in any shell and from any directory. Called by ``gateway.demo.run``.
"""

import shlex
import sys
from collections.abc import Mapping, Sequence

import orjson
from rich.console import Console

from gateway.demo.fleet import RunningServer
from gateway.demo.gateway_process import GatewayProcess
from gateway.demo.rollout.chapter import Ended
from gateway.demo.workload import ACME, GLOBEX, MODEL

LOOK_S = 1.0
_NEXT = "\\\n  "
_HEADERS = ("-o", "/dev/null", "-D", "-")
_DECISION = f" {_NEXT}| grep -i x-quantgate"


def show(
    console: Console,
    gateway: GatewayProcess,
    servers: Sequence[RunningServer],
    keys: Mapping[str, str],
    ended: Ended | None = None,
) -> None:
    """Print what can be tried; ``ended``: what the rollout came to, if there was one."""
    console.print("\n[bold]Still running.[/] Try it, from another terminal; Ctrl-C here ends it.")
    for title, line in (*lines(gateway, servers, keys), *(rollout_lines(gateway, ended) if ended is not None else ())):
        console.print(f"\n[dim]# {title}[/]")
        # Printed raw and unwrapped, so that it can be copied as it is.
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    console.print()


def lines(
    gateway: GatewayProcess, servers: Sequence[RunningServer], keys: Mapping[str, str]
) -> tuple[tuple[str, str], ...]:
    """What each line shows, and the line."""
    policy, access_log = shlex.quote(str(gateway.options.policy)), shlex.quote(str(gateway.options.access_log))
    explain = f"{shlex.quote(sys.executable)} -m gateway explain - --tenant {ACME} --config {policy}"
    chat, stream = body("Name three fruits."), body("Name three fruits.", stream=True)
    pay = body("Send Ann 5 euros.", tools=[{"type": "function", "function": {"name": "payment_send"}}])
    return (
        ("a chat", _curl(gateway, keys[GLOBEX], chat)),
        ("a stream", _curl(gateway, keys[GLOBEX], stream, "-N")),
        ("where it went, by the response headers", _curl(gateway, keys[GLOBEX], chat, *_HEADERS) + _DECISION),
        ("a privileged tool: 16 bits only", _curl(gateway, keys[ACME], pay, *_HEADERS) + _DECISION),
        ("why, in words, without sending it", f"echo {shlex.quote(pay)} {_NEXT}| {explain}"),
        (
            "edit the policy: a moment later it is in force, or its fault is told",
            f"${{EDITOR:-vi}} {policy} {_NEXT}&& sleep 2; curl -s {gateway.admin_url}/readyz",
        ),
        ("metrics", f"curl -s {gateway.admin_url}/metrics | grep quantgate_requests_total"),
        ("state of gateway and pools", f"curl -s {gateway.admin_url}/readyz"),
        ("endpoints, and what they say they run", f"curl -s {gateway.admin_url}/api/v1/endpoints"),
        ("the policy in force", f"curl -s {gateway.admin_url}/api/v1/policy"),
        ("the access log, one line per request", f"tail -n 3 {access_log}"),
        *((f"llama.cpp itself, pool {server.spec.name}", f"curl -s {server.url}/metrics") for server in servers),
    )


def rollout_lines(gateway: GatewayProcess, ended: Ended) -> tuple[tuple[str, str], ...]:
    """The same of the rollout."""
    admin = f"--admin {gateway.admin_url.removeprefix('http://')}"
    command = f"{shlex.quote(sys.executable)} -m gateway rollout"
    return (
        ("where the rollout stands", f"{command} status {ended.rollout} {admin}"),
        ("what moved it, and why", f"{command} history {ended.rollout} {admin}"),
        *(
            ("the rollback with its evidence and requests", f"{command} incident {ended.rollout} {bucket} {admin}")
            for bucket in ended.rolled_back
        ),
    )


def body(text: str, **more: object) -> str:
    """A chat request as JSON, on lines that fit a terminal."""
    messages = [{"role": "user", "content": text}]
    parts = [
        {"model": MODEL, "max_tokens": 32},
        *({name: value} for name, value in more.items()),
        {"messages": messages},
    ]
    return "{" + ",\n  ".join(orjson.dumps(part).decode()[1:-1] for part in parts) + "}"


def _curl(gateway: GatewayProcess, key: str, content: str, *options: str) -> str:
    """A line of curl, broken where a shell lets it be."""
    return (
        f"{shlex.join(('curl', '-s', *options))} {gateway.url}/v1/chat/completions {_NEXT}"
        f"-H {shlex.quote(f'Authorization: Bearer {key}')} -H 'Content-Type: application/json' {_NEXT}"
        f"-d {shlex.quote(content)}"
    )
