"""The algebra of requests is the same thing as the predicates that serve them."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.core.decide import decide
from gateway.model.facts import Profile
from gateway.policy.cells import cells_of, space_of
from gateway.policy.compile import table_of
from gateway.policy.conditions import NUMERIC, condition_of, value_of
from gateway.policy.schema import Policy
from gateway.policy.schema.rules import When
from gateway.policy.secret import unresolved
from gateway.policy.space import Box, Space, TooFineError, compact, intersect, subtract

QUICK = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def box_of(space: Space, profile: Profile) -> Box:
    """The atom that a profile falls into."""
    masks = []
    for dimension in space.dimensions:
        value = value_of(profile, dimension)
        atoms = space.atoms[dimension]
        position = sum(atom <= value for atom in atoms) - 1 if dimension in NUMERIC else atoms.index(value)
        masks.append(1 << max(position, 0))
    return tuple(masks)


@QUICK
@given(data=st.data())
def test_a_condition_holds_exactly_inside_its_region(data: Any, policies: Any, strategies: Any) -> None:
    """For any condition (with nested ``not``) and profile: predicate true ⇔ its atom lies within, false ⇔ without."""
    condition = condition_of(When.model_validate(data.draw(strategies["when"])))
    space = Space(policies.table(), [condition])
    profile = data.draw(strategies["profiles"])
    atom = box_of(space, profile)
    inside = intersect(space.within([space.full], condition), atom)
    outside = intersect(space.without([space.full], condition), atom)
    assert (inside, outside) == (([atom], []) if condition(profile) else ([], [atom]))


@QUICK
@given(data=st.data())
def test_the_decision_table_says_what_decide_does(data: Any, policies: Any, strategies: Any) -> None:
    """Every possible request lies in exactly one cell, whose route and pools are those of the decision on it."""
    policy = Policy.model_validate(policies.data(lambda base: base.update(data.draw(strategies["rules"]))))
    table = table_of(policy, "", 1, {}, unresolved)
    space = space_of(table)
    cells = cells_of(table, space)
    for _ in range(5):
        profile = data.draw(strategies["profiles"])
        atom = box_of(space, profile)
        (cell,) = [cell for cell in cells if intersect(list(cell.region), atom)]
        decision = decide(table, profile)
        assert (cell.rule, cell.pools) == (decision.rule, decision.pools)
        assert (cell.model, cell.adapter) == (profile.model, profile.adapter)


def test_subtract_leaves_disjoint_boxes_that_together_with_the_cut_are_the_whole() -> None:
    """Nothing is counted twice and nothing is lost."""

    def size(region: list[Box]) -> int:
        return sum(bin(first).count("1") * bin(second).count("1") for first, second in region)

    whole, hole = (0b1111, 0b111), (0b0110, 0b010)
    rest = subtract([whole], hole)
    assert size(rest) == size([whole]) - size([hole])
    assert not [pair for pair in rest if intersect([pair], hole)]


def test_compact_joins_boxes_that_differ_in_one_dimension() -> None:
    """The words for a region become shorter, the region stays."""
    assert compact([(0b01, 0b1), (0b10, 0b1)]) == [(0b11, 0b1)]
    assert compact([]) == []


def test_too_fine_a_space_is_said_and_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A policy that cuts requests beyond measure costs bounded work."""
    monkeypatch.setattr("gateway.policy.space.BOXES_MOST", 3)
    with pytest.raises(TooFineError):
        subtract([(0b11,) * 6], (0b01,) * 6)
