"""For all tests: what runs is what stands here."""

import pytest
from hypothesis import HealthCheck, settings

from gateway.app.compiled import stale

# Nothing is asserted on how long something takes, and other work may share the machine.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")


def pytest_sessionstart(session: pytest.Session) -> None:
    """Compiled modules of sources that were edited since would be tested in their stead."""
    changed = stale()
    if changed:
        pytest.exit(
            f"compiled before it was edited: {', '.join(changed)}. Run 'make compile' or 'make interpreted'.", 1
        )
