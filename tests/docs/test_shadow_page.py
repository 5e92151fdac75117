"""The page on shadow traffic says what the code does."""

import re
from pathlib import Path

from gateway.control.api_pairs import PARAMETERS
from gateway.core.mirror import Event
from gateway.dataplane import pairs, shadow
from gateway.model.enums import GENERATING
from gateway.policy.schema.proving import Shadow

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "shadow.md").read_text()


def test_every_event_is_explained_and_no_other() -> None:
    """A person who sees a label finds it in the table."""
    table = PAGE.split("| event |")[1].split("\n\n")[0]
    named = {word for row in table.splitlines()[2:] for word in re.findall(r"`(\w+)`", row.split("|")[1])}
    assert named == {event.value for event in Event}


def test_the_rule_of_the_example_is_spelled_as_the_policy_spells_it() -> None:
    """Every key of the example exists, and it can be read."""
    block = PAGE.split("```yaml\nshadow:\n")[1].split("```")[0]
    keys = re.findall(r"^    (?:- )?(\w+):|^  - (\w+):", block, re.MULTILINE)
    assert {first or second for first, second in keys} <= set(Shadow.model_fields)


def test_bounds_and_parameters() -> None:
    """Numbers and names of the page are the code's."""
    assert f"{shadow.HELD_MOST_BYTES >> 20} MiB a worker" in PAGE
    assert f"to control to {pairs.MOST_BYTES >> 20} MiB" in PAGE
    assert shadow.RESERVED == 4
    assert "a quarter is never taken" in PAGE
    for parameter in PARAMETERS:
        assert parameter in PAGE
    for api in GENERATING:
        assert api.value in PAGE.lower()
