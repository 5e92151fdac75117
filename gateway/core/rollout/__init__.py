"""The life of a rollout in one bucket, as pure functions: which state follows from which event, and what must be done.

- ``states``       states, events and their closed vocabularies
- ``standing``     where one (rollout, bucket) stands; what is stored
- ``table``        THE transition table: every state, every event
- ``transitions``  the step over it: a new standing and effects as values
- ``effects``      what the engine must do, in order: persist first
- ``headroom``     what the baseline can take when a bucket comes back
- ``brake``        when many buckets trip together
- ``diagram``      the picture of the table for the documentation

Time, actors and evidence are arguments. Called by ``control.rollouts`` and, through it, by the rehearsal.
"""

from gateway.core.rollout.brake import Assessment, Brake, Tripped
from gateway.core.rollout.diagram import mermaid
from gateway.core.rollout.effects import Audit, Effect, Notify, Persist, SetShare, StartStage
from gateway.core.rollout.headroom import Headroom, measure_headroom
from gateway.core.rollout.standing import ENGINE, Standing, Vote
from gateway.core.rollout.states import Cause, Event, EventKind, Notice, State
from gateway.core.rollout.table import TABLE
from gateway.core.rollout.transitions import Stepped, begin_standing, stage_begun, step

__all__ = [
    "ENGINE",
    "TABLE",
    "Assessment",
    "Audit",
    "Brake",
    "Cause",
    "Effect",
    "Event",
    "EventKind",
    "Headroom",
    "Notice",
    "Notify",
    "Persist",
    "SetShare",
    "Standing",
    "StartStage",
    "State",
    "Stepped",
    "Tripped",
    "Vote",
    "begin_standing",
    "measure_headroom",
    "mermaid",
    "stage_begun",
    "step",
]
