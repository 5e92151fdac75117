"""Prepare, then apply: one generation everywhere, or the last good one everywhere."""

import asyncio

import pytest
from structlog.testing import capture_logs

from gateway.control.publisher import RefusedError, slot_names
from gateway.errors import PolicyRejectedError
from gateway.model.messages import Apply, Prepare, Prepared


async def publish(rig, loaded, **options):
    """Publish a loaded policy."""
    return await rig.publisher.publish(loaded.document, loaded.digest, **options)


async def test_a_generation_is_prepared_by_all_before_any_applies_it(rig, policy):
    """No worker hears Apply before every worker has prepared."""
    slow = await rig.worker(0, mute=True)
    quick = await rig.worker(1)
    publishing = asyncio.ensure_future(publish(rig, policy()))
    await slow.until(lambda: any(isinstance(m, Prepare) for m in slow.received))
    await quick.until(lambda: any(isinstance(m, Prepare) for m in quick.received))
    assert not any(isinstance(m, Apply) for m in quick.received)
    assert rig.publisher.current is None
    slow.send(Prepared(0, 1, ""))
    publication = await publishing
    assert publication.generation == 1
    await quick.until(lambda: quick.generation == 1)
    await slow.until(lambda: Apply(1) in slow.received)


async def test_one_refusal_keeps_the_last_good_generation_everywhere(rig, policy):
    """A worker that cannot prepare stops the publication; its reason is told; nothing changes."""
    good = await rig.worker(0)
    first = await publish(rig, policy())
    await rig.worker(1, first.generation, refuse="no such vocabulary")
    with pytest.raises(RefusedError, match="no such vocabulary") as refused:
        await publish(rig, policy({"int4": 1}))
    assert refused.value.errors == {1: "no such vocabulary"}
    assert rig.publisher.current is first
    assert good.generation == first.generation
    assert not any(isinstance(m, Apply) and m.generation > first.generation for m in good.received)


async def test_a_policy_that_does_not_compile_changes_nothing(rig, policy):
    """The document is compiled here before any worker sees it."""
    stub = await rig.worker(0)
    with pytest.raises(PolicyRejectedError):
        await rig.publisher.publish(b'{"version": 1}', "digest")
    assert rig.publisher.current is None
    assert stub.received == []


async def test_a_worker_that_does_not_answer_is_cut_off_and_not_waited_for(make_rig, policy, eventually):
    """A stuck worker must not keep an urgent constraint from the others."""
    rig = make_rig(prepare_s=0.05)
    await rig.link.start()
    stuck = await rig.worker(0, mute=True)
    good = await rig.worker(1)
    publication = await publish(rig, policy())
    await good.until(lambda: good.generation == publication.generation)
    await stuck.until(lambda: stuck.gone)
    await eventually(lambda: list(rig.link.workers) == [1])
    await rig.stop()


async def test_a_worker_that_dies_while_preparing_is_not_waited_for(rig, policy):
    """Its end is its answer; it will ask for the newest when it is back."""
    dying = await rig.worker(0, mute=True)
    publishing = asyncio.ensure_future(publish(rig, policy()))
    await dying.until(lambda: bool(dying.received))
    dying.close()
    assert (await publishing).generation == 1


async def test_a_joining_worker_gets_the_current_generation(rig, policy):
    """However late it comes, it ends on the generation in force."""
    publication = await publish(rig, policy({"bf16": 2}))
    late = await rig.worker(0)
    await late.until(lambda: late.generation == 1)
    assert late.received[0] == publication.prepare
    assert late.received[1] == Apply(1)


async def test_a_worker_that_serves_the_current_generation_is_left_alone(rig, policy, eventually):
    """A control that was restarted does not disturb the data plane."""
    publication = await publish(rig, policy())
    stub = await rig.worker(0, publication.generation)
    await eventually(lambda: 0 in rig.link.workers)
    rig.link.broadcast(Apply(99))
    await stub.until(lambda: Apply(99) in stub.received)
    assert stub.received == [Apply(99)]


async def test_a_worker_that_joins_in_the_middle_prepares_too(rig, policy):
    """It is asked for the generation that is being prepared, and its refusal counts."""
    slow = await rig.worker(0, mute=True)
    publishing = asyncio.ensure_future(publish(rig, policy()))
    await slow.until(lambda: bool(slow.received))
    late = await rig.worker(1, refuse="cannot")
    await late.until(lambda: bool(late.received))
    slow.send(Prepared(0, 1, ""))
    with pytest.raises(RefusedError, match="worker 1: cannot"):
        await publishing


async def test_an_unchanged_policy_is_not_published_again_unless_asked(rig, policy):
    """The digest of the meaning decides; a changed secret is the reason to ask."""
    first = await publish(rig, policy())
    assert await publish(rig, policy()) is first
    assert (await publish(rig, policy(), anew=True)).generation == 2


async def test_a_restarted_control_goes_on_with_the_snapshot(make_rig, policy):
    """Generation, table and slots are those that the workers serve."""
    first = make_rig()
    before = await publish(first, policy({"bf16": 2, "int4": 1}))
    second = make_rig()
    assert second.publisher.restore()
    after = second.publisher.current
    assert after is not None
    assert (after.generation, after.digest, after.prepare) == (before.generation, before.digest, before.prepare)
    assert (await publish(second, policy({"bf16": 3}))).generation == before.generation + 1


async def test_no_or_an_unusable_snapshot_is_no_policy(make_rig, policy):
    """A snapshot that no longer compiles is told and left alone."""
    rig = make_rig()
    assert not rig.publisher.restore()
    (await publish(rig, policy()))
    again = make_rig()
    again.publisher._durable.snapshot = Prepare(5, b'{"version": 1}', {})
    assert not again.publisher.restore()
    assert again.publisher.current is None


async def test_numbers_go_past_a_worker_that_is_ahead(rig, policy):
    """If the state directory was lost, a live worker's higher number is not given again for something else."""
    await publish(rig, policy())
    ahead = await rig.worker(0, 41)
    await ahead.until(lambda: ahead.generation == 42)
    assert rig.publisher.current.generation == 42


async def test_slots_are_distinct_and_reach_the_table(rig, policy):
    """Every tenant and endpoint has its own row, the same in the message as in the table."""
    publication = await publish(rig, policy({"bf16": 2, "int4": 1}, key="env:KEY"))
    slots = publication.prepare.slots
    assert sorted(slots) == [
        "endpoint:bf16/0",
        "endpoint:bf16/1",
        "endpoint:int4/0",
        "tenant:acme",
        "tenant:anonymous",
    ]
    assert sorted(set(slot_names(publication.table))) == sorted(slots)
    assert len(set(slots.values())) == len(slots)
    assert publication.table.pools["int4"].endpoints[0].slot == slots["endpoint:int4/0"]
    assert publication.table.tenants["acme"].slot == slots["tenant:acme"]


async def test_a_full_disk_does_not_stop_a_policy_change(rig, policy, monkeypatch):
    """It is told; the generation is applied all the same."""
    stub = await rig.worker(0)

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(rig.publisher._durable, "save_snapshot", full)
    with capture_logs() as logs:
        publication = await publish(rig, policy())
    await stub.until(lambda: stub.generation == publication.generation)
    (line,) = (line for line in logs if line["event"] == "state_not_saved")
    assert "No space left" in line["error"]


async def test_listeners_hear_of_every_applied_generation(rig, policy):
    """Metrics and probes follow the table."""
    heard = []
    rig.publisher.on_applied.append(lambda publication: heard.append(publication.generation))
    await publish(rig, policy())
    await publish(rig, policy({"int4": 1}))
    assert heard == [1, 2]


async def test_a_listener_that_fails_does_not_fail_the_publication(rig, policy):
    """The workers have applied it already; the other listeners hear of it too."""
    heard = []

    def broken(_):
        raise RuntimeError

    rig.publisher.on_applied[:0] = [broken]
    rig.publisher.on_applied.append(lambda publication: heard.append(publication.generation))
    assert (await publish(rig, policy())).generation == 1
    assert heard == [1]


async def test_a_late_refusal_of_the_current_generation_is_kept_for_people(rig, policy, eventually):
    """A worker that joined and cannot serve the policy is visible."""
    await publish(rig, policy())
    await rig.worker(0, refuse="no memory")
    await eventually(lambda: rig.link.workers[0].error == "no memory")
