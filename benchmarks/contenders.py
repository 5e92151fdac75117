"""What stands between load and backend: nginx, this gateway, and the Rust routers where they are installed.

Each is started on one core in front of the same backend, in the way its own documentation starts it. The gateway's
policy has everything on that a production policy has: keys and limits, classification with patterns, constraints,
metrics and the access log.
"""

import hashlib
import json
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from benchmarks.processes import ROOT, Program, free_ports, pin, wait_until

KEY = "sk-1234"
SAID_CHARS = 1_500
"""How much of an output is shown of what does not start."""
ROUTERS_VENV = ROOT / ".cache" / "routers"
ROUTERS = {"vllm-router": "vllm-router==0.1.17", "sglang-router": "sglang-router==0.3.2"}

NGINX = """worker_processes 1; daemon off; pid {folder}/nginx.pid; error_log {folder}/nginx.log;
events {{ worker_connections 8192; }}
http {{ access_log off; client_body_temp_path {folder}/1; proxy_temp_path {folder}/2; fastcgi_temp_path {folder}/3;
 uwsgi_temp_path {folder}/4; scgi_temp_path {folder}/5; keepalive_requests 100000000;
 upstream backend {{ server 127.0.0.1:{backend}; keepalive 2048; keepalive_requests 100000000; }}
 server {{ listen 127.0.0.1:{port} backlog=4096; location / {{ proxy_pass http://backend; proxy_http_version 1.1;
 proxy_set_header Connection ""; proxy_buffering off; }} }} }}
"""

POLICY = """version: 1
models:
  m: {{context_window: 1m, tokenizer: {{tiktoken: cl100k_base}}, baseline: bf16}}
pools:
  bf16:
    model: m
    runtime: openai
    precision: {{weights: bf16, activations: bf16, kv_cache: bf16}}
    endpoints: ["http://127.0.0.1:{backend}"]
  fp8:
    model: m
    runtime: openai
    precision: {{weights: fp8, activations: fp8, kv_cache: fp8}}
    hardware: {{gpu: H100, compute_capability: "9.0"}}
    endpoints: ["http://127.0.0.1:{backend}"]
  int4:
    model: m
    runtime: openai
    precision: {{weights: int4, activations: bf16, kv_cache: bf16, method: awq, group_size: 128}}
    hardware: {{gpu: A100, compute_capability: "8.0"}}
    endpoints: ["http://127.0.0.1:{backend}"]
tenants:
  bench:
    keys: ["sha256:{digest}"]
    tier: gold
    limits: {{requests_per_minute: 1e9, tokens_per_minute: 1e12, inflight: 100000}}
  anonymous: {{allow: false}}
classify:
  lengths: {{short: 2k, medium: 8k, long: 32k, huge: 128k}}
  tasks:
    - {{task: code, text: ['```', '\\b(def|class|func|fn) \\w+\\('], marks: [code_fence]}}
    - {{task: rag, system: ['(?i)answer .*only from the (context|documents)'], marks: [citations]}}
    - {{task: extract, marks: [json_schema, table]}}
  tools: {{privileged: ["payment_*", "delete_*", "shell", "*.write"]}}
  buckets: {{by: [model, length, task, tools, adapter, tier], most: 200}}
constraints:
  - {{name: privileged-tools-stay-16-bit, when: {{tools: {{privilege: high}}}}, require: {{weights: [bf16, fp16]}}}}
  - {{name: long-context-no-kv-quant, when: {{context_tokens: {{gte: 32k}}}}, require: {{kv_cache: [bf16, fp16]}}}}
routes:
  - {{name: interactive-chat, when: {{task: chat, length: [short, medium]}}, pools: [int4, fp8, bf16]}}
  - {{name: default, pools: [fp8, bf16]}}
gateway: {{access_log: true}}
evidence: {{check: {{structured: 100%, tools: 100%, other: {checked}}}}}
"""


@dataclass
class Contender:
    """A started proxy. ``prepare`` is called before each of its measurements (it moves processes between cores)."""

    name: str
    url: str
    program: Program
    prepare: Callable[[], None] = lambda: None


class CannotStartError(Exception):
    """A contender does not answer; the message has what it said where it has an output of its own."""


def start_nginx(folder: Path, backend: int, cores: tuple[int, int], output: IO[Any]) -> Contender:
    """The floor: proxying only, no log, one worker on the first core."""
    (port,) = free_ports(1)
    config = folder / "nginx.conf"
    config.write_text(NGINX.format(folder=folder, backend=backend, port=port))
    program = Program("nginx", [nginx_binary() or "nginx", "-c", str(config)], cores[:1], output)
    return _answering(Contender("nginx", _chat(port), program))


def nginx_binary() -> str | None:
    """Where nginx is, or None."""
    found = subprocess.run(
        ["sh", "-c", "PATH=$PATH:/usr/sbin command -v nginx"], capture_output=True, text=True, check=False
    )
    return found.stdout.strip() or None


def start_gateway(folder: Path, backend: int, cores: tuple[int, int], output: IO[Any]) -> list[Contender]:
    """One gateway with one worker, as two rows: control and supervisor on the other core, and everything on one."""
    program, place, url = _gateway(folder / "quantgate", backend, cores, output, checked="0%")
    split = Contender("quantgate", url, program, lambda: place(cores[1:]))
    single = Contender("quantgate, one core", url, program, lambda: place(cores[:1]))
    return [_answering(split), single]


def start_checking_gateway(folder: Path, backend: int, cores: tuple[int, int], output: IO[Any]) -> Contender:
    """Another one that also checks a tenth of the plain answers, in a process of its own, as policies do by default."""
    program, place, url = _gateway(folder / "checking", backend, cores, output, checked="10%")
    return _answering(Contender("quantgate, checks", url, program, lambda: place(cores[1:])))


def _gateway(
    folder: Path, backend: int, cores: tuple[int, int], output: IO[Any], checked: str
) -> tuple[Program, Callable[[tuple[int, ...]], None], str]:
    """A started gateway, how to place its processes (the worker is always on the first core), and its URL."""
    folder.mkdir()
    listen, admin = free_ports(2)
    policy = folder / "policy.yaml"
    digest = hashlib.sha256(KEY.encode()).hexdigest()
    policy.write_text(POLICY.format(backend=backend, digest=digest, checked=checked))
    command = [sys.executable, "-m", "gateway", "serve", "--config", str(policy), "--workers", "1"]
    command += ["--listen", f"127.0.0.1:{listen}", "--admin", f"127.0.0.1:{admin}"]
    command += ["--state-dir", str(folder / "state"), "--access-log", str(folder / "access.jsonl"), "--drain-s", "1"]
    log = folder / "gateway.log"
    with log.open("wb") as stderr:
        program = Program("quantgate", command, cores, output, stderr=stderr)
    alive = lambda: program.process.poll() is None  # noqa: E731
    try:
        wait_until(lambda: bool(_pids(log)), "the gateway does not start", alive)
    except RuntimeError as error:
        program.stop()
        said = log.read_text(errors="replace")[-SAID_CHARS:]  # the folder is gone when this is read
        raise CannotStartError(f"{error}; the last that it said:\n{said}") from None
    pids = _pids(log)

    def place(control: tuple[int, ...]) -> None:
        for name, pid in pids.items():
            pin(pid, cores[:1] if name.startswith("worker") else control)
        pin(program.pid, control)
        for pid in set(program.pids()) - {program.pid, *pids.values()}:
            pin(pid, control)

    return program, place, _chat(listen)


def _pids(log: Path) -> dict[str, int]:
    for line in log.read_text(errors="replace").splitlines():
        if line.startswith("{"):
            event = json.loads(line)
            if event.get("event") == "serving":
                return dict(event["pids"])
    return {}


def start_router(name: str, folder: Path, backend: int, cores: tuple[int, int], output: IO[Any]) -> Contender:
    """A Rust router with one worker behind it, its log level at warnings."""
    port, metrics = free_ports(2)
    launch = ["launch"] if name == "sglang-router" else []
    command = [str(ROUTERS_VENV / "bin" / name), *launch, "--host", "127.0.0.1", "--port", str(port)]
    command += ["--worker-urls", f"http://127.0.0.1:{backend}", "--policy", "round_robin"]
    command += ["--prometheus-host", "127.0.0.1", "--prometheus-port", str(metrics), "--log-level", "error"]
    program = Program(name, command, cores[:1], output, cwd=folder)
    return _answering(Contender(name, _chat(port), program))


def install_routers(say: Callable[[str], None]) -> list[str]:
    """The routers that can be run here, installed into an environment of their own if they are not yet."""
    python = ROUTERS_VENV / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(ROUTERS_VENV)], check=True)
    found = []
    for name, requirement in ROUTERS.items():
        if not (ROUTERS_VENV / "bin" / name).exists():
            say(f"installing {requirement}")
            install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", requirement]
            if subprocess.run(install, check=False).returncode:
                say(f"{requirement} cannot be installed here; it is left out")
                continue
        found.append(name)
    return found


def _chat(port: int) -> str:
    return f"http://127.0.0.1:{port}/v1/chat/completions"


def _answering(contender: Contender) -> Contender:
    """Wait for the first good answer. Raises ``CannotStartError``."""
    body = json.dumps({"model": "m", "max_tokens": 8, "messages": [{"role": "user", "content": "hi"}]}).encode()
    fields = {"Content-Type": "application/json", "Authorization": f"Bearer {KEY}"}

    def answers() -> bool:
        try:
            with urllib.request.urlopen(urllib.request.Request(contender.url, body, fields), timeout=5) as reply:
                return bool(reply.status == 200)
        except OSError:
            return False

    contender.prepare()
    try:
        wait_until(answers, f"{contender.name} does not answer", lambda: contender.program.process.poll() is None)
    except RuntimeError as error:
        contender.program.stop()
        raise CannotStartError(str(error)) from None
    return contender
