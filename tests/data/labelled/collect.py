"""Ask real models (SmolLM2-135M-Instruct and coarser copies made by `damage.py`) and store their answers unlabelled.

Run by hand where the `demo` extra is installed:
    python collect.py MODEL.gguf VARIANT KV_TYPE OUT.jsonl TEMPERATURE [held-out]
It starts a real llama-server inside this process (one thread, loopback), sends the requests of `prompts` one after
another with a fixed seed each, and writes one line each: id, variant, request, answer (JSON body or SSE text). Labels
are added by a person in `model_labels.py`.
"""

from __future__ import annotations

import http.client
import json
import sys
from pathlib import Path

import xllamacpp
from prompts import held_out_requests, requests


def start_server(model: str, kv_type: str) -> tuple[xllamacpp.Server, int]:
    """Start llama-server on a free loopback port and return it with the port."""
    params = xllamacpp.CommonParams()
    params.model.path = model
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.warmup = False
    params.n_parallel = 1
    params.n_ctx = 2048
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.cache_type_k = params.cache_type_v = getattr(xllamacpp.ggml_type, f"GGML_TYPE_{kv_type.upper()}")
    server = xllamacpp.Server(params)
    return server, int(server.listening_address.rsplit(":", 1)[1])


def ask(port: int, body: dict[str, object]) -> tuple[int, str]:
    """Send one chat request; return status and the whole answer as text."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    connection.request("POST", "/v1/chat/completions", json.dumps(body), {"Content-Type": "application/json"})
    response = connection.getresponse()
    text = response.read().decode("utf-8", "surrogateescape")
    connection.close()
    return response.status, text


def main(model: str, variant: str, kv_type: str, target: str, *, temperature: float, held_out: bool) -> None:
    """Collect one answer per request and write them as JSON Lines."""
    server, port = start_server(model, kv_type)
    lines = []
    for number, (name, body) in enumerate(held_out_requests() if held_out else requests()):
        full = {"model": "smollm2", **body, "temperature": temperature, "seed": 7 + number}
        status, answer = ask(port, full)
        row = {"id": f"{variant}/{name}", "variant": variant, "status": status, "request": full}
        row["answer"] = answer if body.get("stream") else json.loads(answer)
        lines.append(json.dumps(row, ensure_ascii=False))
    Path(target).write_text("\n".join(lines) + "\n", encoding="utf-8")
    del server


if __name__ == "__main__":
    main(*sys.argv[1:5], temperature=float(sys.argv[5]), held_out="held-out" in sys.argv[6:])
