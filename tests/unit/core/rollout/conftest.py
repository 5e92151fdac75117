"""A rollout with every kind of stage, and how a test builds standings."""

from collections.abc import Callable

import pytest

from gateway.model.proving import Rollout, Stage


def make_plan(*, approvals: int = 0, reentry_after_s: float | None = None, reentry_most: int = 1) -> Rollout:
    """shadow 5 %, then 5, 25 and 100 % of live traffic."""
    shares = (("shadow", 500), ("weight", 500), ("weight", 2_500), ("weight", 10_000))
    stages = tuple(Stage(kind, share, 10.0, 300, 200, 1_000.0) for kind, share in shares)
    return Rollout(
        "int4-chat",
        "id-1",
        "m",
        "int4",
        "bf16",
        lambda profile: True,
        "always",
        stages,
        ("errors",),
        approvals=approvals,
        reentry_after_s=reentry_after_s,
        reentry_most=reentry_most,
    )


@pytest.fixture
def plan() -> Callable[..., Rollout]:
    """``make_plan``."""
    return make_plan
