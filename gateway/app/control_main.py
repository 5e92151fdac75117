"""The control process: wires the parts of ``control`` together and runs them until told to stop.

The composition root of control: clocks, signals, environment and exit codes are here and nowhere below. Started by
``app.supervisor`` as ``python -m gateway.app.control_main``; may be killed at any moment and finds everything again in
the state directory and the policy files.
"""

import argparse
import asyncio
import contextlib
import gc
import itertools
import os
import random
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import structlog
import uvloop
from aiohttp import web

from gateway.app.addresses import Address, AddressError, parse_address
from gateway.app.logs import LEVELS, set_up_logs
from gateway.app.rollout_parts import RolloutParts
from gateway.app.secrets import Secrets
from gateway.app.supervisor import READY_LINE, Exit
from gateway.control.access_log import AccessLog, AccessLogError, open_access_log
from gateway.control.admin import Parts, build_admin
from gateway.control.api_pairs import PairsApi
from gateway.control.api_records import RecordsApi
from gateway.control.durable import Durable
from gateway.control.evidence import Evidence
from gateway.control.gauges import LoopLag
from gateway.control.hub import Hub
from gateway.control.link import Link
from gateway.control.metrics import Metrics
from gateway.control.probes import Probes
from gateway.control.publisher import Publication, Publisher
from gateway.control.recorder import Recorder
from gateway.control.reload import Reloader, ReloadReport
from gateway.model.proving import Oversight, Samples
from gateway.model.table import Table
from gateway.policy.compile import compile_table
from gateway.policy.load import load_snapshot
from gateway.policy.oversight import compile_oversight
from gateway.runtimes import ADAPTERS

LAG_PERIOD_S = 0.5
LOOKS_EVERY = 2  # lag periods between looks at what changes slowly
# After the workers have gone, what they sent last is still in the socket.
LAST_OUTCOMES_S = 3.0

_log = structlog.get_logger("app.control")


def main(argv: Sequence[str] | None = None) -> int:
    """Run control; the exit code is an ``Exit``."""
    options = _options(argv)
    set_up_logs("control", options.log_level)
    # Hundreds of thousands of remembered requests are alive at any time and make no cycles: walking them often finds
    # nothing and costs more than everything else that is done for an outcome.
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)
    try:
        address = parse_address(options.admin, "--admin")
        return uvloop.run(Control(options, address).run())
    except (AddressError, AccessLogError) as error:
        sys.stderr.write(f"quantgate: {error}\n")
        return Exit.ADDRESS if isinstance(error, AddressError) else Exit.FAILED


class Control:
    """The parts and their order of life."""

    def __init__(self, options: argparse.Namespace, address: Address) -> None:
        self._options = options
        self._address = address
        secrets = Secrets()

        self._oversight: dict[int, Oversight] = {}

        def compile_(document: bytes, generation: int, slots: Mapping[str, int]) -> Table:
            # Control's own part first: a reference that only control resolves must reject the policy as well.
            self._oversight[generation] = compile_oversight(document, secrets.read)
            return compile_table(document, generation, slots, secrets.read)

        self.publisher = Publisher(Durable(options.state_dir), compile_, time.time)  # noqa: TID251 - composition root
        self.reloader = Reloader(
            options.config,
            load_snapshot,
            self.publisher,
            time.time,  # noqa: TID251 - composition root
            extra_files=lambda: secrets.files,
        )
        self.metrics = Metrics()
        self.recorder = Recorder()
        self.loop_lag = LoopLag()
        self.access_log, self._close_access_log = open_access_log(options.access_log)
        self.evidence = Evidence(
            options.state_dir,
            processes=options.scorers,
            monotonic=time.monotonic,
            wall=time.time,  # noqa: TID251 - composition root
            rand=random.Random().random,  # noqa: S311 - draws samples, guards nothing
        )
        self.rollouts = RolloutParts(
            options.state_dir,
            config=options.config,
            evidence=self.evidence,
            publisher=self.publisher,
            metrics=self.metrics,
            wall=time.time,  # noqa: TID251 - composition root
        )
        hub = Hub(
            self.publisher,
            self.metrics,
            self.recorder,
            self.evidence.take_feedback,
            self.evidence.take_pairs,
            starts=self.rollouts.take_starts,
        )
        self.link = Link(options.control_socket, hub)
        jitter = random.Random().random  # noqa: S311 - spreads probes, guards nothing
        self.probes = Probes(self.link.broadcast, ADAPTERS, time.monotonic, jitter)
        self._wire()

    async def run(self) -> int:
        """Until SIGTERM. The policy first: without one there is nothing to serve."""
        loop = asyncio.get_running_loop()
        stopping = asyncio.Event()
        loop.add_signal_handler(signal.SIGTERM, stopping.set)
        loop.add_signal_handler(signal.SIGINT, stopping.set)
        restored = self._options.use_snapshot and self.publisher.restore()
        report = await self.reloader.first()
        if not report.good and not restored:
            _print_findings(report)
            return Exit.POLICY
        loop.add_signal_handler(signal.SIGHUP, self.reloader.reload_now)
        self.evidence.start()
        self.rollouts.service.take_up()
        await self.link.start()
        runner = web.AppRunner(
            build_admin(
                self._parts(),
                [*self._records_api().routes(), *self._pairs_api().routes(), *self.rollouts.routes()],
                self.rollouts.access,
            ),
            access_log=None,
            shutdown_timeout=1.0,
        )
        await runner.setup()
        try:
            await web.TCPSite(runner, self._address.host, self._address.port, reuse_port=True).start()
        except OSError as error:
            raise AddressError(f"--admin {self._address}: {error.strerror or error}") from error
        tasks = [
            loop.create_task(self.reloader.run(), name="reload"),
            loop.create_task(self.probes.run(), name="probes"),
            loop.create_task(self.evidence.recall.run(), name="recall"),
            loop.create_task(self._measure_lag(), name="loop-lag"),
            *self.rollouts.tasks(loop),
        ]
        self._say_ready()
        _log.info("control_ready", generation=self.publisher.current and self.publisher.current.generation)
        await self._until(stopping, tasks)
        await self._stop(tasks, runner)
        return Exit.OK

    async def _until(self, stopping: asyncio.Event, tasks: Sequence[asyncio.Task[None]]) -> None:
        """A part that ends by itself is a fault: say so and let the supervisor start a fresh control."""
        stop = asyncio.get_running_loop().create_task(stopping.wait(), name="stop")
        done, _ = await asyncio.wait([stop, *tasks], return_when=asyncio.FIRST_COMPLETED)
        stop.cancel()
        for task in done:
            if task is not stop:
                raise RuntimeError(f"part {task.get_name()} of control ended") from task.exception()

    async def _stop(self, tasks: Sequence[asyncio.Task[None]], runner: web.AppRunner) -> None:
        """The last outcomes are read and written before the process ends."""
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.link.stop(LAST_OUTCOMES_S)
        self.recorder.flush()
        await self.rollouts.service.stop()
        await self.evidence.stop()
        await runner.cleanup()
        await asyncio.to_thread(self._close_access_log)

    def _wire(self) -> None:
        self.recorder.subscribe("metrics", self.metrics.take_batch)
        if self.access_log is not None:
            self.recorder.subscribe("access_log", self.access_log.take_batch)
        # Before the checks, which may hand an outcome on at once: a new bucket is met by its outcome.
        self.rollouts.connect(self.link, self.probes, self.recorder, self.reloader)
        self.recorder.subscribe("evidence", self.evidence.take_batch)
        self.recorder.subscribe_losses(self.metrics.take_losses)
        self.recorder.subscribe_losses(self.evidence.take_losses)
        self.evidence.likelihood.overloaded = self.probes.has_waiting
        self.evidence.likelihood.caution.serves_adapters = self.probes.serves_adapters
        self.publisher.on_applied.append(self._applied)
        self.link.on_joined.append(self.probes.tell)

    def _applied(self, publication: Publication) -> None:
        table = publication.table
        self.metrics.take_table(table)
        self.probes.take_table(table)
        oversight = self._oversight[publication.generation]
        self._oversight = {publication.generation: oversight}
        self.evidence.apply(table, oversight)
        self.rollouts.apply(table, oversight)
        if self.access_log is not None:
            self.access_log.enabled = table.settings.access_log

    def _parts(self) -> Parts:
        logs: list[AccessLog] = [self.access_log] if self.access_log is not None else []
        return Parts(
            publisher=self.publisher,
            reloader=self.reloader,
            link=self.link,
            metrics=self.metrics,
            loop_lag=self.loop_lag,
            families=lambda: itertools.chain(self.evidence.families(), self.rollouts.families()),
            counters=(
                *self.evidence.counters,
                *self.rollouts.counters,
                self.recorder.failures,
                self.probes.failures,
                *(log.dropped for log in logs),
            ),
            endpoints=self.probes.views,
            monotonic=time.monotonic,
            workers_expected=self._options.workers,
        )

    def _pairs_api(self) -> PairsApi:
        return PairsApi(self.evidence.archive, time.time)  # noqa: TID251 - composition root

    def _records_api(self) -> RecordsApi:
        def in_force() -> tuple[Table, Samples] | None:
            current = self.publisher.current
            if current is None:
                return None
            oversight = self._oversight.get(current.generation)
            return None if oversight is None else (current.table, oversight.samples)

        wall = time.time  # noqa: TID251 - composition root
        return RecordsApi(self.evidence, wall, in_force, self.probes.views)

    async def _measure_lag(self) -> None:
        for turn in itertools.count():
            due = time.monotonic() + LAG_PERIOD_S
            await asyncio.sleep(LAG_PERIOD_S)
            now = time.monotonic()
            self.loop_lag.saw("control", max(0.0, now - due), now)
            if turn % LOOKS_EVERY == 0:
                self.evidence.take_views(self.probes.views())
                for index, stats in self.metrics.worker_stats.items():
                    self.loop_lag.saw(f"worker-{index}", stats.loop_lag_s, now)

    def _say_ready(self) -> None:
        if self._options.ready_fd is not None:
            with contextlib.suppress(BrokenPipeError):
                os.write(self._options.ready_fd, READY_LINE)
            os.close(self._options.ready_fd)


def _print_findings(report: ReloadReport) -> None:
    sys.stderr.write(f"quantgate: {report.message}\n")
    for finding in report.findings:
        sys.stderr.write(f"{finding}\n")


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="quantgate-control", description="Internal; started by `quantgate serve`.")
    parser.add_argument("--config", type=Path, required=True)
    parser.add_argument("--admin", required=True)
    parser.add_argument("--control-socket", type=Path, required=True)
    parser.add_argument("--state-dir", type=Path, required=True)
    parser.add_argument("--workers", type=int, required=True)
    parser.add_argument("--access-log", default="-")
    parser.add_argument("--log-level", choices=LEVELS, default="info")
    parser.add_argument("--scorers", type=int, default=1)
    parser.add_argument("--ready-fd", type=int)
    parser.add_argument("--use-snapshot", action="store_true")
    return parser.parse_args(argv)


if __name__ == "__main__":
    raise SystemExit(main())
