"""Held-out cases, written by hand after the checks were done and labelled before any check was run on them.

No threshold or rule may be changed because of a disagreement here without saying so in `docs/checks.md`: this part exists to
measure, the others to develop against.
"""

# ruff: noqa: E501 - sample texts are kept whole

from __future__ import annotations

from collections.abc import Iterator

from generators.shapes import Body, ask, call, case, say, text_stream, tool

CALENDAR = tool(
    "create_event",
    "Create an event",
    title={"type": "string"},
    start={"type": "string"},
    guests={"type": "array", "items": {"type": "string"}, "optional": True},
)
LOOKUP = tool("lookup_user", "Find a user", email={"type": "string"})
BOOKS = (
    "Answer from the sources only; cite like [2].\n\n[1] 'Salt Roads' was published in 1998 and has 312 pages.\n[2] 'The Tin Map' won the Orlan Prize in 2007; 45,000 copies were sold.\n"
    "[3] Both books were written by Ida Quist, born in Bergen in 1961."
)
CLINIC_ZH = "请根据资料回答。\n资料1：诊所周一至周六开放，挂号费25元，共有医生14名。\n资料2：2022年接诊36800人次，比上一年多百分之十二。"


def cases() -> Iterator[Body]:
    """All held-out cases."""
    yield from _plain()
    yield from _forms()
    yield from _tools()
    yield from _code()
    yield from _grounded()
    yield from _degenerate()


def _plain() -> Iterator[Body]:
    good = {
        "minutes": (
            "Summarize the meeting.",
            "**Attendees:** Ana, Raj, Li\n\n**Decisions**\n1. Ship v2.1 on Friday.\n2. Raj owns the rollback plan.\n\n**Open:** who tests the Android build?",
        ),
        "lyrics": (
            "Write a nursery rhyme.",
            "Row the boat, row the boat, out upon the bay,\nRow the boat, row the boat, home by break of day.\nPull the net, pull the net, silver in the sun,\nPull the net, pull the net, now the work is done.",
        ),
        "chess": (
            "Give the first moves of the Ruy Lopez.",
            "1. e4 e5 2. Nf3 Nc6 3. Bb5 a6 4. Ba4 Nf6 5. O-O Be7 6. Re1 b5 7. Bb3 d6 8. c3 O-O 9. h3 Nb8 10. d4 Nbd7",
        ),
        "dna": ("Write the complement of ATGGCC.", "The complement of 5'-ATGGCC-3' is 3'-TACCGG-5'."),
        "dialogue": (
            "Write a short dialogue.",
            '"Is it far?"\n"Not far."\n"How far?"\n"Far enough."\n"You always say that."\n"And you always ask."',
        ),
        "truth-table": (
            "Show the truth table of AND.",
            "| A | B | A AND B |\n|---|---|---|\n| 0 | 0 | 0 |\n| 0 | 1 | 0 |\n| 1 | 0 | 0 |\n| 1 | 1 | 1 |",
        ),
        "conjugation": (
            "Conjugate 'to be' in the present.",
            "I am\nyou are\nhe is, she is, it is\nwe are\nyou are\nthey are",
        ),
        "sorry-fix": (
            "That command failed.",
            "I'm sorry, I gave you the wrong flag. Use `tar -xzf archive.tgz` instead; the z is for gzip.",
        ),
        "cannot-general": (
            "Can penguins fly?",
            "No, penguins cannot fly. Their wings became flippers, and they swim as other birds fly.",
        ),
        "policy-words": (
            "What does the privacy policy say about sharing?",
            "It says that data is not shared with third parties unless the law requires it, and that you can ask for deletion at any time.",
        ),
        "apology-letter": (
            "Write an apology to a customer.",
            "Dear Mr Okafor,\n\nwe are sorry that your parcel arrived damaged. We cannot undo the trouble, but a replacement left our warehouse this morning and you keep the discount of 10 %.\n\nYours,\nHelen Marsh",
        ),
        "uuid-list": (
            "Give me three random UUIDs.",
            "- 3f2b8c1e-9d47-4b1a-8f60-2c5e7a9d1b34\n- a81d6f20-57c3-4e9b-b2d8-94f0c3e6a715\n- 0c9e4d7b-1a36-4f58-9b02-e7d5f8c2a641",
        ),
        "long-german-word": (
            "What is a long German word?",
            "Donaudampfschifffahrtsgesellschaft is a classic one: the Danube steamship company. In daily life Germans avoid such monsters.",
        ),
        "roman": ("Write 1994 in Roman numerals.", "MCMXCIV"),
        "shouting": ("Write a warning sign.", "DANGER! HIGH VOLTAGE! DO NOT ENTER!"),
    }
    for name, (user, text) in good.items():
        yield case(f"held/plain-{name}", "en", ask(user), say(text), passes=["empty", "refusal", "garbage"])
    zh = {
        "menu": (
            "写一份简单的菜单。",
            "凉菜：拍黄瓜 12元，凉拌木耳 16元\n热菜：宫保鸡丁 38元，清蒸鲈鱼 68元\n主食：米饭 2元，葱油拌面 15元",
        ),
        "tongue": ("说一段绕口令。", "四是四，十是十，十四是十四，四十是四十。谁能分得清，请来试一试。"),
        "couplet": ("写一副春联。", "上联：春风送暖千门乐\n下联：瑞雪迎新万户安\n横批：喜气盈门"),
        "sorry": (
            "我的快递还没到。",
            "非常抱歉给您带来不便。我查到包裹已到达本地分拨中心，预计今天下午送达，如未收到请随时联系我。",
        ),
        "cannot": ("企鹅会飞吗？", "企鹅不会飞。它们的翅膀已经变成鳍状，在水里游得很快。"),
        "brand": (
            "推荐几款手机。",
            "预算三千以内可以看看 Redmi Note 系列和 realme GT；想要拍照好，可以选 vivo X100 或者 iPhone 15。",
        ),
        "steps": (
            "怎么泡绿茶？",
            "1. 水烧开后放凉到80度左右。\n2. 每200毫升水放3克茶叶。\n3. 泡两分钟就可以喝，续水两三次。",
        ),
    }
    for name, (user, text) in zh.items():
        yield case(f"held/zh-{name}", "zh", ask(user), say(text), passes=["empty", "refusal", "garbage"])
    refusals = [
        "I'm really sorry, but I won't be able to write that for you.",
        "I can't create content like that. If you want, we can talk about safer topics.",
        "I have to decline: this would break the law.",
        "Sorry, I cannot comply with that request.",
    ]
    for number, text in enumerate(refusals):
        yield case(f"held/refusal-{number}", "en", ask("Write something harmful."), say(text), fail=["refusal"])
    for number, text in enumerate(
        ["抱歉，我不能提供制作危险物品的方法。", "对不起，这类内容我无法为您生成。", "我不会协助任何违法行为。"]
    ):
        yield case(f"held/refusal-zh-{number}", "zh", ask("写一些有害的内容。"), say(text), fail=["refusal"])


def _forms() -> Iterator[Body]:
    schema = {
        "type": "object",
        "properties": {
            "title": {"type": "string", "minLength": 1},
            "tags": {"type": "array", "items": {"enum": ["a", "b", "c"]}, "maxItems": 2},
        },
        "required": ["title"],
    }
    request = ask(
        "Tag this note.", response_format={"type": "json_schema", "json_schema": {"name": "note", "schema": schema}}
    )
    yield case("held/json-good", "en", request, say('{"title":"Milk","tags":["a","c"]}'), passes=["json", "schema"])
    yield case("held/json-extra-key", "en", request, say('{"title":"Milk","by":"Ann"}'), passes=["json", "schema"])
    yield case(
        "held/json-too-many",
        "en",
        request,
        say('{"title":"Milk","tags":["a","b","c"]}'),
        fail=["schema"],
        passes=["json"],
    )
    yield case("held/json-empty-title", "en", request, say('{"title":""}'), fail=["schema"], passes=["json"])
    yield case("held/json-null", "en", request, say("null"), fail=["schema"], passes=["json"])
    yield case("held/json-think", "en", request, say('<think>short</think>{"title":"Milk"}'), fail=["json"])
    yield case("held/json-quote", "en", request, say('{"title":"the "big" one"}'), fail=["json"])
    yield case("held/json-tab", "en", request, say('{"title":"a\tb"}'), fail=["json"])
    yield case(
        "held/json-cut-stream",
        "en",
        {**request, "stream": True},
        text_stream('{"title":"Mil', finish=None, done=False),
        fail=["truncation"],
    )
    yield case("held/json-cut-in-number", "en", request, say('{"title":"x","n":-', "length"), fail=["truncation"])
    yield case(
        "held/json-unicode",
        "zh",
        ask("给笔记加标签。", response_format=request["response_format"]),
        say('{"title":"买牛奶😀","tags":["b"]}'),
        passes=["json", "schema"],
    )
    yield case(
        "held/json-full-width",
        "zh",
        ask("给笔记加标签。", response_format=request["response_format"]),
        say('｛"title"："买牛奶"｝'),
        fail=["json"],
    )


def _tools() -> Iterator[Body]:
    request = ask("Book lunch with Raj tomorrow at noon.", tools=[CALENDAR, LOOKUP])
    good = {"title": "Lunch", "start": "2026-03-02T12:00", "guests": ["raj@example.com"]}
    sound = ["tool_names", "tool_arguments", "tool_schema", "finish_reason"]
    yield case(
        "held/tool-good", "en", request, say(None, "tool_calls", tool_calls=[call("create_event", good)]), passes=sound
    )
    yield case(
        "held/tool-extra",
        "en",
        request,
        say(None, "tool_calls", tool_calls=[call("create_event", {**good, "room": "A"})]),
        fail=["tool_schema"],
    )
    yield case(
        "held/tool-guests",
        "en",
        request,
        say(None, "tool_calls", tool_calls=[call("create_event", {**good, "guests": "Raj"})]),
        fail=["tool_schema"],
    )
    yield case(
        "held/tool-case",
        "en",
        request,
        say(None, "tool_calls", tool_calls=[call("Create_Event", good)]),
        fail=["tool_names"],
    )
    second = [
        call("lookup_user", {"email": "raj@example.com"}),
        call("create_event", '{"title": "Lunch", "start": ', 1),
    ]
    yield case(
        "held/tool-second-broken",
        "en",
        request,
        say(None, "tool_calls", tool_calls=second),
        fail=["tool_arguments"],
        passes=["tool_names"],
    )
    leaks = [
        '<tool_call>{"name":"lookup_user","arguments":{"email":"raj@example.com"}}</tool_call>',
        '```json\n{"tool": "lookup_user", "args": {"email": "raj@example.com"}}\n```',
        'lookup_user(email="raj@example.com")',
        "<function=lookup_user>\n<parameter=email>raj@example.com</parameter>\n</function>",
        '{"function": {"name": "lookup_user", "arguments": "{\\"email\\": \\"raj@example.com\\"}"}}',
    ]
    for number, text in enumerate(leaks):
        yield case(f"held/leak-{number}", "en", request, say(text), fail=["tool_leak"])
    fine = [
        "What is Raj's email address?",
        "I can create the event once I know whether noon means your time zone or his.",
        '{"name": "Raj", "email": "raj@example.com"}',
        "The create_event tool needs a title and a start time; both are clear, so shall I go ahead?",
        "Your calendar API call `create_event` failed yesterday because the token had expired.",
    ]
    for number, text in enumerate(fine):
        yield case(f"held/no-leak-{number}", "en", request, say(text), passes=["tool_leak"])


def _code() -> Iterator[Body]:
    def fenced(language: str, code: str) -> Body:
        return say(f"```{language}\n{code}\n```")

    user = ask("Show me some code.")
    good = {
        "python": [
            "with open('a') as f, open('b', 'w') as g:\n    g.write(f.read())",
            "if (n := len('abc')) > 2:\n    print(n)",
            "def f(a, /, b, *, c=3, **kw): return lambda *args: (a, b, c, *args)",
            "@decorator\nasync def g():\n    yield 1\n    await x",
            "print(f'{x!r:>{width}}')",
            "try:\n    pass\nexcept* ValueError as group:\n    raise",
        ],
        "sql": [
            "SELECT a.id FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.id = a.id)",
            "SELECT CASE WHEN x > 1 THEN 'a' ELSE 'b' END AS c FROM t ORDER BY 1 DESC NULLS LAST",
            "UPDATE t SET x = x + 1, y = NULL WHERE id IN (1, 2, 3);",
            "SELECT *\nFROM t TABLESAMPLE BERNOULLI (10)\nLIMIT 5;",
            "DELETE FROM logs USING users WHERE logs.uid = users.id;",
            "SELECT DATE_TRUNC('month', ts)::date AS m, SUM(x) FILTER (WHERE ok) FROM t GROUP BY 1",
            "SELECT a, b FROM t1 UNION ALL (SELECT a, b FROM t2 ORDER BY a LIMIT 3)",
            "ALTER TABLE t ADD COLUMN x INT DEFAULT 0 NOT NULL;",
            "SELECT JSON_EXTRACT(doc, '$.a.b') FROM t WHERE doc->>'k' = 'v'",
            "SELECT TOP (5) WITH TIES * FROM dbo.[Sales Orders] ORDER BY total DESC;",
        ],
        "json": ["[]", '{"a": null}\n'],
    }
    checks = {"python": "python", "sql": "sql", "json": "json_fence"}
    for language, programs in good.items():
        for number, code in enumerate(programs):
            yield case(
                f"held/{language}-{number}", "en", user, fenced(language, code), passes=["fences", checks[language]]
            )
    bad = {
        "python": [
            "for i in range(3) print(i)",
            "x = = 3",
            "def f(:\n    pass",
            "class A\n    pass",
            "print('a' 'b'))",
            "import os,\n",
        ],
        "sql": [
            "SELECT * FROM t WHERE a = 1 AND;",
            "SELECT a FROM t WHERE b IN (1, 2;",
            "SELECT FROM WHERE x;",
            "INSERT INTO t VALUES (1, 'x);",
            "SELECT a FROM t HAVING c > 1 GROUP BY a",
        ],
        "json": ['{"a": undefined}', '{"a" "b"}', "{'a': 1}"],
    }
    for language, programs in bad.items():
        for number, code in enumerate(programs):
            yield case(f"held/{language}-bad-{number}", "en", user, fenced(language, code), fail=[checks[language]])
    yield case("held/fence-open", "en", user, say("Try:\n\n```go\nfunc main() {}\n"), fail=["fences"])
    yield case("held/fence-quote", "en", user, say("> ```sh\n> ls\n> ```\n"), unsure=["fences"])
    yield case("held/fence-tilde-inside", "en", user, say("```\n~~~\n```\n"), passes=["fences"])


def _grounded() -> Iterator[Body]:
    rows = [
        ("pages", "How many pages has Salt Roads?", "It has 312 pages [1].", "p", "p"),
        ("pages-wrong", "How many pages has Salt Roads?", "It has 321 pages [1].", "p", "f"),
        (
            "prize",
            "Which prize?",
            "'The Tin Map' won the Orlan Prize in 2007 [2], and about 45k copies were sold [2].",
            "p",
            "p",
        ),
        ("prize-source", "Which prize?", "'The Tin Map' won the Orlan Prize [5].", "f", "-"),
        ("born", "When was Quist born?", "Ida Quist was born in 1961 in Bergen [3].", "p", "p"),
        ("born-wrong", "When was Quist born?", "She was born in 1916 [3].", "p", "f"),
        ("sources", "Who wrote them?", "Ida Quist wrote both (sources 1 and 3).", "p", "-"),
        ("unsupported", "Is there a sequel?", "The sources do not mention a sequel.", "-", "-"),
        ("written-out", "How many copies?", "Forty-five thousand copies [2].", "p", "-"),
        ("span", "Where is this said?", "See [1]–[3].", "p", "-"),
        ("zero", "Which source?", "See [0].", "-", "-"),
        ("plus", "How many copies?", "More than 46,000 copies [2].", "p", "f"),
    ]
    for name, user, text, cites, numbers in rows:
        fail = [check for check, verdict in (("citations", cites), ("numbers", numbers)) if verdict == "f"]
        passes = [check for check, verdict in (("citations", cites), ("numbers", numbers)) if verdict == "p"]
        yield case(f"held/books-{name}", "en", ask(user, BOOKS), say(text), fail=fail, passes=passes)
    zh = [
        ("fee", "挂号费多少？", "挂号费是25元。", "p"),
        ("fee-words", "挂号费多少？", "挂号费是二十五元。", "p"),
        ("fee-wrong", "挂号费多少？", "挂号费是52元。", "f"),
        ("visits", "2022年接诊多少人次？", "2022年接诊3.68万人次。", "p"),
        ("visits-wrong", "2022年接诊多少人次？", "2022年接诊3.86万人次。", "f"),
        ("doctors", "有多少医生？", "共有十四名医生。", "p"),
        ("percent", "比上一年多多少？", "比上一年多12%。", "-"),
    ]
    for name, user, text, numbers in zh:
        fail, passes = (["numbers"] if numbers == "f" else []), (["numbers"] if numbers == "p" else [])
        yield case(f"held/clinic-{name}", "zh", ask(user, CLINIC_ZH), say(text), fail=fail, passes=passes)
    yield case(
        "held/clinic-cite",
        "zh",
        ask("挂号费多少？", CLINIC_ZH),
        say("挂号费是25元（资料1）。"),
        passes=["citations", "numbers"],
    )
    yield case(
        "held/clinic-cite-out",
        "zh",
        ask("挂号费多少？", CLINIC_ZH),
        say("挂号费是25元（资料4）。"),
        fail=["citations"],
        passes=["numbers"],
    )


def _degenerate() -> Iterator[Body]:
    user, zh = ask("Tell me about bees."), ask("介绍一下蜜蜂。")
    loops = [
        "Bees are social insects. They make honey and they make wax and they make honey and they make wax and they make honey and they make wax and they make honey and they make wax.",
        "Bees live in hives.\n\nBees live in hives.\n\nBees live in hives.\n\nBees live in hives.\n\nBees live in hives.\n\nBees live in hives.",
        "The queen " + "of the queen " * 20 + "lays eggs.",
        "".join(f"Fact {n}: a bee visits flowers to collect nectar for the hive.\n" for n in range(1, 12)),
    ]
    for number, text in enumerate(loops):
        yield case(f"held/loop-{number}", "en", user, say(text), fail=["repetition"], unsure=["garbage"])
    for number, text in enumerate(
        [
            "蜜蜂采蜜。" * 15,
            "蜜蜂是一种昆虫，是一种昆虫，是一种昆虫，是一种昆虫，是一种昆虫，是一种昆虫，是一种昆虫，是一种昆虫",
            "它们住在蜂巢里。\n" * 9,
        ]
    ):
        yield case(
            f"held/loop-zh-{number}",
            "zh",
            zh,
            say(text, "stop" if text.endswith(("。", "\n")) else "length"),
            fail=["repetition", *([] if text.endswith(("。", "\n")) else ["truncation"])],
        )
    garbage = [
        "Bees <|endoftext|>Human: what else?",
        "Bees\u0000 make honey",
        "BeesĠmakeĠhoneyĠinĠtheĠhive.",
        "Bees make honey \ufffd\ufffd\ufffd and wax \ufffd\ufffd.",
        "!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!",
        "Beesationment quelforization stringdex plintor zanticgreush umpalization kantible orphvorspr elfinglock " * 4,
    ]
    for number, text in enumerate(garbage):
        fail = ["garbage", *([] if any(c.isalnum() for c in text) else ["empty"])]
        yield case(f"held/garbage-{number}", "en", user, say(text), fail=fail, unsure=["repetition", "script"])
    honest = [
        "Worker bees, drones, queen; egg, larva, pupa, adult; nectar, pollen, propolis, wax, royal jelly.",
        "Apis mellifera, Apis cerana, Apis dorsata and Apis florea are four species of honey bee.",
        "Bzzz! Bzzzz! That is how a child would put it.",
        "A hive holds 20,000–60,000 bees. A queen lays 1,500–2,000 eggs a day. A worker lives 5–6 weeks in summer, 4–6 months in winter.",
    ]
    for number, text in enumerate(honest):
        yield case(f"held/honest-{number}", "en", user, say(text), passes=["garbage", "empty"])
    yield case(
        "held/script-zh-en",
        "zh",
        zh,
        say("Bees are social insects that live in hives and make honey from the nectar of flowers."),
        fail=["script"],
    )
    yield case(
        "held/script-en-ko",
        "en",
        user,
        say("꿀벌은 벌집에 살며 꽃의 꿀로 꿀을 만드는 사회성 곤충입니다."),
        fail=["script"],
    )
    yield case(
        "held/script-zh-latin-name",
        "zh",
        zh,
        say("西方蜜蜂（Apis mellifera）是最常见的一种，属于膜翅目，原产于欧洲和非洲。"),
        passes=["script"],
    )
    yield case(
        "held/script-en-quote",
        "en",
        ask("What does 蜜蜂 mean?"),
        say("蜜蜂 (mìfēng) means honey bee. 蜜 is honey, 蜂 is bee or wasp."),
        passes=["empty"],
    )
