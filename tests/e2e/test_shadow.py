"""Shadow traffic with real processes and real sockets: what reaches the pools, what can never reach a client, and that
no behaviour of a candidate costs a client anything.

Each test has a lane of its own: a model with a baseline pool, a spare pool and a candidate pool on scripted endpoints.
"""

import hashlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.cases.client import Client, Reply, request_bytes
from tests.cases.gateway import Gateway, policy, pool, wait_for, write_policy
from tests.cases.messages import DONE, FIN, SSE_HEAD, USAGE, answer, c, chunk, completion, event, failure, stream
from tests.cases.upstream import Close, Endpoint, Gate, Hang, Pause, Received, Repeat, Reset, Step, Upstream

MARK = "only-the-candidate-says-this"
TWIN = "only-the-second-run-says-this"
KEY = "sk-client-key-1"
QUIET_KEY = "sk-opted-out-1"
LANES = 40
LIMITS = {
    "plain": {},
    "tight": {"inflight": 2, "queue": 2, "timeout": "10m"},
    "slow": {"rate": 1},
    "brief": {"timeout": "400ms"},
}
REFUSED = ("opted_out", "server_state", "not_baseline", "not_permitted", "other_rule", "pressure", "queue_full", "rate")
ENDED = (
    "compared", "unscored", "shed", "client_gone", "served_elsewhere", "not_served", "too_long", "policy_changed",
    "stopping", "buffer_full", "fault",
)  # fmt: skip


@dataclass
class Lane:
    """One model with its three endpoints. ``spare`` is where failover leads."""

    gateway: Gateway
    model: str
    baseline: Endpoint
    spare: Endpoint
    candidate: Endpoint
    headers: list[tuple[str, str]] = field(default_factory=lambda: [("Authorization", f"Bearer {KEY}")])

    def body(self, text: str = "hi", **extra: Any) -> dict[str, Any]:
        """A chat request; every text is a conversation of its own."""
        return {"model": self.model, "messages": [{"role": "user", "content": text}], **extra}

    def ask(self, body: object, client: Client | None = None, **options: Any) -> Reply:
        """One request, read whole."""
        own = client or self.gateway.connect()
        reply = own.request(body, headers=self.headers, **options)
        reply.read()
        if client is None:
            own.close()
        return reply

    def events(self) -> dict[str, int]:
        """Counts of this lane's rule by event."""
        found: dict[str, int] = {}
        for (name, labels), value in self.gateway.metrics().items():
            known = dict(labels)
            if name == "quantgate_shadow_requests_total" and known["rule"] == self.model:
                found[known["event"]] = found.get(known["event"], 0) + int(value)
        return found

    def settled(self, eligible: int) -> dict[str, int]:
        """The counts once every eligible request has come to its end; they must add up."""

        def done() -> dict[str, int] | None:
            found = self.events()
            ended = sum(found.get(name, 0) for name in ENDED)
            refused = sum(found.get(name, 0) for name in REFUSED)
            mirrored = found.get("mirrored", 0)
            good = found.get("eligible", 0) == eligible == mirrored + refused and mirrored == ended
            return found if good else None

        try:
            return wait_for(done, "the counts add up")
        except AssertionError:
            raise AssertionError(f"{eligible} eligible, but {self.events()}") from None

    def pairs(self) -> list[dict[str, Any]]:
        """Stored pairs, newest first."""
        return self.gateway.admin(f"/api/v1/pairs?rule={self.model}")["pairs"]

    def pair(self) -> dict[str, Any]:
        """The newest stored pair, once it is there."""
        return wait_for(self.pairs, "a pair is stored")[0]


def said(text: str) -> Callable[[Received], list[Step]]:
    """Answers in the shape and framing that was asked for, with this text."""

    def play(received: Received) -> list[Step]:
        body = received.json
        path = received.target.partition("?")[0]
        if path == "/v1/completions":
            whole: dict[str, Any] = {"choices": [{"index": 0, "text": text, "finish_reason": "stop"}], "usage": USAGE}
            if body.get("stream"):
                return stream(event(whole), DONE)
            return answer({"id": "a", "object": "text_completion", "created": 1, "model": "up", **whole})
        if path == "/v1/responses":
            return _responses(text, streamed=bool(body.get("stream")))
        if path == "/v1/messages":
            return _messages(text, streamed=bool(body.get("stream")))
        return stream(c(text), FIN, DONE) if body.get("stream") else answer(completion(text))

    return play


def _responses(text: str, *, streamed: bool) -> list[Step]:
    content = {"type": "output_text", "text": text, "annotations": []}
    item = {"type": "message", "id": "i", "role": "assistant", "status": "completed", "content": [content]}
    whole = {"id": "r", "object": "response", "status": "completed", "model": "up", "output": [item]}
    if not streamed:
        return answer(whole)
    delta = {"type": "response.output_text.delta", "item_id": "i", "output_index": 0, "content_index": 0, "delta": text}
    return stream(event(delta), event({"type": "response.completed", "response": whole}))


def _messages(text: str, *, streamed: bool) -> list[Step]:
    usage = {"input_tokens": 1, "output_tokens": 1}
    head = {"id": "m", "type": "message", "role": "assistant", "model": "up", "usage": usage, "stop_sequence": None}
    if not streamed:
        return answer({**head, "content": [{"type": "text", "text": text}], "stop_reason": "end_turn"})
    start = {"type": "message_start", "message": {**head, "content": [], "stop_reason": None}}
    block = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    delta = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}
    stop = {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": usage}
    return stream(
        event(start),
        event(block),
        event(delta),
        event({"type": "content_block_stop", "index": 0}),
        event(stop),
        event({"type": "message_stop"}),
    )


def twice(first: str, second: str) -> Callable[[Received], list[Step]]:
    """A baseline that says something else to its noise leg, so that the test can tell the two apart."""
    plain, other = said(first), said(second)
    return lambda received: other(received) if received.header("x-quantgate-shadow") else plain(received)


@pytest.fixture(scope="module")
def upstream() -> Iterator[Upstream]:
    running = Upstream()
    running.start()
    yield running
    running.stop()


@pytest.fixture(scope="module")
def lanes(upstream: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, list[Lane]]]:
    """A gateway with two workers and all lanes of the module."""
    made: dict[str, list[tuple[str, list[Endpoint]]]] = {kind: [] for kind in LIMITS}
    models: dict[str, Any] = {}
    pools: dict[str, Any] = {}
    routes, shadows = [], []
    folder = tmp_path_factory.mktemp("shadow")
    (folder / "candidate.key").write_text("sk-candidate-pool")
    for kind, limits in LIMITS.items():
        for number in range(LANES if kind == "plain" else 6):
            model = f"{kind}-{number}"
            points = [upstream.endpoint() for _ in range(3)]
            models[model] = {"baseline": f"{model}-base", "context_window": 8192}
            patience = "5m" if kind == "tight" else "5s"
            quick = {"timeouts": {"connect": "1s", "first_byte": patience, "idle": patience}}
            pools[f"{model}-base"] = pool(model, points[0].url, **quick, upstream_model="up-base")
            pools[f"{model}-spare"] = pool(model, points[1].url, **quick)
            pools[f"{model}-cand"] = pool(
                model, points[2].url, **quick, upstream_model="up-cand", api_key=f"file:{folder / 'candidate.key'}"
            )
            routes.append({"name": model, "when": {"model": model}, "pools": [f"{model}-base", f"{model}-spare"]})
            shadows.append(
                {
                    "name": model,
                    "when": {"model": model},
                    "sample": "100%",
                    "candidate": f"{model}-cand",
                    "noise_leg": "100%" if kind == "plain" else "0%",
                    **limits,
                }
            )
            made[kind].append((model, points))
    document = policy(
        models,
        pools,
        routes,
        tenants={
            "team": {"keys": [f"sha256:{_sha(KEY)}"]},
            "quiet": {"keys": [f"sha256:{_sha(QUIET_KEY)}"], "shadow": False},
        },
        classify={"buckets": {"by": ["model"], "most": 500}},
        shadow=shadows,
        evidence={"check": {"structured": "0%", "tools": "0%", "other": "0%"}, "answer_bytes": "64KiB"},
    )
    gateway = Gateway(folder, write_policy(folder / "policy.yaml", document), workers=2).start()
    yield {kind: [Lane(gateway, model, *points) for model, points in members] for kind, members in made.items()}
    gateway.stop()


def _sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.fixture
def take(lanes: dict[str, list[Lane]]) -> Callable[[str], Lane]:
    def taken(kind: str) -> Lane:
        lane = lanes[kind].pop()
        lane.baseline.default = twice("the answer", TWIN)
        lane.spare.default = said("the spare answer")
        lane.candidate.default = said(MARK)
        return lane

    return taken


@pytest.fixture
def lane(take: Callable[[str], Lane]) -> Lane:
    return take("plain")


# what reaches the pools


def test_b115_a_leg_carries_its_own_names_and_keys_and_nothing_of_the_tenant(lane: Lane) -> None:
    """The candidate is asked by its own model name and key, with the mark; no header or field of the client that names,
    bills or stores reaches it; all settings of the sampling do."""
    body = lane.body(
        "hello",
        seed=7,
        temperature=0.5,
        user="user-4711",
        metadata={"team": "x"},
        prompt_cache_key="session-9",
        safety_identifier="s-1",
        store=False,
        stop=["a"],
    )
    lane.headers += [
        ("Cookie", "a=b"),
        ("User-Agent", "sdk/1"),
        ("X-Request-Id", "theirs"),
        ("OpenAI-Organization", "org"),
        ("traceparent", f"00-{'ab' * 16}-{'cd' * 8}-01"),
        ("X-Forwarded-For", "10.0.0.1"),
    ]
    assert lane.ask(body, path="/v1/chat/completions?api-key=in-the-query").status == 200
    leg = lane.candidate.wait_received()
    assert {name.lower() for name, _ in leg.headers} == {
        "host", "content-type", "x-quantgate-shadow", "x-request-id", "authorization", "content-length",
    }  # fmt: skip
    assert leg.header("x-quantgate-shadow") == lane.model
    assert leg.header("authorization") == "Bearer sk-candidate-pool"
    assert leg.header("x-request-id").endswith(".candidate")
    assert leg.target == "/v1/chat/completions"
    for secret in (b"4711", b"session-9", b"s-1", b"sdk/1", b"theirs", b"in-the-query", KEY.encode(), b'"team"'):
        assert secret not in leg.head + leg.body
    assert leg.json["model"] == "up-cand"
    assert (leg.json["seed"], leg.json["temperature"], leg.json["stop"]) == (7, 0.5, ["a"])
    assert leg.json["messages"] == body["messages"]
    clients, noise = lane.baseline.wait_received(1), lane.baseline.wait_received(2)
    assert clients.header("x-quantgate-shadow") is None
    assert clients.json["user"] == "user-4711"
    assert noise.header("x-quantgate-shadow") == lane.model
    assert noise.json == {**leg.json, "model": "up-base"}
    assert lane.settled(1)["compared"] == 1


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("api", ["chat/completions", "completions", "responses", "messages"])
def test_every_generating_endpoint_is_mirrored_and_compared(lane: Lane, api: str, streamed: bool) -> None:
    """Chat, completions, responses and messages, streamed or not: both legs run in the client's form, and the pair is
    compared, the candidate's other text counting as excess."""
    body: dict[str, Any] = {"model": lane.model, "stream": streamed}
    body |= {
        "chat/completions": {"messages": [{"role": "user", "content": "q"}]},
        "completions": {"prompt": "q"},
        "responses": {"input": "q"},
        "messages": {"messages": [{"role": "user", "content": "q"}], "max_tokens": 9},
    }[api]
    lane.baseline.default = said("the answer in five words")
    reply = lane.ask(body, path=f"/v1/{api}")
    assert reply.status == 200
    assert b"the answer in five words" in reply.body
    assert MARK.encode() not in reply.body
    assert lane.candidate.wait_received().json["stream"] is streamed
    assert lane.settled(1)["compared"] == 1
    if api == "responses":
        assert lane.candidate.received[0].json["store"] is False
    pair = lane.pair()
    assert (pair["verdict"], pair["noise"]) == ("compared", 1.0)
    assert pair["loss"] > 0.4


def test_other_endpoints_are_not_mirrored(lane: Lane) -> None:
    """Embeddings generate nothing that could be compared: the rule does not even count them."""
    lane.baseline.default = answer({"object": "list", "data": [], "model": "up", "usage": USAGE})
    assert lane.ask({"model": lane.model, "input": "x"}, path="/v1/embeddings").status == 200
    lane.baseline.default = said("x")
    lane.ask(lane.body())
    assert lane.settled(1)["eligible"] == 1
    assert len(lane.candidate.received) == 1


@pytest.mark.parametrize(
    ("path", "extra"),
    [
        ("responses", {"input": "q", "previous_response_id": "resp_1"}),
        ("responses", {"input": "q", "conversation": "conv_1"}),
        ("responses", {"input": "q", "store": True}),
        ("responses", {"input": "q", "background": True}),
        ("responses", {"input": "q", "tools": [{"type": "web_search"}]}),
        ("responses", {"input": "q", "tools": [{"type": "mcp", "server_label": "x", "server_url": "http://x"}]}),
        ("messages", {"messages": [{"role": "user", "content": "q"}], "max_tokens": 9,
                      "tools": [{"type": "web_search_20250305", "name": "web_search"}]}),
        ("chat/completions", {"messages": [{"role": "user", "content": "q"}], "web_search_options": {}}),
    ],
)  # fmt: skip
def test_what_acts_or_stores_on_the_server_is_never_run_twice(lane: Lane, path: str, extra: dict[str, Any]) -> None:
    """Stored conversations and tools that the server runs itself have effects: counted, not mirrored."""
    lane.ask({"model": lane.model, **extra}, path=f"/v1/{path}")
    found = lane.settled(1)
    assert found["server_state"] == 1
    assert "mirrored" not in found
    assert lane.candidate.received == []


def test_a_tenant_that_opted_out_is_never_mirrored(lane: Lane) -> None:
    """``shadow: false`` of a tenant wins over every rule."""
    lane.headers = [("Authorization", f"Bearer {QUIET_KEY}")]
    assert lane.ask(lane.body()).status == 200
    assert lane.settled(1) == {"eligible": 1, "opted_out": 1}
    assert lane.candidate.received == []


def test_tools_that_the_client_runs_are_mirrored(lane: Lane) -> None:
    """A function tool has no effect before the client runs it."""
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
    lane.ask(lane.body(tools=tools))
    assert lane.settled(1)["compared"] == 1


# what can never reach a client


def test_no_answer_of_a_leg_reaches_a_client_whatever_happens(lane: Lane) -> None:
    """Marked answers under keep-alive reuse, pipelining, failover, broken streams, error answers and aborts, streamed
    and whole, hundreds of requests: no byte that a client reads carries a leg's mark."""
    scripts: list[Callable[[Received], list[Step]]] = [
        said("fine"),
        lambda _: failure(500, "baseline broke"),
        lambda r: [SSE_HEAD, chunk(c("begun")), Reset()] if r.json.get("stream") else [b"HTTP/1.1 200 OK\r\n", Reset()],
        lambda r: (
            [SSE_HEAD, chunk(c("slowly")), Pause(0.05), *[chunk(x) for x in (FIN, DONE)], b"0\r\n\r\n"]
            if r.json.get("stream")
            else [Pause(0.05), *answer(completion("late"))]
        ),
        lambda _: failure(429, "busy"),
    ]
    turn = {"n": 0}

    def baseline(received: Received) -> list[Step]:
        if received.header("x-quantgate-shadow"):
            return said(TWIN)(received)
        turn["n"] += 1
        return scripts[turn["n"] % len(scripts)](received)

    lane.baseline.default = baseline
    seen: list[bytes] = []
    lock = threading.Lock()

    def client(number: int) -> None:
        mine: list[bytes] = []
        for index in range(12):
            connection = lane.gateway.connect()
            bodies = [lane.body(f"{number}.{index}.{k}", stream=bool((index + k) % 2)) for k in range(3)]
            if index % 4 == 3:  # leave in the middle
                connection.send(request_bytes(bodies[0], headers=lane.headers))
                connection.reset()
                continue
            if index % 4 == 2:  # pipelined: three requests in one write
                connection.send(b"".join(request_bytes(body, headers=lane.headers) for body in bodies))
                mine += [_bytes_of(connection.reply()) for _ in bodies]
            else:
                mine += [_bytes_of(connection.request(body, headers=lane.headers)) for body in bodies]
            connection.close()
        with lock:
            seen.extend(mine)

    threads = [threading.Thread(target=client, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 4 * 9 * 3
    assert any(b"spare answer" in body for body in seen), "failover was part of it"
    assert any(b"fine" in body for body in seen)
    for body in seen:
        assert MARK.encode() not in body
        assert TWIN.encode() not in body
    assert len(lane.candidate.received) > 20, "legs did run meanwhile"


def _bytes_of(reply: Reply) -> bytes:
    reply.read()
    return b"".join(f"{name}: {value}".encode() for name, value in reply.headers) + reply.body


def test_a_leg_that_answers_first_changes_nothing_for_the_client(lane: Lane) -> None:
    """Legs end while the client still waits: it gets the baseline's answer, later."""
    gate = Gate()
    lane.baseline.play([gate, *answer(completion("the late answer"))])
    client = lane.gateway.connect()
    client.send(request_bytes(lane.body(), headers=lane.headers))
    lane.candidate.wait_received()
    lane.baseline.wait_received(2)
    gate.open()
    reply = client.reply()
    assert reply.json["choices"][0]["message"]["content"] == "the late answer"
    assert lane.settled(1)["compared"] == 1


# what a missing leg means


def test_a_failing_candidate_is_data(lane: Lane) -> None:
    """Errors of the candidate count as its failures, with the whole agreement of the baseline as loss; the client
    notices nothing."""
    lane.baseline.default = said("the answer")
    lane.candidate.default = failure(500)
    for number in range(5):
        assert lane.ask(lane.body(f"q{number}")).status == 200
    found = lane.settled(5)
    assert (found["compared"], found["failed"]) == (5, 5)
    pair = lane.pair()
    assert (pair["verdict"], pair["candidate_failure"], pair["loss"]) == ("other_failed", "status_5xx", 1.0)


def test_both_failing_is_an_incident_and_no_agreement(lane: Lane) -> None:
    """A request that fails everywhere says nothing about the candidate: loss 0, verdict both_failed."""
    for endpoint in (lane.baseline, lane.spare, lane.candidate):
        endpoint.default = failure(500)
    assert lane.ask(lane.body()).status >= 500
    assert lane.settled(1)["failed"] == 1
    pair = lane.pair()
    assert (pair["verdict"], pair["loss"]) == ("both_failed", 0.0)


def test_a_baseline_that_failed_over_has_failed(lane: Lane) -> None:
    """The client got its answer from the spare pool; for the pair the baseline failed, and is not left out."""
    lane.baseline.default = failure(500)
    assert b"spare" in lane.ask(lane.body()).body
    assert lane.settled(1)["compared"] == 1
    pair = lane.pair()
    assert (pair["verdict"], pair["baseline_failure"], pair["loss"]) == ("reference_failed", "status_5xx", 0.0)


def test_a_busy_candidate_is_missing_and_not_bad(lane: Lane) -> None:
    """429 says that no answer was tried: the pair is unscored, with the worst value for promotion."""
    lane.candidate.default = failure(429)
    lane.ask(lane.body())
    assert lane.settled(1)["unscored"] == 1
    pair = lane.pair()
    assert (pair["verdict"], pair["loss"], pair["promotion"]) == ("unscored", None, 1.0)


def test_a_client_that_leaves_makes_no_pair_and_its_legs_end(lane: Lane) -> None:
    """Nobody knows the whole answer then; the pools do not go on for nothing."""
    lane.baseline.play([SSE_HEAD, chunk(c("x")), Hang()])
    lane.candidate.default = [SSE_HEAD, chunk(c("x")), Hang()]
    client = lane.gateway.connect()
    next(client.request(lane.body(stream=True), headers=lane.headers).events())
    leg = lane.candidate.wait_received()
    client.reset()
    assert lane.settled(1)["client_gone"] == 1
    assert leg.wait_closed(), "the candidate's connection closes too"


def test_a_leg_fault_never_ejects_an_endpoint(lane: Lane) -> None:
    """Errors to mirrored requests do not move the breaker that clients' requests go by."""
    lane.baseline.default = lambda r: failure(500) if r.header("x-quantgate-shadow") else said("ok")(r)
    for number in range(20):
        assert lane.ask(lane.body(f"n{number}")).status == 200
    lane.settled(20)
    assert lane.spare.received == [], "the baseline was never taken for broken"


# bounds


def test_a_hanging_candidate_fills_its_queue_and_no_more(take: Callable[[str], Lane]) -> None:
    """In-flight and queue limits hold over both workers; what does not fit is dropped and counted, and every client is
    served."""
    lane = take("tight")
    lane.candidate.default = [Hang()]
    for number in range(30):
        assert lane.ask(lane.body(f"h{number}")).status == 200

    def full() -> bool:
        return lane.events().get("queue_full", 0) + lane.events().get("mirrored", 0) == 30

    wait_for(full, "all are counted")
    found = lane.events()
    assert found["mirrored"] <= 4
    assert len(lane.candidate.received) <= 2
    assert lane.candidate.open_connections <= 2


def test_the_rate_holds_over_the_workers(take: Callable[[str], Lane]) -> None:
    """One mirrored request a second, whatever comes."""
    lane = take("slow")
    for number in range(20):
        lane.ask(lane.body(f"r{number}"))
    found = lane.settled(20)
    assert found["rate"] >= 10
    assert 1 <= found["mirrored"] <= 10


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "stream"])
def test_an_endless_candidate_is_cut_off_and_counts_as_failed(lane: Lane, streamed: bool) -> None:
    """A leg over the bound of an answer is closed at once: nothing reads it for ever, and it is no agreement."""
    lane.baseline.default = said("the answer")
    endless = Repeat(chunk(c("word " * 200)), 1_000_000)
    whole = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000000000\r\n\r\n"
    lane.candidate.default = [SSE_HEAD, endless] if streamed else [whole, Repeat(b"x" * 4096, 1_000_000)]
    assert lane.ask(lane.body(stream=streamed)).status == 200
    leg = lane.candidate.wait_received()
    assert leg.wait_closed()
    assert lane.settled(1)["failed"] == 1
    assert lane.pair()["candidate_failure"] == "too_long"


def test_an_endless_error_is_cut_off(lane: Lane) -> None:
    """An error body without an end costs a bounded read."""
    head = b"HTTP/1.1 500 Error\r\nContent-Type: application/json\r\nContent-Length: 1000000000\r\n\r\n"
    lane.candidate.default = [head, Repeat(b"x" * 4096, 1_000_000)]
    assert lane.ask(lane.body()).status == 200
    assert lane.candidate.wait_received().wait_closed()
    assert lane.settled(1)["failed"] == 1


def test_a_leg_ends_with_its_rules_time(take: Callable[[str], Lane]) -> None:
    """A stream that goes on for ever, word by word, ends at the rule's timeout, as a failure."""
    lane = take("brief")
    lane.candidate.default = [SSE_HEAD, Repeat(chunk(c("w")), 10_000, 0.02)]
    assert lane.ask(lane.body(stream=True)).status == 200
    assert lane.candidate.wait_received().wait_closed()
    assert lane.settled(1)["failed"] == 1
    assert lane.pair()["candidate_failure"] == "timeout"


@pytest.mark.parametrize("how", ["hang", "errors", "endless", "refuse"])
def test_no_candidate_costs_a_client_its_answer_or_the_worker_its_memory(lane: Lane, how: str) -> None:
    """Everything is mirrored to a candidate at its worst: all clients are served, memory is flat, all counts add up."""
    lane.baseline.default = said("the answer " * 50)
    lane.candidate.default = {
        "hang": [Hang()],
        "errors": [*failure(503), Close()],
        "endless": [SSE_HEAD, Repeat(chunk(c("word " * 100)), 1_000_000)],
        "refuse": [],
    }[how]
    if how == "refuse":
        lane.candidate.refuse()

    def load(times: int) -> None:
        with lane.gateway.connect() as client:
            for number in range(times):
                body = lane.body(f"{how} {times} {number} " + "x" * 20_000, stream=how == "endless")
                assert lane.ask(body, client).status == 200

    load(150)  # what is allocated once is allocated now
    resident = lane.gateway.resident_bytes()
    load(450)
    assert lane.gateway.resident_bytes() < resident * 1.05
    wait_for(lambda: len(lane.gateway.outcomes(model=lane.model, result="ok")) == 600, "600 outcomes, all good")
    found = wait_for(lambda: found if (found := lane.events()).get("eligible") == 600 else None, "all are counted")
    assert found["mirrored"] + sum(found.get(name, 0) for name in REFUSED) == 600


def test_a_tenants_limits_do_not_see_the_legs(lane: Lane) -> None:
    """One request with two legs is one request: one outcome, one count."""
    lane.ask(lane.body())
    lane.settled(1)
    assert lane.gateway.outcome(model=lane.model)["pool"] == f"{lane.model}-base"
    assert len(lane.gateway.outcomes(model=lane.model)) == 1


def test_the_policy_decides_what_goes_on(upstream: Upstream, tmp_path: Path) -> None:
    """A rule that is taken out ends its waiting and running legs at once, and they are counted."""
    base, cand = upstream.endpoint(), upstream.endpoint()
    base.default, cand.default = said("ok"), [Hang()]

    def document(*, shadow: bool) -> dict[str, Any]:
        rules = [{"name": "s", "sample": "100%", "candidate": "b", "noise_leg": "0%", "inflight": 1, "queue": 8}]
        return policy(
            {"m": {"baseline": "a"}}, {"a": pool("m", base.url), "b": pool("m", cand.url)},
            [{"name": "all", "pools": ["a"]}], **({"shadow": rules} if shadow else {}),
        )  # fmt: skip

    path = write_policy(tmp_path / "policy.yaml", document(shadow=True))
    gateway = Gateway(tmp_path, path, workers=1).start()
    try:
        for number in range(4):
            body = {"model": "m", "messages": [{"role": "user", "content": f"q{number}"}]}
            with gateway.connect() as client:
                assert client.request(body).read()
        leg = cand.wait_received()
        write_policy(path, document(shadow=False))
        assert leg.wait_closed()
        wait_for(
            lambda: gateway.total("quantgate_shadow_requests_total", event="policy_changed") == 4,
            "all four are counted",
        )
        assert len(cand.received) == 1
    finally:
        gateway.stop()


def test_clients_go_before_legs_in_a_full_pool(upstream: Upstream, tmp_path: Path) -> None:
    """Where a leg holds the last place of a pool, a client gets it at once; what waits is shed and counted, and the
    ended leg is missing, not bad."""
    base, cand = upstream.endpoint(), upstream.endpoint()
    base.default, cand.default = said("ok"), said("cand")
    document = policy(
        {"m": {"baseline": "a"}},
        {"a": pool("m", base.url), "b": pool("m", cand.url, limits={"inflight": 1})},
        [{"name": "direct", "when": {"task": ["code"]}, "pools": ["b"]}, {"name": "all", "pools": ["a"]}],
        classify={"tasks": [{"task": "code", "text": ["CODE"]}]},
        shadow=[{"name": "s", "when": {"task": ["chat"]}, "sample": "100%", "candidate": "b", "noise_leg": "0%"}],
    )
    gateway = Gateway(tmp_path, write_policy(tmp_path / "policy.yaml", document), workers=1).start()
    try:
        cand.play([Hang()])
        with gateway.connect() as client:
            assert client.request({"model": "m", "messages": [{"role": "user", "content": "hello"}]}).read()
        leg = cand.wait_received(1)
        with gateway.connect() as client:
            reply = client.request({"model": "m", "messages": [{"role": "user", "content": "CODE"}]})
            assert reply.json["choices"][0]["message"]["content"] == "cand"
        assert leg.wait_closed()
        wait_for(
            lambda: gateway.total("quantgate_shadow_requests_total", event="unscored") == 1, "the ended leg is missing"
        )
    finally:
        gateway.stop()
