"""A mirrored request becomes one pair, with what its client's exchange and its legs gave."""

from types import SimpleNamespace
from typing import Any

from gateway.dataplane.mirrored import CANDIDATE, NOISE, Job
from gateway.model.enums import Api

RULE = SimpleNamespace(name="int4-shadow", candidate="int4", baseline="bf16")
PROFILE: Any = SimpleNamespace(tenant="acme", model="m", bucket="m/short/chat", task="chat")
EXCHANGE: Any = SimpleNamespace(
    body=b'{"model":"m"}',
    request_id="id-1",
    wall_at=50.0,
    api=Api.CHAT,
    facts=SimpleNamespace(stream=True),
    conversation=b"\x01\xff",
)


def job(*kinds: str) -> Job:
    places: Any = SimpleNamespace(rule=RULE)
    return Job(places, EXCHANGE, PROFILE, list(kinds))


def test_noise_is_the_baseline_against_itself() -> None:
    """Only the candidate's leg goes to the candidate."""
    one = job(CANDIDATE, NOISE)
    assert (one.pool_of(CANDIDATE), one.pool_of(NOISE)) == ("int4", "bf16")


def test_the_clients_own_answer_is_waited_for_too() -> None:
    """A leg that ends first does not make a pair."""
    assert (job(CANDIDATE).left, job(CANDIDATE, NOISE).left) == (2, 3)
    assert job(CANDIDATE).held == len(EXCHANGE.body)


def test_a_pair_has_all_legs() -> None:
    """And none for noise where none was asked for."""
    one, own, theirs = job(CANDIDATE), object(), object()
    one.primary, one.legs[CANDIDATE] = own, theirs  # type: ignore[assignment]
    pair = one.pair()
    assert (pair.request_id, pair.rule, pair.bucket, pair.conversation) == ("id-1", RULE.name, PROFILE.bucket, "01ff")
    assert (pair.baseline, pair.candidate, pair.noise) == (own, theirs, None)
