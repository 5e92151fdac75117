"""The demo's texts are of the sizes and shapes that their use needs."""

import jsonschema

from gateway.demo.prompts import CODE, WEATHER, pump_log, tool


def test_the_report_grows_by_days_and_stays_the_same() -> None:
    """One line a day, the same each time; the filter is changed once."""
    assert pump_log(10).count("\n") == 9
    assert pump_log(10) == pump_log(10)
    assert pump_log(40).count("filter changed") == 1


def test_the_schema_bounds_every_value() -> None:
    """Any answer in the schema is short, so a small limit of tokens never cuts one off."""
    jsonschema.Draft202012Validator.check_schema(WEATHER)
    for value in WEATHER["properties"].values():
        assert "enum" in value or {"minimum", "maximum"} <= value.keys()


def test_code_is_fenced() -> None:
    """Code comes as people send it."""
    assert all(text.count("```") == 2 for text in CODE)


def test_a_tool_has_the_apis_shape() -> None:
    """A declared function has a name and an object of parameters."""
    assert tool("shell")["function"]["name"] == "shell"
    assert tool("shell")["function"]["parameters"]["type"] == "object"
