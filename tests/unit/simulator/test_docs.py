"""The simulator's page says what is true: its settings are read, its faults exist, and none is left out."""

import json
import re
from pathlib import Path
from typing import get_args

import msgspec

from gateway.simulator.config import Config, patched, read_config
from gateway.simulator.fault import Fault, Kind, When

PAGE = (Path(__file__).parents[3] / "docs" / "simulator.md").read_text()


def test_example_settings_are_valid() -> None:
    """The YAML of the page is read, and everything in it counts."""
    config = read_config(re.search(r"```yaml\n(.*?)```", PAGE, re.DOTALL)[1].encode())  # type: ignore[index]
    assert config.precision.quantization == "awq"
    assert len(config.faults) == 4


def test_example_calls_are_valid() -> None:
    """The bodies of the page's curl lines are accepted."""
    bodies = [json.loads(body) for body in re.findall(r"-d '(.*)'", PAGE)]
    assert len(bodies) == 3
    for body in bodies:
        if "faults" in body:
            msgspec.convert(body["faults"], list[Fault])
        else:
            patched(Config(), body)


def test_every_fault_and_condition_is_described() -> None:
    """Kinds and conditions of the code are those of the page."""
    words = set(re.findall(r"`([a-z_]+)`", PAGE))
    assert set(get_args(Kind)) <= words
    assert set(When.__struct_fields__) <= words
