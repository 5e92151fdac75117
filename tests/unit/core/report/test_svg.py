"""Plots: well-formed, inside their frame, nothing drawn where nothing was measured."""

from xml.etree import ElementTree  # our own drawings

from hypothesis import given
from hypothesis import strategies as st

from gateway.core.report import Bar
from gateway.core.report.svg import Curve, Group, Point, distribution, rates

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
