"""What people and programs read: text, Markdown, HTML, SVG and rows, all of one report."""

import csv
import io
import re
from html.parser import HTMLParser
from xml.etree import ElementTree  # our own drawings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.report import METRICS, Bar, Tally, Unit, Verdict, build, layout
from gateway.core.report.flat import FlatRow, flatten, to_csv
from gateway.core.report.html import to_html
from gateway.core.report.markdown import to_markdown
from gateway.core.report.svg import Curve, Group, Point, distribution, rates
from tests.unit.core.report.report_rows import int4, report, row

EVIL = '<script>alert("x")</script>|`a`[b](c)\n&'


def evil_report():
    """Names that would break every format."""
    tally = Tally()
    tally.add_requests(
        [row(bucket=EVIL, model=EVIL), int4(bucket=EVIL, model=EVIL, pool="<b>"), row(pool="", bucket=EVIL)]
    )
    return build(tally, 0.0)


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (None, Unit.SHARE, "–"),
        (0.0, Unit.SHARE, "0 %"),
        (0.0312, Unit.SHARE, "3.12 %"),
        (0.000031, Unit.SHARE, "0.003 %"),
        (0.0123, Unit.SECONDS, "12.3 ms"),
        (12.345, Unit.SECONDS, "12.3 s"),
        (0.000001, Unit.SECONDS, "<0.01 ms"),
        (1234.5, Unit.PER_SECOND, "1,234"),
        (0.98765, Unit.SCORE, "0.988"),
    ],
)
def test_numbers_have_units_and_three_digits(value, unit, text):
    """None is a dash and never a zero."""
    assert layout.number(value, unit) == text


def test_differences_have_signs():
    """Points of shares, percent of latencies."""
    assert layout.delta(0.0345, Unit.SHARE) == "+3.5 pt"
    assert layout.delta(-0.5, Unit.SECONDS) == "−50.0 %"
    assert layout.delta(-0.02, Unit.SCORE) == "−0.020"
    assert layout.delta(None, Unit.SHARE) == ""


def test_lines_leave_out_what_nobody_has_and_say_what_one_lacks():
    """A metric without data in any column is no row; without data in one it is a dash with a question mark."""
    tally = Tally()
    tally.add_requests([row(), int4(score=None, findings="[]")])
    found = {line.label: line for line in layout.lines(build(tally, 0.0).sections[0])}
    assert "tool failures" not in found
    assert [cell.text for cell in found["format errors"].cells][1] == "– ?"
    assert found["requests"].cells[0].value == "1"


def test_verdicts_are_said_in_words_first():
    """Each line begins with its verdict; quantiles of one latency share its name."""
    lines = layout.finding_lines(report())
    assert lines[0] == "worse: int4 against bf16 in chat: quality score −0.160, format errors +20.0 pt"
    assert lines[1].startswith("better: int4 against bf16 in chat: TTFT P50 −50.0 %, P95 −50.0 %")


def test_an_empty_report_says_so():
    """In words, in each format."""
    made = build(Tally(), 0.0)
    assert layout.summary(made) == ["There are no records in this span, so nothing can be said of any pool."]
    assert "nothing can be said" in to_markdown(made) and "nothing can be said" in to_html(made)
    assert to_csv(made).count("\n") == 1


def test_markdown_has_a_table_per_bucket_and_cannot_be_broken_by_names():
    """Every row of a table has as many cells as its head."""
    for made in (report(), evil_report()):
        lines = [line for line in to_markdown(made).splitlines() if line.startswith("|")]
        assert lines
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in lines}) == 1
        assert "<script>" not in to_markdown(made).replace("\\<", "")


class Page(HTMLParser):
    """Collects what a page holds and checks that its tags balance."""

    VOID = frozenset({"meta", "br", "link", "img", "input", "hr"})

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.text, self.links = [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.links += [value for name, value in attrs if name in ("src", "href", "srcset", "xlink:href")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


@pytest.mark.parametrize("made", [report(), evil_report(), build(Tally(), 0.0)], ids=["full", "evil", "empty"])
def test_html_is_whole_and_needs_nothing_else(made):
    """Balanced, without scripts, links or anything to load; names are text."""
    html = to_html(made)
    page = Page()
    page.feed(html)
    assert page.open == []
    assert "script" not in page.tags and page.links == []
    assert "url(" not in html and "@import" not in html and "http" not in html.replace("http-equiv", "")


def test_html_shows_every_number_of_the_tables_and_the_plots():
    """What the text says the page says too."""
    made = report()
    page = Page()
    page.feed(to_html(made))
    text = "".join(page.text)
    for line in layout.lines(made.sections[0]):
        assert line.label in text
        assert all(cell.value in text for cell in line.cells)
    assert page.tags.count("svg") == 5
    assert EVIL not in to_html(evil_report())


BARS = st.lists(st.tuples(st.floats(1e-6, 1e4), st.floats(1.001, 2.0), st.integers(1, 10**6)), min_size=1, max_size=20)


@given(st.lists(BARS, min_size=1, max_size=4))
def test_any_distribution_is_drawn_inside_its_frame(series):
    """Well-formed XML whose points are numbers within the view box, whatever was measured."""
    curves = []
    for index, found in enumerate(series):
        low, bars = 0.0, []
        for start, width, number in sorted(found):
            begin = max(start, low)
            low = begin * width
            bars.append(Bar(begin, low, number))
        curves.append(Curve(f"p{index}", index, bars, [bars[0].lower, bars[-1].upper]))
    root = ElementTree.fromstring(distribution("t", curves))  # noqa: S314
    _, _, width, height = (float(part) for part in root.attrib["viewBox"].split())
    for polygon in root.iter("polygon"):
        for pair in polygon.attrib["points"].split():
            x, y = (float(part) for part in pair.split(","))
            assert -1 <= x <= width + 1 and -1 <= y <= height + 1


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=12))
def test_any_rates_are_drawn_inside_their_frame(found):
    """Also an interval far wider than the rest: it is cut with a mark."""
    points = [Point(f"p{i}", i, *sorted(ends)[1:2], min(ends), max(ends)) for i, ends in enumerate(found)]
    root = ElementTree.fromstring(rates("t", [Group("errors & more", points)]))  # noqa: S314
    width = float(root.attrib["width"])
    for line in root.iter("line"):
        assert float(line.attrib["x2"]) <= width


def test_nothing_measured_draws_nothing():
    """No empty frames."""
    assert distribution("t", []) == "" == rates("t", [])


def test_rows_hold_every_number_once():
    """One row for each bucket, pool and metric, and the count of requests."""
    made = report()
    rows = flatten(made)
    assert len(rows) == 2 * (1 + len(METRICS))
    assert len({(found.bucket, found.pool, found.metric) for found in rows}) == len(rows)
    worse = next(found for found in rows if found.pool == "int4" and found.metric == "format_error")
    assert (worse.verdict, worse.hits, worse.number, worse.baseline_pool) == (Verdict.WORSE.value, 80, 400, "bf16")
    assert all(not found.verdict for found in rows if found.is_baseline)


def test_csv_reads_back():
    """With names that hold commas, quotes and line ends."""
    rows = list(csv.DictReader(io.StringIO(to_csv(evil_report()))))
    assert list(rows[0]) == list(FlatRow._fields)
    assert {found["bucket"] for found in rows} == {EVIL}
