"""Cells: requests that are decided alike, for the same reasons."""

from typing import Any

import pytest

from gateway.policy.cells import cells_of, compiled, reached_routes, space_of
from gateway.policy.words import describe


def test_cells_of_a_small_policy(policies: Any) -> None:
    """Each reason has its row; what no rule tells apart is one."""
    table = policies.table(lambda data: data.update(routes=[{"name": "only", "pools": ["fp8", "bf16"]}]))
    space = space_of(table)
    rows = {
        (cell.pools, cell.by): describe(space, list(cell.region), ("served",))
        for cell in cells_of(table, space)
        if cell.adapter is None
    }
    assert rows == {
        ((), ("context_window",)): "context tokens ≥ 131,073",
        (("bf16",), ("context_window",)): "context tokens 65,537 to 131,072",
        (("bf16",), ("tools-16-bit",)): "tool privilege high, context tokens < 65,537",
        (("bf16",), ("long-kv",)): "tool privilege none or low, context tokens 32,768 to 65,536",
        (("fp8", "bf16"), ()): "tool privilege none or low, context tokens < 32,768",
    }


def test_what_no_route_takes_is_left_over(policies: Any) -> None:
    """The rest is the region of refusals."""
    table = policies.table(
        lambda data: data.update(routes=[{"name": "r", "when": {"stream": True}, "pools": ["bf16"]}])
    )
    space = space_of(table)
    (reached,), rest = reached_routes(table, space)
    assert describe(space, reached.region) == "stream"
    assert describe(space, rest) == "no stream"
    assert [cell.rule for cell in cells_of(table, space) if cell.adapter is None][-1] == "none"


def test_only_compiled_rules_have_cells() -> None:
    """A table made by hand has predicates that nobody can look into."""
    with pytest.raises(TypeError):
        compiled(lambda profile: True)
