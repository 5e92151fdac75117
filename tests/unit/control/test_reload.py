"""Hot reload: the complete new set or the last good one, whatever happens to the files."""

import asyncio
import contextlib
import os
from pathlib import Path

import pytest

from gateway.control import reload as reload_module
from gateway.control.publisher import RefusedError
from gateway.control.reload import Reloader, ReloadResult
from gateway.policy.compile import compile_table
from gateway.policy.document import snapshot
from gateway.policy.load import load_snapshot
from gateway.policy.secret import SecretError


class Running:
    """A reloader at work on ``path``."""

    def __init__(self, rig, path, eventually, **options):
        options = {"poll_s": 0.02, "settle_s": 0.005, **options}
        self.reloader = Reloader(path, load_snapshot, rig.publisher, lambda: 5.0, **options)
        self.publisher = rig.publisher
        self.eventually = eventually
        self.task = None

    async def __aenter__(self):
        await self.reloader.first()
        self.task = asyncio.ensure_future(self.reloader.run())
        return self

    async def __aexit__(self, *_):
        self.task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self.task

    @property
    def pools(self):
        """Names of the pools in force."""
        return sorted(self.publisher.current.table.pools)

    async def reaches(self, *pools):
        """Wait until these pools are in force."""
        await self.eventually(lambda: self.publisher.current is not None and self.pools == sorted(pools))

    async def reports(self, result):
        """Wait until the last attempt ended so."""
        await self.eventually(lambda: self.reloader.report.result is result)


@pytest.fixture
def run(rig, eventually):
    return lambda path, **options: Running(rig, path, eventually, **options)


async def test_b88_symlink_swaps_of_a_configmap_are_taken_up(tmp_path, run, text):
    """Kubernetes swaps ``..data``; each swap ends in the new policy, and no file below was ever written in place."""
    folder = tmp_path / "mounted"
    folder.mkdir()

    def generation(name, pools):
        (folder / name).mkdir()
        (folder / name / "policy.yaml").write_text(text(pools))

    generation("..1", {"bf16": 1})
    (folder / "..data").symlink_to("..1")
    (folder / "policy.yaml").symlink_to("..data/policy.yaml")
    async with run(folder) as running:
        await running.reaches("bf16")
        for number, pool in ((2, "int4"), (3, "fp8"), (4, "int8")):
            generation(f"..{number}", {pool: 1})
            (folder / "..data_tmp").symlink_to(f"..{number}")
            (folder / "..data_tmp").rename(folder / "..data")
            (folder / f"..{number - 1}" / "policy.yaml").unlink()
            (folder / f"..{number - 1}").rmdir()
            await running.reaches(pool)
            assert running.reloader.report.good


async def test_b89_a_save_through_a_rename_is_taken_up(tmp_path, run, text):
    """Editors write a hidden file and rename it over; a single file is watched as well as a folder."""
    file = tmp_path / "policy.yaml"
    file.write_text(text({"bf16": 1}))
    async with run(file) as running:
        for pool in ("int4", "fp8"):
            swap = tmp_path / ".policy.yaml.swp"
            swap.write_text(text({pool: 1}))
            swap.rename(file)
            await running.reaches(pool)


async def test_b91_a_file_that_vanishes_for_a_moment_changes_nothing(tmp_path, run, text):
    """Absence is told and the last good policy stays; the file that comes back is taken up."""
    file = tmp_path / "policy.yaml"
    file.write_text(text({"bf16": 1}))
    async with run(file) as running:
        file.unlink()
        await running.reports(ReloadResult.MISSING)
        assert running.pools == ["bf16"]
        assert running.reloader.report.findings
        file.write_text(text({"int4": 1}))
        await running.reaches("int4")
        assert running.reloader.report.good


@pytest.mark.parametrize("empty", ["", "{}", "null", "# nothing but a comment\n", "---\n", " \n"])
async def test_b91_an_empty_policy_is_no_policy(tmp_path, run, text, empty):
    """Nothing at all is invalid, never a set of defaults."""
    file = tmp_path / "policy.yaml"
    file.write_text(text({"bf16": 1}))
    async with run(file) as running:
        file.write_text(empty)
        await running.reports(ReloadResult.REJECTED)
        assert running.pools == ["bf16"]


async def test_a_broken_file_is_told_with_its_place_and_the_mend_is_taken_up(tmp_path, run, text):
    """The findings name file and line; the last good generation is served meanwhile."""
    (tmp_path / "policy.yaml").write_text(text({"bf16": 1}))
    async with run(tmp_path) as running:
        (tmp_path / "policy.yaml").write_text(text({"bf16": 1}).replace("routes:", "rotues:"))
        await running.reports(ReloadResult.REJECTED)
        findings = running.reloader.report.findings
        assert any(finding.file.endswith("policy.yaml") and finding.line > 1 for finding in findings)
        generation = running.publisher.current.generation
        (tmp_path / "policy.yaml").write_text(text({"bf16": 1}))
        await running.reports(ReloadResult.UNCHANGED)
        assert running.publisher.current.generation == generation


async def test_a_half_written_file_is_never_applied(tmp_path, run, text):
    """The first half of this file is a valid policy without the constraint; it must not be in force for a moment."""
    file = tmp_path / "policy.yaml"
    first = text({"bf16": 1})
    file.write_text(first)
    seen = []
    async with run(file) as running:
        running.publisher.on_applied.append(lambda publication: seen.append(publication.table))
        whole = text({"int4": 1})
        rest = "constraints: [{name: c, when: {tools: {privilege: high}}, require: {weights: [bf16]}}]\n"
        with file.open("w") as writer:
            writer.write(whole)
            writer.flush()
            os.fsync(writer.fileno())
            for _ in range(20):
                await asyncio.sleep(0.01)
            assert running.pools == ["bf16"]
            writer.write(rest)
        await running.reaches("int4")
    assert [len(table.constraints) for table in seen] == [1]


async def test_a_writer_that_leaves_the_file_open_does_not_block_reloads_for_ever(tmp_path, run, text, monkeypatch):
    """After a while without a change, the content is taken as it is."""
    monkeypatch.setattr(reload_module, "BUSY_S", 0.05)
    file = tmp_path / "policy.yaml"
    file.write_text(text({"bf16": 1}))
    async with run(file) as running:
        with file.open("r+") as holder:
            holder.write(text({"int4": 1}))
            holder.truncate()
            holder.flush()
            await running.reaches("int4")


async def test_a_storm_of_edits_ends_on_the_last_good_content(tmp_path, run, text):
    """Good, broken and vanished files in quick succession: what is in force was always a complete set."""
    file = tmp_path / "policy.yaml"
    file.write_text(text({"p0": 1}))
    applied = []
    async with run(tmp_path) as running:
        running.publisher.on_applied.append(applied.append)
        for number in range(1, 60):
            swap = tmp_path / ".swap"
            swap.write_text("pools: [" if number % 3 == 0 else text({f"p{number}": 1}))
            swap.rename(file)
            if number % 7 == 0:
                file.unlink()
            await asyncio.sleep(0.002)
        file.write_text(text({"last": 1}))
        await running.reaches("last")
    generations = [publication.generation for publication in applied]
    assert generations == sorted(set(generations))
    assert all(len(publication.table.pools) == 1 for publication in applied)


async def test_sighup_tries_again_at_once(tmp_path, run, text):
    """A forced round reports even when nothing has changed."""
    file = tmp_path / "policy.yaml"
    file.write_text(text())
    async with run(file, poll_s=3600.0) as running:
        assert running.reloader.report.result is ReloadResult.APPLIED
        running.reloader.reload_now()
        await running.reports(ReloadResult.UNCHANGED)


async def test_a_secret_that_cannot_be_read_is_told_where_it_is_named(tmp_path, run, text, rig, monkeypatch):
    """Secrets are read after the files, from a document without lines; the person edits the files."""

    def without_environment(document, generation, slots):
        return compile_table(document, generation, slots, unset)

    def unset(reference):
        raise SecretError(f"{reference}: the environment variable is not set")

    monkeypatch.setattr(rig.publisher, "_compile", without_environment)
    (tmp_path / "a.yaml").write_text("version: 1\ntenants:\n  beta:\n    keys:\n    - env:BETA\n")
    (tmp_path / "b.yaml").write_text(text())
    reloader = Reloader(tmp_path, load_snapshot, rig.publisher, lambda: 5.0, settle_s=0.005)
    report = await reloader.first()
    (found,) = report.findings
    assert (report.result, found.file, found.line, found.column) == (
        ReloadResult.REJECTED,
        str(tmp_path / "a.yaml"),
        5,
        7,
    )
    assert "env:BETA" in found.message


async def test_a_changed_secret_publishes_the_same_policy_anew(tmp_path, run, text, eventually):
    """Workers read secrets when they prepare, so a rotated key needs a generation."""
    file, secret = tmp_path / "policy.yaml", tmp_path / "key"
    file.write_text(text(key="env:KEY"))
    secret.write_text("one")
    async with run(file, extra_files=lambda: [secret]) as running:
        assert running.publisher.current.generation == 1
        secret.write_text("two")
        await eventually(lambda: running.publisher.current.generation == 2)


async def test_a_refusal_by_a_worker_is_told_and_tried_again(tmp_path, run, text, rig, monkeypatch):
    """The cause may pass; the content need not change for another try."""
    monkeypatch.setattr(reload_module, "REFUSED_RETRY_S", 0.05)
    file = tmp_path / "policy.yaml"
    file.write_text(text({"bf16": 1}))
    async with run(file) as running:
        stub = await rig.worker(0, 1, refuse="vocabulary missing")
        file.write_text(text({"int4": 1}) + "gateway: {queue: {tiers: [gone]}}\n")
        await running.reports(ReloadResult.REFUSED)
        assert "vocabulary missing" in running.reloader.report.message
        assert running.reloader.report.findings == load_snapshot(snapshot(file)).warnings != ()
        stub.refuse = ""
        await running.reaches("int4")


async def test_a_fault_in_reloading_does_not_end_it(tmp_path, run, text, monkeypatch):
    """The loop outlives what nobody thought of, counts it, and goes on."""
    file = tmp_path / "policy.yaml"
    file.write_text(text({"bf16": 1}))
    async with run(file) as running:
        publish = running.publisher.publish

        async def broken(*_, **__):
            raise ZeroDivisionError

        monkeypatch.setattr(running.publisher, "publish", broken)
        file.write_text(text({"int4": 1}))
        await running.reports(ReloadResult.INTERNAL)
        monkeypatch.setattr(running.publisher, "publish", publish)
        running.reloader.reload_now()
        await running.reaches("int4")
        assert running.reloader.counts[ReloadResult.INTERNAL] == 1


async def test_the_first_load_reports_instead_of_raising(tmp_path, rig):
    """The start of control decides what a missing policy means."""
    reloader = Reloader(Path(tmp_path / "none"), load_snapshot, rig.publisher, lambda: 1.0, settle_s=0.001)
    report = await reloader.first()
    assert report.result is ReloadResult.MISSING and not report.good
    assert rig.publisher.current is None


async def test_a_fault_in_the_first_load_is_a_report(tmp_path, rig, text):
    """A control that is started again goes on with its snapshot, whatever the loader does."""
    (tmp_path / "p.yaml").write_text(text())

    def broken(_):
        raise ZeroDivisionError

    reloader = Reloader(tmp_path, broken, rig.publisher, lambda: 1.0, settle_s=0.001)
    assert (await reloader.first()).result is ReloadResult.INTERNAL


def test_refusals_name_the_first_worker():
    """The message a person reads is one line."""
    assert "worker 2: full" in str(RefusedError(4, {5: "late", 2: "full"}))
