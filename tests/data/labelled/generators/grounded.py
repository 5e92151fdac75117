"""Answers from given material: documents with sources, tables with numbers; right, wrongly cited, and with invented numbers."""

# ruff: noqa: E501 - sample texts are kept whole

from __future__ import annotations

from collections.abc import Iterator

from generators.shapes import Body, ask, case, say

SHIPS = (
    "Answer only from the documents and cite them like [1].\n\n[1] The Aurora is a ferry of 182 metres, built in Turku in 2011. It carries 1,340 "
    "passengers.\n[2] The Borealis was built in Gdansk in 2016. It carries 2,050 passengers and 410 cars.\n[3] Both run between Stockholm and "
    "Helsinki; a crossing takes 16.5 hours and costs from 49 euros."
)
TOWER = (
    "只根据资料回答，并用【1】这样的编号标注来源。\n\n【1】星河大厦高186米，2009年建成，共42层，总投资12.6亿元。\n【2】星河大厦每天约有3200人上班，停车位650个。\n"
    "【3】大厦由三部高速电梯服务，最高速度每秒6米。"
)
POLICY = (
    'Use the passages below. Cite the passage id in brackets.\n\n<doc id="HR-101">Employees get 28 days of leave a year.</doc>\n<doc id="HR-207">Unused leave '
    'expires on 31 March.</doc>\n<doc id="HR-330">Parents get 10 extra days until the child is three.</doc>'
)
SALES = (
    "Answer from the table only.\n\n| quarter | units | revenue | returns |\n|---|---|---|---|\n| Q1 | 1,204 | 48,160 | 2.5% |\n| Q2 | 1,377 | 55,080 | 1.9% |\n"
    "| Q3 | 986 | 39,440 | 3.1% |\n| Q4 | 1,615 | 64,600 | 2.2% |"
)
CITY = (
    "请只根据下面的表格回答。\n\n| 城市 | 人口（万） | 面积（平方公里） | 地铁线路 |\n|---|---|---|---|\n| 临江 | 812.5 | 9826 | 十一 |\n| 望山 | 463 | 7120 | 六 |\n"
    "| 海宁港 | 1297 | 6340 | 十八 |"
)
REPORT = (
    "Context:\nIn 2023 the cooperative harvested 3.42 million litres of milk from 418 farms, 7 percent more than the year before. The dairy in Vik paid "
    "0.487 euros a litre. Twenty-three farms left, and nineteen joined. Storage capacity stands at 96,000 litres."
)
CSV = "Use this data only:\n\nname,team,points\nIvo,red,71\nMia,blue,88\nSol,red,64\n"
LISTED = (
    "Cite the sources by number.\n\nSources:\n1. Field notes, May 2021\n2. Census of 2020\n3. Letter of the mayor\n"
)

# (name, language, system, question, answer, verdict of citations, verdict of numbers); verdicts: p(ass), f(ail), - (not judged here)
ANSWERS = [
    ("ships-passengers", "en", SHIPS, "How many passengers does the Borealis carry?", "The Borealis carries 2,050 passengers [2].", "p", "p"),
    ("ships-both", "en", SHIPS, "When were the ships built?", "The Aurora in 2011 [1], the Borealis in 2016 [2].", "p", "p"),
    ("ships-list", "en", SHIPS, "What do we know?", "1. Aurora: 182 metres, 1340 passengers [1].\n2. Borealis: 410 cars [2].\n3. Crossing: 16.5 h [3].", "p", "p"),
    ("ships-many", "en", SHIPS, "Where do they sail?", "Between Stockholm and Helsinki [1, 2, 3].", "p", "-"),
    ("ships-range", "en", SHIPS, "Where do they sail?", "Between Stockholm and Helsinki [1-3].", "p", "-"),
    ("ships-fourth", "en", SHIPS, "Where do they sail?", "Between Stockholm and Helsinki [4].", "f", "-"),
    ("ships-range-out", "en", SHIPS, "Where do they sail?", "Between Stockholm and Helsinki [2-5].", "f", "-"),
    ("ships-list-out", "en", SHIPS, "Where do they sail?", "Between Stockholm and Helsinki [1, 7].", "f", "-"),
    ("ships-doc-word", "en", SHIPS, "Where do they sail?", "Between Stockholm and Helsinki (doc 3).", "p", "-"),
    ("ships-doc-word-out", "en", SHIPS, "Where do they sail?", "Between Stockholm and Helsinki (see document 9).", "f", "-"),
    ("ships-digit", "en", SHIPS, "How many passengers does the Borealis carry?", "The Borealis carries 2,005 passengers [2].", "p", "f"),
    ("ships-length", "en", SHIPS, "How long is the Borealis?", "The Borealis is 201 metres long [2].", "p", "f"),
    ("ships-unknown", "en", SHIPS, "How long is the Borealis?", "The documents do not give the length of the Borealis.", "-", "-"),
    ("ships-rounded", "en", SHIPS, "How long is a crossing?", "About 17 hours, from 49 euros [3].", "p", "p"),
    ("ships-year", "en", SHIPS, "How old is the Aurora?", "It was built in 2001 in Turku [1].", "p", "f"),
    ("ships-none", "en", SHIPS, "Which ship is bigger?", "The Borealis takes more passengers than the Aurora.", "-", "-"),
    ("ships-lens", "en", SHIPS, "Where do they sail?", "Between Stockholm and Helsinki【3†source】.", "p", "-"),
    ("tower-height", "zh", TOWER, "星河大厦有多高？", "星河大厦高186米，共42层【1】。", "p", "p"),
    ("tower-parking", "zh", TOWER, "有多少停车位？", "共有650个停车位【2】。", "p", "p"),
    ("tower-parking-wrong", "zh", TOWER, "有多少停车位？", "共有560个停车位【2】。", "p", "f"),
    ("tower-money", "zh", TOWER, "投资是多少？", "总投资为12.6亿元，也就是1260000000元【1】。", "p", "p"),
    ("tower-money-wrong", "zh", TOWER, "投资是多少？", "总投资为16.2亿元【1】。", "p", "f"),
    ("tower-cite-out", "zh", TOWER, "电梯速度是多少？", "最高速度为每秒6米【5】。", "f", "-"),
    ("tower-cite-square", "zh", TOWER, "电梯速度是多少？", "最高速度为每秒6米[3]。", "p", "-"),
    ("tower-cite-word", "zh", TOWER, "电梯有几部？", "有三部高速电梯（资料3）。", "p", "-"),
    ("tower-cite-word-out", "zh", TOWER, "电梯有几部？", "有三部高速电梯（资料8）。", "f", "-"),
    ("tower-chinese-number", "zh", TOWER, "有多少层？", "一共四十二层【1】。", "p", "p"),
    ("tower-chinese-wrong", "zh", TOWER, "有多少层？", "楼高二十四层【1】。", "p", "f"),
    ("tower-unknown", "zh", TOWER, "物业费多少？", "资料中没有提到物业费。", "-", "-"),
    ("policy-days", "en", POLICY, "How much leave do I get?", "You get 28 days a year [HR-101].", "p", "p"),
    ("policy-two", "en", POLICY, "What about parents?", "Parents get 10 extra days [HR-330], on top of the 28 days [HR-101].", "p", "p"),
    ("policy-out", "en", POLICY, "When does leave expire?", "Unused leave expires on 31 March [HR-270].", "f", "p"),
    ("policy-number", "en", POLICY, "How much leave do I get?", "You get 26 days a year [HR-101].", "p", "f"),
    ("policy-lower", "en", POLICY, "When does leave expire?", "On 31 March [hr-207].", "p", "p"),
    ("sales-best", "en", SALES, "Which quarter had the most units?", "Q4, with 1,615 units.", "-", "p"),
    ("sales-list", "en", SALES, "List the revenue by quarter.", "- Q1: 48,160\n- Q2: 55,080\n- Q3: 39,440\n- Q4: 64,600", "-", "p"),
    ("sales-plain", "en", SALES, "How much revenue in Q2?", "Revenue in Q2 was 55080.", "-", "p"),
    ("sales-k", "en", SALES, "How much revenue in Q4?", "Revenue in Q4 was 64.6k, with 2.2 % returns.", "-", "p"),
    ("sales-swap", "en", SALES, "How much revenue in Q3?", "Revenue in Q3 was 34,940.", "-", "f"),
    ("sales-digit", "en", SALES, "How many units in Q2?", "1,377 units were sold, with 1.6% returns.", "-", "f"),
    ("sales-table", "en", SALES, "Repeat units and returns as a table.", "| quarter | units | returns |\n|---|---|---|\n| Q1 | 1,204 | 2.5% |\n| Q2 | 1,377 | 1.9% |\n| Q3 | 968 | 3.1% |\n| Q4 | 1,615 | 2.2% |", "-", "f"),
    ("sales-fraction", "en", SALES, "What share was returned in Q1, as a fraction?", "In Q1 the share was 0.025.", "-", "p"),
    ("city-people", "zh", CITY, "望山有多少人口？", "望山有463万人口。", "-", "p"),
    ("city-expanded", "zh", CITY, "临江有多少人口？", "临江有812.5万人，面积9826平方公里。", "-", "p"),
    ("city-wrong", "zh", CITY, "临江有多少人口？", "临江有821.5万人。", "-", "f"),
    ("city-area-wrong", "zh", CITY, "海宁港面积多大？", "海宁港的面积是6430平方公里。", "-", "f"),
    ("city-lines", "zh", CITY, "海宁港有几条地铁？", "海宁港有18条地铁线路。", "-", "p"),
    ("city-fullwidth", "zh", CITY, "望山的面积？", "望山的面积是７１２０平方公里。", "-", "p"),
    ("report-milk", "en", REPORT, "How much milk was harvested?", "3.42 million litres, from 418 farms.", "-", "p"),
    ("report-spelled", "en", REPORT, "How many farms left?", "23 farms left and 19 joined.", "-", "p"),
    ("report-expanded", "en", REPORT, "How much milk, in litres?", "3,420,000 litres.", "-", "p"),
    ("report-price", "en", REPORT, "What did the dairy pay?", "It paid 0.49 euros a litre, that is 0.487 exactly.", "-", "p"),
    ("report-wrong", "en", REPORT, "What did the dairy pay?", "It paid 0.478 euros a litre.", "-", "f"),
    ("report-storage", "en", REPORT, "What is the storage capacity?", "The capacity is 69,000 litres.", "-", "f"),
    ("csv-points", "en", CSV, "Who has the most points?", "Mia, with 88 points.", "-", "p"),
    ("csv-wrong", "en", CSV, "What did Sol score?", "Sol scored 46 points.", "-", "f"),
    ("listed-good", "en", LISTED, "What says who lived here?", "The census counts the inhabitants [2].", "p", "-"),
    ("listed-out", "en", LISTED, "What says who lived here?", "The parish register does [6].", "f", "-"),
]  # fmt: skip


def cases() -> Iterator[Body]:
    """Each answer with its two verdicts, and requests where nothing is to be judged."""
    for name, lang, system, user, text, cites, numbers in ANSWERS:
        fail = [check for check, verdict in (("citations", cites), ("numbers", numbers)) if verdict == "f"]
        passes = [check for check, verdict in (("citations", cites), ("numbers", numbers)) if verdict == "p"]
        unsure = ["refusal"] if name.endswith("unknown") and lang == "zh" else []
        yield case(
            f"grounded/{name}", lang, ask(user, system), say(text), fail=fail, passes=[*passes, "empty"], unsure=unsure
        )
    computed = "Units in all: 1,204 + 1,377 + 986 + 1,615 = 5,182."
    yield case("grounded/computed", "en", ask("What is the total of units?", SALES), say(computed))
    growth = "From Q1 to Q2 revenue grew by 14.4 %."
    yield case("grounded/growth", "en", ask("How much did revenue grow from Q1 to Q2?", SALES), say(growth))
    zh = ask("三座城市的总人口是多少？", CITY)
    yield case("grounded/zh-computed", "zh", zh, say("三座城市合计2572.5万人。"))
    free = "In code, a[1] is the second item, and [3, 4] is a list; the year [1989] is an aside."
    yield case("grounded/no-sources", "en", ask("How do I index a list?"), say(free), passes=["empty"])
    own = "Bees sleep at night [1].\n\n[1] J. Smith, Insects, 2004."
    yield case("grounded/own-sources", "en", ask("Do bees sleep? Give a reference."), say(own), passes=["empty"])
    indexed = (
        "The ships are in a list; `ships[7]` fails, as there are two.\n\n```python\nships[9] = None\n```\nSee [2]."
    )
    yield case(
        "grounded/index-in-code", "en", ask("Write code for the ships.", SHIPS), say(indexed), passes=["citations"]
    )
    linked = "The Aurora is a ferry [1](#aurora)."
    yield case("grounded/linked", "en", ask("What is the Aurora?", SHIPS), say(linked))
    chat = {"model": "m", "messages": [{"role": "user", "content": "Read it."}, {"role": "assistant", "tool_calls": [{"id": "t", "type": "function", "function": {"name": "read", "arguments": "{}"}}]}, {"role": "tool", "tool_call_id": "t", "content": "[1] The bridge is 340 metres long.\n[2] It opened in 1931."}, {"role": "user", "content": "According to the documents, how long is the bridge?"}]}  # fmt: skip
    yield case("grounded/tool-result", "en", chat, say("It is 340 metres long [1]."), passes=["citations", "numbers"])
    yield case(
        "grounded/tool-result-wrong", "en", chat, say("It is 430 metres long [3]."), fail=["citations", "numbers"]
    )
