"""The edits are made as a person makes them, and judged by what the gateway says and does."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from gateway.demo import edit as module
from gateway.demo.edit import Editor, Edits, check_edits, in_flight
from gateway.demo.policy import EDITED_ROUTE, DemoPolicyError, compiled
from gateway.demo.proof import Evidence
from tests.unit.demo.accounts import good_edits, good_evidence, spoil_entry

ORDER = ("q4", "q8", "bf16")
APPLIED = "2026-11-29T12:00:05.500000Z"


class Gateway:
    """Answers for ``/readyz`` one after another; the last one stays."""

    def __init__(self, *states: dict[str, Any]) -> None:
        self.states = list(states)

    def state(self) -> dict[str, Any]:
        """The next answer."""
        return self.states.pop(0) if len(self.states) > 1 else self.states[0]


def state(generation: int, result: str = "applied", workers: int = 2, **reload: object) -> dict[str, Any]:
    """An answer of ``/readyz``."""
    return {
        "generation": generation,
        "applied_at": APPLIED,
        "reload": {"result": result, **reload},
        "workers": {"on_current_generation": workers},
    }


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    """The demo's policy, to be edited."""
    path = tmp_path / "demo.yaml"
    path.write_text(Path("routing_policies/demo.yaml").read_text())
    return path


async def test_the_wrong_edit_tells_the_error(policy: Path) -> None:
    """Of the findings it is the error that counts, not a warning before it."""
    findings = [
        {"file": "/x/demo.yaml", "line": 3, "column": 3, "message": "unused", "mend": "", "severity": "warning"},
        {"file": "/x/demo.yaml", "line": 9, "column": 5, "message": "no", "mend": "do", "severity": "error"},
    ]
    gateway = Gateway({}, state(1), state(1, "rejected", findings=findings))
    assert await Editor(policy, ORDER, 2, gateway.state).misspell() == ("demo.yaml:9:5: no (do)", 1)
    with pytest.raises(DemoPolicyError, match="no pool 'q44'"):
        compiled(policy)


async def test_the_right_edit_waits_for_every_worker(policy: Path) -> None:
    """It counts as taken up when all workers say that they decide by the newer generation."""
    gateway = Gateway(state(1), state(2, workers=1), state(2))
    editor = Editor(policy, ORDER, 2, gateway.state)
    generation, took_s, applied_at = await editor.reverse(1)
    assert generation == 2
    assert took_s >= 0
    assert applied_at is not None and applied_at.isoformat() == APPLIED.replace("Z", "+00:00")
    assert gateway.states == [state(2)]
    route = next(route for route in compiled(policy).routes if route.name == EDITED_ROUTE)
    assert route.pools == editor.order_after == tuple(reversed(ORDER))


async def test_a_gateway_that_does_not_react(policy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a while the edits count as not taken up."""
    monkeypatch.setattr(module, "WAIT_S", 0.05)
    editor = Editor(policy, ORDER, 2, Gateway(state(1)).state)
    assert await editor.misspell() == ("", 0)
    assert (await editor.reverse(1))[0] == 0


def holds(edits: Edits, evidence: Evidence | None = None, failed: int = 0) -> bool:
    """Whether the check holds."""
    return check_edits(edits, (evidence or good_evidence()).entries, failed).holds


def test_an_edit_under_load_holds() -> None:
    """Before it one first choice, after it the other, nothing else, and no failure."""
    assert holds(good_edits())


@pytest.mark.parametrize(
    "change",
    [{"refusal": ""}, {"generation_refused": 2}, {"generation_after": 0}, {"order_after": ("q8", "q4", "bf16")}],
)
def test_an_edit_that_went_wrong_fails(change: dict[str, Any]) -> None:
    """Not refused, taken up by mistake, not taken up, or without effect."""
    assert not holds(msgspec.structs.replace(good_edits(), **change))


def test_what_requests_tell_can_fail_it() -> None:
    """A failed request, one on neither generation, one that went by the other order."""
    assert not holds(good_edits(), failed=1)
    assert not holds(good_edits(), spoil_entry(good_evidence(), 1, generation=3))
    assert not holds(good_edits(), spoil_entry(good_evidence(), 7, pool="q4"))


def test_a_pool_that_stands_in_is_no_fault_of_the_edit() -> None:
    """On a busy machine a server may look unready for a moment; the next of the order serves, as it should."""
    also = msgspec.structs.replace(good_evidence().entries[0], request_id="id-8", pool="q8")
    evidence = good_evidence()
    assert holds(good_edits(), msgspec.structs.replace(evidence, entries=[*evidence.entries, also]))


def test_requests_that_ran_at_the_change() -> None:
    """Those of the old generation that ended after it."""
    assert in_flight(good_edits(), good_evidence().entries) == 1
    assert in_flight(msgspec.structs.replace(good_edits(), applied_at=None), good_evidence().entries) == 0
