"""What two answers do not share, in words."""

import json
from typing import Any

from gateway.core.assemble import Answer, Choice, ToolCall
from gateway.core.comparison.explain import Difference, explain, side_by_side
from gateway.core.comparison.parts import Kind, Part
from gateway.core.quality import read_request

ASKED = read_request({"messages": [{"role": "user", "content": "hi"}]})


def said(text: str = "", *calls: ToolCall, finish: str = "stop") -> Answer:
    return Answer(choices=(Choice(text=text, tool_calls=calls, finish_reason=finish),), done=True)


def call(name: str, **arguments: Any) -> ToolCall:
    return ToolCall(name, json.dumps(arguments))


def test_equal_answers_have_no_difference() -> None:
    """Nothing is reported where nothing differs."""
    assert explain(said("12 eggs [1]"), said("12 eggs [1]"), ASKED) == []


def test_sets_show_what_only_one_side_has() -> None:
    """Numbers are spelled as people write them, citations by their marks."""
    found = explain(said("1,200.50 eggs and -3 [1]"), said("1,200 eggs and 0.05 [2]"), ASKED)
    assert Difference(Part.NUMBERS, "only here", "-3, 1200.5", "0.05, 1200") in found
    assert Difference(Part.CITATIONS, "only here", "1", "2") in found


def test_long_sets_are_cut() -> None:
    """A thousand wrong numbers fill no screen."""
    found = explain(said(" ".join(str(n) for n in range(100, 140))), said("no"), ASKED)
    shown = next(d for d in found if d.part is Part.NUMBERS).reference
    assert shown.endswith("and 20 more")


def test_calls_show_arguments_by_path() -> None:
    """A changed argument is named with its path; a call without partner is shown whole."""
    left = said("", call("book", city="Rome", nights=2), call("pay", eur=5))
    right = said("", call("book", city="Rome", nights=3))
    assert explain(left, right, ASKED) == [
        Difference(Part.TOOLS, "called", 'pay({"eur": 5})', ""),
        Difference(Part.ARGUMENTS, "book $.nights", "2", "3"),
    ]


def test_structure_is_taken_apart_only_where_it_was_asked_for() -> None:
    """JSON paths for structured answers; a chat answer that looks like JSON is text."""
    left, right = said('{"a": 1, "b": [1, 2]}'), said('{"a": 1, "b": [1, 3]}')
    assert Difference(Part.JSON, "$.b[1]", "2", "3") in explain(left, right, ASKED, Kind.STRUCTURED)
    assert all(d.part is not Part.JSON for d in explain(left, right, ASKED, Kind.CHAT))
    lost = explain(left, said("sorry"), ASKED, Kind.STRUCTURED)
    assert Difference(Part.JSON, "is JSON", "yes", "no") in lost


def test_flips_are_named() -> None:
    """Refusal, ending and length are told in words."""
    found = explain(
        said("Boil it for six minutes."), said("I'm sorry, but I can't help with that.", finish="length"), ASKED
    )
    assert Difference(Part.REFUSAL, "refuses", "no", "yes") in found
    assert Difference(Part.FINISH, "ended", "done", "length") in found
    assert [d.part for d in found] == sorted((d.part for d in found), key=list(Part).index)


def test_a_lost_choice_is_named() -> None:
    """n answers, of which one side gave fewer."""
    one = Choice(index=0, text="yes", finish_reason="stop")
    two = Choice(index=1, text="no", finish_reason="stop")
    left, right = Answer(choices=(one, two), done=True), Answer(choices=(one,), done=True)
    assert explain(left, right, ASKED) == [Difference(Part.EXACT, "only one side has this choice", "the choice", "", 1)]
    assert [side.choice for side in side_by_side(left, right, ASKED)] == [0, 1]


def test_side_by_side_shows_the_texts() -> None:
    """The runs of both sides, per choice."""
    (side,) = side_by_side(said("a b c"), said("a x c"), ASKED)
    assert [(change.tag, change.left, change.right) for change in side.changes] == [
        ("equal", "a ", "a "), ("delete", "b ", ""), ("insert", "", "x "), ("equal", "c", "c"),
    ]  # fmt: skip
