"""What is open survives a restart or a reload at any moment, but for what came since it was stored."""

import random
import re
from collections.abc import Callable, Collection

import msgspec
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from gateway.control.rollouts import Engine
from gateway.control.rollouts_open import CONVERSATIONS_MOST, OpenState, thinned
from gateway.control.rollouts_values import EngineState
from gateway.control.scoring import Scored
from gateway.core.consequence import Consequence, Kind, Subject
from gateway.core.evidence import Budget, SeriesKey
from gateway.core.rollout import EventKind, State
from gateway.model.messages import Start, Starts
from gateway.model.outcome import Attempt, Outcome
from gateway.model.table import Table
from tests.unit.control.conftest import outcome
from tests.unit.control.rollout_rig import START_S, EngineRig, World, inspection, rollout_policy

BUCKET = "m/short/chat"
GUARDS = """
  errors: {metric: error_rate, limit: LIMIT, ratio_to_baseline: 1.5}
  json: {metric: format_error_rate, limit: 5%, margin_to_baseline: 2%, feed: session, block: 5s, deadline: 40s}
  words: {metric: feedback_rate, limit: 10%, margin_to_baseline: 5%, ratio_to_baseline: 1.5, feed: session, block: 5s,
    deadline: 60s}
  ttft: {metric: ttft, quantile: 90%, limit: 1s, or_ratio_to_baseline: 1.2, block: 5s}
  tpot: {metric: tpot, quantile: 90%, ratio_to_baseline: 1.3, block: 5s}
"""
SECONDS = 150
Event = Callable[[Engine, float], None]


def policy(limit: str = "20%", *, margins: bool = True) -> Table:
    stages = "[{weight: 50%, at_least: {requests: 100000}}]"
    names = "errors, json, words, ttft, tpot"
    guards = GUARDS.replace("LIMIT", limit)
    return rollout_policy(
        guards=guards if margins else re.sub(" margin_to_baseline: .%,", "", guards), names=names, stages=stages
    )


TABLE, RELOADED = policy(), policy("30%")


def history(seed: int) -> dict[int, list[Event]]:
    """Second by second what happens: conversations of some turns, answers that take their time, people's words."""
    rand = random.Random(seed)
    events: dict[int, list[Event]] = {second: [] for second in range(SECONDS + 80)}
    bad = rand.choice([0.02, 0.1, 0.5])
    for number in range(SECONDS * 4):
        second, conversation = number // 4, f"c{rand.randrange(number // 8 + 1)}"
        pool = "int4" if int(conversation[1:]) % 2 else "bf16"
        asked = _request(rand, second, number, pool, conversation)
        ended = second + rand.choice([0, 0, 1, 3, 20])
        fine = rand.random() > (bad if pool == "int4" else 0.05)
        events[second].append(_started(second, pool))
        events[ended].append(_ended(asked, fine))
        if rand.random() < 0.4:
            told = ended + rand.randrange(50)
            events[told].append(_said(asked, float(rand.random() < (bad if pool == "int4" else 0.1))))
    return events


def _request(rand: random.Random, second: int, number: int, pool: str, conversation: str) -> Outcome:
    failed = rand.random() < 0.05
    failure = "status_5xx" if failed else ""
    return outcome(
        request_id=f"q{number}",
        at=START_S + second,
        bucket=BUCKET,
        rollout="int4-all",
        pool=pool,
        result="upstream_error" if failed else "ok",
        failure=failure,
        ttft_s=-1.0 if failed else rand.lognormvariate(-1.0, 0.7),
        conversation=conversation,
        attempts=(Attempt(pool, f"{pool}/0", 502 if failed else 200, failure, 0.0, 0.3),),
    )


def _started(second: int, pool: str) -> Event:
    return lambda engine, _: engine.take_starts(Starts(0, [Start(int(START_S) + second, BUCKET, pool, 1)]))


def _ended(asked: Outcome, fine: bool) -> Event:
    def happen(engine: Engine, now_s: float) -> None:
        engine.take_outcomes([asked], now_s)
        engine.take_scored([Scored(asked, None if asked.kind.result != "ok" else inspection(json=fine))], now_s)

    return happen


def _said(asked: Outcome, bad: float) -> Event:
    kind = asked.kind
    names = (asked.request_id, asked.at, kind.tenant, kind.bucket, kind.pool, asked.conversation, kind.rollout)
    return lambda engine, now_s: engine.take_consequence(Consequence(Kind.FEEDBACK, Subject(*names)), bad, now_s)


class Control:
    """An engine through a history; what it stores is stored as bytes."""

    def __init__(
        self,
        events: dict[int, list[Event]],
        restarts: dict[int, int] | None = None,
        reloads: Collection[int] = (),
        unseen: Collection[int] = (),
        until: int = SECONDS + 80,
        table: Table = TABLE,
    ) -> None:
        self.moves: list[str] = []
        self.table = table
        self.engine = self._made(START_S)
        self.engine.restore([], None, START_S)
        lost = set(unseen)
        restarts = restarts or {}
        for at, back in restarts.items():  # killed at a second, what was stored that many before
            lost |= set(range(at - back, at))
        for second in range(until):
            now_s = START_S + second
            if second in restarts:
                self._restart(now_s)
            if second in reloads:
                self.table = RELOADED if self.table is TABLE else TABLE
                self.engine.apply(self.table, Budget(), {"int4": "a", "bf16": "b"}, now_s)
            if second in lost:
                continue
            for happen in events[second]:
                happen(self.engine, now_s)
            self._turn(now_s + 1.0)

    def _made(self, now_s: float) -> Engine:
        engine = Engine(World())
        engine.apply(self.table, Budget(), {"int4": "a", "bf16": "b"}, now_s)
        return engine

    def _restart(self, now_s: float) -> None:
        state = msgspec.msgpack.decode(msgspec.msgpack.encode(self.engine.state(now_s)), type=EngineState)
        standings = list(self.engine.standings.values())
        self.engine = self._made(now_s)
        self.engine.restore(standings, state, now_s)

    def _turn(self, now_s: float) -> None:
        self.turned_s = now_s
        for proposal in [*self.engine.restage(now_s), *self.engine.turn(now_s)]:
            self.engine.accept(proposal)
            if proposal.event.kind is not EventKind.RELOADED:
                self.moves.append(f"{now_s} {proposal.event.kind} {proposal.event.reason}")

    def stands(self, *, but: str = "") -> tuple[object, ...]:
        """Everything that decides, and everything that is open, but of one guard."""
        state = self.engine.state(START_S + SECONDS)
        series = [one for one in state.judge.series if not (but and one.key.guard.startswith(but))]
        (found,) = state.open.values()
        kept = (found.seen, found.sessions, found.margins)
        failed = {name: shares for name, shares in found.failed.items() if not (but and name.startswith(but))}
        culprits = {name: ids for name, ids in found.culprits.items() if not (but and name.startswith(but))}
        fixed = {name: one.fixed for name, one in found.latencies.items()}
        return self.moves, series, *kept, failed, culprits, fixed


@given(st.integers(0, 10**6), st.dictionaries(st.integers(5, SECONDS + 70), st.integers(0, 5), min_size=1, max_size=3))
@settings(max_examples=10, deadline=None, phases=(Phase.explicit, Phase.reuse, Phase.generate))
def test_a_restart_loses_what_came_since_the_last_store_and_nothing_else(seed: int, restarts: dict[int, int]) -> None:
    """Same meters, same trips, same verdicts as one that was never restarted and only did not see those seconds."""
    events = history(seed)
    unseen = {second for at, back in restarts.items() for second in range(at - back, at)}
    assert Control(events, restarts).stands() == Control(events, unseen=unseen).stands()


@given(st.integers(0, 10**6), st.sets(st.integers(5, SECONDS + 70), min_size=1, max_size=3))
@settings(max_examples=10, deadline=None, phases=(Phase.explicit, Phase.reuse, Phase.generate))
def test_a_reload_that_changes_another_guard_changes_nothing(seed: int, reloads: set[int]) -> None:
    """What is open of the guards that ask the same as before goes on."""
    events = history(seed)
    assert Control(events, reloads=reloads).stands(but="errors") == Control(events).stands(but="errors")


def test_the_history_fills_everything_that_is_stored() -> None:
    """Or the properties would say little."""
    (run,) = Control(history(3), until=100).engine.runs.values()
    found = run.state()
    assert found.meanings and found.seen and found.failed and found.culprits and found.sessions
    assert any(margins.pending for margins in found.margins.values())
    assert any(threshold is not None for _, threshold in found.latencies["ttft"].fixed)


def test_a_changed_guard_begins_anew_alone() -> None:
    """Another question: what is open of it must not be counted for it."""
    control = Control(history(3), until=100)
    (run,) = control.engine.runs.values()
    stored = run.state()
    control.engine = control._made(START_S + 100)
    standing = run.standing
    control.engine.restore([standing], None, START_S + 100)
    (fresh,) = control.engine.runs.values()
    fresh.restore(msgspec.structs.replace(stored, meanings={**stored.meanings, "json": "other", "ttft": "other"}))
    found = fresh.state()
    assert {one.guard for one in stored.sessions} - {one.guard for one in found.sessions} == {"json"}
    assert found.margins == stored.margins
    assert set(stored.culprits) - set(found.culprits) <= {"json", "ttft"}
    assert not found.latencies["ttft"].recent and found.latencies["tpot.ratio"] == stored.latencies["tpot.ratio"]


def test_what_an_earlier_release_stored_still_loads() -> None:
    """Meters without what was open."""
    rig = EngineRig(rollout_policy())
    rig.until(lambda: rig.at(State.STEPPING))
    state = msgspec.to_builtins(rig.engine.state(rig.now_s))
    del state["open"], state["stages"]
    old = msgspec.msgpack.decode(msgspec.msgpack.encode(state), type=EngineState)
    assert old.open == {}
    standings = list(rig.engine.standings.values())
    rig.engine = rig._made()
    rig.engine.restore(standings, old, rig.now_s)
    rig.second()
    assert rig.at(State.STEPPING)


@pytest.mark.parametrize("ahead_s", [-10.0, 30.0, None])
@pytest.mark.parametrize("takes_over", [True, False])
def test_what_was_left_of_a_stage_before_passes_for_none_of_this_one(ahead_s: float | None, takes_over: bool) -> None:
    """By whichever clock it was left, another gateway's or this one's before a kill; an earlier release says less."""
    rig = EngineRig(rollout_policy())
    rig.until(lambda: rig.at(State.STEPPING))
    for _ in range(10):
        rig.second()
    rig.restart()
    run = next(iter(rig.engine.runs.values()))
    json = SeriesKey("json", BUCKET, "int4")
    assert rig.engine.judge.series(json).evidence.number > 0
    state, begun_s = rig.engine.state(rig.now_s), run.standing.stage_since_s
    stages = {} if ahead_s is None else dict.fromkeys(state.stages, begun_s - 100.0)
    older = msgspec.structs.replace(state, at_s=begun_s + (ahead_s or -1.0), stages=stages)
    if takes_over:
        rig.engine.take_over(older, rig.now_s)
    else:
        standings = list(rig.engine.standings.values())
        rig.engine = rig._made()
        rig.engine.restore(standings, older, rig.now_s)
    assert rig.engine.judge.series(json).evidence.number == 0


@pytest.mark.parametrize(("conversations", "every"), [(0, 1), (CONVERSATIONS_MOST, 1), (CONVERSATIONS_MOST + 1, 2)])
def test_many_conversations_are_stored_in_part(conversations: int, every: int) -> None:
    """By their names, never by what became of them."""
    assert thinned(conversations) == every
    assert conversations / every <= CONVERSATIONS_MOST
    assert OpenState() == OpenState(incident_s=0.0)
