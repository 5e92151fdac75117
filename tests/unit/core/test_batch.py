"""Columns say what the outcomes say; what many have in common is one object."""

import msgspec
import pytest

from gateway.core import batch as module
from gateway.core.batch import Batch, ByKind, Kind, Kinds
from gateway.model.outcome import Outcome
from tests.unit.dataplane.outcome_values import make_outcome

OWN = {"outcomes", "kinds", "per_token_s"}


def test_every_field_of_an_outcome_is_in_the_kind_or_a_column_or_left_out_on_purpose() -> None:
    """And in one place only."""
    columns, kinds = set(Batch._fields) - OWN, set(Kind.__struct_fields__)
    assert columns & kinds == set()
    assert set(Outcome.__struct_fields__) - columns - kinds == {"pending_calls"}


def test_each_outcome_keeps_its_own_values() -> None:
    """Row by row the columns and the kind together are the outcome."""
    outcomes = [
        make_outcome(**{
            name: f"{name}-{number}" if kind is str else number + 0.5 if kind is float else number
            for name, kind in Outcome.__annotations__.items()
            if kind in (str, float, int)
        })
        for number in range(5)
    ]  # fmt: skip
    made = Kinds().batch(outcomes)
    for at, outcome in enumerate(outcomes):
        for name in set(Batch._fields) - OWN:
            assert getattr(made, name)[at] == getattr(outcome, name), name
        for name in Kind.__struct_fields__:
            assert getattr(made.kinds[at], name) == getattr(outcome, name), name


def test_outcomes_of_one_kind_share_it() -> None:
    """Over batches too; any field of the kind makes another one, any other field does not."""
    kinds = Kinds()
    first, second = kinds.batch([make_outcome(request_id="a"), make_outcome(request_id="b", total_s=9.0)]).kinds
    (third,) = kinds.batch([make_outcome(at=7.0)]).kinds
    assert first is second is third
    for name in Kind.__struct_fields__:
        value = getattr(first, name)
        changed = {str: "other", int: 99, bool: value is False, tuple: ("x",)}[type(value)]
        (other,) = kinds.batch([make_outcome(**{name: changed})]).kinds
        assert other is not first, name


def test_the_kinds_that_are_known_are_bounded() -> None:
    """A client that makes up names grows nothing, and every outcome still has its own kind."""
    kinds = Kinds(most=10)
    made = kinds.batch([make_outcome(model=f"m{number % 30}") for number in range(90)])
    assert [kind.model for kind in made.kinds] == [f"m{number % 30}" for number in range(90)]
    assert len(kinds._known) <= 10


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"first_to_last_s": 0.4, "completion_tokens": 11}, 0.04),
        ({"first_to_last_s": 0.4, "completion_tokens": 1}, -1.0),
        ({"first_to_last_s": 0.4, "completion_tokens": -1}, -1.0),
        ({"first_to_last_s": -1.0, "completion_tokens": 11}, -1.0),
    ],
)
def test_the_time_of_a_token_needs_two_of_them(fields: dict[str, float], expected: float) -> None:
    """And a stream that was seen."""
    assert Kinds().batch([make_outcome(**fields)]).per_token_s == [expected]


def test_nothing_has_empty_columns() -> None:
    """A batch of no outcomes is one."""
    assert all(len(column) == 0 for column in Kinds().batch([]))


def test_a_part_of_a_batch_is_a_batch() -> None:
    """In order, all columns alike."""
    made = Kinds().batch([make_outcome(request_id=name, at=float(at)) for at, name in enumerate("abc")]).only([1, 0, 1])
    assert (made.request_id, made.at) == (("a", "c"), (0.0, 2.0))
    assert {len(column) for column in made} == {2}


def test_what_belongs_to_a_kind_is_made_once_and_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """For each kind its own, made again only after so many others."""
    made: list[str] = []
    names: ByKind[str] = ByKind(lambda kind: made.append(kind.model) or kind.model)
    kinds = Kinds().batch([make_outcome(model=model) for model in "abab"]).kinds
    assert list(names.of(kinds)) == ["a", "b", "a", "b"]
    assert made == ["a", "b"]
    monkeypatch.setattr(module, "KINDS_MOST", 2)
    assert names[msgspec.structs.replace(kinds[0], model="c")] == "c"
    assert len(names) == 1
