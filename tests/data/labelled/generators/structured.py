"""Structured output: eight schemas with good documents, and each document damaged in the ways that models damage JSON."""

# ruff: noqa: E501 - sample texts are kept whole

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from generators.shapes import Body, ask, case, say, text_stream

STRING, INTEGER, NUMBER, BOOLEAN = {"type": "string"}, {"type": "integer"}, {"type": "number"}, {"type": "boolean"}


def _object(required: list[str] | None = None, **properties: Any) -> Body:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties) if required is None else required,
        "additionalProperties": False,
    }


# (name, language, what the user asks, schema, a good document, a document that parses and breaks the schema)
DOCUMENTS: list[tuple[str, str, str, Body, Any, Any]] = [
    (
        "person",
        "en",
        "Extract the person: Ann Lee, 30, is a nurse in Leeds.",
        _object(name=STRING, age=INTEGER, job=STRING, city=STRING),
        {"name": "Ann Lee", "age": 30, "job": "nurse", "city": "Leeds"},
        {"name": "Ann Lee", "age": "30", "job": "nurse", "city": "Leeds"},
    ),
    (
        "invoice",
        "en",
        "Read the invoice: two chairs at 49.50 and a lamp at 19.99, EUR.",
        _object(
            currency={"type": "string", "enum": ["EUR", "USD", "GBP"]},
            lines={
                "type": "array",
                "items": _object(item=STRING, count=INTEGER, price={"type": "number", "multipleOf": 0.01}),
            },
        ),
        {
            "currency": "EUR",
            "lines": [{"item": "chair", "count": 2, "price": 49.5}, {"item": "lamp", "count": 1, "price": 19.99}],
        },
        {
            "currency": "euro",
            "lines": [{"item": "chair", "count": 2, "price": 49.5}, {"item": "lamp", "count": 1, "price": 19.99}],
        },
    ),
    (
        "sentiment",
        "en",
        "Rate the review: 'Battery died after a day, but the screen is lovely.'",
        _object(
            ["label", "score"],
            label={"enum": ["positive", "negative", "mixed"]},
            score={"type": "number", "minimum": 0, "maximum": 1},
        ),
        {"label": "mixed", "score": 0.55},
        {"label": "mixed", "score": 55},
    ),
    (
        "地址",
        "zh",
        "从这句话里提取地址：请寄到杭州市西湖区文三路100号，王芳收，电话13800000000。",
        _object(
            city=STRING, district=STRING, street=STRING, name=STRING, phone={"type": "string", "pattern": "^1\\d{10}$"}
        ),
        {"city": "杭州市", "district": "西湖区", "street": "文三路100号", "name": "王芳", "phone": "13800000000"},
        {"city": "杭州市", "district": "西湖区", "street": "文三路100号", "name": "王芳", "phone": "138-0000-0000"},
    ),
    (
        "tree",
        "en",
        "Give the folder structure: src holds main.py and a folder lib with util.py.",
        {
            "$defs": {
                "node": _object(["name"], name=STRING, children={"type": "array", "items": {"$ref": "#/$defs/node"}})
            },
            "$ref": "#/$defs/node",
        },
        {"name": "src", "children": [{"name": "main.py"}, {"name": "lib", "children": [{"name": "util.py"}]}]},
        {"name": "src", "children": [{"name": "main.py"}, {"label": "lib", "children": [{"name": "util.py"}]}]},
    ),
    (
        "route",
        "en",
        "Which queue should this ticket go to? 'I was charged twice.'",
        {
            "anyOf": [
                _object(queue={"const": "billing"}, amount={"type": ["number", "null"]}),
                _object(queue={"const": "other"}, note=STRING),
            ]
        },
        {"queue": "billing", "amount": None},
        {"queue": "billing", "note": "charged twice"},
    ),
    (
        "ids",
        "en",
        "List the two order numbers: 12345678901234567890 and 12345678901234567891.",
        _object(orders={"type": "array", "items": INTEGER, "minItems": 2, "uniqueItems": True}),
        {"orders": [12345678901234567890, 12345678901234567891]},
        {"orders": [12345678901234567890, 12345678901234567890]},
    ),
    (
        "会议",
        "zh",
        "把会议信息整理成JSON：周三下午三点，产品评审，参加者李雷和韩梅梅。",
        _object(
            title=STRING,
            weekday={"enum": ["周一", "周二", "周三", "周四", "周五"]},
            hour=INTEGER,
            people={"type": "array", "items": STRING},
        ),
        {"title": "产品评审", "weekday": "周三", "hour": 15, "people": ["李雷", "韩梅梅"]},
        {"title": "产品评审", "weekday": "星期三", "hour": 15, "people": ["李雷", "韩梅梅"]},
    ),
]


def _format(name: str, schema: Body) -> Body:
    return {"type": "json_schema", "json_schema": {"name": f"s_{len(name)}", "strict": True, "schema": schema}}


def _damaged(text: str) -> list[tuple[str, str]]:
    """Texts that are no JSON by construction, each with the name of the damage."""
    return [
        ("single-quotes", text.replace('"', "'")),
        ("trailing-comma", text[:-1] + ",}"),
        ("missing-brace", text[:-1]),
        ("unquoted-key", text.replace('"', "", 2)),
        ("prose-before", "Here is the JSON you asked for:\n" + text),
        ("prose-after", text + "\n\nLet me know if you need anything else!"),
        ("fenced", f"```json\n{text}\n```"),
        ("comment", text[0] + " // the result\n" + text[1:]),
        ("nan", text[:-1] + ', "x": NaN}'),
        ("twice", text + "\n" + text),
        ("raw-newline", text.replace(': "', ': "\n', 1) if ': "' in text else text[:-1]),
        ("python-literals", text[:-1] + ', "ok": True}'),
        ("half-escape", text[:-1] + ', "p": "C:\\data"}'),
        ("missing-colon", text.replace(": ", " ", 1)),
        ("extra-brace", text + "}"),
    ]


def cases() -> Iterator[Body]:
    """Good documents in three spellings, schema breaks, parse breaks, and cuts with and without the label."""
    for number, (name, lang, user, schema, good, bad) in enumerate(DOCUMENTS):
        request = ask(user, response_format=_format(name, schema))
        plain = json.dumps(good, ensure_ascii=False)
        both = ["json", "schema", "truncation", "finish_reason"]
        yield case(f"json/{name}-good", lang, request, say(plain), passes=both)
        yield case(
            f"json/{name}-indented",
            lang,
            request,
            say("\n" + json.dumps(good, ensure_ascii=False, indent=2) + "\n"),
            passes=both,
        )
        yield case(f"json/{name}-stream", lang, {**request, "stream": True}, text_stream(json.dumps(good)), passes=both)
        yield case(
            f"json/{name}-schema",
            lang,
            request,
            say(json.dumps(bad, ensure_ascii=False)),
            fail=["schema"],
            passes=["json"],
        )
        damages = _damaged(plain)
        for offset in range(4):
            kind, text = damages[(number * 4 + offset) % len(damages)]
            yield case(f"json/{name}-{kind}", lang, request, say(text), fail=["json"])
        half = plain[: len(plain) * 2 // 3]
        yield case(
            f"json/{name}-cut", lang, request, say(half, "length"), fail=["truncation"], passes=["finish_reason"]
        )
        yield case(f"json/{name}-cut-unlabelled", lang, request, say(half), fail=["json"], passes=["truncation"])
    yield from _odd_cases()


def _odd_cases() -> Iterator[Body]:
    loose = ask("Reply with a JSON object about a cup.", response_format={"type": "json_object"})
    yield case(
        "json/object-good", "en", loose, say('{"cup": {"colour": "red", "sizes": [1, 2.5e0, -3]}}'), passes=["json"]
    )
    yield case("json/object-array", "en", loose, say('["cup", "red"]'), fail=["json"])
    yield case("json/object-number", "en", loose, say("42"), fail=["json"])
    yield case("json/object-prose", "en", loose, say("A cup is a small open container for drinking."), fail=["json"])
    yield case("json/object-empty", "en", loose, say(""), fail=["empty"])
    blank = '{"cup": "red"' + "\n" * 120
    yield case("json/object-blank-loop", "en", loose, say(blank, "length"), fail=["truncation", "repetition"])
    broken_then_cut = '{"cup": red, "size": 3, "material": "por'
    yield case("json/object-broken-and-cut", "en", loose, say(broken_then_cut, "length"), fail=["json", "truncation"])
    refused = say(None, refusal="I can't help with that.")
    yield case("json/refusal-field", "en", loose, refused, fail=["refusal"])
    shot = ask('Return only a JSON object with the keys "a" and "b".')
    yield case("json/words-good", "en", shot, say('{"a": 1, "b": 2}'), passes=["json"])
    yield case("json/words-broken", "en", shot, say('{"a": 1, "b": 2'), fail=["json"])
    yield case("json/words-prose", "en", shot, say("I need to know the values of a and b first."))
    zh = ask("只返回JSON，包含键“城市”和“人口”，描述上海。")
    yield case("json/words-zh-good", "zh", zh, say('{"城市": "上海", "人口": 24870000}'), passes=["json"])
    yield case("json/words-zh-broken", "zh", zh, say("{“城市”: “上海”, “人口”: 24870000}"), fail=["json"])
    pick = ask("Is this spam?", structured_outputs={"choice": ["spam", "ham"]})
    yield case("json/choice-good", "en", pick, say("ham"), passes=["schema"])
    yield case("json/choice-bad", "en", pick, say("Ham."), fail=["schema"])
    date = ask("When was the Wall opened?", guided_regex=r"\d{4}-\d{2}-\d{2}")
    yield case("json/regex-good", "en", date, say("1989-11-09"), passes=["schema"])
    yield case("json/regex-bad", "en", date, say("9 November 1989"), fail=["schema"])
    remote = _format("r", {"$ref": "https://example.invalid/schema.json"})
    yield case("json/remote-ref", "en", ask("x y z", response_format=remote), say('{"a": 1}'), passes=["json"])
    endless = _format("e", {"$ref": "#"})
    yield case("json/endless-ref", "en", ask("x y z", response_format=endless), say('{"a": 1}'), passes=["json"])
    deep = "[" * 5000 + "]" * 5000
    yield case("json/too-deep", "en", loose, say(f'{{"a": {deep}}}'), fail=["json"], unsure=["repetition", "garbage"])
    continued = {
        "model": "m",
        "messages": [{"role": "user", "content": "A cup as JSON."}, {"role": "assistant", "content": '{"cup":'}],
    }
    yield case(
        "json/prefill", "en", {**continued, "response_format": {"type": "json_object"}}, say(' "red"}'), passes=["json"]
    )
    responses = {
        "model": "m",
        "input": "A cup as JSON.",
        "text": {"format": {"type": "json_schema", "name": "c", "schema": _object(cup=STRING)}},
    }
    yield case("json/responses-good", "en", responses, _response('{"cup": "red"}'), passes=["json", "schema"])
    yield case("json/responses-schema", "en", responses, _response('{"cup": 3}'), passes=["json"], fail=["schema"])
    quoted = {"model": "m", "prompt": "A cup as JSON:", "guided_json": _object(cup=STRING)}
    done = {"object": "text_completion", "choices": [{"index": 0, "text": '{"cup": "red"}', "finish_reason": "stop"}]}
    yield case("json/completions-good", "en", quoted, done, passes=["json", "schema"])


def _response(text: str, status: str = "completed") -> Body:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    message = {"type": "message", "role": "assistant", "status": status, "content": content}
    return {"id": "resp_1", "object": "response", "status": status, "model": "m", "output": [message], "error": None}
