"""A rollout's share, by conversation."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.arms import ROLLED_BACK, WHOLE_BP, assign, position, rolled_back_words, share_of
from gateway.model.decision import Decision, Exclusion
from gateway.model.proving import Rollout

ROLLOUT = Rollout("r", "", "m", "int4", "bf16", lambda profile: True, "", (), (), control_bp=200)
DECISION = Decision("chat", ("int4", "fp8", "bf16"), (Exclusion("x", "c", "why"),), ("c",), rollout="r")
CONVERSATIONS = st.binary(min_size=0, max_size=16)


@given(CONVERSATIONS, st.integers(-1, WHOLE_BP))
def test_arms_only_reorder_or_drop(conversation: bytes, share: int) -> None:
    """No pool is added; the rest keeps the order of the route; the decision says why one is missing."""
    found = assign(ROLLOUT, DECISION, conversation, share)
    assert set(found.pools) <= set(DECISION.pools)
    assert found.pools[0] == ("int4" if found.arm == "candidate" else "bf16")
    assert [pool for pool in DECISION.pools if pool in found.pools[1:]] == list(found.pools[1:])
    dropped = set(DECISION.pools) - set(found.pools)
    assert dropped == {out.pool for out in found.exclusions} - {"x"}
    assert (found.rule, found.rollout, found.constraints) == ("chat", "r", ("c",))


@given(CONVERSATIONS, st.integers(0, WHOLE_BP), st.integers(0, WHOLE_BP))
def test_a_rising_share_takes_nobody_off_the_candidate(conversation: bytes, first: int, second: int) -> None:
    """A conversation changes its arm at most once while shares rise."""
    low, high = sorted((first, second))
    if assign(ROLLOUT, DECISION, conversation, low).arm == "candidate":
        assert assign(ROLLOUT, DECISION, conversation, high).arm == "candidate"


@given(CONVERSATIONS)
def test_an_unproven_candidate_gets_exactly_its_share(conversation: bytes) -> None:
    """Outside its share it is no failover target either; an unknown share is none; rolled back is none."""
    for share in (0, None, ROLLED_BACK):
        found = assign(ROLLOUT, DECISION, conversation, share)
        assert "int4" not in found.pools
        assert found.arm == "baseline"
    assert assign(ROLLOUT, DECISION, conversation, ROLLED_BACK).exclusions[-1].by == "rolled_back"
    assert assign(ROLLOUT, DECISION, conversation, 0).exclusions[-1].by == "r"


def test_shares_come_out_as_set() -> None:
    """Over many conversations, and independently for two rollouts."""
    conversations = [str(n).encode() for n in range(20_000)]
    mine = sum(assign(ROLLOUT, DECISION, one, 500).arm == "candidate" for one in conversations)
    assert 850 < mine < 1150  # 1,000 ± 5 standard deviations
    both = sum(position("r", one) < 5000 and position("s", one) < 5000 for one in conversations)
    assert 4700 < both < 5300


def test_control_stays_on_the_baseline_at_the_end() -> None:
    """After 100 % a part goes on being compared, as an arm of its own."""
    found = [assign(ROLLOUT, DECISION, str(n).encode(), WHOLE_BP) for n in range(20_000)]
    arms = [one.arm for one in found]
    assert set(arms) == {"candidate", "control"}
    assert 300 < arms.count("control") < 500
    assert all("int4" not in one.pools for one in found if one.arm == "control")


@pytest.mark.parametrize("pools", [("fp8", "bf16"), ("fp8",), ()])
def test_without_the_candidate_nothing_is_assigned(pools: tuple[str, ...]) -> None:
    """Constraints come first: a pool they took away is not brought back by a rollout."""
    decision = Decision("chat", pools)
    assert assign(ROLLOUT, decision, b"c", WHOLE_BP) is decision


def test_without_the_baseline_the_share_holds_all_the_same() -> None:
    """A rolled-back pool gets nothing even where its baseline may not serve; within its share it serves."""
    decision = Decision("chat", ("int4", "fp8"), rollout="r")
    assert assign(ROLLOUT, decision, b"c", ROLLED_BACK).pools == ("fp8",)
    assert assign(ROLLOUT, Decision("chat", ("int4",), rollout="r"), b"c", ROLLED_BACK).pools == ()
    inside = next(one for one in (str(n).encode() for n in range(100)) if position("r", one) < 5000)
    assert assign(ROLLOUT, decision, inside, 5000).pools == ("int4", "fp8")


def test_shares_are_looked_up_by_rollout_and_bucket() -> None:
    """What control has not said is not known."""
    shares = {"r": {"b": 500}}
    assert (share_of(shares, "r", "b"), share_of(shares, "r", "x"), share_of(shares, "y", "b")) == (500, None, None)


def test_a_refusal_names_what_was_rolled_back() -> None:
    """Only that: a pool outside its share is no news."""
    out = assign(ROLLOUT, DECISION, b"x", -1)
    assert rolled_back_words(out) == " int4 was rolled back for requests of this kind."
    assert rolled_back_words(assign(ROLLOUT, DECISION, b"x", 0)) == rolled_back_words(None) == ""
