"""Tool calls: good ones from five tool sets, and each way in which calls go wrong, leak into text, or contradict tool_choice."""

# ruff: noqa: E501 - sample texts are kept whole

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from generators.shapes import Body, ask, call, case, chunk, say, stream, tool

STRING = {"type": "string"}
WEATHER = tool(
    "get_weather", "Weather of a city", city=STRING, unit={"enum": ["celsius", "fahrenheit"], "optional": True}
)
SEARCH = tool(
    "search_docs", "Search", query=STRING, top_k={"type": "integer", "minimum": 1, "maximum": 50, "optional": True}
)
REFUND = tool(
    "payment_refund",
    "Refund an order",
    order_id={"type": "string", "pattern": "^[A-Z]{2}\\d{6}$"},
    cents={"type": "integer"},
)
LIGHT = {"type": "function", "function": {"name": "led_on", "description": "Switch the light on"}}
ROUTE = tool(
    "plan_route",
    "Route between places",
    stops={
        "type": "array",
        "items": {"type": "object", "properties": {"name": STRING}, "required": ["name"]},
        "minItems": 2,
    },
    avoid_tolls={"type": "boolean", "optional": True},
)
# (name, language, question, tools, called tool, good arguments, arguments that break the schema)
GOOD: list[tuple[str, str, str, list[Body], str, Any, Any]] = [
    ("weather", "en", "Weather in Oslo?", [WEATHER], "get_weather", {"city": "Oslo"}, {"town": "Oslo"}),
    ("unit", "en", "Weather in Rome in Fahrenheit?", [WEATHER, SEARCH], "get_weather", {"city": "Rome", "unit": "fahrenheit"}, {"city": "Rome", "unit": "F"}),
    ("search", "en", "Find the vacation policy.", [SEARCH, REFUND], "search_docs", {"query": "vacation policy", "top_k": 5}, {"query": "vacation policy", "top_k": "5"}),
    ("refund", "en", "Refund order AB123456, 12.50.", [REFUND], "payment_refund", {"order_id": "AB123456", "cents": 1250}, {"order_id": "AB123456", "cents": 12.5}),
    ("order", "en", "Refund order XY999999, 3.00.", [REFUND, WEATHER], "payment_refund", {"order_id": "XY999999", "cents": 300}, {"order_id": "#XY999999", "cents": 300}),
    ("route", "en", "Route from Bonn to Ulm.", [ROUTE], "plan_route", {"stops": [{"name": "Bonn"}, {"name": "Ulm"}]}, {"stops": ["Bonn", "Ulm"]}),
    ("天气", "zh", "北京今天天气怎么样？", [WEATHER], "get_weather", {"city": "北京"}, {"city": ["北京"]}),
    ("检索", "zh", "帮我查一下年假制度。", [SEARCH], "search_docs", {"query": "年假制度"}, {}),
    ("退款", "zh", "订单AB123456退款十二元五角。", [REFUND, SEARCH], "payment_refund", {"order_id": "AB123456", "cents": 1250}, {"order_id": "AB123456"}),
]  # fmt: skip
SOUND = ["tool_names", "tool_arguments", "finish_reason", "empty"]


def _called(name: str, arguments: Any, finish: str = "tool_calls", text: str | None = None) -> Body:
    return say(text, finish, tool_calls=[call(name, arguments)])


def cases() -> Iterator[Body]:
    """Calls, leaks, choices, labels and streams."""
    yield from _calls()
    yield from _broken_arguments()
    yield from _leaks()
    yield from _no_leaks()
    yield from _choices()
    yield from _streams()


def _calls() -> Iterator[Body]:
    for name, lang, user, tools, target, good, bad in GOOD:
        request = ask(user, tools=tools)
        yield case(f"tools/{name}-good", lang, request, _called(target, good), passes=[*SOUND, "tool_schema"])
        yield case(f"tools/{name}-schema", lang, request, _called(target, bad), fail=["tool_schema"], passes=SOUND)
        wrong = target.replace("_", "-") if len(tools) == 1 else target + "s"
        rest = ["tool_arguments", "finish_reason"]
        yield case(f"tools/{name}-name", lang, request, _called(wrong, good), fail=["tool_names"], passes=rest)
        yield case(
            f"tools/{name}-stop",
            lang,
            request,
            _called(target, good, "stop"),
            fail=["finish_reason"],
            passes=["tool_schema"],
        )
    blank = ask("Light on!", tools=[LIGHT])
    for number, arguments in enumerate(("", "{}", " \n")):
        yield case(f"tools/blank-{number}", "en", blank, _called("led_on", arguments), passes=SOUND)
    absent = say(None, "tool_calls", tool_calls=[{"id": "c0", "type": "function", "function": {"name": "led_on"}}])
    yield case("tools/absent-arguments", "en", blank, absent, passes=SOUND)
    none = ask("Hello")
    yield case("tools/none-offered", "en", none, _called("get_weather", {"city": "Oslo"}), fail=["tool_names"])
    announced = say("Let me check.", "tool_calls", tool_calls=[])
    yield case("tools/announced", "en", ask("Weather in Oslo?", tools=[WEATHER]), announced, fail=["finish_reason"])
    with_text = _called("get_weather", {"city": "Oslo"}, text="I'll look that up for you.")
    yield case(
        "tools/with-text", "en", ask("Weather in Oslo?", tools=[WEATHER]), with_text, passes=[*SOUND, "tool_leak"]
    )
    legacy = {"model": "m", "messages": [{"role": "user", "content": "Weather?"}], "functions": [WEATHER["function"]]}
    old = say(None, "function_call", function_call={"name": "get_weather", "arguments": '{"city": "Oslo"}'})
    yield case("tools/legacy", "en", legacy, old, passes=[*SOUND, "tool_schema"])
    blocks = {"model": "m", "max_tokens": 50, "messages": [{"role": "user", "content": "Weather in Oslo?"}]}
    blocks["tools"] = [{"name": "get_weather", "input_schema": WEATHER["function"]["parameters"]}]
    content = [
        {"type": "text", "text": "Checking."},
        {"type": "tool_use", "id": "t1", "name": "get_weather", "input": {"city": "Oslo"}},
    ]
    message = {"type": "message", "role": "assistant", "model": "m", "content": content, "stop_reason": "tool_use"}
    yield case("tools/messages-good", "en", blocks, message, passes=[*SOUND, "tool_schema"])
    wrong = [{"type": "tool_use", "id": "t1", "name": "get_weather", "input": {"city": 7}}]
    yield case("tools/messages-schema", "en", blocks, {**message, "content": wrong}, fail=["tool_schema"], passes=SOUND)
    flat = {"model": "m", "input": "Weather in Oslo?", "tools": [{"type": "function", **WEATHER["function"]}]}
    item = {"type": "function_call", "call_id": "c1", "name": "get_weather", "arguments": '{"city":"Oslo"}'}
    response = {"object": "response", "status": "completed", "model": "m", "output": [item]}
    yield case("tools/responses-good", "en", flat, response, passes=[*SOUND, "tool_schema"])
    broken = {**item, "arguments": '{"city":"Oslo"'}
    yield case("tools/responses-broken", "en", flat, {**response, "output": [broken]}, fail=["tool_arguments"])
    free = {"type": "custom", "custom": {"name": "run_sql", "description": "Run SQL"}}
    entry = {"id": "c0", "type": "custom", "custom": {"name": "run_sql", "input": "SELECT 1"}}
    yield case(
        "tools/custom",
        "en",
        ask("One?", tools=[free]),
        say(None, "tool_calls", tool_calls=[entry]),
        passes=["tool_names", "finish_reason"],
    )


def _broken_arguments() -> Iterator[Body]:
    request = ask("Weather in Oslo?", tools=[WEATHER])
    texts = {
        "cut": '{"city": "Osl',
        "single-quotes": "{'city': 'Oslo'}",
        "trailing-comma": '{"city": "Oslo",}',
        "prose": "city Oslo",
        "two": '{"city": "Oslo"}{"city": "Bergen"}',
        "fenced": '```json\n{"city": "Oslo"}\n```',
        "bare-key": '{city: "Oslo"}',
        "xml": "<parameter=city>Oslo</parameter>",
        "nan": '{"city": NaN}',
        "newline": '{"city": "Os\nlo"}',
    }
    for name, text in texts.items():
        yield case(
            f"tools/arguments-{name}",
            "en",
            request,
            _called("get_weather", text),
            fail=["tool_arguments"],
            passes=["tool_names"],
        )
    for name, text in {
        "array": '["Oslo"]',
        "string": '"Oslo"',
        "null": "null",
        "twice-encoded": json.dumps('{"city": "Oslo"}'),
    }.items():
        yield case(
            f"tools/arguments-{name}",
            "en",
            request,
            _called("get_weather", text),
            fail=["tool_arguments"],
            passes=["tool_names"],
        )
    cut = _called("get_weather", '{"city": "Osl', "length")
    yield case("tools/arguments-at-limit", "en", request, cut, fail=["truncation"], passes=["tool_names"])


def _leaks() -> Iterator[Body]:
    tools = [WEATHER, SEARCH]
    texts = {
        "hermes": '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>',
        "hermes-after-text": 'Let me look.\n\n<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>',
        "hermes-unclosed": '<tool_call>{"name": "get_weather", "arguments": {"city": "Oslo"}}',
        "qwen-xml": "<tool_call>\n<function=get_weather>\n<parameter=city>\nOslo\n</parameter>\n</function>\n</tool_call>",
        "function-tag": '<function=get_weather>{"city": "Oslo"}</function>',
        "mistral": '[TOOL_CALLS][{"name": "get_weather", "arguments": {"city": "Oslo"}}]',
        "mistral-new": '[TOOL_CALLS]get_weather{"city": "Oslo"}',
        "llama": '<|python_tag|>{"name": "get_weather", "parameters": {"city": "Oslo"}}',
        "llama-bare": '{"name": "get_weather", "parameters": {"city": "Oslo"}}',
        "bare-type": '{"type": "function", "function": "get_weather", "arguments": {"city": "Oslo"}}',
        "fenced": 'I will call:\n```json\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n```',
        "deepseek": '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n{"city": "Oslo"}\n```',
        "kimi": '<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0{"city": "Oslo"}',
        "pythonic": "[get_weather(city='Oslo')]",
        "call": 'get_weather(city="Oslo", unit="celsius")',
        "react": 'Thought: I need the weather.\nAction: get_weather\nAction Input: {"city": "Oslo"}',
        "harmony": '<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city":"Oslo"}',
        "invoke": '<function_calls>\n<invoke name="get_weather">\n<parameter name="city">Oslo</parameter>\n</invoke>\n</function_calls>',
        "name-then-json": 'get_weather\n{"city": "Oslo"}',
        "array": '[{"name": "search_docs", "arguments": {"query": "oslo"}}, {"name": "get_weather", "arguments": {"city": "Oslo"}}]',
    }
    for name, text in texts.items():
        request = ask("Weather in Oslo?", tools=tools)
        yield case(
            f"leak/{name}",
            "en",
            request,
            say(text),
            fail=["tool_leak"],
            passes=["truncation"],
            unsure=["garbage", "json_fence"],
        )
    zh = ask("奥斯陆天气怎么样？", tools=tools)
    text = '好的，我来查询一下。\n<tool_call>\n{"name": "get_weather", "arguments": {"city": "奥斯陆"}}\n</tool_call>'
    yield case("leak/zh-hermes", "zh", zh, say(text), fail=["tool_leak"])
    text = '{"name": "get_weather", "arguments": {"city": "奥斯陆"}}'
    yield case("leak/zh-bare", "zh", zh, say(text), fail=["tool_leak"])
    both = say(
        'And:\n<tool_call>{"name": "search_docs", "arguments": {"query": "x"}}</tool_call>',
        "tool_calls",
        tool_calls=[call("get_weather", {"city": "Oslo"})],
    )
    yield case(
        "leak/half-parsed", "en", ask("Weather and docs?", tools=tools), both, fail=["tool_leak"], passes=["tool_names"]
    )
    reasoning = say(
        None,
        reasoning_content='I should call it. <tool_call>{"name": "get_weather", "arguments": {"city": "Oslo"}}</tool_call>',
    )
    yield case("leak/in-reasoning", "en", ask("Weather in Oslo?", tools=tools), reasoning, fail=["tool_leak", "empty"])
    streamed = stream(
        [
            chunk({"role": "assistant"}),
            chunk({"content": "<tool_"}),
            chunk({"content": "call>\n<function=get_"}),
            chunk({"content": "weather>"}),
            chunk({}, "stop"),
        ]
    )
    yield case(
        "leak/streamed", "en", {**ask("Weather in Oslo?", tools=tools), "stream": True}, streamed, fail=["tool_leak"]
    )


def _no_leaks() -> Iterator[Body]:
    tools = [WEATHER, SEARCH]
    texts = {
        "asks-back": "Which Oslo do you mean, the one in Norway or the one in Minnesota? I can look up both.",
        "names-tool": "I could use get_weather for this, but I need the name of the city first.",
        "from-memory": "In Oslo it is usually about 5 degrees in November, often with rain.",
        "explains-format": "Qwen models wrap their calls in `<tool_call>` tags; the runtime's parser turns them into structured calls.",
        "json-about-weather": '{"city": "Oslo", "temperature": 5, "wind": "light"}',
        "json-named-person": '{"name": "Oslo", "country": "Norway", "population": 709037}',
        "code-example": "Call it from your own code like this:\n```python\nresult = client.weather(city='Oslo')\nprint(result)\n```",
        "function-word": "The function of the Oslo weather station is to call out changes early.",
        "action-word": "Action: none needed. The forecast for Oslo is calm, so keep your plans.",
    }
    for name, text in texts.items():
        yield case(
            f"no-leak/{name}",
            "en",
            ask("What about the weather in Oslo?", tools=tools),
            say(text),
            passes=["tool_leak", "empty"],
        )
    zh = ask("天气怎么样？", tools=tools)
    yield case(
        "no-leak/zh-asks-back",
        "zh",
        zh,
        say("请问您想查询哪个城市的天气？告诉我城市名，我马上帮您查。"),
        passes=["tool_leak"],
    )


def _choices() -> Iterator[Body]:
    tools = [WEATHER, SEARCH]
    oslo = _called("get_weather", {"city": "Oslo"})
    named = {"type": "function", "function": {"name": "get_weather"}}
    text = say("It is probably raining in Oslo right now.")
    yield case(
        "choice/required-called", "en", ask("Oslo?", tools=tools, tool_choice="required"), oslo, passes=["tool_choice"]
    )
    yield case(
        "choice/required-text", "en", ask("Oslo?", tools=tools, tool_choice="required"), text, fail=["tool_choice"]
    )
    yield case(
        "choice/required-empty",
        "en",
        ask("Oslo?", tools=tools, tool_choice="required"),
        say(""),
        fail=["tool_choice", "empty"],
    )
    stopped = _called("get_weather", {"city": "Oslo"}, "stop")
    yield case(
        "choice/forced-stop",
        "en",
        ask("Oslo?", tools=tools, tool_choice=named),
        stopped,
        passes=["tool_choice", "finish_reason"],
    )
    yield case("choice/forced-text", "en", ask("Oslo?", tools=tools, tool_choice=named), text, fail=["tool_choice"])
    other = _called("search_docs", {"query": "Oslo"})
    yield case("choice/forced-other", "en", ask("Oslo?", tools=tools, tool_choice=named), other, fail=["tool_choice"])
    yield case("choice/none-called", "en", ask("Oslo?", tools=tools, tool_choice="none"), oslo, fail=["tool_choice"])
    yield case("choice/none-text", "en", ask("Oslo?", tools=tools, tool_choice="none"), text, passes=["tool_choice"])
    yield case("choice/auto-text", "en", ask("Oslo?", tools=tools, tool_choice="auto"), text)
    two = say(
        None, "tool_calls", tool_calls=[call("get_weather", {"city": "Oslo"}), call("get_weather", {"city": "Rome"}, 1)]
    )
    yield case("choice/parallel-good", "en", ask("Oslo and Rome?", tools=tools), two, passes=[*SOUND, "tool_schema"])
    single = ask("Oslo and Rome?", tools=tools, parallel_tool_calls=False)
    yield case("choice/parallel-off", "en", single, two, fail=["tool_choice"], passes=["tool_schema"])
    yield case("choice/parallel-off-one", "en", single, oslo, passes=["tool_choice"])
    allowed = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [named]}}
    yield case("choice/allowed", "en", ask("Oslo?", tools=tools, tool_choice=allowed), oslo, passes=["tool_choice"])
    yield case("choice/not-allowed", "en", ask("Oslo?", tools=tools, tool_choice=allowed), other, fail=["tool_choice"])
    cut = say("Let me think about the weather in", "length")
    yield case("choice/required-cut", "en", ask("Oslo?", tools=tools, tool_choice="required"), cut, fail=["truncation"])


def _streams() -> Iterator[Body]:
    request = {
        **ask("Add 1 and multiply 2.", tools=[tool("add", a={"type": "integer"}), tool("mul", b={"type": "integer"})]),
        "stream": True,
    }

    def delta(**entry: Any) -> Body:
        return chunk({"tool_calls": [entry]})

    interleaved = [
        delta(index=0, id="c0", type="function", function={"name": "add", "arguments": ""}),
        delta(index=1, id="c1", type="function", function={"name": "mul", "arguments": ""}),
        delta(index=0, function={"arguments": '{"a":'}),
        delta(index=1, function={"arguments": '{"b":2}'}),
        delta(index=0, function={"arguments": "1}"}),
        chunk({}, "tool_calls"),
    ]
    sound = [*SOUND, "tool_schema"]
    yield case("stream/interleaved", "en", request, stream(interleaved), passes=sound)
    no_index = [
        delta(id="c0", type="function", function={"name": "add", "arguments": '{"a":1}'}),
        chunk({}, "tool_calls"),
    ]
    yield case("stream/no-index", "en", request, stream(no_index), passes=sound)
    doubled = [
        chunk(
            {
                "tool_calls": [
                    {"index": 0, "id": "c0", "function": {"name": "add", "arguments": ""}},
                    {"index": 0, "function": {"arguments": '{"a":'}},
                ]
            }
        ),
        delta(index=0, function={"arguments": "1}"}),
        chunk({}, "tool_calls"),
    ]
    yield case("stream/doubled-index", "en", request, stream(doubled), passes=sound)
    nulls = [
        delta(index=0, id="c0", type="function", function={"name": "add", "arguments": ""}),
        delta(index=0, id=None, type=None, function={"name": None, "arguments": '{"a":1}'}),
        chunk({}, "tool_calls"),
    ]
    yield case("stream/nulls", "en", request, stream(nulls), passes=sound)
    broken = [delta(index=0, id="c0", function={"name": "add", "arguments": '{"a":'}), chunk({}, "tool_calls")]
    yield case("stream/arguments-cut", "en", request, stream(broken), fail=["tool_arguments"])
    wrong_type = [delta(index=0, id="c0", function={"name": "add", "arguments": '{"a":"1"}'}), chunk({}, "tool_calls")]
    yield case("stream/schema", "en", request, stream(wrong_type), fail=["tool_schema"])
    lost = [delta(index=0, id="c0", function={"name": "add", "arguments": '{"a":'})]
    yield case("stream/lost", "en", request, stream(lost, done=False), fail=["truncation"])
