"""Real servers start together, answer in their precision, and are gone afterwards, whatever happened."""

import http.client
import json
import socket
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from gateway.demo import fleet as module
from gateway.demo.fleet import Fleet, FleetError, RunningServer, ServerSpec, check, demo_specs, get
from gateway.demo.llama_server import Arguments
from gateway.demo.weights import Variant

ROOT = Path(__file__).resolve().parents[3]
PROMPTS = ("List three fruits.", "What is the capital of France?", "Write one sentence about the sea.")


def chat(server: RunningServer, prompt: str, **more: object) -> dict[str, Any]:
    """One greedy answer."""
    body = {"model": server.spec.alias, "messages": [{"role": "user", "content": prompt}], "temperature": 0} | more
    connection = http.client.HTTPConnection(server.spec.host, server.port, timeout=120)
    connection.request("POST", "/v1/chat/completions", json.dumps(body))
    value: dict[str, Any] = json.load(connection.getresponse())
    connection.close()
    return value


def texts(server: RunningServer) -> list[str]:
    """Greedy answers to the prompts, each computed anew: a reused prefix would change the order of the sums."""
    return [
        chat(server, prompt, max_tokens=24, cache_prompt=False)["choices"][0]["message"]["content"]
        for prompt in PROMPTS
    ]


def first_logprobs(server: RunningServer) -> list[float]:
    """Log-probabilities of the most likely tokens after a prompt long enough to read the KV cache back."""
    prompt = "The quick brown fox jumps over the lazy dog. " * 8
    answer = chat(server, prompt, max_tokens=1, logprobs=True, top_logprobs=5, cache_prompt=False)
    return [item["logprob"] for item in answer["choices"][0]["logprobs"]["content"][0]["top_logprobs"]]


def gone(pid: int) -> bool:
    """Whether no such process is left."""
    return not Path(f"/proc/{pid}").exists()


@pytest.fixture
def spec(tmp_path: Path) -> ServerSpec:
    """A specification whose file exists and is no model."""
    model = tmp_path / "m.gguf"
    model.write_bytes(b"GGUF but not really")
    return ServerSpec("one", model, "m", slots=1, context_tokens=256)


@pytest.mark.runtime
def test_every_server_answers(servers: dict[str, RunningServer]) -> None:
    """Each is healthy, serves its alias with its own precision, and gives every request its whole context."""
    labels = {}
    for name, server in servers.items():
        assert get(server.url, "/health") == (200, b'{"status":"ok"}')
        (model,) = json.loads(get(server.url, "/v1/models")[1])["data"]
        assert model["id"] == server.spec.alias
        assert model["meta"]["n_ctx"] == server.spec.context_tokens
        labels[name] = model["meta"]["ftype"]
    assert labels == {"bf16": "BF16", "q8": "Q8_0", "q4": "Q4_0", "bf16-kv4": "BF16"}


@pytest.mark.runtime
def test_precisions_differ_in_what_they_say(servers: dict[str, RunningServer]) -> None:
    """The same weights in 4 bits answer otherwise than in 16, and 16 bits answer the same again."""
    reference = texts(servers["bf16"])
    assert all(reference)
    assert texts(servers["bf16"]) == reference
    assert texts(servers["q4"]) != reference


@pytest.mark.runtime
def test_the_kv_cache_is_quantised(servers: dict[str, RunningServer]) -> None:
    """A 4-bit KV cache moves the log-probabilities of the same weights."""
    full, coarse = first_logprobs(servers["bf16"]), first_logprobs(servers["bf16-kv4"])
    assert full == first_logprobs(servers["bf16"])
    assert max(abs(a - b) for a, b in zip(full, coarse, strict=True)) > 0.001


@pytest.mark.runtime
def test_all_are_gone_after_the_block(weights: dict[Variant, Path]) -> None:
    """Leaving the block, by an exception too, leaves no process; stopping twice is harmless."""
    quick = ServerSpec("q4", weights[Variant.Q4_0], "m", slots=1, context_tokens=256)
    fleet = Fleet([quick, msgspec.structs.replace(quick, name="again")])
    with pytest.raises(ValueError, match="on purpose"), fleet:
        pids = [server.pid for server in fleet.servers]
        assert not any(map(gone, pids))
        raise ValueError("on purpose")
    assert all(map(gone, pids))
    assert fleet.servers == ()
    fleet.stop()


def test_a_process_that_ignores_the_request_is_killed(spec: ServerSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that does not end when asked is ended by force, within the time."""
    monkeypatch.setattr(module, "STOP_S", 0.2)
    monkeypatch.setattr(Arguments, "command", lambda self: ("sh", "-c", "trap '' TERM; exec sleep 600"))
    started: list[int] = []
    with pytest.raises(FleetError):
        remember(Fleet([spec], start_s=0.3), started).start()
    assert len(started) == 1
    assert gone(started[0])


@pytest.mark.runtime
def test_a_file_that_is_no_model_is_named(spec: ServerSpec, weights: dict[Variant, Path], tmp_path: Path) -> None:
    """A broken file stops the whole fleet with its name; the good server beside it is stopped too."""
    good = ServerSpec("good", weights[Variant.Q4_0], "m", slots=1, context_tokens=256)
    started: list[int] = []
    fleet = Fleet([good, spec], log_dir=tmp_path / "logs")
    with pytest.raises(FleetError, match=r"one.*m\.gguf is no readable GGUF file"):
        remember(fleet, started).start()
    assert len(started) == 2
    assert all(map(gone, started))
    assert (tmp_path / "logs" / "one.log").exists()


@pytest.mark.runtime
def test_a_port_taken_in_the_meantime_is_named(spec: ServerSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    """A port that is taken between the check and the start gives the same words as one taken before."""
    monkeypatch.setattr(module, "_taken", lambda host, port: False)
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = holder.getsockname()[1]
        with pytest.raises(FleetError, match=rf"port {port} .* is in use"):
            Fleet([msgspec.structs.replace(spec, port=port)]).start()


def test_a_start_that_takes_too_long_is_given_up(spec: ServerSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that never says where it listens is given up when its time is over, and is gone."""
    monkeypatch.setattr(Arguments, "command", lambda self: ("sleep", "600"))
    started: list[int] = []
    fleet = Fleet([spec], start_s=0.1)
    with pytest.raises(FleetError, match="one was not ready in time: it said nothing"):
        remember(fleet, started).start()
    assert len(started) == 1
    assert gone(started[0])


def test_a_start_that_ends_at_once_is_explained(spec: ServerSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that ends without a word of llama.cpp's own is reported with its status and its last words."""
    monkeypatch.setattr(Arguments, "command", lambda self: ("sh", "-c", "echo no such thing >&2; exit 7"))
    with pytest.raises(FleetError, match="one ended with status 7: no such thing"):
        Fleet([spec]).start()


def remember(fleet: Fleet, pids: list[int]) -> Fleet:
    """Note the pids of a fleet's processes when it stops."""
    stop = fleet.stop

    def noting() -> None:
        pids.extend(child.process.pid for child in fleet._children)
        stop()

    fleet.stop = noting  # type: ignore[method-assign]
    return fleet


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"kv": "int8"}, "no KV cache format int8: choose one of f16"),
        ({"model": Path("/nowhere/x.gguf")}, "obtain the weights first"),
    ],
)
def test_what_cannot_work_is_refused(spec: ServerSpec, change: dict[str, object], words: str) -> None:
    """A wrong specification is refused before anything is started, with the mend."""
    with pytest.raises(FleetError, match=words):
        check([msgspec.structs.replace(spec, **change)])


def test_names_must_differ(spec: ServerSpec) -> None:
    """Two servers of one name would share a log and a pool."""
    with pytest.raises(FleetError, match="two servers are called one"):
        check([spec, spec])


def test_a_taken_port_is_named(spec: ServerSpec) -> None:
    """The error names the port and what to do; a free port passes."""
    with socket.create_server(("127.0.0.1", 0)) as holder:
        taken = msgspec.structs.replace(spec, port=holder.getsockname()[1])
        with pytest.raises(FleetError, match=rf"port {taken.port} on 127\.0\.0\.1 is in use: stop what listens there"):
            check([taken])
    check([taken])


def test_the_demos_three_pools(tmp_path: Path) -> None:
    """One model in three precisions, one of them with a quantised KV cache, as the demo's policy declares them."""
    specs = demo_specs({variant: tmp_path / variant for variant in Variant})
    made = {spec.name: (spec.model.name.lower(), spec.kv.replace("f16", "fp16")) for spec in specs}
    assert made == {"bf16": ("bf16", "fp16"), "q8": ("q8_0", "fp16"), "q4": ("q4_0", "q8_0")}
    pools = yaml.safe_load((ROOT / "routing_policies" / "demo.yaml").read_text())["pools"]
    declared = {name: pool["precision"] for name, pool in pools.items()}
    assert made == {name: (precision["weights"], precision["kv_cache"]) for name, precision in declared.items()}
    assert {spec.alias for spec in specs} == {pool["model"] for pool in pools.values()}


def test_nothing_there_answers_nothing() -> None:
    """A GET to a closed port is status 0, not an exception."""
    with socket.create_server(("127.0.0.1", 0)) as holder:
        url = f"http://127.0.0.1:{holder.getsockname()[1]}"
    assert get(url, "/health") == (0, b"")


def test_the_port_is_read_from_the_url(spec: ServerSpec) -> None:
    """A server knows its port."""
    assert RunningServer(spec, "http://127.0.0.1:4321", 1).port == 4321
