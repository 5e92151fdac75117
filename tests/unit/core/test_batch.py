"""Columns say what the outcomes say; what many have in common is one object."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from gateway.core import batch as module
from gateway.core.batch import Batch, ByKind, Kinds, by_column, numbers
from gateway.model.outcome import Attempt, Capture, Kind, Outcome
from tests.unit.dataplane.outcome_values import columns, make_outcome, sent


def values(outcomes: Sequence[Outcome]) -> list[Any]:
    """Everything in them, to be compared."""
    return [msgspec.to_builtins(outcome) for outcome in outcomes]


def different(count: int) -> list[Outcome]:
    """Outcomes without an equal field."""
    made = []
    for number in range(count):
        given = {
            field.name: {str: f"{field.name}-{number}", int: number, float: number + 0.5}.get(field.type)
            for struct in (Kind, Outcome)
            for field in msgspec.structs.fields(struct)
            if field.type in (str, int, float)
        }
        capture = Capture(b"q", b"a", False) if number % 2 else None
        attempts = (Attempt("p", "e", number, "", 0.5, number + 1.5),) * number
        made.append(make_outcome(**given, capture=capture, attempts=attempts, constraints=(str(number),)))
    return made


def test_the_columns_are_the_fields_in_their_order() -> None:
    """And those that are made of others, or stand for them."""
    assert Batch._fields == (*Outcome.__struct_fields__, "started_s", "took_s", "per_token_s")


def test_each_outcome_keeps_its_own_values() -> None:
    """What arrives, in any number of messages, is what was sent."""
    outcomes = different(7)
    found = Kinds().batch([sent(*outcomes[:3]), sent(), sent(*outcomes[3:])])
    assert values(found.outcomes()) == values(outcomes) == values(by_column(outcomes).outcomes())


def test_a_number_that_fits_into_no_array_stays_what_it_is() -> None:
    """A runtime may report anything; its neighbours, before and after, are as they were."""
    outcomes = [make_outcome(prompt_tokens=number) for number in (1, 2**64 - 1, 3)]
    found = Kinds().batch([sent(outcomes[0]), sent(outcomes[1]), sent(outcomes[2])])
    assert numbers(found.prompt_tokens) == [1, 2**64 - 1, 3]
    assert values(found.outcomes()) == values(outcomes)
    assert numbers(found.only([0, 1, 1]).prompt_tokens) == [2**64 - 1, 3]


def test_an_attempt_that_answered_is_known_by_its_kind() -> None:
    """Only its times are the request's own; all others come by the request's place."""
    usual, refused = Attempt("p", "p/1", 200, "", 0.25, 0.5), Attempt("p", "p/0", 0, "connect", 0.0, 0.25)
    tries: list[tuple[Attempt, ...]] = [(usual,), (refused, usual), (), (refused,), (usual,)]
    made = [make_outcome(pool="p", endpoint="p/1", attempts=tried) for tried in tries]
    found = Kinds().batch([sent(*made[:2]), sent(*made[2:])])
    assert dict(found.other_attempts()) == {1: tries[1], 2: tries[2], 3: tries[3]}
    assert (found.started_s[0], found.took_s[4]) == (0.25, 0.5)
    assert [outcome.attempts for outcome in found.outcomes()] == tries
    assert dict(found.only([1, 0, 0, 1, 1]).other_attempts()) == {1: tries[3]}
    assert not dict(Kinds().batch([sent(made[0])]).other_attempts())


def test_outcomes_of_one_kind_share_it() -> None:
    """Over batches too; any field of the kind makes another one, any other field does not."""
    kinds = Kinds()
    first, second = kinds.batch([sent(make_outcome(request_id="a"), make_outcome(request_id="b", total_s=9.0))]).kind
    (third,) = kinds.batch([sent(make_outcome(at=7.0))]).kind
    assert first is second is third
    for name in Kind.__struct_fields__:
        changed = {str: "other", int: 99, bool: True, tuple: ("x",)}[type(getattr(first, name))]
        (other,) = kinds.batch([sent(make_outcome(**{name: changed}))]).kind
        assert other is not first, name


def test_the_kinds_that_are_known_are_bounded() -> None:
    """A client that makes up names grows nothing, and every outcome still has its own kind."""
    kinds = Kinds(most=10)
    made = kinds.batch([sent(*(make_outcome(model=f"m{number % 30}") for number in range(90)))])
    assert [kind.model for kind in made.kind] == [f"m{number % 30}" for number in range(90)]
    assert len(kinds._known) <= 10


@pytest.mark.parametrize("nonsense", [msgspec.msgpack.encode(7), msgspec.msgpack.encode([[1]]), b"\xff"])
def test_nonsense_is_an_error(nonsense: bytes) -> None:
    """Of the decoder's own kind, whichever part of an outcome it is in."""
    with pytest.raises(msgspec.MsgspecError):
        Kinds().batch([nonsense])


@pytest.mark.parametrize(
    ("field", "value"),
    [("kinds", [b"no kind"]), ("kind", [1]), ("kind", [0, 0]), ("at", []), ("capture", {1: Capture(b"", b"", False)})],
)
def test_columns_that_do_not_fit_are_an_error(field: str, value: Any) -> None:
    """Nobody may take one request's value for another's."""
    broken = columns(make_outcome())
    setattr(broken, field, value)
    with pytest.raises(msgspec.MsgspecError):
        Kinds().batch([msgspec.msgpack.encode(broken)])


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
    assert by_column([make_outcome(**fields)]).per_token_s == [expected]


def test_nothing_has_empty_columns() -> None:
    """A batch of no outcomes is one."""
    assert all(len(column) == 0 for column in (*Kinds().batch([]), *Kinds().batch([sent()]), *by_column([])))


def test_a_part_of_a_batch_is_a_batch() -> None:
    """In order, all columns alike."""
    outcomes = different(3)
    part = by_column(outcomes).only([1, 0, 1])
    assert values(part.outcomes()) == values([outcomes[0], outcomes[2]])
    assert {len(column) for column in part} == {2}


def test_what_belongs_to_a_kind_is_made_once_and_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """For each kind its own, made again only after so many others."""
    made: list[str] = []

    def name_of(kind: Kind) -> str:
        made.append(kind.model)
        return kind.model

    names = ByKind(name_of)
    batch = Kinds().batch([sent(*(make_outcome(model=model) for model in "abab"))])
    assert list(names.of(batch)) == ["a", "b", "a", "b"]
    assert made == ["a", "b"]
    monkeypatch.setattr(module, "KINDS_MOST", 2)
    assert names[msgspec.structs.replace(batch.kind[0], model="c")] == "c"
    assert len(names) == 1
