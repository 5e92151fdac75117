"""The mirror of one worker against stand-ins for sockets: whatever happens in whatever order, every mirrored request
ends once, its counts add up, and nothing is kept."""

import dataclasses
import gc
from collections import Counter
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.core.mirror import Event
from gateway.dataplane import shadow as module
from gateway.dataplane.exchange import Exchange
from gateway.dataplane.identity import Caller
from gateway.dataplane.mirrored import NOISE, Job
from gateway.dataplane.outcomes import Tried
from gateway.dataplane.pairs import PairBuffer
from gateway.dataplane.shadow import Mirror
from gateway.model.decision import Decision
from gateway.model.enums import Api, Result
from gateway.model.facts import Facts
from gateway.model.proving import Evidence, Shadow
from gateway.model.table import Tenant
from gateway.wire.wheel import Wheel
from tests.unit.alive import alive
from tests.unit.core.test_decide import PROFILE, always
from tests.unit.dataplane.parts import Client, generation_of, pool_of, table_of

RULE = Shadow("s", always, "always", 1.0, "m", "cand", "base", noise=1.0, inflight=4, queue=4)
BODY = b'{"model":"m","user":"u","messages":[]}'
REFUSED = {"opted_out", "server_state", "not_baseline", "not_permitted", "other_rule", "pressure", "queue_full", "rate"}


class Rig:
    """A mirror whose loop, clock and pools are the test's."""

    def __init__(self, *rules: Shadow, room: int = 100, limit: int | None = None) -> None:
        self.now = 100.0
        self.is_busy = False
        self.queue: list[Any] = []
        self.legs: list[Exchange] = []
        self.launches = True
        self.faults: list[BaseException] = []
        self.buffer = PairBuffer()
        self.counts: Counter[str] = Counter()
        self.pairs: list[Any] = []
        self.pools = {name: pool_of(name, limit=limit, room=room) for name in ("base", "cand")}
        self.put(*rules or (RULE,))
        forwarder: Any = SimpleNamespace(launch=self._launch)
        executor: Any = SimpleNamespace(submit=self._submit)
        self.mirror = Mirror(
            forwarder=forwarder, wheel=Wheel(lambda: self.now), buffer=self.buffer, executor=executor,
            clock=lambda: self.now, soon=self.queue.append, busy=lambda: self.is_busy, on_error=self.faults.append,
            worker=0, workers=1,
        )  # fmt: skip

    def put(self, *rules: Shadow) -> None:
        """The policy in force for the requests that come from now on."""
        self.table = table_of(self.pools.values(), shadows=rules, evidence=Evidence(answer_bytes=1000))
        self.generation = generation_of(self.table)

    def candidate_serves(self, model: str) -> None:
        """The same policy with a candidate of another model."""
        self.pools["cand"] = pool_of("cand", model=model)
        self.put(*self.table.shadows)

    def _launch(self, leg: Exchange) -> bool:
        if self.launches:
            self.legs.append(leg)
        return self.launches

    def _submit(self, work: Any, *arguments: Any) -> "Future[Any]":
        future: Future[Any] = Future()
        try:
            future.set_result(work(*arguments))
        except Exception as error:
            future.set_exception(error)
        return future

    def turn(self) -> None:
        """Let the loop run dry."""
        while self.queue:
            self.queue.pop(0)()

    def request(self, key: bytes = b"k", body: bytes = BODY, **facts: Any) -> Exchange:
        """A client's request that was admitted, and considered."""
        client = Client(self.now)
        exchange = Exchange(
            client.connection, client.ask(body=body), api=Api.CHAT, request_id=key.hex(), generation=self.generation,
            wall_at=1.0, on_finish=lambda ended, result, status: self._primary_ended(ended, result),
        )  # fmt: skip
        exchange.conversation = key
        exchange.facts = Facts(Api.CHAT, "m", **facts)
        exchange.caller = Caller(Tenant("t"))
        exchange.decision = Decision("r", ("base", "spare"))
        exchange.profile = PROFILE
        self.mirror.consider(exchange, PROFILE)
        return exchange

    def _primary_ended(self, exchange: Exchange, result: Result) -> None:
        if exchange.job is not None:
            self.mirror.primary_ended(exchange.job, exchange, result)

    def end(self, exchange: Exchange, result: Result = Result.OK, failure: str = "", pool: str = "base") -> None:
        """The pool's answer to a client's request or a leg is over."""
        pool = exchange.decision.pools[0] if exchange.mirrored and exchange.decision else pool
        exchange.attempts.append(Tried(pool, f"{pool}/0", 200, failure, 0.0, 1.0))
        exchange.failure = failure
        if exchange.capture is not None:
            exchange.capture.add(b"answer")
        if exchange in self.legs:
            self.legs.remove(exchange)
        exchange.finish(result, 200)

    def told(self) -> Counter[str]:
        """Every count so far; the pairs handed over count as ``handed``."""
        while (message := self.buffer.take(0)) is not None:
            for count in message.counts:
                self.counts[count.event] += count.number
            self.pairs += message.batch
        self.legs = [leg for leg in self.legs if not leg.finished]
        return self.counts + Counter({"handed": len(self.pairs)} if self.pairs else {})


def test_a_pair_of_three_legs() -> None:
    """The client's answer, the candidate's and the second run: one pair, the body without the sender's name."""
    rig = Rig()
    exchange = rig.request()
    assert rig.legs == [], "nothing starts before the client's request is sent"
    rig.turn()
    assert [leg.decision.pools for leg in rig.legs if leg.decision] == [("cand",), ("base",)]
    assert [leg.request_id for leg in rig.legs] == ["6b.candidate", "6b.noise"]
    for leg in list(rig.legs):
        rig.end(leg)
    assert rig.told() == {"eligible": 1, "mirrored": 1}
    rig.end(exchange)
    assert rig.told() == {"eligible": 1, "mirrored": 1, "handed": 1}
    (pair,) = rig.pairs
    assert (pair.baseline.pool, pair.candidate.pool, pair.noise.pool) == ("base", "cand", "base")
    assert (pair.rule, pair.tenant, pair.request) == ("s", "t", b'{"model":"m","user":null,"messages":[]}')
    assert rig.mirror.held_bytes == 0


@pytest.mark.parametrize(
    ("change", "event"),
    [
        (lambda rig: setattr(rig, "is_busy", True), "pressure"),
        (lambda rig: setattr(rig.mirror, "held_bytes", module.HELD_MOST_BYTES), "queue_full"),
        (lambda rig: rig.candidate_serves("n"), "not_permitted"),
    ],
)
def test_what_keeps_a_pair_from_starting(change: Any, event: str) -> None:
    """Each reason is counted, and nothing is kept."""
    rig = Rig()
    change(rig)
    exchange = rig.request()
    rig.turn()
    assert rig.told() == {"eligible": 1, event: 1}
    assert exchange.job is None
    assert exchange.capture is None


def test_another_pool_in_front_is_not_the_baseline() -> None:
    """During a canary the candidate's own share has nothing to be compared with."""
    rig = Rig(msgspec.structs.replace(RULE, baseline="other"))
    rig.request()
    assert rig.told() == {"eligible": 1, "not_baseline": 1}


def test_pools_without_room_are_left_to_clients() -> None:
    """A quarter of a pool's places is never taken by legs, and the noise leg always leaves one."""
    rig = Rig(room=2, limit=8)
    exchange = rig.request()
    rig.turn()
    assert rig.legs == []
    rig.end(exchange)
    assert rig.told() == {"eligible": 1, "mirrored": 1, "shed": 1}
    rig = Rig(room=1, limit=1)
    exchange = rig.request()
    rig.turn()
    assert all(leg.finished for leg in rig.legs), "the candidate's ended when the second run had no room"
    rig.end(exchange)
    assert rig.told()["shed"] == 1


def test_a_client_takes_a_legs_place() -> None:
    """Legs in the pools that a client may use end at once, as missing; others go on."""
    rig = Rig()
    exchange = rig.request()
    rig.turn()
    assert not rig.mirror.make_room(("elsewhere",))
    assert rig.mirror.make_room(("cand", "x"))
    assert not rig.mirror.make_room(("cand",))
    (noise,) = [leg for leg in rig.legs if not leg.finished]
    rig.end(noise)
    rig.end(exchange)
    rig.told()
    assert rig.pairs[0].candidate.missing
    assert not rig.pairs[0].noise.failure


def test_a_pool_at_its_limit_makes_a_leg_missing() -> None:
    """The forwarder found no place: nothing is known of the candidate."""
    rig = Rig()
    rig.launches = False
    exchange = rig.request()
    rig.turn()
    rig.end(exchange)
    rig.told()
    assert (rig.pairs[0].candidate.failure, rig.pairs[0].candidate.pool) == ("busy", "cand")


def test_a_client_that_leaves_ends_its_legs() -> None:
    """Waiting legs do not start, running ones end, and the reason is counted once."""
    rig = Rig(msgspec.structs.replace(RULE, inflight=1))
    exchange = rig.request()
    rig.turn()
    (leg,) = rig.legs
    rig.end(exchange, Result.CLIENT_CANCELLED)
    assert leg.finished
    rig.turn()
    assert rig.told() == {"eligible": 1, "mirrored": 1, "client_gone": 1}
    assert rig.legs == []
    assert rig.mirror.held_bytes == 0


def test_a_fault_in_here_costs_no_request() -> None:
    """Whatever breaks is told to the log; the client's exchange is untouched and ends as ever."""
    rig = Rig(msgspec.structs.replace(RULE, matches=lambda _: 1 / 0))
    exchange = rig.request()
    assert [type(fault) for fault in rig.faults] == [ZeroDivisionError]
    rig.end(exchange)
    assert exchange.finished


def test_a_body_that_cannot_be_cleaned_is_no_pair() -> None:
    """Long bodies are cleaned in a thread; what fails there is counted."""
    rig = Rig()
    deep = b'{"user":"u","x":' + b"[" * 20_000 + b"]" * 20_000 + b"}"
    exchange = rig.request(body=deep)
    rig.turn()
    rig.end(exchange)
    assert rig.told() == {"eligible": 1, "mirrored": 1, "fault": 1}
    assert rig.legs == []


@pytest.mark.parametrize("broken", ["leg_exchange", "wheel", "launch"])
def test_a_leg_that_cannot_be_begun_is_missing_and_gives_its_place_back(
    broken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever its start fails, the fault is told, the pair says that nothing is known, and the next request is
    mirrored as if nothing had been."""
    rig = Rig(msgspec.structs.replace(RULE, noise=0.0, inflight=1, queue=0))
    with monkeypatch.context() as patch:
        if broken == "leg_exchange":
            patch.setattr(module, "leg_exchange", _fails)
        elif broken == "launch":
            patch.setattr(rig.mirror._forwarder, "launch", _fails)
        else:
            patch.setattr(rig.mirror, "_wheel", SimpleNamespace(add=_fails, discard=lambda _: None))
        exchange = rig.request()
        rig.turn()
        rig.end(exchange)
    assert [type(fault) for fault in rig.faults] == [ZeroDivisionError]
    assert rig.told() == {"eligible": 1, "mirrored": 1, "handed": 1}
    assert rig.pairs[0].candidate.missing
    assert (rig.mirror.held_bytes, rig.mirror._running) == (0, set())
    assert rig.mirror._places["s"].inflight == 0
    again = rig.request()
    rig.turn()
    (leg,) = rig.legs
    rig.end(leg)
    rig.end(again)
    assert rig.told()["handed"] == 2


def test_a_pair_that_cannot_be_prepared_gives_its_places_back() -> None:
    """The thread that cleans long bodies takes no more of them: the fault is told, and nothing is kept."""
    rig = Rig()
    rig.mirror._executor.submit = _fails  # type: ignore[method-assign]
    exchange = rig.request(body=b'{"user":"u","pad":"%b"}' % (b"x" * 20_000))
    rig.turn()
    rig.end(exchange)
    assert [type(fault) for fault in rig.faults] == [ZeroDivisionError]
    assert rig.told() == {"eligible": 1, "mirrored": 1, "fault": 1}
    assert (rig.mirror.held_bytes, rig.mirror._places["s"].pending) == (0, 0)


def test_a_client_whose_part_cannot_be_read_ends_its_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault at the end of the client's request: its legs end, the pair is counted as lost, nothing is kept."""
    rig = Rig()
    exchange = rig.request()
    rig.turn()
    monkeypatch.setattr(module, "baseline_of", _fails)
    rig.end(exchange)
    assert [type(fault) for fault in rig.faults] == [ZeroDivisionError]
    assert rig.told() == {"eligible": 1, "mirrored": 1, "fault": 1}
    assert (rig.legs, rig.mirror.held_bytes, rig.mirror._running) == ([], 0, set())


def _fails(*_args: object, **_named: object) -> Any:
    raise ZeroDivisionError


def test_two_rules_share_a_request() -> None:
    """It is mirrored once; the other rule sees that it was eligible and why it was not its turn."""
    rig = Rig(RULE, msgspec.structs.replace(RULE, name="z"))
    rig.request()
    rig.turn()
    assert rig.told() == {"eligible": 2, "mirrored": 1, "other_rule": 1}
    assert len(rig.legs) == 2


def test_a_new_policy_keeps_what_it_still_asks_for() -> None:
    """Other limits of the same rule change nothing that runs; another candidate ends all of it."""
    rig = Rig()
    exchange = rig.request()
    rig.turn()
    rig.put(msgspec.structs.replace(RULE, inflight=1))
    rig.mirror.apply(rig.table)
    assert not any(leg.finished for leg in rig.legs)
    rig.put(msgspec.structs.replace(RULE, candidate="base"))
    rig.mirror.apply(rig.table)
    assert all(leg.finished for leg in rig.legs)
    rig.end(exchange)
    assert rig.told() == {"eligible": 1, "mirrored": 1, "policy_changed": 1}


def test_a_finished_pair_leaves_no_cycles() -> None:
    """Workers collect garbage rarely: legs and requests must go by themselves."""
    gc.collect()
    gc.disable()
    try:
        before = alive(Exchange, Job)
        rig = Rig()
        exchange = rig.request()
        rig.turn()
        assert alive(Exchange, Job) == before + 4
        for leg in list(rig.legs):
            rig.end(leg)
        del leg
        rig.end(exchange)
        del exchange
        rig.told()
        assert alive(Exchange, Job) == before
    finally:
        gc.enable()


_RESULTS = st.sampled_from([
    (Result.OK, ""), (Result.UPSTREAM_ERROR, "status_5xx"), (Result.UPSTREAM_TIMEOUT, "idle_timeout"),
    (Result.CLIENT_CANCELLED, ""), (Result.UPSTREAM_ERROR, "status_429"), (Result.CLIENT_ERROR, "status_4xx"),
])  # fmt: skip
_STEPS = st.one_of(
    st.tuples(st.just("request"), st.integers(0, 5), st.booleans()),
    st.tuples(st.just("leg"), st.integers(0, 9), _RESULTS),
    st.tuples(st.just("client"), st.integers(0, 9), _RESULTS),
    st.tuples(st.sampled_from(["turn", "busy", "calm", "shed", "room", "reload", "change", "full", "free"])),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(_STEPS, max_size=40), st.integers(0, 3), st.integers(0, 3))
def test_every_mirrored_request_ends_once_and_leaves_nothing(steps: list[Any], inflight: int, queue: int) -> None:
    """eligible = mirrored + refused and mirrored = handed over + lost, for any order of events; no bytes, no places and
    no running legs are left at the end, and limits held all the way."""
    rule = msgspec.structs.replace(RULE, inflight=max(1, inflight), queue=queue, noise=0.5)
    rig = Rig(rule)
    clients: list[Exchange] = []
    for step in steps:
        match step:
            case ("request", number, long):
                body = b'{"user":"u","pad":"%b"}' % (b"x" * 20_000) if long else BODY
                clients.append(rig.request(bytes([number]), body))
            case ("leg", number, (result, failure)) if rig.legs:
                rig.end(rig.legs[number % len(rig.legs)], result, failure)
            case ("client", number, (result, failure)) if clients:
                rig.end(clients.pop(number % len(clients)), result, failure)
            case ("turn",):
                rig.turn()
            case ("busy" | "calm" as how,):
                rig.is_busy = how == "busy"
            case ("shed",):
                rig.mirror.shed_waiting()
            case ("room",):
                rig.mirror.make_room(("cand",))
            case ("reload",):
                rig.mirror.apply(rig.table)
            case ("change",):
                rig.put(msgspec.structs.replace(rule, candidate="cand", baseline="base", queue=queue + 1))
                rig.mirror.apply(dataclasses.replace(rig.table, shadows=()))
            case ("full" | "free" as how,):
                rig.launches = how == "free"
        rig.legs = [leg for leg in rig.legs if not leg.finished]
        assert len(rig.legs) <= 2 * rule.inflight, (
            "a rule that was replaced may have its own places beside the old ones"
        )
    for client in clients:
        rig.end(client)
    rig.mirror.stop()
    rig.turn()
    told = rig.told()
    assert rig.faults == []
    assert told["eligible"] == told["mirrored"] + sum(told[name] for name in REFUSED)
    lost = sum(number for name, number in told.items() if name not in REFUSED | {"eligible", "mirrored", "handed"})
    assert told["mirrored"] == told["handed"] + lost
    assert rig.mirror.held_bytes == 0
    assert rig.mirror._running == set()
    assert [leg for leg in rig.legs if not leg.finished] == []


def test_the_words_of_the_test_are_the_words_of_the_code() -> None:
    """The reasons against mirroring are those that the closed set has."""
    assert {event.value for event in Event} >= REFUSED
    assert NOISE == "noise"
