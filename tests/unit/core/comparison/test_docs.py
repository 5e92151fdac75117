"""The page that explains the comparison says what the code does."""

import re
from pathlib import Path

from gateway.core.comparison.parts import CAPS, WEIGHTS, Part

PAGE = (Path(__file__).parents[4] / "docs" / "comparison.md").read_text(encoding="utf-8")


def test_weights_on_the_page_are_the_weights() -> None:
    """Every kind's row, number by number."""
    for kind, weights in WEIGHTS.items():
        row = re.search(rf"^\| `{kind}` \| ((?:\w+ \d\.\d\d(?:, )?)+) \|$", PAGE, re.MULTILINE)
        assert row is not None, kind
        assert dict(pair.split(" ") for pair in row[1].split(", ")) == {
            str(part): f"{weight:.2f}" for part, weight in weights.items()
        }


def test_caps_on_the_page_are_the_caps() -> None:
    """Every cap, and none besides."""
    rows = re.findall(r"^\| `(\w+)` \| (\d\.\d) \|$", PAGE, re.MULTILINE)
    assert dict(rows) == {str(part): f"{cap:.1f}" for part, cap in CAPS.items()}


def test_every_part_is_explained() -> None:
    """A label on a dashboard must be findable."""
    assert all(f"`{part}`" in PAGE for part in Part)


def test_the_example_runs() -> None:
    """The page's Python example, as written."""
    (example,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    exec(compile(example, "docs/comparison.md", "exec"), {})  # noqa: S102 - our own page
