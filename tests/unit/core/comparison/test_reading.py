"""What the comparator knows of one answer."""

import pytest

from gateway.core.assemble import Answer, AnswerError, Choice, ToolCall
from gateway.core.comparison.reading import Reading, failed, read
from gateway.core.quality import Asked, read_request

ASKED = read_request({"messages": [{"role": "user", "content": "How do I boil an egg?"}]})


def answer(*choices: Choice, **fields: object) -> Answer:
    return Answer(choices=choices, done=True, **fields)  # type: ignore[arg-type]


def reading(text: str = "", asked: Asked = ASKED, **fields: object) -> Reading:
    choice = Choice(text=text, **{"finish_reason": "stop", **fields})  # type: ignore[arg-type]
    return Reading(asked, answer(choice), choice)


GOOD = Choice(text="Boil it.", finish_reason="stop")


@pytest.mark.parametrize(
    "leg",
    [
        answer(),
        answer(GOOD, errors=(AnswerError("500", "x"),)),
        answer(problem="the body is no JSON"),
        answer(GOOD, broken_tail=True),
        answer(GOOD, broken_events=1),
        Answer(choices=(Choice(text="Boi"),), streamed=True),
        answer(Choice(text="Boi", finish_reason="abort")),
        answer(Choice(text=" \n", finish_reason="stop")),
        answer(Choice(reasoning="Let me think", finish_reason="stop")),
    ],
)
def test_what_counts_as_failed(leg: Answer) -> None:
    """Errors, unreadable or broken-off bytes, an abort, and emptiness: thinking without an answer is empty too."""
    assert failed(leg)


@pytest.mark.parametrize(
    "leg",
    [
        answer(GOOD),
        answer(Choice(text="Boi", finish_reason="length")),
        answer(Choice(tool_calls=(ToolCall("f"),), finish_reason="tool_calls")),
        answer(Choice(refusal="No.", finish_reason="stop")),
        answer(Choice(reasoning="Let me", finish_reason="length")),
        answer(Choice(other_output=True, finish_reason="stop")),
        answer(Choice(finish_reason="stop"), Choice(index=1, text="x", finish_reason="stop")),
    ],
)
def test_what_counts_as_an_answer(leg: Answer) -> None:
    """The token limit cuts an answer short, also in its reasoning; a call or a refusal is an answer."""
    assert not failed(leg)


def test_reasoning_stands_in_only_where_nothing_else_came() -> None:
    """What a model thinks is compared only if the limit left nothing but that."""
    assert reading("Boil it.", reasoning="hm").text == "Boil it."
    assert reading("", reasoning="hm", finish_reason="length").text == "hm"
    assert reading("", reasoning="hm", tool_calls=(ToolCall("f"),)).text == ""
    assert reading("", refusal="No.").text == "No."


def test_refusals_are_seen_in_words_and_in_labels() -> None:
    """The API's own mark, the finish reason, or an opening that declines."""
    assert reading("I'm sorry, but I can't help with that.").refuses
    assert reading("Boil it.", finish_reason="content_filter").refuses
    assert not reading("Boil it for six minutes.").refuses


def test_degenerate_text_is_seen() -> None:
    """B110: a run of marks and a loop are degenerate, prose is not."""
    assert reading("!!!!!!!!" * 50).degenerate
    assert reading("and then it goes on. " * 60).degenerate
    assert not reading("Put the egg into boiling water and wait for six minutes, then cool it.").degenerate


def test_the_requested_schema_is_checked() -> None:
    """True and False where a schema was asked for, None where there is nothing to check."""
    schema = {"type": "object", "required": ["a"]}
    wanted = read_request(
        {"messages": [], "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}}
    )
    assert [reading(text, wanted).fits_schema for text in ('{"a": 1}', '{"b": 1}', "no")] == [True, False, None]
    assert reading('{"a": 1}').fits_schema is None


@pytest.mark.parametrize(
    ("reason", "ending"),
    [("stop", "done"), ("tool_calls", "done"), ("length", "length"), ("content_filter", "refused"), (None, "unknown")],
)
def test_endings_are_judged_by_what_is_there(reason: str | None, ending: str) -> None:
    """B35: whether a label says stop or tool_calls is another check's matter."""
    assert reading("x", finish_reason=reason).ending == ending


def test_read_bounds_the_choices() -> None:
    """A stranger's n does not decide how long a comparison takes."""
    many = answer(*(Choice(index=i, text="x", finish_reason="stop") for i in range(40)))
    assert list(read(ASKED, many).choices) == list(range(16))
