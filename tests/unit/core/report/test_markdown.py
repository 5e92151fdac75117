"""Markdown: tables that names cannot break."""

import re

from gateway.core.report.markdown import to_markdown
from tests.unit.core.report.report_rows import evil_report, report


def test_markdown_has_a_table_per_bucket_and_cannot_be_broken_by_names():
    """Every row of a table has as many cells as its head."""
    for made in (report(), evil_report()):
        lines = [line for line in to_markdown(made).splitlines() if line.startswith("|")]
        assert lines
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in lines}) == 1
        assert "<script>" not in to_markdown(made).replace("\\<", "")
