"""Promises of docs/evidence.md: its code runs."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[4] / "docs" / "evidence.md"


def test_the_example_runs_as_printed():
    """Every Python block of the page runs, with its assertions."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), {})  # noqa: S102 - our own page
