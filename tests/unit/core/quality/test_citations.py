"""Citations against the sources that the request holds."""

import pytest

from gateway.core.assemble import Answer, Choice
from gateway.core.quality.asked import CONTEXT_CHARS, Asked, read_request
from gateway.core.quality.citations import check_citations
from gateway.core.quality.finding import Verdict
from gateway.core.quality.view import view_of

NUMBERED = "Cite the sources.\n[1] Bees sleep.\n[2] Ants do not.\n[3] Wasps may."


def verdict(text: str, context: str = NUMBERED) -> Verdict:
    """The verdict on one text."""
    choice = Choice(text=text, finish_reason="stop")
    asked = read_request({"messages": [{"role": "user", "content": context}]})
    return check_citations(view_of(asked, Answer(choices=(choice,), done=True), choice)).verdict


@pytest.mark.parametrize(
    "text",
    [
        "Bees [1].",
        "Both [1, 3].",
        "All [1-3].",
        "Bees【2】",
        "Bees [doc 3]",
        "Bees (source 2)",
        "Bees（资料1）",
        "Bees [^2]",
        "Bees【1†page】",
    ],
)
def test_known_sources(text: str) -> None:
    """Every spelling of a citation."""
    assert verdict(text) == Verdict.PASS


@pytest.mark.parametrize(
    "text", ["Bees [4].", "Both [1, 7].", "All [2-5].", "Bees【9】", "Bees [doc 8]", "Bees (source 6)", "Bees（资料7）"]
)
def test_unknown_sources(text: str) -> None:
    """One member that is not there is enough."""
    assert verdict(text) == Verdict.FAIL


@pytest.mark.parametrize(
    "text",
    ["Bees sleep.", "In [1989] it was so.", "`a[7]` is code.", "```\nx[9]\n```", "See [5](https://example.com)."],
)
def test_no_citations(text: str) -> None:
    """Years, code and links are none."""
    assert verdict(text) == Verdict.NOT_APPLICABLE


@pytest.mark.parametrize(
    ("context", "good", "bad"),
    [
        ("Document 1: a\nDocument 2: b", "x [2]", "x [3]"),
        ('<doc id="4">a</doc>\n<doc id="5">b</doc>', "x [5]", "x [6]"),
        ("资料1：甲\n资料2：乙", "是【2】", "是【3】"),
        ("Use the ids.\n[KB-101] a\n[KB-102] b", "x [KB-102]", "x [KB-201]"),
        ('{"doc_id": "FAQ-7", "text": "a"}', "x [FAQ-7]", "x [FAQ-9]"),
        ("Cite by number.\n1. first source\n2. second source", "x [2]", "x [3]"),
    ],
)
def test_forms_of_sources(context: str, good: str, bad: str) -> None:
    """Headings, tags, Chinese headings, ids, JSON fields and numbered lists."""
    assert verdict(good, context) == Verdict.PASS
    assert verdict(bad, context) == Verdict.FAIL


def test_ids_of_another_kind_are_no_citations() -> None:
    """A word in brackets that is not shaped like the given ids is left alone."""
    assert verdict("x [e.g.this]", "Use ids.\n[KB-101] a") == Verdict.NOT_APPLICABLE


def test_without_sources_nothing_is_judged() -> None:
    """Brackets mean nothing when no source was given."""
    assert verdict("x [1]", "Do bees sleep?") == Verdict.NOT_APPLICABLE


def test_too_long_a_context_is_skipped() -> None:
    """A source may stand where the check does not read."""
    choice = Choice(text="x [4]")
    asked = Asked(context=NUMBERED, context_cut=True)
    assert len(NUMBERED) < CONTEXT_CHARS
    assert check_citations(view_of(asked, Answer(choices=(choice,)), choice)).verdict == Verdict.SKIP
