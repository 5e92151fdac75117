"""The llama.cpp adapter against a real server: every probe is sent, and what it reads is what was started."""

import http.client
import os
from collections.abc import Iterator

import orjson
import pytest

from gateway.demo.fleet import Fleet, RunningServer, ServerSpec, get
from gateway.demo.weights import Variant, cache_dir, obtain
from gateway.model.precision import Precision
from gateway.runtimes.adapter import Answer, Answers
from gateway.runtimes.compare import Declaration, Verdict, compare, judge
from gateway.runtimes.faults import read_fault
from gateway.runtimes.llama_cpp import ADAPTER

pytestmark = pytest.mark.runtime


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    """One Q8_0 server with a quantised KV cache, two slots of 1,024 tokens."""
    weights = obtain(cache_dir(os.environ))
    spec = ServerSpec("q8", weights[Variant.Q8_0], "smollm2", kv="q8_0", slots=2, context_tokens=1024)
    with Fleet([spec]) as fleet:
        yield fleet.servers[0]


def probe_all(server: RunningServer) -> Answers:
    """Send every probe of the adapter."""
    found = {}
    for probe in ADAPTER.probes:
        status, body = get(server.url, probe.path, probe.timeout_s)
        assert status in probe.expected, probe.path
        found[probe.path] = Answer(status, body)
    return found


def ask(server: RunningServer, body: dict[str, object]) -> http.client.HTTPResponse:
    """One chat request; the answer's head is read, its body not yet."""
    connection = http.client.HTTPConnection(server.spec.host, server.port, timeout=120)
    connection.request("POST", "/v1/chat/completions", orjson.dumps(body))
    return connection.getresponse()


def test_health_and_idle_load(server: RunningServer) -> None:
    """A started server is ready and idle, with both slots free."""
    answers = probe_all(server)
    assert ADAPTER.health(answers).ready
    load = ADAPTER.load(answers, 1.0)
    assert load is not None
    assert (load.running, load.waiting, load.kv_usage, load.slots) == (0, 0, 0.0, 2)


def test_attestation_against_declarations(server: RunningServer) -> None:
    """The truth is partly attested (the KV cache is not told); wrong weights, context or adapters contradict."""
    found = ADAPTER.attest(probe_all(server))
    assert (found.weights.value, found.context_length) == ("q8_0", 1024)
    assert found.weight_bits == pytest.approx(8.5, abs=0.1)
    truth = Declaration(
        Precision(weights="int8", activations="int8", kv_cache="q8_0"), names=("smollm2",), context_window=1024
    )
    assert compare(truth, found) == ()
    assert judge(found, ()) is Verdict.PARTIAL
    wrong = Declaration(Precision(), names=("gpt-4o",), adapters=("sql",), context_window=2048)
    assert [m.field for m in compare(wrong, found)] == ["weights", "weights", "model", "adapters", "context_window"]


def test_load_shows_a_running_request(server: RunningServer) -> None:
    """While one request streams, one slot is busy and some context is in use."""
    body = {"messages": [{"role": "user", "content": "Count to one hundred."}], "max_tokens": 200, "stream": True}
    with ask(server, body | {"ignore_eos": True, "temperature": 0}) as stream:
        stream.readline()  # the first event: the request holds a slot
        load = ADAPTER.load(probe_all(server), 1.0)
    assert load is not None
    assert load.running == 1
    assert load.kv_usage is not None
    assert 0.0 < load.kv_usage < 0.5


def test_any_model_name_is_accepted(server: RunningServer) -> None:
    """Which is why no name is held against it: a wrong name is answered, under the server's own."""
    assert not ADAPTER.checks_names
    body = {"model": "nope", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1}
    with ask(server, body) as answer:
        value = orjson.loads(answer.read())
    assert value["model"] == "smollm2"


def test_its_errors_are_read(server: RunningServer) -> None:
    """A prompt too long comes in the shape that is read, with its type."""
    body = {"messages": [{"role": "user", "content": "word " * 3000}], "max_tokens": 1}
    with ask(server, body) as answer:
        fault = read_fault(answer.read())
    assert (answer.status, fault.type) == (400, "exceed_context_size_error")
    assert "context" in fault.message
