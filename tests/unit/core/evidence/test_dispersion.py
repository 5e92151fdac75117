"""Promises of the dependence measurements."""

import random

import msgspec
import pytest

from gateway.core.evidence.dispersion import DAY_S, LAG_LIMIT, Dispersion, DispersionState, longer_block_s


def _measured(outcomes, per_block: int = 20, block_s: float = 10.0) -> Dispersion:
    dispersion = Dispersion()
    for block in range(len(outcomes) // per_block):
        part = outcomes[block * per_block : (block + 1) * per_block]
        dispersion.add(block, (block + 1) * block_s, len(part), sum(part))
    return dispersion


def test_independent_outcomes_have_no_design_effect():
    """Independent outcomes vary like a binomial (within the noise of the largest of several estimates)."""
    rng = random.Random(1)
    effect = _measured([rng.random() < 0.02 for _ in range(160_000)]).design_effect()
    assert effect is not None
    assert 1.0 <= effect < 1.35


def test_clusters_longer_than_a_block_are_seen():
    """Outcomes that come in equal runs of 100 have design effect 100, though blocks hold only 20."""
    rng = random.Random(2)
    outcomes = [bad for _ in range(3_000) for bad in [rng.random() < 0.1] * 100]
    effect = _measured(outcomes, per_block=20, block_s=1.0).design_effect()
    assert effect == pytest.approx(100.0, rel=0.25)


def test_neighbouring_blocks_that_go_together_are_seen():
    """A slow swing of the rate correlates neighbouring votes; independent ones do not."""
    rng = random.Random(3)
    swinging = [rng.random() < (0.4 if index // 2_000 % 2 else 0.1) for index in range(100_000)]
    steady = [rng.random() < 0.2 for _ in range(100_000)]
    assert _measured(swinging).lag_correlation() > 0.5
    assert abs(_measured(steady).lag_correlation()) < 0.05


def test_chance_is_no_correlation():
    """Of independent votes of a thin bucket hardly any are said to be correlated, however few there are."""
    told = 0
    for seed in range(200):
        rng = random.Random(seed)
        found = _measured([rng.random() < 0.2 for _ in range(300)], per_block=2).lag_correlation()
        told += found is not None and found > LAG_LIMIT
    assert told <= 1


def test_gaps_are_no_neighbours():
    """Blocks with others missing between them say nothing about neighbours."""
    dispersion = Dispersion()
    for block in range(0, 1_000, 2):
        dispersion.add(block, block * 10.0, 10, block % 4)
    assert dispersion.lag_correlation() is None


def test_little_knowledge_is_none():
    """Too few groups or bad outcomes give no estimate rather than a wild one."""
    assert Dispersion().design_effect() is None
    assert Dispersion().lag_correlation() is None
    assert _measured([False] * 100_000).design_effect() is None
    assert _measured([False] * 100_000).lag_correlation() == 0.0
    dispersion = Dispersion()
    dispersion.add(0, 10.0, 0, 0)
    assert dispersion.state() == DispersionState()


def test_only_the_last_days_count():
    """What lies more than two windows back is forgotten; the previous window is still used."""
    rng = random.Random(4)
    dispersion = Dispersion()

    def day(number: int, rate: float) -> None:
        for block in range(200):
            at = number * DAY_S + (block + 1) * 10.0
            dispersion.add(int(at / 10.0), at, 50, 50 if rng.random() < rate else 0)

    day(0, 0.5)
    assert dispersion.design_effect() > 20.0
    day(1, 0.0)
    assert dispersion.design_effect() > 20.0
    day(3, 0.0)
    assert dispersion.design_effect() is None


def test_measurements_survive_a_restart():
    """Restored in the middle, the estimates are identical."""
    rng = random.Random(5)
    blocks = [(block, (block + 1) * 10.0, 20, sum(rng.random() < 0.1 for _ in range(20))) for block in range(2_000)]
    straight, restarted = Dispersion(), Dispersion()
    for index, block in enumerate(blocks):
        if index == 777:
            stored = msgspec.json.encode(restarted.state())
            restarted = Dispersion()
            restarted.restore(msgspec.json.decode(stored, type=DispersionState))
        straight.add(*block)
        restarted.add(*block)
    assert straight.state() == restarted.state()
    assert straight.design_effect() == restarted.design_effect()


@pytest.mark.parametrize(("correlation", "block_s"), [(None, 10.0), (0.049, 10.0), (0.05, 20.0)])
def test_correlated_votes_ask_for_longer_blocks(correlation, block_s):
    """From 0.05 on the block length doubles."""
    assert longer_block_s(10.0, correlation) == block_s
