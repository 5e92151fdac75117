"""``docs/metrics.md`` lists what a running gateway exposes."""

from tests.cases.gateway import Gateway
from tests.deploy.metrics_page import HEAD, PAGE, families_of, rows


def test_the_page_is_what_a_running_gateway_exposes(deployed: Gateway) -> None:
    """Names, types, labels and meanings; after a change run ``make docs``."""
    written = set(PAGE.read_text().removeprefix(HEAD).splitlines())
    exposed = set(rows(families_of(deployed)))
    assert written - exposed == set(), "make docs: these are gone or have changed"
    assert exposed - written == set(), "make docs: these are new or have changed"


def test_every_metric_has_a_meaning(deployed: Gateway) -> None:
    """No metric is exposed without help, and ours carry our prefix."""
    for family in families_of(deployed):
        assert family.documentation, family.name
        assert family.name.startswith(("quantgate_", "process_")), family.name
