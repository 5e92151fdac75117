"""The requests of the rollout: short notes that are to become JSON, with a schema and without one.

Each note says what the right answer is, so the application can tell the gateway by ``/v1/feedback`` whether an answer
was of use. No note comes twice in one way, and they come in a random order: answers are independent, as is assumed.
Pure: a seed gives the same notes each time. ``traffic`` sends them.
"""

from collections.abc import Iterator
from enum import StrEnum
from itertools import product
from random import Random
from typing import Any

import msgspec
import orjson

from gateway.demo.witness import WATERMARK, mark_of
from gateway.demo.workload import ACME, GLOBEX, MODEL, Item


class Way(StrEnum):
    """How the JSON is asked for. The value is the task in ``routing_policies/demo-rollout.yaml``."""

    SCHEMA = "schema-json"
    FREE = "free-json"


TITLES = {Way.SCHEMA: "JSON by a schema", Way.FREE: "JSON in free form"}
ANSWER_TOKENS = 40
"""Twice what a right answer takes."""

_NAMES = (
    *("Anna", "Ben", "Carla", "David", "Ella", "Frank", "Greta", "Hugo", "Iris", "Jonas"),
    *("Karin", "Leo", "Mara", "Nils", "Olga", "Paul", "Rosa", "Sven", "Tina", "Udo"),
)
_CITIES = (
    *("Bergen", "Cairo", "Delhi", "Ghent", "Kyoto", "Lima"),
    *("Malmo", "Oslo", "Porto", "Quebec", "Rome", "Turin"),
)
_AGES = range(18, 81)
_FORM: dict[str, Any] = {
    "type": "object",
    "properties": {"age": {"type": "integer", "minimum": 0, "maximum": 99}, "city": {"enum": list(_CITIES)}},
    "required": ["age", "city"],
    "additionalProperties": False,
}


class Note(msgspec.Struct, frozen=True):
    """What a note says."""

    name: str
    age: int
    city: str

    @property
    def text(self) -> str:
        """The prompt."""
        return f"{self.name}, {self.age}, lives in {self.city}. Write age and city as a json block."

    def is_told_by(self, answer: str) -> bool:
        """Whether an application can use the answer: JSON, in a fence or not, that says what the note says."""
        inside = answer.partition("```json")[2] or answer.partition("```")[2]
        text = inside.partition("```")[0] if inside else answer
        try:
            return bool(orjson.loads(text) == {"age": self.age, "city": self.city})
        except orjson.JSONDecodeError:
            return False


class Request(msgspec.Struct, frozen=True):
    """One request and what it is about."""

    item: Item
    way: Way
    note: Note


class Requests:
    """Requests one after another, each with the next number and a note that its way has not had."""

    def __init__(self, first_number: int, seed: int) -> None:
        self.number = first_number - 1
        self._notes = {way: _shuffled(Random(f"{seed} {way}")) for way in Way}  # noqa: S311 - makes a workload

    def next(self, way: Way) -> Request:
        """The next request of a way."""
        self.number += 1
        note = next(self._notes[way])
        body: dict[str, Any] = {
            "model": MODEL,
            "messages": [{"role": "user", "content": note.text}],
            "max_tokens": ANSWER_TOKENS,
            "temperature": 0,
            "extra_body": {WATERMARK: mark_of(self.number)},
        }
        if way is Way.SCHEMA:
            form = {"name": "person", "strict": True, "schema": _FORM}
            body["response_format"] = {"type": "json_schema", "json_schema": form}
        tenant = ACME if self.number % 2 else GLOBEX
        return Request(Item(self.number, way, tenant, body), way, note)


def _shuffled(rng: Random) -> Iterator[Note]:
    notes = [Note(*said) for said in product(_NAMES, _AGES, _CITIES)]
    while True:
        rng.shuffle(notes)
        yield from notes
