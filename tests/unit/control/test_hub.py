"""Every message of a worker reaches those who understand it."""

from gateway.model.messages import Outcomes
from tests.unit.dataplane.outcome_values import sent


async def test_a_workers_life_passes_through_all_parts(rig, policy, outcome, stats, eventually):
    """It joins and gets its table, its outcomes and gauges count, and when it goes only its gauges go with it."""
    loaded = policy()
    await rig.publisher.publish(loaded.document, loaded.digest)
    stub = await rig.worker(0)
    await stub.until(lambda: stub.generation == 1)
    stub.send(stats(0, connections=3))
    stub.send(Outcomes(0, 0, sent(outcome())))
    await eventually(lambda: any(row[0] for row in rig.metrics.requests.rows.values()))
    assert rig.metrics.worker_stats[0].connections == 3
    stub.close()
    await eventually(lambda: not rig.metrics.worker_stats)
    assert rig.metrics.requests.family().samples["m/short", "bf16", "default", "ok"] == (1.0,)


async def test_b97_one_scrape_shows_all_workers_together(rig, policy, outcome, eventually):
    """Four workers, one thousand requests: the total is there, and it never falls while workers come and go."""
    loaded = policy()
    await rig.publisher.publish(loaded.document, loaded.digest)

    def total():
        return sum(row[0] for row in rig.metrics.requests.rows.values())

    seen = [0.0]
    for index in range(4):
        stub = await rig.worker(index)
        for _ in range(25):
            stub.send(Outcomes(index, 0, sent(*[outcome(worker=index)] * 10)))
        await eventually(lambda index=index: total() == 250 * (index + 1))
        seen.append(total())
        stub.close()
        await eventually(lambda index=index: index not in rig.link.workers)
        seen.append(total())
    assert seen == sorted(seen)
    assert total() == 1000
