"""Comparing replies: against the first pool, with its own noise taken off, and no text unless asked for."""

import json
from typing import Any

from gateway.cli.replay.comparing import Results
from gateway.cli.replay.given import Item
from gateway.cli.replay.sending import Reply
from gateway.core.report import Verdict
from tests.unit.cli.replay.pools import chat

ITEM = Item("r", "/v1/chat/completions", chat("Name the capital of France."), "chat", "x")


def reply(text: str, status: int = 200) -> Reply:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    return Reply(status, json.dumps({"choices": [choice]}).encode(), "", 0.1, 0.2)


def results(noise: bool = False, with_answers: bool = False) -> Results:
    names = ["a", "b", "a (again)"] if noise else ["a", "b"]
    return Results(names, noise=noise, with_answers=with_answers)


def values(found: Results, index: int = 1) -> dict[str, Any]:
    return found.pools[index].values()


def test_equal_answers_agree_wholly() -> None:
    """Exact, score 1, nothing failed."""
    found = results()
    line = found.add(ITEM, [reply("Paris."), reply("Paris.")])
    assert line["pools"]["b"]["agreement"]["score"] == 1.0
    assert (values(found)["exact"]["value"], values(found)["agreement"]["value"]) == (1.0, 1.0)
    assert (line["bucket"], line["task"], "agreement" in line["pools"]["a"]) == ("x", "chat", False)


def test_without_a_noise_leg_nothing_is_judged() -> None:
    """Difference alone is no verdict: the baseline differs from itself too."""
    found = results()
    for _ in range(200):
        found.add(ITEM, [reply("Paris."), reply("It might be Lyon, 7, or another town.")])
    assert values(found)["excess"] is None
    assert found.pools[1].verdict is None


def test_excess_over_the_noise_is_judged_by_its_interval() -> None:
    """As different as the baseline from itself: not enough data; always different while the baseline repeats: worse."""
    same, worse = results(noise=True), results(noise=True)
    for _ in range(300):
        same.add(ITEM, [reply("Paris."), reply("Lyon."), reply("Lyon.")])
        worse.add(ITEM, [reply("Paris."), reply("Lyon is it, 7."), reply("Paris.")])
    assert same.pools[1].verdict is Verdict.NOT_ENOUGH
    assert worse.pools[1].verdict is Verdict.WORSE
    assert values(worse)["excess"]["lower"] > 0
    assert values(worse)["noise"]["value"] == 1.0


def test_few_requests_decide_nothing() -> None:
    """Whatever they show."""
    found = results(noise=True)
    for _ in range(3):
        found.add(ITEM, [reply("Paris."), reply("Lyon is it, 7."), reply("Paris.")])
    assert found.pools[1].verdict is Verdict.NOT_ENOUGH


def test_a_failed_leg_counts_against_its_pool() -> None:
    """Never left out: the baseline answered, so what it is worth is lost."""
    found = results(noise=True)
    line = found.add(ITEM, [reply("Paris."), reply("busy", 503), reply("Paris.")])
    assert line["pools"]["b"]["agreement"]["verdict"] == "other_failed"
    assert line["pools"]["b"]["excess"] == 1.0
    assert values(found)["failed"]["value"] == 1.0


def test_checks_run_on_every_answer() -> None:
    """What a pool answered badly by itself is told beside the comparison."""
    asked = Item("r", "/v1/chat/completions", chat("JSON", response_format={"type": "json_object"}))
    found = results()
    line = found.add(asked, [reply('{"a": 1}'), reply("no json")])
    assert line["pools"]["b"]["checks_failed"] == ["format_error"]
    assert values(found)["checks_failed"]["format_error"]["value"] == 1.0


def test_texts_are_in_the_result_only_when_asked_for() -> None:
    """Samples are secret; a result may be mailed around."""
    quiet, loud = results(), results(with_answers=True)
    replies = [reply("marmalade"), reply("marmalade")]
    assert "marmalade" not in json.dumps(quiet.add(ITEM, replies)) + json.dumps(values(quiet))
    assert "marmalade" in json.dumps(loud.add(ITEM, replies))
