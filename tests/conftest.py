"""For all tests: what runs is what stands here."""

import pytest

from gateway.app.compiled import stale


def pytest_sessionstart(session: pytest.Session) -> None:
    """Compiled modules of sources that were edited since would be tested in their stead."""
    changed = stale()
    if changed:
        pytest.exit(
            f"compiled before it was edited: {', '.join(changed)}. Run 'make compile' or 'make interpreted'.", 1
        )
