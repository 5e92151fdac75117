"""Log lines of a process."""

import json
import logging

import structlog

from gateway.app.logs import set_up_logs


def lines(capsys):
    """What stands on standard error."""
    return [json.loads(line) for line in capsys.readouterr().err.splitlines()]


def test_a_line_is_json_with_process_level_and_time(capsys):
    """One object per line, on standard error."""
    set_up_logs("control")
    structlog.get_logger("x").warning("something", count=3, path=logging)
    (line,) = lines(capsys)
    assert (line["event"], line["process"], line["level"], line["count"]) == ("something", "control", "warning", 3)
    assert line["at"].endswith("Z")


def test_lines_below_the_level_are_not_made(capsys):
    """Quiet is cheap."""
    set_up_logs("control", "error")
    structlog.get_logger("x").info("nothing")
    structlog.get_logger("x").error("something")
    assert [line["event"] for line in lines(capsys)] == ["something"]


def test_an_exception_is_part_of_its_line(capsys):
    """A traceback does not break the one-object-per-line form."""
    set_up_logs("control")
    try:
        raise ZeroDivisionError
    except ZeroDivisionError:
        structlog.get_logger("x").exception("broke")
    (line,) = lines(capsys)
    assert "ZeroDivisionError" in line["exception"]
