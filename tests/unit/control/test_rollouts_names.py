"""Series are called alike by all gateways that ask the same."""

from gateway.control.rollouts_names import Names, moved
from gateway.core.evidence import Budget, Form, Judge, KeyedBlock, SeriesKey, SeriesSpec
from gateway.core.evidence.blocks import BlockRecord

KEY = SeriesKey("json", "b", "int4")


def judge(limit: float = 0.01) -> Judge:
    made = Judge(Budget())
    made.register(KEY, SeriesSpec(Form.RATE, limit, block_s=10.0), 0.0)
    return made


def test_another_question_or_policy_is_another_name() -> None:
    """And the same one the same name, at any gateway."""
    assert Names().of(judge(), "a") == Names().of(judge(), "a")
    names = Names()
    found = [set(names.of(judge(limit), salt)) for limit, salt in ((0.01, "a"), (0.02, "a"), (0.01, "b"))]
    assert len(set.union(*found)) == 3
    assert {names.name(KEY)} == found[-1]


def test_a_block_moves_along_with_the_clock() -> None:
    """By whole blocks; one that nobody watches stays as it is."""
    (one,) = Names().of(judge(), "a").values()
    block = KeyedBlock(KEY, BlockRecord(7, ((0.0, 1.0, 3),)))
    assert moved(block, one, 75.0, 3_675.0).record == BlockRecord(367, ((0.0, 1.0, 3),))
    assert moved(block, None, 75.0, 3_675.0) == block
