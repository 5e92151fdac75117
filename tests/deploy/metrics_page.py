"""Writes ``docs/metrics.md`` from the ``/metrics`` of a running gateway: ``make docs``.

Owns the page's form. What a metric is called and means is said where it is counted; labels of metrics that have no
sample yet are read there too.
"""

import ast
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

from tests.cases.gateway import Gateway
from tests.deploy.conftest import ROOT, admin_text, deployment

PAGE = ROOT / "docs" / "metrics.md"
HEAD = """# Metrics

`GET /metrics` on the admin port. One target per gateway: control counts for all workers. Label values are bounded
by the policy and by enums; what does not fit is counted under `other`, and nothing a client sends becomes a label.
Histograms have the usual `_bucket`, `_sum` and `_count`.

Results of a request and failures of an attempt are explained in `gateway/model/enums.py`. Made from a running gateway
by `make docs`; do not edit.

| metric | type | labels | meaning |
|---|---|---|---|
"""


def declared_labels() -> dict[str, tuple[str, ...]]:
    """Labels of each metric that is made by a call with its name written out."""
    found: dict[str, tuple[str, ...]] = {}
    for file in (ROOT / "gateway" / "control").glob("*.py"):
        tree = ast.parse(file.read_text())
        constants = {
            target.id: value
            for node in tree.body
            if isinstance(node, ast.Assign) and isinstance(target := node.targets[0], ast.Name)
            for value in [node.value]
        }
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
            names = [argument.value for argument in call.args if isinstance(argument, ast.Constant)]
            written = [name for name in names if isinstance(name, str) and name.startswith("quantgate_")]
            if written:
                found[written[0]] = tuple(_words(call.args, constants))
    return found


def _words(arguments: Iterable[ast.expr], constants: dict[str, ast.expr]) -> Iterator[str]:
    """The strings of the first tuple among the arguments."""
    for argument in arguments:
        value = constants.get(argument.id, argument) if isinstance(argument, ast.Name) else argument
        if isinstance(value, ast.Tuple):
            for element in value.elts:
                if isinstance(element, ast.Starred):
                    yield from _words([element.value], constants)
                elif isinstance(element, ast.Constant) and isinstance(element.value, str):
                    yield element.value
            return


def rows(families: Iterable[Metric]) -> list[str]:
    """One line per metric, by name."""
    declared = declared_labels()
    lines = []
    for family in families:
        name = f"{family.name}_total" if family.type == "counter" else family.name
        labels: dict[str, None] = dict.fromkeys(declared.get(name, ()))
        for sample in family.samples:
            labels |= dict.fromkeys(sample.labels)
        labels.pop("le", None)
        shown = ", ".join(f"`{label}`" for label in labels)
        lines.append(f"| `{name}` | {family.type} | {shown} | {family.documentation} |")
    return sorted(lines)


def families_of(gateway: Gateway) -> list[Metric]:
    """What it exposes now, the platform's own process metrics included."""
    return list(text_string_to_metric_families(admin_text(gateway, "/metrics")))


def main() -> None:
    """Start a gateway, write the page."""
    with tempfile.TemporaryDirectory() as folder, deployment(Path(folder)) as gateway:
        PAGE.write_text(HEAD + "\n".join(rows(families_of(gateway))) + "\n")
    sys.stdout.write(f"{PAGE}\n")


if __name__ == "__main__":
    main()
