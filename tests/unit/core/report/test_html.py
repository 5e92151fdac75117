"""The page: whole, self-contained, and safe whatever buckets and models are called."""

from html.parser import HTMLParser

import pytest

from gateway.core.report import Tally, build, layout
from gateway.core.report.html import to_html
from tests.unit.core.report.report_rows import EVIL, evil_report, report


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
