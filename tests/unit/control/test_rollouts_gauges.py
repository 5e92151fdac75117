"""Rollouts as metrics."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.control.rollouts_gauges import rollout_families
from gateway.core.rollout import State
from tests.unit.control.rollout_served import BUCKET, Served


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    """With a database."""
    made = Served(tmp_path)
    yield made
    if made.database is not None:
        made.database.dispose()


async def test_metrics_tell_states_suspicion_and_budget(served: Served) -> None:
    """One family each, with what an alert needs."""
    await served.until(State.STEPPING)
    await served.seconds(30)
    families = {
        family.name: family for family in rollout_families(served.service.engine, served.service.keeper, served.now_s)
    }
    assert families["quantgate_rollout_state"].samples["int4-all", BUCKET, "int4", "stepping"] == (1.0,)
    assert families["quantgate_rollout_share"].samples["int4-all", BUCKET, "int4"] == (0.5,)
    assert -10.0 <= families["quantgate_suspicion"].samples["int4-all", BUCKET, "int4", "json"][0] < 0.0
    assert families["quantgate_rollout_lumps_granted"].samples[()][0] > 0.0
    assert families["quantgate_rollout_candidate_absent"].samples == {("int4-all", "int4"): (0.0,)}
    served.rig.world.away = "int4/0 is unhealthy"
    families = {family.name: family for family in rollout_families(served.service.engine, served.service.keeper, 0.0)}
    assert families["quantgate_rollout_candidate_absent"].samples == {("int4-all", "int4"): (1.0,)}
    assert families["quantgate_rollout_buckets"].samples["int4-all",] == (1.0,)
    assert set(families) >= {"quantgate_verdict", "quantgate_evidence_ratio", "quantgate_rollout_restored"}
