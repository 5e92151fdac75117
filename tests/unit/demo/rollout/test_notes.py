"""The notes are what they claim to be: each once, each with its right answer, and seen by the policy as is meant."""

from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.cli.ask import answer, make_ask, tenant_of
from gateway.demo.policy import compiled
from gateway.demo.rollout.notes import Note, Request, Requests, Way
from gateway.demo.witness import WATERMARK, mark_of

TABLE = compiled(Path("routing_policies/demo-rollout.yaml"))
ELLA = Note("Ella", 46, "Porto")


def made(seed: int, count: int) -> list[Request]:
    """Requests of both ways in turns."""
    requests = Requests(19, seed)
    return [requests.next(list(Way)[index % 2]) for index in range(count)]


@given(st.integers(0, 1000))
@settings(max_examples=10, deadline=None)
def test_no_note_comes_twice_in_one_way(seed: int) -> None:
    """A greedy answer to the same note again would be no new evidence."""
    found = made(seed, 1200)
    for way in Way:
        notes = [request.note for request in found if request.way is way]
        assert len(set(notes)) == len(notes) == 600


def test_numbers_go_on_where_the_first_part_ended() -> None:
    """Each request carries the next number to the server."""
    found = made(7, 20)
    assert [request.item.number for request in found] == list(range(19, 39))
    assert all(one.item.body["extra_body"][WATERMARK] == mark_of(one.item.number) for one in found)


def test_a_seed_gives_the_same_again() -> None:
    """And another one otherwise."""
    assert made(7, 30) == made(7, 30)
    assert made(7, 30) != made(8, 30)


def test_the_policy_sees_them_as_they_are_meant() -> None:
    """Each way is a bucket of its own, under the rollout, and both pools may serve it."""
    for request in made(7, 40):
        body = {name: value for name, value in request.item.body.items() if name != "extra_body"}
        ask = make_ask("/v1/chat/completions", {}, body)
        found = answer(TABLE, ask, tenant_of(TABLE, request.item.tenant), None).explanation
        assert found.profile.bucket == f"short/{request.way}/none"
        assert set(found.decision.pools) == {"q4", "bf16"}


def test_the_ways_differ_by_the_schema_alone() -> None:
    """The same words are asked for either way."""
    free, schema = (next(r for r in made(7, 2) if r.way is way).item.body for way in (Way.FREE, Way.SCHEMA))
    assert {*schema} - {*free} == {"response_format"}
    asked = schema["response_format"]["json_schema"]["schema"]
    assert {note.note.city for note in islice(made(7, 400), 400)} == set(asked["properties"]["city"]["enum"])


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ('{"age": 46, "city": "Porto"}', True),
        ('{\n  "city": "Porto",\n  "age": 46\n}', True),
        ('```json\n{"age": 46, "city": "Porto"}\n```', True),
        ('Here it is:\n```\n{"age": 46, "city": "Porto"}\n```\nEnjoy.', True),
        ('{"age": "46", "city": "Porto"}', False),
        ('{"age": 46, "city": "Portofino"}', False),
        ('{"age": 46, "city": "Porto", "country": "Portugal"}', False),
        ('{"age": 46, "city": {"country": "Por', False),
        ("Ella is 46 and lives in Porto.", False),
        ("", False),
    ],
)
def test_what_an_application_can_use(text: str, right: bool) -> None:
    """JSON that says what the note says, and nothing else."""
    assert ELLA.is_told_by(text) is right
