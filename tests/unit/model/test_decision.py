"""A decision and what arms and tool loops make of it."""

from gateway.model.decision import Decision, Exclusion

DECISION = Decision("r", ("a", "b"), (Exclusion("c", "k", "why"),), ("k",), rollout="new")


def test_nothing_changed_is_the_same() -> None:
    """What is not named stays."""
    assert DECISION.changed() == DECISION


def test_pools_and_arm_are_replaced_and_reasons_are_added() -> None:
    """A decision never forgets why a pool was ruled out."""
    more = Exclusion("a", "new", "outside its share")
    found = DECISION.changed(pools=("b",), arm="baseline", excluded=(more,), constraints=("loop",))
    assert found == Decision("r", ("b",), (*DECISION.exclusions, more), ("k", "loop"), "baseline", "new")
    assert DECISION.changed(pools=()).pools == ()
