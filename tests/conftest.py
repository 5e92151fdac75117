"""For all tests: what runs is what stands here."""

import logging
from collections.abc import Generator, Iterator

import pytest
import structlog
from hypothesis import HealthCheck, settings

from gateway.app.compiled import stale
from gateway.app.descriptors import raise_descriptor_limit
from tests.cases.gateway import Gateway

# Nothing is asserted on how long something takes, and other work may share the machine.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")


def pytest_sessionstart(session: pytest.Session) -> None:
    """Compiled modules of sources that were edited since would be tested in their stead."""
    raise_descriptor_limit()  # the cases have more than a thousand scripted endpoints
    changed = stale()
    if changed:
        pytest.exit(
            f"compiled before it was edited: {', '.join(changed)}. Run 'make compile' or 'make interpreted'.", 1
        )


@pytest.fixture(autouse=True)
def logs_of_one_test(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Logs that a test sets up are set up for it alone: a logger kept from it would write into its closed capture."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    configure = structlog.configure
    monkeypatch.setattr(structlog, "configure", lambda **how: configure(**{**how, "cache_logger_on_first_use": False}))
    yield
    if structlog.is_configured():
        structlog.reset_defaults()
        structlog.contextvars.clear_contextvars()
        root.handlers[:] = handlers
        root.setLevel(level)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failed test shows what the running gateways said: some failures are seen once, and elsewhere."""
    report = yield
    if report.failed and "unit" not in item.path.parts:
        for gateway in Gateway.running:
            report.sections.append((f"gateway on port {gateway.port}", gateway.told()))
    return report
