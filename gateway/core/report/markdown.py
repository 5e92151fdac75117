"""A report as Markdown, for a ticket or a review."""

from collections.abc import Iterable, Sequence

from gateway.core.report import layout
from gateway.core.report.values import Report, Section, Verdict


def to_markdown(report: Report) -> str:
    """Headline, verdicts, one table a bucket, notes."""
    parts = ["# Pools by bucket", "", *_spaced(layout.summary(report))]
    found = layout.finding_lines(report)
    if found:
        parts += ["## Verdicts", "", *(f"- {_text(line)}" for line in found), ""]
    if report.sections:
        parts += [layout.LEGEND, ""]
    for section in report.sections:
        parts += _section(section)
    parts += ["## Notes", "", *(f"- {_text(note)}" for note in report.notes), ""]
    return "\n".join(parts)


def _section(section: Section) -> list[str]:
    parts = [f"## {_text(layout.named(section.bucket))}", ""]
    if section.columns:
        head = ["", *(layout.heading(column) for column in section.columns)]
        parts += [_row(head), _row(["---", *("---:" for _ in section.columns)])]
        parts += [_row([line.label, *(_cell(cell) for cell in line.cells)]) for line in layout.lines(section)]
        parts.append("")
    if section.unserved:
        parts += [f"Reached no pool: {layout.results(section.unserved.items())}.", ""]
    return parts


def _cell(cell: layout.Cell) -> str:
    strong = cell.verdict in (Verdict.WORSE, Verdict.BETTER)
    mark = "" if cell.verdict is None else layout.MARKS[cell.verdict]
    return " ".join(part for part in (cell.value, cell.interval, cell.delta, f"**{mark}**" if strong else mark) if part)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(_text(cell) for cell in cells)} |"


def _spaced(lines: Iterable[str]) -> list[str]:
    return [part for line in lines for part in (_text(line), "")]


def _text(value: str) -> str:
    """Names come from clients and policies: nothing in them may end a cell or become markup."""
    for mark in ("\\", "|", "`", "<", "["):
        value = value.replace(mark, f"\\{mark}")
    return value.replace("\n", " ")
