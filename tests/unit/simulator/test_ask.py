"""The ask as a value."""

from tests.unit.simulator.rig import PAY, PERSON, ask, chat, json_schema


def test_subject_tells_what_conditions_look_at() -> None:
    """Everything a fault's condition may ask is there, and nothing is made up."""
    subject = ask(**chat(tools=[PAY], stream=True)).subject
    assert (subject.api, subject.model, subject.task, subject.turns) == ("chat", "sim", "tools", 1)
    assert (subject.tools, subject.calling, subject.structured, subject.stream, subject.cited) == (
        True,
        True,
        False,
        True,
        False,
    )
    assert ask(**chat(response_format=json_schema(PERSON))).subject.structured


def test_calling_needs_tools_and_a_choice() -> None:
    """A call is expected only with tools that may be chosen."""
    assert not ask().calling
    assert not ask(**chat(tools=[PAY], tool_choice="none")).calling
    assert ask(**chat(tools=[PAY])).calling
