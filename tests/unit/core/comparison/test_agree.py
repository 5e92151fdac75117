"""Two answers in, one agreement out: the score, the flips, the legs, and the cases that broke other systems."""

import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.core.assemble import Answer, Choice, ToolCall, assemble
from gateway.core.comparison import agree
from gateway.core.comparison.agree import Triple, compare, compare_legs, excess, kind_of
from gateway.core.comparison.legs import LegState
from gateway.core.comparison.parts import Agreement, Kind, Part, Unscored, Verdict
from gateway.core.evidence.pairs import PairLoss
from gateway.core.quality import Asked, read_request

CHAT = {"messages": [{"role": "user", "content": "Tell me about Paris."}]}
ASKED = read_request(CHAT)
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
WITH_TOOLS = read_request({**CHAT, "tools": [TOOL]})
JSON_OBJECT = read_request({**CHAT, "response_format": {"type": "json_object"}})
SCHEMA = {"type": "object", "required": ["status"], "properties": {"status": {"enum": ["open", "closed"]}}}
JSON_SCHEMA = read_request(
    {**CHAT, "response_format": {"type": "json_schema", "json_schema": {"name": "s", "schema": SCHEMA}}}
)

PARIS = "Paris is the capital of France. About 2,100,000 people live there, and the Seine runs through it [1]."


def said(text: str = "", *calls: ToolCall, finish: str | None = "stop", **fields: Any) -> Answer:
    return Answer(choices=(Choice(text=text, tool_calls=calls, finish_reason=finish, **fields),), done=True)


def body(message: dict[str, Any], finish: str = "stop") -> bytes:
    """A whole JSON body as a runtime sends it."""
    return json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": finish}]}).encode()


def stream(*deltas: dict[str, Any], finish: str = "stop") -> bytes:
    """An event stream as a runtime sends it."""
    chunks: list[dict[str, Any]] = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    chunks.append({"index": 0, "delta": {}, "finish_reason": finish})
    return b"".join(b"data: " + json.dumps({"choices": [c]}).encode() + b"\n\n" for c in chunks) + b"data: [DONE]\n\n"


def score(left: Answer, right: Answer, asked: Asked = ASKED, task: str = "chat") -> float:
    found = compare(left, right, asked, task)
    assert found.score is not None
    return found.score


def parts(left: Answer, right: Answer, asked: Asked = ASKED, task: str = "chat") -> dict[Part, float]:
    return dict(compare(left, right, asked, task).parts)


TEXTS = st.text(st.characters(), min_size=1, max_size=120) | st.sampled_from(
    [
        PARIS,
        "I cannot help with that.",
        "!!!!" * 40,
        '{"a": 1}',
        "```py\nx = f(1)\n```",
        "巴黎是法国的首都。",
        "[" * 300,
    ]
)
TOOL_CALLS = st.lists(
    st.builds(ToolCall, st.sampled_from(["f", "g"]), st.sampled_from(["", "{}", '{"a": 1}', "{", "[" * 300])),
    max_size=3,
).map(tuple)
CHOICES = st.builds(
    lambda text, calls, finish, reasoning: Choice(
        text=text, tool_calls=calls, finish_reason=finish, reasoning=reasoning
    ),
    TEXTS | st.just(""),
    TOOL_CALLS,
    st.sampled_from(["stop", "length", "tool_calls", "content_filter", "abort", None, "\ud83d"]),
    st.sampled_from(["", "thinking"]),
)
ANSWERS = st.builds(
    lambda choices, done, streamed: Answer(
        choices=tuple(
            Choice(index=i, text=c.text, tool_calls=c.tool_calls, finish_reason=c.finish_reason)
            for i, c in enumerate(choices)
        ),
        done=done,
        streamed=streamed,
    ),
    st.lists(CHOICES, max_size=3),
    st.booleans(),
    st.booleans(),
)
REQUESTS = st.sampled_from([ASKED, WITH_TOOLS, JSON_OBJECT, JSON_SCHEMA])
TASKS = st.sampled_from(["chat", "code", "rag", "extraction", "tools", "anything"])


@given(ANSWERS, REQUESTS, TASKS)
@settings(deadline=None)
def test_every_answer_agrees_with_itself(answer: Answer, asked: Asked, task: str) -> None:
    """agreement(a, a) = 1 for every answer there is, and 0 with the name of an incident for every failure."""
    found = compare(answer, answer, asked, task)
    if found.verdict is Verdict.BOTH_FAILED:
        assert found.score == 0.0
    else:
        assert (found.verdict, found.score, found.capped_by) == (Verdict.COMPARED, 1.0, None)
        assert all(value == 1.0 for _, value in found.parts)


@given(ANSWERS, ANSWERS, REQUESTS, TASKS)
@settings(deadline=None, max_examples=200)
def test_symmetric_bounded_and_never_raising(left: Answer, right: Answer, asked: Asked, task: str) -> None:
    """Whatever two pools answer: a score in [0, 1], the same both ways, from parts in [0, 1]; no fault of ours."""
    there, back = compare(left, right, asked, task), compare(right, left, asked, task)
    assert there.unscored is not Unscored.COMPARATOR_ERROR
    assert (there.score is None) == (back.score is None)
    if there.score is not None and back.score is not None:
        assert there.score == pytest.approx(back.score)
        assert 0.0 <= there.score <= 1.0
    assert dict(there.parts) == pytest.approx(dict(back.parts))
    assert all(0.0 <= value <= 1.0 for _, value in there.parts)


@given(st.binary(max_size=300), st.binary(max_size=300))
@settings(deadline=None)
def test_any_bytes_can_be_compared(left: bytes, right: bytes) -> None:
    """From bytes to agreement nothing raises: most of it is two failed legs."""
    found = compare(assemble(CHAT, left), assemble(CHAT, right), ASKED)
    assert isinstance(found, Agreement)


@given(
    st.dictionaries(st.text(max_size=6), st.integers() | st.text(max_size=9), min_size=1),
    st.randoms(use_true_random=False),
)
def test_json_layout_does_not_count(value: dict[str, Any], rng: random.Random) -> None:
    """Key order and white space of a JSON answer are no difference, not even to EXACT."""
    items = list(value.items())
    rng.shuffle(items)
    left, right = said(json.dumps(value)), said(json.dumps(dict(items), indent=2))
    assert score(left, right, JSON_OBJECT) == 1.0
    assert parts(left, right, JSON_OBJECT)[Part.EXACT] == 1.0


def test_worse_answers_agree_less() -> None:
    """Rewording costs less than a wrong number, a wrong number less than a refusal, a refusal less than a failure."""
    same = said(PARIS)
    reworded = said(PARIS.replace("About", "Roughly").replace("runs", "flows"))
    wrong = said(PARIS.replace("2,100,000", "2,100,001").replace("runs", "flows").replace("About", "Roughly"))
    refused = said("I'm sorry, but I can't help with that request.")
    failed = said("")
    scores = [score(same, other) for other in (same, reworded, wrong, refused, failed)]
    assert scores == sorted(scores, reverse=True)
    assert len(set(scores)) == 5


@pytest.mark.parametrize(
    ("other", "asked", "flip", "cap"),
    [
        (said("I'm sorry, but I can't assist with that."), ASKED, Part.REFUSAL, 0.2),
        (said("Paris is the capital of France. " * 40), ASKED, Part.DEGENERATE, 0.1),
        (
            said("巴黎是法国的首都，大约有二百一十万人住在那里，塞纳河穿城而过。[1] 2,100,000"),
            ASKED,
            Part.LANGUAGE,
            0.4,
        ),
    ],
)
def test_a_flip_caps_the_score(other: Answer, asked: Asked, flip: Part, cap: float) -> None:
    """A refusal, a loop or another language is no matter of degree: whatever else agrees, the score stays low."""
    assert parts(said(PARIS), other, asked)[flip] == 0.0
    assert score(said(PARIS), other, asked) <= cap


def test_the_cap_that_held_is_named() -> None:
    """A person sees which flip held a score down; where the parts were lower still, none did."""
    loop = said((PARIS + " ") * 12)
    found = compare(said(PARIS + " " + PARIS), loop, ASKED)
    assert (found.score, found.capped_by) == (0.1, Part.DEGENERATE)
    assert compare(said(PARIS), said("?!"), ASKED).capped_by is None


def test_kinds_follow_structure_then_calls_then_task() -> None:
    """What the API was asked for outweighs the task's name, and real calls outweigh both."""
    assert [kind_of(task, ASKED) for task in ("chat", "code", "rag", "extraction", "tools", "other")] == [
        Kind.CHAT, Kind.CODE, Kind.RAG, Kind.STRUCTURED, Kind.TOOLS, Kind.CHAT,
    ]  # fmt: skip
    assert kind_of("code", JSON_SCHEMA) is Kind.STRUCTURED
    assert compare(said("hi"), said("hi"), WITH_TOOLS, "tools").kind is Kind.CHAT
    assert compare(said("hi"), said("", ToolCall("f")), JSON_SCHEMA).kind is Kind.TOOLS


def test_code_is_judged_by_its_symbols() -> None:
    """Renamed identifiers weigh more in code than in chat."""
    left = said("Use this:\n```python\ndef total(rows):\n    return sum(row.price for row in rows)\n```")
    right = said("Use this:\n```python\ndef total(lines):\n    return sum(line.cost for line in lines)\n```")
    assert score(left, right, task="code") < score(left, right, task="chat")


def test_rag_is_judged_by_its_citations() -> None:
    """The same words with other sources agree less in retrieval than in chat."""
    left, right = said(PARIS), said(PARIS.replace("[1]", "[4]"))
    assert score(left, right, task="rag") < score(left, right, task="chat") < 1.0


def test_structured_answers_without_json_fall_back_to_text() -> None:
    """Where neither pool gave JSON the words are all there is to compare."""
    found = compare(said("status open"), said("status closed"), JSON_OBJECT)
    assert found.kind is Kind.STRUCTURED
    assert Part.JSON not in dict(found.parts)
    assert found.score == pytest.approx((0.8 * 0.5 + 0.1) / 0.9)


@pytest.mark.parametrize("lost", ["status: open", '```json\n{"status": "open"}\n```', '{"status": "op'])
def test_json_that_the_client_cannot_parse_agrees_with_nothing(lost: str) -> None:
    """Prose, a fence around it or a cut: the client's parser fails, so it is a flip to 0."""
    found = compare(said('{"status": "open"}'), said(lost), JSON_OBJECT)
    assert (found.score, found.capped_by) == (0.0, Part.JSON)


def test_schema_flips_are_capped() -> None:
    """One answer satisfies the requested schema and the other does not, though most leaves agree."""
    left = said('{"status": "open", "a": 1, "b": 2, "c": 3, "d": 4}')
    right = said('{"status": "opened", "a": 1, "b": 2, "c": 3, "d": 4}')
    found = compare(left, right, JSON_SCHEMA)
    assert (found.score, found.capped_by) == (0.5, Part.SCHEMA)


def test_a_choice_of_words_is_right_or_wrong() -> None:
    """A classifier's answer has no degrees."""
    asked = read_request({**CHAT, "structured_outputs": {"choice": ["positive", "negative"]}})
    assert score(said("positive"), said("positive"), asked) == 1.0
    assert score(said("positive"), said("negative"), asked) == 0.0


def test_choices_are_compared_by_index_and_a_lost_one_counts() -> None:
    """n answers are n comparisons; one that only a single side gave agrees with nothing."""
    one = Choice(index=0, text="yes", finish_reason="stop")
    two = Choice(index=1, text="no", finish_reason="stop")
    both, alone = Answer(choices=(one, two), done=True), Answer(choices=(one,), done=True)
    assert score(both, both) == 1.0
    assert score(both, alone) == 0.5


@pytest.mark.parametrize(
    ("left", "right", "verdict"),
    [
        (said(PARIS), said(""), Verdict.OTHER_FAILED),
        (said(""), said(PARIS), Verdict.REFERENCE_FAILED),
        (said(""), Answer(problem="x"), Verdict.BOTH_FAILED),
    ],
)
def test_a_failed_leg_scores_zero_and_is_named(left: Answer, right: Answer, verdict: Verdict) -> None:
    """A missing leg is data: 0, never left out, and two failures are no agreement."""
    found = compare(left, right, ASKED)
    assert (found.verdict, found.score, found.parts) == (verdict, 0.0, ())


def test_three_legs_subtract_the_noise() -> None:
    """excess = agreement(b, b') - agreement(b, c), from one reading of each answer."""
    base, again, other = said(PARIS), said(PARIS.replace("About", "Roughly")), said(PARIS.replace("France", "Germany"))
    triple = excess(base, other, again, ASKED)
    noise, agreement = score(base, again), score(base, other)
    assert triple.loss == PairLoss(noise - agreement, noise - agreement)
    assert triple == Triple(compare(base, other, ASKED), compare(base, again, ASKED), triple.loss)


@pytest.mark.parametrize(
    ("candidate", "again", "loss"),
    [
        (LegState.FAILED, said(PARIS), PairLoss(1.0, 1.0)),
        (said(PARIS), LegState.FAILED, PairLoss(-1.0, -1.0)),
        (LegState.FAILED, LegState.FAILED, PairLoss(0.0, 0.0)),
        (LegState.MISSING, said(PARIS), PairLoss(None, 1.0, unscored=True)),
        (said(PARIS), LegState.MISSING, PairLoss(None, 1.0, unscored=True)),
        (said(PARIS), LegState.NOT_ASKED, None),
    ],
)
def test_legs_that_never_answered(candidate: agree.Leg, again: agree.Leg, loss: PairLoss | None) -> None:
    """Timeouts count as 0, shed legs as missing, and without a noise leg there is no loss."""
    assert excess(said(PARIS), candidate, again, ASKED).loss == loss


def test_all_three_failed_is_an_incident() -> None:
    """Nothing answered: the platform's incident, and no evidence about the candidate."""
    loss = excess(LegState.FAILED, LegState.FAILED, said(""), ASKED).loss
    assert loss == PairLoss(0.0, 0.0, both_failed=True)


def test_missing_legs_name_their_reason() -> None:
    """A pair with a shed leg is unscored because of that leg."""
    found = compare_legs(said(PARIS), LegState.MISSING, ASKED)
    assert isinstance(found, Agreement)
    assert (found.verdict, found.unscored) == (Verdict.UNSCORED, Unscored.MISSING_LEG)
    assert compare_legs(said(PARIS), LegState.NOT_ASKED, ASKED) is LegState.NOT_ASKED


class _Opinion:
    def __init__(self, value: float, weight: float) -> None:
        self.part, self.value, self.weight = Part.JUDGE, value, weight

    def rate(self, asked: Asked, reference: str, other: str) -> float:
        return self.value


def test_plug_ins_add_their_part_and_weight() -> None:
    """A judge's opinion is one more part; a broken one with weight leaves the pair unscored."""
    left, right = said(PARIS), said(PARIS.replace("About", "Roughly"))
    plain = score(left, right)
    found = compare(left, right, ASKED, opinions=[_Opinion(0.0, 0.5)])
    assert found.score == pytest.approx(plain / 2)
    assert dict(found.parts)[Part.JUDGE] == 0.0
    assert compare(left, right, ASKED, opinions=[_Opinion(7.0, 0.5)]).unscored is Unscored.OPINION_FAILED
    assert compare(left, left, ASKED, opinions=[_Opinion(0.0, 0.5)]).score == 1.0


def test_b21_our_own_fault_is_an_unscored_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    """B21: a bug in the comparator may not reach whoever asked; it is counted by name."""

    def broken(*_: object) -> None:
        raise RuntimeError("bug")

    monkeypatch.setattr(agree, "_add_text", broken)
    found = compare(said("a b c"), said("a b d"), ASKED)
    assert (found.verdict, found.unscored, found.score) == (Verdict.UNSCORED, Unscored.COMPARATOR_ERROR, None)


# Cases from public reports, through the assembler, as the bytes came.


def _calls(*calls: tuple[str, str]) -> dict[str, Any]:
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": f"w{i}", "type": "function", "function": {"name": name, "arguments": arguments}}
            for i, (name, arguments) in enumerate(calls)
        ],
    }


def _delta(*calls: dict[str, Any]) -> dict[str, Any]:
    return {"tool_calls": list(calls)}


@pytest.mark.parametrize(
    ("events", "whole"),
    [
        pytest.param(
            [
                _delta({"index": 0, "id": "c0", "function": {"name": "add", "arguments": ""}}),
                _delta({"index": 1, "id": "c1", "function": {"name": "mul", "arguments": ""}}),
                _delta({"index": 0, "function": {"arguments": '{"a":1}'}}),
                _delta({"index": 1, "function": {"arguments": '{"b":2}'}}),
            ],
            _calls(("mul", '{"b": 2}'), ("add", '{"a": 1}')),
            id="b26-interleaved",
        ),
        pytest.param(
            [_delta({"id": "c0", "type": "function", "function": {"name": "f", "arguments": "{}"}})],
            _calls(("f", "")),
            id="b28-no-index",
        ),
        pytest.param(
            [
                _delta(
                    {"index": 0, "id": "c0", "function": {"name": "f", "arguments": ""}},
                    {"index": 0, "function": {"arguments": '{"x":'}},
                ),
                _delta({"index": 0, "function": {"arguments": "1}"}}),
            ],
            _calls(("f", '{"x": 1}')),
            id="b30-two-entries",
        ),
        pytest.param(
            [_delta({"index": 0, "id": "c0", "type": "function", "function": {"name": "led_on"}})],
            _calls(("led_on", "{}")),
            id="b31-no-arguments",
        ),
        pytest.param(
            [
                _delta({"index": 0, "id": "c0", "function": {"name": "calc", "arguments": ""}}),
                _delta({"index": 0, "id": None, "type": None, "function": {"name": None, "arguments": "{}"}}),
            ],
            _calls(("calc", "")),
            id="b33-nulls",
        ),
    ],
)
def test_b26_to_b33_streamed_calls_equal_whole_ones(events: list[dict[str, Any]], whole: dict[str, Any]) -> None:
    """However a runtime cuts its calls into deltas, they equal the same calls from a runtime that sends them whole."""
    left = assemble(CHAT, stream(*events, finish="tool_calls"))
    right = assemble(CHAT, body(whole, finish="tool_calls"))
    found = compare(left, right, WITH_TOOLS)
    assert (found.kind, found.score, dict(found.parts)[Part.EXACT]) == (Kind.TOOLS, 1.0, 1.0)


def test_b32_blank_and_empty_arguments_agree() -> None:
    """B32: one pool writes "" and the other {}; both led the client to the same call."""
    left = assemble(CHAT, body(_calls(("f", "")), "tool_calls"))
    right = assemble(CHAT, body(_calls(("f", "{}")), "tool_calls"))
    assert score(left, right, WITH_TOOLS) == 1.0


def test_b104_surrogates_are_survived_and_joined() -> None:
    """B104: lone halves in text, arguments and keys are compared; a pair split over two deltas is the emoji."""
    split = assemble(CHAT, stream({"content": "Hi \ud83d"}, {"content": "\ude00 there"}))
    whole = assemble(CHAT, stream({"content": "Hi 😀 there"}))
    assert score(split, whole) == 1.0
    lone = assemble(CHAT, body({"role": "assistant", "content": "\ud83d Hi there"}))
    assert 0.0 < score(lone, whole) < 1.0
    key = assemble(CHAT, body(_calls(("f", '{"\\ud83d": "\\ud83d"}')), "tool_calls"))
    assert score(key, key, WITH_TOOLS) == 1.0
    assert score(key, assemble(CHAT, body(_calls(("f", '{"a": 1}')), "tool_calls")), WITH_TOOLS) < 1.0


def test_b106_twenty_digits_are_compared_exactly() -> None:
    """B106: arguments and JSON answers that differ in the last digit of a 20-digit number differ."""
    left = assemble(CHAT, body(_calls(("pay", '{"to": 12345678901234567890}')), "tool_calls"))
    right = assemble(CHAT, body(_calls(("pay", '{"to": 12345678901234567891}')), "tool_calls"))
    assert parts(left, right, WITH_TOOLS)[Part.ARGUMENTS] == 0.0
    one, two = said('{"id": 12345678901234567890, "n": 1}'), said('{"id": 12345678901234567891, "n": 1.0}')
    assert parts(one, two, JSON_OBJECT)[Part.JSON] == 0.5
    assert parts(one, two, JSON_OBJECT)[Part.EXACT] == 0.0


@pytest.mark.parametrize("asked", [JSON_OBJECT, WITH_TOOLS], ids=["json", "tools"])
def test_b107_deep_nesting_gives_up_quietly(asked: Asked) -> None:
    """B107: nesting that no client could use is unscored by name; neither an exception nor a stack overflow."""
    deep = '{"x":' + "[" * 20_000 + "]" * 20_000 + "}"
    if asked is JSON_OBJECT:
        left, right = said(deep), said('{"x": 1}')
    else:
        left, right = said("", ToolCall("f", deep)), said("", ToolCall("f", '{"x": 1}'))
    found = compare(left, right, asked)
    assert (found.verdict, found.unscored, found.score) == (Verdict.UNSCORED, Unscored.TOO_DEEP, None)
    assert score(left, left, asked) == 1.0


def test_b110_garbage_of_one_bucket_is_a_loss() -> None:
    """B110: exclamation marks for several turns agree with no good answer, in HTTP 200 or not."""
    base, garbage = said(PARIS), said("!!!!!!!!" * 50)
    loss = excess(base, garbage, said(PARIS.replace("runs", "flows")), ASKED).loss
    assert score(base, garbage) <= 0.1
    assert loss is not None and loss.trip is not None and loss.trip > 0.7


def test_b112_a_call_that_leaked_as_text_is_a_lost_call() -> None:
    """B112: text instead of the tool call agrees 0 with the call, though there is text and the status is 200."""
    call = assemble(CHAT, body(_calls(("f", '{"a": 1}')), "tool_calls"))
    leaked = assemble(CHAT, body({"role": "assistant", "content": '<tool_call><function=f>{"a": 1}', "tool_calls": []}))
    found = compare(call, leaked, WITH_TOOLS)
    assert (found.kind, found.score, found.capped_by) == (Kind.TOOLS, 0.0, Part.TOOLS)


def test_b114_a_pool_against_itself_has_no_excess() -> None:
    """B114: a pool that rewords 20 % of its answers and flips an enum in 3 % differs from itself all the time, and
    the excess over 2,000 triples stays within four standard errors of 0, with as many losses as wins."""
    rng = random.Random(114)
    values: list[float] = []
    raw: list[float] = []
    for number in range(2_000):
        legs = [_noisy(rng, number) for _ in range(3)]
        triple = excess(legs[0], legs[1], legs[2], JSON_OBJECT if number % 2 else ASKED)
        assert triple.loss is not None and triple.loss.trip is not None
        assert isinstance(triple.agreement, Agreement) and triple.agreement.score is not None
        values.append(triple.loss.trip)
        raw.append(1.0 - triple.agreement.score)
    mean = sum(values) / len(values)
    error = (sum((value - mean) ** 2 for value in values) / len(values) ** 2) ** 0.5
    assert sum(raw) / len(raw) > 0.03
    assert abs(mean) < 4 * error


def _noisy(rng: random.Random, number: int) -> Answer:
    if number % 2:
        status = "closed" if rng.random() < 0.03 else "open"
        return said(json.dumps({"status": status, "id": number}))
    text = f"Ticket {number} is open since Monday and waits for the customer's reply about the broken parcel."
    if rng.random() < 0.2:
        text = text.replace("is open since", rng.choice(["was opened on", "has been open since"])).replace(
            "waits", "is waiting"
        )
    return said(text)
