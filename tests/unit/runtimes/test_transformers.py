"""transformers serve: nothing is told, and that is known."""

from collections.abc import Callable

from gateway.model.precision import Precision
from gateway.runtimes.adapter import Answers
from gateway.runtimes.compare import Verdict, compare, judge
from gateway.runtimes.transformers import ADAPTER


def test_health(answers: Callable[..., Answers]) -> None:
    """200 is ready; 503 is a dead worker."""
    assert ADAPTER.health(answers({"/health": {"status": "ok"}})).ready
    assert ADAPTER.health(answers({"/health": 503})).ready is False


def test_unattested_and_without_load(answers: Callable[..., Answers]) -> None:
    """No precision, no load, no list: the endpoint is served as unattested."""
    found = ADAPTER.attest(answers({}))
    assert judge(found, compare(Precision(weights="int4"), found)) is Verdict.UNATTESTED
    assert ADAPTER.load(answers({}), 0.0) is None


def test_models_are_not_probed() -> None:
    """/v1/models is 500 without a cache folder and does not list a local path."""
    assert {probe.path for probe in ADAPTER.probes} == {"/health"}
