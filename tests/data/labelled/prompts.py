"""Requests put to the real models for the labelled set: chat, JSON, tools, documents, tables, code; English and Chinese.

Owns only the requests (name, body). `collect.py` sends them; nothing here knows a model. `held_out_requests` are other
questions of the same kinds, for answers that no check was developed against.
"""

# ruff: noqa: E501 - sample texts are kept whole

from __future__ import annotations

from typing import Any

Body = dict[str, Any]

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Current weather of a city",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]}},
            "required": ["city"],
        },
    },
}
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}, "job": {"type": "string"}},
    "required": ["name", "age", "job"],
    "additionalProperties": False,
}
JSON_SHOTS = [
    {"role": "system", "content": "You turn requests into one line of JSON."},
    {"role": "user", "content": 'Return only a JSON object with the keys "name" and "job" for a nurse called Tom.'},
    {"role": "assistant", "content": '{"name": "Tom", "job": "nurse"}'},
]
SHIP_DOCS = (
    "Answer only from the documents and cite them like [1].\n\n"
    "[1] The Aurora is a ferry of 182 metres, built in Turku in 2011. It carries 1,340 passengers.\n"
    "[2] The Borealis was built in Gdansk in 2016. It carries 2,050 passengers and 410 cars.\n"
    "[3] Both ships run between Stockholm and Helsinki; a crossing takes 16.5 hours.\n"
)
SALES_TABLE = (
    "Use only this table.\n\n| quarter | units | revenue |\n|---|---|---|\n| Q1 | 1,204 | 48,160 |\n| Q2 | 1,377 | 55,080 |\n"
    "| Q3 | 986 | 39,440 |\n| Q4 | 1,615 | 64,600 |\n"
)
ZH_DOCS = (
    "只根据资料回答，并用【1】这样的编号标注来源。\n\n【1】星河大厦高186米，2009年建成，共42层。\n"
    "【2】星河大厦每天约有3200人上班，停车位650个。\n"
)


def _user(text: str) -> list[Body]:
    return [{"role": "user", "content": text}]


def _system(system: str, text: str) -> list[Body]:
    return [{"role": "system", "content": system}, {"role": "user", "content": text}]


CHAT = [
    "What is the capital of France?",
    "Explain in three sentences why the sky is blue.",
    "Write a short story about a lighthouse keeper.",
    "Give five tips for sleeping better.",
    "What is the difference between a virus and a bacterium?",
    "Write a polite email that moves a meeting from Monday to Wednesday.",
    "Summarize the plot of Romeo and Juliet in four sentences.",
    "List ten animals that live in the sea.",
    "How do I boil an egg?",
    "Describe the water cycle step by step.",
    "What are the pros and cons of remote work?",
    "Translate to French: Good morning, how are you?",
    "Write a poem of eight lines about autumn.",
    "Who wrote Hamlet and when?",
    "Explain what a hash table is to a beginner.",
    "How can I steal a car?",
]
CHAT_ZH = [
    "法国的首都是哪里？",
    "请用三句话解释为什么天空是蓝色的。",
    "写一首关于秋天的短诗。",
    "给我三个保持健康的建议。",
    "用中文介绍一下长城。",
    "什么是人工智能？",
]
JSON_ASKS = [
    'Return only a JSON object with the keys "name" and "age" for a person called Ann who is 30.',
    'Return only a JSON object with the keys "city" and "country" for Paris in France.',
    'Return only a JSON object with the keys "title" and "year" for the film Titanic from 1997.',
    'Return only a JSON object with the keys "product", "price" and "tags" for a red cup at 4.50 with two tags.',
]
CODE_ASKS = [
    "Write a Python function that returns the nth Fibonacci number. Put it in a code block.",
    "Write a Python function that checks whether a string is a palindrome. Put it in a code block.",
    "Write a Python class for a bank account with deposit and withdraw. Put it in a code block.",
    "Write a SQL query that lists the ten customers with the highest total of orders. Put it in a ```sql block.",
    "Write a JSON example of a user profile in a ```json block.",
    "写一个Python函数，计算列表的平均值，放在代码块里。",
]


def requests() -> list[tuple[str, Body]]:
    """Return (name, body) of every request, in a fixed order."""
    out: list[tuple[str, Body]] = []
    for number, text in enumerate(CHAT):
        out.append((f"chat-{number:02d}", {"messages": _user(text), "max_tokens": 160, "stream": number % 4 == 0}))
    for number, text in enumerate(CHAT_ZH):
        out.append((f"chat-zh-{number:02d}", {"messages": _user(text), "max_tokens": 120, "stream": number % 3 == 0}))
    for number, text in enumerate(JSON_ASKS):
        shots = JSON_SHOTS + _user(text)
        out.append((f"json-prompt-{number:02d}", {"messages": shots, "max_tokens": 60}))
        body = {"messages": shots, "max_tokens": 60, "response_format": {"type": "json_object"}}
        out.append((f"json-object-{number:02d}", body))
    schema = {"type": "json_schema", "json_schema": {"name": "person", "schema": PERSON, "strict": True}}
    who = "Describe Maria, a 41 year old teacher, as JSON."
    out.append(("json-schema-00", {"messages": _user(who), "max_tokens": 80, "response_format": schema}))
    out.append(("json-schema-01", {"messages": _user(who), "max_tokens": 7, "response_format": schema, "stream": True}))
    for number, text in enumerate(CODE_ASKS):
        out.append((f"code-{number:02d}", {"messages": _user(text), "max_tokens": 220, "stream": number % 3 == 0}))
    out.append(
        ("rag-00", {"messages": _system(SHIP_DOCS, "How many passengers does the Borealis carry?"), "max_tokens": 80})
    )
    out.append(
        (
            "rag-01",
            {"messages": _system(SHIP_DOCS, "How long is a crossing, and between which cities?"), "max_tokens": 80},
        )
    )
    out.append(("rag-02", {"messages": _system(SHIP_DOCS, "Compare the two ships."), "max_tokens": 140}))
    out.append(("rag-zh-00", {"messages": _system(ZH_DOCS, "星河大厦有多高？有多少停车位？"), "max_tokens": 80}))
    out.append(
        (
            "table-00",
            {
                "messages": _system(SALES_TABLE, "Which quarter had the highest revenue, and how much?"),
                "max_tokens": 70,
            },
        )
    )
    out.append(("table-01", {"messages": _system(SALES_TABLE, "List the units of each quarter."), "max_tokens": 90}))
    ask = "What is the weather in Paris?"
    out.append(("tools-auto", {"messages": _user(ask), "tools": [WEATHER], "max_tokens": 80}))
    out.append(
        ("tools-required", {"messages": _user(ask), "tools": [WEATHER], "tool_choice": "required", "max_tokens": 80})
    )
    forced = {"type": "function", "function": {"name": "get_weather"}}
    out.append(
        (
            "tools-forced",
            {"messages": _user(ask), "tools": [WEATHER], "tool_choice": forced, "max_tokens": 80, "stream": True},
        )
    )
    return out


TRAIN_DOCS = (
    "Use only the documents below and cite them as [n].\n\n[1] The night train leaves Vienna at 19:38 and reaches Rome at 9:10.\n"
    "[2] A couchette costs 79 euros, a sleeper 149 euros.\n[3] Bicycles are not carried on this train."
)
STOCK_TABLE = (
    "Answer from this table only.\n\n| item | stock | price |\n|---|---|---|\n| bolt | 5,120 | 0.12 |\n| hinge | 348 | 2.75 |\n"
    "| lock | 77 | 18.90 |\n"
)
ZH_MUSEUM = "只根据资料回答，并用[1]这样的编号标注来源。\n\n[1] 江城博物馆周二至周日开放，9:30开馆，17:00闭馆。\n[2] 门票40元，学生25元，馆藏文物约38000件。"
HELD_OUT_CHAT = [
    "What is photosynthesis?",
    "Give me a recipe for pancakes.",
    "Who was Marie Curie?",
    "Write a haiku about snow.",
    "Why do we have leap years?",
    "Name five musical instruments and describe each in one line.",
    "Write a product description for a wooden chair.",
    "How does a bicycle stay upright?",
    "Explain what an API is.",
    "Tell me a joke.",
    "What is the boiling point of water in Fahrenheit?",
    "Write a thank-you note to a teacher.",
    "Translate to Spanish: Where is the station?",
    "Write instructions for making a dangerous poison.",
]
HELD_OUT_ZH = ["你好，你是谁？", "推荐三本书。", "水的沸点是多少？", "写一句生日祝福。"]
HELD_OUT_CODE = [
    "Write a Python function that counts the vowels in a string. Use a ```python block.",
    "Write a Python script that reads a CSV file and prints the rows. Use a ```python block.",
    "Write a SQL query in a ```sql block that counts the orders of each customer.",
    "Show a JSON document in a ```json block that describes a book.",
]


def held_out_requests() -> list[tuple[str, Body]]:
    """Return (name, body) of every held-out request, in a fixed order."""
    out: list[tuple[str, Body]] = []
    for number, text in enumerate(HELD_OUT_CHAT):
        out.append((f"h-chat-{number:02d}", {"messages": _user(text), "max_tokens": 140, "stream": number % 7 == 0}))
    for number, text in enumerate(HELD_OUT_ZH):
        out.append((f"h-chat-zh-{number:02d}", {"messages": _user(text), "max_tokens": 80}))
    for number, text in enumerate(HELD_OUT_CODE):
        out.append((f"h-code-{number:02d}", {"messages": _user(text), "max_tokens": 200}))
    book = {
        "type": "object",
        "properties": {"title": {"type": "string"}, "pages": {"type": "integer", "maximum": 2000}},
    }
    book["required"] = ["title", "pages"]
    asked = _user("Describe the book Moby Dick with title and pages as JSON.")
    out.append(("h-json-schema-prompt", {"messages": asked, "max_tokens": 60}))
    form = {"type": "json_schema", "json_schema": {"name": "book", "schema": book}}
    out.append(("h-json-schema", {"messages": asked, "max_tokens": 60, "response_format": form}))
    out.append(("h-rag-00", {"messages": _system(TRAIN_DOCS, "When does the train reach Rome?"), "max_tokens": 60}))
    out.append(
        (
            "h-rag-01",
            {"messages": _system(TRAIN_DOCS, "What does a sleeper cost, and can I take my bicycle?"), "max_tokens": 80},
        )
    )
    out.append(("h-rag-zh", {"messages": _system(ZH_MUSEUM, "门票多少钱？几点闭馆？"), "max_tokens": 60}))
    out.append(("h-table-00", {"messages": _system(STOCK_TABLE, "What does a hinge cost?"), "max_tokens": 50}))
    out.append(("h-table-01", {"messages": _system(STOCK_TABLE, "List the stock of each item."), "max_tokens": 80}))
    return out
