"""The memory of answers: by id, only those a pool gave, bounded."""

from gateway.control.joining import subject_of
from gateway.control.recent import SLICES, Recent
from gateway.core.consequence import Subject
from tests.unit.control.conftest import outcome
from tests.unit.control.exchanges import batch


def test_an_answer_is_known_by_its_request() -> None:
    """With its tenant, bucket, pool, time, conversation and rollout."""
    recent = Recent(10)
    answer = outcome(request_id="a", at=5.0, tenant="t", bucket="b", pool="p", conversation="c", rollout="o")
    recent.add(batch(answer))
    assert recent.subject("a") == Subject("a", 5.0, "t", "b", "p", "c", "o") == subject_of(answer)
    assert recent.subject("b") is None


def test_what_no_pool_answered_is_not_remembered() -> None:
    """Refusals and failures are nobody's answers."""
    recent = Recent(10)
    recent.add(batch(outcome(request_id="refused", pool="", result="shed"), outcome(result="upstream_error")))
    assert recent.subject("refused") is recent.subject("req-1") is None


def test_the_oldest_are_forgotten_a_slice_at_a_time() -> None:
    """All of the last ones are there at any time, a slice more at most, and what went is told once."""
    most, told = 10 * SLICES, []
    recent = Recent(most)
    for number in range(3 * most):
        told += [name for part in recent.add(batch(outcome(request_id=f"r{number}"))) for name in part]
        assert number + 1 - len(told) <= most + most // SLICES
        assert all(recent.subject(f"r{one}") for one in (number, max(0, number + 1 - most)))
    assert told == [f"r{number}" for number in range(len(told))]
    assert recent.subject("r0") is None


def test_an_id_that_comes_again_is_the_newest() -> None:
    """Ids are the workers' own and do not repeat; if one does, the last answer counts."""
    recent = Recent(SLICES)
    for pool in ("old", "new"):
        recent.add(batch(outcome(pool=pool)))
        recent.add(batch(outcome(request_id="between")))
    subject = recent.subject("req-1")
    assert subject is not None and subject.pool == "new"
