"""THE transition table: what every event does in every state. Everything that affects transitions lives here.

Theory of operation. A bucket waits (``pending``), goes through its stages (``shadowing``, ``stepping``) and ends
``promoted``, where the same meters go on. Three states interrupt: ``holding`` and ``frozen`` keep the share,
``paused`` takes it away; they remember what they interrupted (``below``). ``rolled_back`` is a latch.

Rules that hold in the whole table, each checked by a property test:
- ``fail`` and ``rollback`` lead to ``rolled_back`` from everywhere, also from holds, pauses and under the brake;
- out of ``rolled_back`` leads only ``reset`` (a person) or ``reenter`` (the policy's rule), both to the first stage;
- nothing raises a share but ``begin``, ``pass``, ``promote``, ``resume`` and ``calm``, and nothing at all where the
  policy's stages are others than those that the bucket's stage counts in, until ``reloaded`` has placed it;
- a change of the pool's deployment record restarts everything that was won with the old one.

A cell is a tuple of moves; the first whose condition holds is taken. ``stay`` says why nothing happens, ``refuse``
what a person is told.
"""

from collections.abc import Mapping
from enum import StrEnum

import msgspec

from gateway.core.rollout.states import Cause, EventKind, Notice, State


class To(StrEnum):
    """Where a move leads. ``BACK``: to what was interrupted. ``NOTE``: same state, something is written down."""

    STAY = "stay"
    NOTE = "note"
    PENDING = "pending"
    STAGE = "stage"
    NEXT = "next"
    HOLDING = "holding"
    PAUSED = "paused"
    FROZEN = "frozen"
    ROLLED_BACK = "rolled_back"
    BACK = "back"


class When(StrEnum):
    """Conditions of moves, asked of the standing, the event and the rollout; the values are words for the diagram."""

    ALWAYS = ""
    APPROVED = "approved"
    PROMOTED_BY_ENOUGH = "enough people"
    AWAITS_APPROVAL = "awaited approval, approved"
    NOT_APPROVED = "stage's time was up, not approved"
    OVERTIME = "stage's time was up, approved"
    IN_INCIDENT = "held for an incident"
    NOT_BY_PERSON = "not held by a person"
    UNDER_PROMOTED = "was promoted"
    REENTRY_LEFT = "re-entries left"
    OTHER_RECORD = "another record"
    NO_STAGE_FITS = "no stage fits"
    NO_STAGE_AWAITED = "awaited approval or time, no stage fits"


class Move(msgspec.Struct, frozen=True):
    """One way out of a cell. ``why`` explains a ``STAY``; ``refusal`` is told to the person who asked."""

    to: To
    when: When = When.ALWAYS
    cause: Cause = Cause.NONE
    tell: Notice | None = None
    why: str = ""
    refusal: str = ""


Cell = tuple[Move, ...]


def _go(to: To, when: When = When.ALWAYS, *, cause: Cause = Cause.NONE, tell: Notice | None = None) -> Move:
    return Move(to, when, cause, tell)


def _stay(why: str) -> Cell:
    return (Move(To.STAY, why=why),)


def _refuse(text: str) -> Cell:
    return (Move(To.STAY, refusal=text),)


_ROLL_BACK: Cell = (_go(To.ROLLED_BACK, tell=Notice.ROLLBACK),)
_ANEW: Cell = (_go(To.PENDING, When.OTHER_RECORD), *_stay("the same deployment record"))
_RESET: Cell = (_go(To.PENDING),)
_HOLD: Cell = (_go(To.HOLDING, cause=Cause.PERSON, tell=Notice.HOLD),)
_PAUSE: Cell = (_go(To.PAUSED, tell=Notice.HOLD),)
_FREEZE: Cell = (_go(To.FROZEN),)
_INCIDENT: Cell = (_go(To.HOLDING, cause=Cause.INCIDENT, tell=Notice.INCIDENT),)
_BESIDE: Cell = (_go(To.HOLDING, cause=Cause.INCIDENT, tell=Notice.HOLD),)
_NOTHING_RUNS = _stay("no stage runs")
_NOT_OUT = _stay("it is not rolled back")
_NOT_HELD = _stay("nothing holds it")
_RUNS = _refuse("nothing holds it: there is nothing to resume")
_SHARE_AGAIN: Cell = (_go(To.NOTE),)
_STAGE_AGAIN: Cell = (_go(To.PENDING, When.NO_STAGE_FITS), _go(To.NOTE))

_STAGE: Mapping[EventKind, Cell] = {
    EventKind.BEGIN: _stay("the stage runs"),
    EventKind.PASS: (
        _go(To.NEXT, When.APPROVED, tell=Notice.PROMOTION),
        _go(To.HOLDING, cause=Cause.APPROVAL, tell=Notice.APPROVAL_NEEDED),
    ),
    EventKind.FAIL: _ROLL_BACK,
    EventKind.TIMEOUT: (_go(To.HOLDING, cause=Cause.TIME, tell=Notice.HOLD),),
    EventKind.INCIDENT: _INCIDENT,
    EventKind.BESIDE: _BESIDE,
    EventKind.CALM: _NOT_HELD,
    EventKind.BRAKE: _FREEZE,
    EventKind.CHANGED: _ANEW,
    EventKind.REENTER: _NOT_OUT,
    EventKind.RELOADED: _STAGE_AGAIN,
    EventKind.APPROVE: (_go(To.NOTE),),
    EventKind.PROMOTE: (_go(To.NEXT, When.PROMOTED_BY_ENOUGH, tell=Notice.PROMOTION), _go(To.NOTE)),
    EventKind.HOLD: _HOLD,
    EventKind.PAUSE: _PAUSE,
    EventKind.RESUME: _RUNS,
    EventKind.ROLLBACK: _ROLL_BACK,
    EventKind.RESET: _RESET,
}

TABLE: Mapping[State, Mapping[EventKind, Cell]] = {
    State.PENDING: {
        EventKind.BEGIN: (_go(To.STAGE),),
        EventKind.PASS: _NOTHING_RUNS,
        EventKind.FAIL: _ROLL_BACK,
        EventKind.TIMEOUT: _NOTHING_RUNS,
        EventKind.INCIDENT: _NOTHING_RUNS,
        EventKind.BESIDE: _NOTHING_RUNS,
        EventKind.CALM: _NOT_HELD,
        EventKind.BRAKE: _FREEZE,
        EventKind.CHANGED: (_go(To.NOTE, When.OTHER_RECORD), *_stay("the same deployment record")),
        EventKind.REENTER: _NOT_OUT,
        EventKind.RELOADED: _SHARE_AGAIN,
        EventKind.APPROVE: _refuse("its first stage has not begun: there is nothing to approve"),
        EventKind.PROMOTE: _refuse("its first stage has not begun: it begins by itself once the pool is ready"),
        EventKind.HOLD: _HOLD,
        EventKind.PAUSE: _PAUSE,
        EventKind.RESUME: _RUNS,
        EventKind.ROLLBACK: _ROLL_BACK,
        EventKind.RESET: _refuse("its first stage has not begun: there is nothing to reset"),
    },
    State.SHADOWING: _STAGE,
    State.STEPPING: _STAGE,
    State.HOLDING: {
        EventKind.BEGIN: _stay("it is held"),
        EventKind.PASS: (
            _go(To.NEXT, When.AWAITS_APPROVAL, tell=Notice.PROMOTION),
            _go(To.NEXT, When.OVERTIME, tell=Notice.PROMOTION),
            _go(To.HOLDING, When.NOT_APPROVED, cause=Cause.APPROVAL, tell=Notice.APPROVAL_NEEDED),
            *_stay("it is held"),
        ),
        EventKind.FAIL: _ROLL_BACK,
        EventKind.TIMEOUT: _stay("it is held"),
        EventKind.INCIDENT: (
            Move(To.STAY, When.IN_INCIDENT, why="it is held for an incident"),
            _go(To.HOLDING, When.NOT_BY_PERSON, cause=Cause.INCIDENT, tell=Notice.INCIDENT),
            *_stay("a person holds it"),
        ),
        EventKind.BESIDE: (
            Move(To.STAY, When.IN_INCIDENT, why="it is held for an incident"),
            _go(To.HOLDING, When.NOT_BY_PERSON, cause=Cause.INCIDENT, tell=Notice.HOLD),
            *_stay("a person holds it"),
        ),
        EventKind.CALM: (_go(To.BACK, When.IN_INCIDENT), *_stay("it is held for another reason")),
        EventKind.BRAKE: _stay("it does not advance anyway"),
        EventKind.CHANGED: _ANEW,
        EventKind.REENTER: _NOT_OUT,
        EventKind.RELOADED: (_go(To.PENDING, When.NO_STAGE_AWAITED), _go(To.NOTE)),
        EventKind.APPROVE: (
            Move(To.STAY, When.UNDER_PROMOTED, refusal="all stages are passed: there is nothing to approve"),
            _go(To.NOTE),
        ),
        EventKind.PROMOTE: (
            Move(To.STAY, When.UNDER_PROMOTED, refusal="all stages are passed; resume it instead"),
            _go(To.NEXT, When.PROMOTED_BY_ENOUGH, tell=Notice.PROMOTION),
            _go(To.NOTE),
        ),
        EventKind.HOLD: _HOLD,
        EventKind.PAUSE: _PAUSE,
        EventKind.RESUME: (_go(To.BACK),),
        EventKind.ROLLBACK: _ROLL_BACK,
        EventKind.RESET: _RESET,
    },
    State.PROMOTED: {
        EventKind.BEGIN: _stay("all stages are passed"),
        EventKind.PASS: _stay("all stages are passed"),
        EventKind.FAIL: _ROLL_BACK,
        EventKind.TIMEOUT: _NOTHING_RUNS,
        EventKind.INCIDENT: _INCIDENT,
        EventKind.BESIDE: _BESIDE,
        EventKind.CALM: _NOT_HELD,
        EventKind.BRAKE: _FREEZE,
        EventKind.CHANGED: _ANEW,
        EventKind.REENTER: _NOT_OUT,
        EventKind.RELOADED: _STAGE_AGAIN,
        EventKind.APPROVE: _refuse("all stages are passed: there is nothing to approve"),
        EventKind.PROMOTE: _refuse("all stages are passed"),
        EventKind.HOLD: _HOLD,
        EventKind.PAUSE: _PAUSE,
        EventKind.RESUME: _RUNS,
        EventKind.ROLLBACK: _ROLL_BACK,
        EventKind.RESET: _RESET,
    },
    State.ROLLED_BACK: {
        EventKind.BEGIN: _stay("rolled back, and latched"),
        EventKind.PASS: _stay("rolled back, and latched"),
        EventKind.FAIL: _stay("rolled back already"),
        EventKind.TIMEOUT: _NOTHING_RUNS,
        EventKind.INCIDENT: _NOTHING_RUNS,
        EventKind.BESIDE: _NOTHING_RUNS,
        EventKind.CALM: _stay("rolled back, and latched"),
        EventKind.BRAKE: _stay("rolled back, and latched"),
        EventKind.CHANGED: (_go(To.NOTE, When.OTHER_RECORD), *_stay("the same deployment record")),
        EventKind.REENTER: (_go(To.PENDING, When.REENTRY_LEFT), *_stay("no re-entry is left: a person decides")),
        EventKind.RELOADED: _stay("rolled back, and latched"),
        EventKind.APPROVE: _refuse("it is rolled back: reset it to let it in again"),
        EventKind.PROMOTE: _refuse("it is rolled back: reset it to let it in again, at the first stage"),
        EventKind.HOLD: _refuse("it is rolled back: nothing runs that could be held"),
        EventKind.PAUSE: _refuse("it is rolled back: nothing runs that could be paused"),
        EventKind.RESUME: _refuse("it is rolled back: reset it to let it in again, at the first stage"),
        EventKind.ROLLBACK: _refuse("it is rolled back already"),
        EventKind.RESET: _RESET,
    },
    State.PAUSED: {
        EventKind.BEGIN: _stay("a person paused it"),
        EventKind.PASS: _stay("a person paused it"),
        EventKind.FAIL: _ROLL_BACK,
        EventKind.TIMEOUT: _stay("a person paused it"),
        EventKind.INCIDENT: _stay("it has no traffic"),
        EventKind.BESIDE: _stay("it has no traffic"),
        EventKind.CALM: _stay("a person paused it"),
        EventKind.BRAKE: _stay("it has no traffic"),
        EventKind.CHANGED: (_go(To.NOTE, When.OTHER_RECORD), *_stay("the same deployment record")),
        EventKind.REENTER: _NOT_OUT,
        EventKind.RELOADED: _SHARE_AGAIN,
        EventKind.APPROVE: _refuse("it is paused: resume it first"),
        EventKind.PROMOTE: _refuse("it is paused: resume it first"),
        EventKind.HOLD: _refuse("it is paused, and has no traffic"),
        EventKind.PAUSE: _refuse("it is paused already"),
        EventKind.RESUME: (_go(To.BACK),),
        EventKind.ROLLBACK: _ROLL_BACK,
        EventKind.RESET: _RESET,
    },
    State.FROZEN: {
        EventKind.BEGIN: _stay("the brake is on"),
        EventKind.PASS: _stay("the brake is on"),
        EventKind.FAIL: _ROLL_BACK,
        EventKind.TIMEOUT: _stay("the brake is on"),
        EventKind.INCIDENT: _stay("the brake is on: people know"),
        EventKind.BESIDE: _stay("the brake is on: people know"),
        EventKind.CALM: (_go(To.BACK),),
        EventKind.BRAKE: _stay("the brake is on"),
        EventKind.CHANGED: _ANEW,
        EventKind.REENTER: _NOT_OUT,
        EventKind.RELOADED: _SHARE_AGAIN,
        EventKind.APPROVE: (
            Move(To.STAY, When.UNDER_PROMOTED, refusal="all stages are passed: there is nothing to approve"),
            _go(To.NOTE),
        ),
        EventKind.PROMOTE: _refuse("the brake is on: resume it first"),
        EventKind.HOLD: _HOLD,
        EventKind.PAUSE: _PAUSE,
        EventKind.RESUME: (_go(To.BACK),),
        EventKind.ROLLBACK: _ROLL_BACK,
        EventKind.RESET: _RESET,
    },
}
