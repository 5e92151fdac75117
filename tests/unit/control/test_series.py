"""Counters and histograms with a hard bound on series."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.control.series import OTHER, Counter, Histogram, Names, gauge


def total(counter):
    """Sum over all series."""
    return sum(row[0] for row in counter.family().samples.values())


@given(st.lists(st.tuples(st.text(max_size=3), st.sampled_from("ab")), max_size=300))
def test_no_count_is_lost_and_no_bound_is_passed(keys):
    """Whatever labels come, the sum is right and there are at most ``most`` series."""
    counter = Counter("c_total", "help", ("x", "y"), most=20)
    for key in keys:
        counter.add(key)
    assert total(counter) == len(keys)
    assert len(counter.family().samples) <= 20


def test_the_finest_label_is_folded_before_the_whole_key():
    """Over the bound a new bucket becomes other, while pool and result stay readable."""
    counter = Counter("c_total", "help", ("bucket", "pool"), most=20)
    for number in range(100):
        counter.add((f"b{number}", "bf16"))
    samples = counter.family().samples
    assert samples[OTHER, "bf16"][0] == 100 - (len(samples) - 1)
    for number in range(100):
        counter.add((f"b{number}", f"p{number}"))
    assert (OTHER, OTHER) in counter.family().samples


def test_series_that_exist_keep_counting_when_the_bound_is_reached():
    """A flood of new labels does not take known ones away."""
    counter = Counter("c_total", "help", ("x",), most=10)
    counter.add(("known",))
    for number in range(50):
        counter.add((str(number),))
    counter.add(("known",), 2)
    assert counter.family().samples["known",][0] == 3


@given(st.lists(st.floats(0, 100), max_size=50))
def test_a_histogram_counts_each_value_once_under_its_bound(values):
    """A value equal to a bound belongs to it; the last row cell is the sum."""
    bounds = (0.5, 1.0, 10.0)
    histogram = Histogram("h", "help", ("x",), bounds)
    row = histogram.row(("a",))
    for value in values:
        histogram.observe(row, value)
    (cells,) = histogram.family().samples.values()
    assert sum(cells[:-1]) == len(values)
    for index, bound in enumerate(bounds):
        assert sum(cells[: index + 1]) == sum(value <= bound for value in values)
    assert abs(cells[-1] - sum(values)) < 1e-6


def test_a_family_is_a_copy():
    """What is being exposed does not change under the encoder."""
    counter = Counter("c_total", "help", ())
    family = counter.family()
    counter.add(())
    assert family.samples == {}
    first = counter.family()
    counter.add(())
    assert first.samples[()][0] == 1


def test_names_are_admitted_up_to_their_number():
    """The first come are labels, the rest read other; a raised number admits more."""
    names = Names(2)
    assert [names.admit(name) for name in ("a", "b", "c", "a")] == ["a", "b", OTHER, "a"]
    names.most = 3
    assert names.admit("c") == "c"
    assert [names.label(name) for name in ("a", "x", "")] == ["a", OTHER, "none"]


def test_a_gauge_family_holds_what_it_is_given():
    """Read at this moment."""
    assert gauge("g", "help", ("x",), {("a",): 2.0}).samples == {("a",): (2.0,)}
