"""Degenerate text: loops, garbage, and slips into another script; each beside honest texts that look a little like it."""

# ruff: noqa: E501 - sample texts are kept whole

from __future__ import annotations

import random
from collections.abc import Iterator

from generators.shapes import Body, ask, case, say

START_EN = "The lighthouse stands on a rock two miles from the harbour and has been automatic since 1987. "
START_ZH = "灯塔建在离港口两海里的礁石上，一九八七年起无人值守。"
SYLLABLES = ("tor", "ment", "al", "ization", "spr", "ock", "qu", "elf", "ing", "str", "ump", "ation", "dex", "vor", "plin", "gre", "ush", "kant", "ible", "orph", "zan", "tic", "wex")  # fmt: skip


def _loops() -> dict[str, tuple[str, str]]:
    """Name → (language, text). Every one turns in a circle by construction."""
    sentence = "The keeper climbed the stairs and lit the lamp. "
    counted = "".join(f"{n}. The keeper climbed the stairs and lit the lamp.\n" for n in range(1, 30))
    synonyms = "".join(
        f"It is a {w} that is used to make a {w} that is used to make a {w}. "
        for w in ("light", "lamp", "light", "lamp", "light")
    )
    return {
        "sentence": ("en", START_EN + sentence * 8),
        "sentence-cut": ("en", START_EN + sentence * 6 + sentence[:17]),
        "phrase": (
            "en",
            START_EN + "It is the light of the light of the light of the light of " + "the light of " * 12,
        ),
        "word": ("en", START_EN + "very " * 40),
        "hyphen": ("en", "The word is shin" + "-shin" * 40),
        "counted": ("en", counted),
        "paragraph": (
            "en",
            (START_EN + "It guides ships into the bay, and in fog it sounds a horn every thirty seconds.\n\n") * 5,
        ),
        "list": ("en", "Reasons to visit:\n" + "- The view is beautiful\n" * 14),
        "two-lines": ("en", "Q: What is it?\nA: It is a lamp.\n" * 9),
        "synonyms": ("en", synonyms * 2),
        "stammer": (
            "en",
            "I I I think that that that the the the lamp lamp lamp is is is lit lit lit and and and the the the keeper keeper keeper "
            * 2,
        ),
        "blank": ("en", START_EN + "\n" * 200),
        "brackets": ("en", START_EN + "(the lamp) " * 30),
        "number": (
            "en",
            START_EN
            + "The count is 101822, 101822, 101822, 101822, 101822, 101822, 101822, 101822, 101822, 101822, 101822",
        ),
        "zh-sentence": ("zh", START_ZH + "守塔人爬上楼梯点亮了灯。" * 8),
        "zh-phrase": ("zh", START_ZH + "美丽的美丽的" * 15),
        "zh-word": ("zh", START_ZH + "非常" * 50),
        "zh-counted": ("zh", "".join(f"{n}、要每天坚持锻炼身体，保持良好的心态。\n" for n in range(1, 20))),
        "zh-paragraph": ("zh", "夜里他听见海浪拍打礁石，灯光一圈一圈扫过水面，远处的渔船慢慢靠岸。\n" * 5),
        "zh-mixed": ("zh", "人工智能是一种人工智能的技术，" * 12),
    }


def _garbage(seed: random.Random) -> dict[str, tuple[str, str]]:
    """Name → (language, text). Signs of broken decoding, broken weights and leaked tokens."""
    pieces = "".join(
        seed.choice(SYLLABLES) + (" " if seed.random() < 0.35 else seed.choice(["", "DC", "AR"])) for _ in range(240)
    )
    salad = " ".join("".join(seed.choice(SYLLABLES) for _ in range(seed.randint(1, 3))) for _ in range(70))
    alphabets = "абвгдежз", "αβγδεζηθ", "あいうえおかき", "ابجدهوزح", "กขคงจฉชซ", "अआइईउऊ", "lmnopqrs", "中文字符乱码"
    scripts = " ".join("".join(seed.choices(seed.choice(alphabets), k=seed.randint(2, 6))) for _ in range(50))
    return {
        "exclamation": ("en", "!" * 200),
        "exclamation-after-text": ("en", START_EN + "!" * 60),
        "zh-exclamation": ("zh", "！" * 120),
        "replacement": ("en", "The lamp \ufffd\ufffd is lit \ufffd by the \ufffd\ufffd keeper."),
        "zh-replacement": ("zh", "灯塔\ufffd\ufffd建在\ufffd礁石上，\ufffd\ufffd无人值守。"),
        "control": ("en", "The lamp\x00 is lit\x02 by the keeper."),
        "mojibake": ("en", "The keeperâ€™s lamp wasnâ€™t lit, and the cafÃ© was closed."),
        "zh-mojibake": (
            "zh",
            "ç\u0081¯å¡\u0094å»ºå\u009c¨ç¤\u0081ç\u009f³ä¸\u008aï¼\u008cæ\u0097\u00a0äººå\u0080¼å®\u0088",
        ),
        "bpe-marks": ("en", "TheĠkeeperĠlitĠtheĠlampĠandĠclimbedĠtheĠstairs.Ċ"),
        "sentencepiece": ("en", "▁The▁keeper▁lit▁the▁lamp▁and▁climbed▁the▁stairs."),
        "byte-tokens": ("en", "The keeper lit the lamp.<0x0A><0x0A>Then he slept.<0x0A>"),
        "im-end": ("en", "The keeper lit the lamp.<|im_end|>\n<|im_start|>user\nAnd then?"),
        "eot": ("en", "The keeper lit the lamp.<|eot_id|><|start_header_id|>assistant<|end_header_id|>"),
        "inst": ("en", "The keeper lit the lamp. [/INST] [INST] Tell me more. [/INST]"),
        "zh-turn": ("zh", "守塔人点亮了灯。<end_of_turn>\n<start_of_turn>user\n后来呢？"),
        "private-use": ("en", "The lamp \ue001\ue002\ue003\ue004 is lit."),
        "pieces": ("en", pieces),
        "salad": ("en", salad),
        "scripts": ("en", scripts),
        "letters": ("en", "The lamp was toDDDDDDDDDDDDDDDDDDDD to toDDDDDDDDDDDDD even evenDDDDDDDDDDDDDDDDDDD."),
        "marks": ("en", "The answer is $$$$$$$$$$$$$$$$$$$$$$$$$$$$$$$$$$$$$$$$"),
    }


HONEST = {
    "rule": "Part one\n" + "-" * 70 + "\nPart two\n" + "=" * 70 + "\nThe end.",
    "dots": "Name ........................ Ann\nAge ......................... 30\nCity ........................ Leeds",
    "wow": "Wow!!! That is wonderful news!! Congratulations!",
    "laugh": "Haha, hahaha, that is a good one! Ha ha!",
    "hex": "The hash is 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 and the id is 550e8400-e29b-41d4-a716-446655440000.",
    "zeros": "```python\ngrid = [[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]]\n```\nThat is a row of 32 zeros.",
    "names": "The team: Bukayo Saka, Declan Rice, Martin Ødegaard, Gabriel Magalhães, William Saliba, Jurriën Timber, Ben White, Kai Havertz.",
    "schedule": "Mon: 9:00 yoga, 10:00 run\nTue: 9:00 yoga, 10:00 swim\nWed: 9:00 yoga, 10:00 run\nThu: 9:00 yoga, 10:00 swim\nFri: 9:00 yoga, 10:00 rest",
    "formula": "∑_{i=1}^{n} i = n(n+1)/2, and ∫₀¹ x² dx = 1/3; so ∀ε>0 ∃δ>0.",
    "emoji": "🎉🎉🎉 Happy birthday! 🎂🎈 Have a great day 😊",
    "german": "Der Leuchtturm steht auf einem Felsen zwei Meilen vor dem Hafen und ist seit 1987 unbemannt. Bei Nebel ertönt alle dreißig Sekunden ein Horn, "
    "und im Winter kommt nur selten ein Boot, um nach dem Rechten zu sehen und die Batterien zu tauschen.",
    "steps": "Step 1: Open the lid.\nStep 2: Lift the filter.\nStep 3: Rinse the filter.\nStep 4: Dry the filter.\nStep 5: Close the lid.",
    "tags": "The template's tokens are explained in its manual: `<|im_end|>` ends a turn, and `<|im_start|>` opens one.",
    "ingredients": "2 eggs, 100 g flour, 50 g sugar, 50 g butter, 1 tsp vanilla, pinch salt, 200 ml milk, zest of 1 lemon, 10 g yeast, icing sugar, cinnamon, "
    "raisins, almonds, apricot jam, breadcrumbs, cream, cherries, walnuts, cocoa, honey",
}


def cases() -> Iterator[Body]:
    """Loops, garbage, honest look-alikes, scripts."""
    for name, (lang, text) in _loops().items():
        user = "请介绍一下灯塔。" if lang == "zh" else "Tell me about the lighthouse."
        cut = not text.endswith((".", "。", "\n"))
        finish = "length" if cut else "stop"
        fail = ["repetition", *(["truncation"] if cut else [])]
        yield case(f"loop/{name}", lang, ask(user), say(text, finish), fail=fail, unsure=["garbage"])
    for name, (lang, text) in _garbage(random.Random(20)).items():
        user = "请介绍一下灯塔。" if lang == "zh" else "Tell me about the lighthouse."
        empty = [] if any(character.isalnum() for character in text) else ["empty"]
        unsure = ["repetition", "script"]
        yield case(f"garbage/{name}", lang, ask(user), say(text, "stop"), fail=["garbage", *empty], unsure=unsure)
    for name, text in HONEST.items():
        user = "Antworte auf Deutsch: Was ist mit dem Leuchtturm?" if name == "german" else "Show me an example."
        yield case(f"honest/{name}", "en", ask(user), say(text), passes=["garbage", "repetition", "empty"])
    repeat = ask("Repeat the line 'All work and no play makes Jack a dull boy.' ten times.")
    yield case(
        "honest/repeat-asked",
        "en",
        repeat,
        say("All work and no play makes Jack a dull boy.\n" * 10),
        passes=["garbage"],
    )
    zh = ask("把“我爱学习”重复写十遍。")
    yield case("honest/zh-repeat-asked", "zh", zh, say("我爱学习\n" * 10), passes=["garbage"])
    quoted = ask("What does <|im_end|> mean, and why is there a \ufffd\ufffd\ufffd in my file?")
    yield case(
        "honest/quoted-marks",
        "en",
        quoted,
        say("<|im_end|> ends a turn. The \ufffd\ufffd\ufffd stands for bytes that could not be decoded."),
        passes=["garbage"],
    )
    half = say("Here is a smile for you: \ufffd", "length")
    yield case("honest/half-emoji-at-cut", "en", ask("Send me a smile."), half, fail=["truncation"], passes=["garbage"])
    yield from _scripts()


def _scripts() -> Iterator[Body]:
    english = "The lighthouse stands on a rock two miles from the harbour. It has been automatic since 1987, and in fog a horn sounds every thirty seconds."
    chinese = "灯塔建在离港口两海里的礁石上，一九八七年起无人值守，雾天每三十秒鸣一次雾号。"
    russian = "Маяк стоит на скале в двух милях от гавани и с 1987 года работает без смотрителя."
    mixed = (
        "The lighthouse stands on a rock, 它建在离港口两海里的礁石上，一九八七年起无人值守, and in fog a horn sounds."
    )
    japanese = "灯台は港から二海里の岩の上に立っていて、霧の日には三十秒ごとに霧笛が鳴ります。"
    en, zh = ask("Tell me about the lighthouse."), ask("请介绍一下这座灯塔。")
    yield case("script/en-zh", "en", en, say(chinese), fail=["script"])
    yield case("script/en-ru", "en", en, say(russian), fail=["script"])
    yield case("script/en-mixed", "en", en, say(mixed), fail=["script"])
    yield case(
        "script/en-tail", "en", en, say(english + " 所以它很重要，值得一看，而且风景非常优美。"), fail=["script"]
    )
    yield case("script/zh-en", "zh", zh, say(english), fail=["script"])
    yield case("script/zh-ru", "zh", zh, say(russian), fail=["script"])
    yield case("script/zh-ja", "zh", zh, say(japanese), unsure=["script"])
    yield case("script/zh-thai", "zh", zh, say(chinese + "ประภาคารตั้งอยู่บนโขดหินห่างจากท่าเรือ"), fail=["script"])
    yield case("script/en-good", "en", en, say(english), passes=["script"])
    yield case("script/zh-good", "zh", zh, say(chinese), passes=["script"])
    yield case("script/en-name", "en", en, say(english + " Its Chinese name is 灯塔."), passes=["empty"])
    yield case(
        "script/zh-terms",
        "zh",
        zh,
        say("这座灯塔使用 LED 光源和 GPS 校时，由 Trinity House 公司远程监控，型号是 ML-300。"),
        passes=["script"],
    )
    yield case(
        "script/translate",
        "zh",
        ask("把这句话翻译成英文：灯塔建在礁石上。"),
        say("The lighthouse is built on a rock in the sea."),
    )
    yield case(
        "script/translate-ja",
        "en",
        ask("How do you say 'The lighthouse is old' in Japanese?"),
        say("灯台は古いです。その灯台はとても古いです。"),
    )
    yield case(
        "script/zh-code",
        "zh",
        ask("用Python写一个函数，返回列表的和。"),
        say("```python\ndef total(items):\n    return sum(items)\n```"),
    )
    documents = "根据资料回答问题。\n\n资料：The lighthouse was built in 1838 by William Grissell, and its lamp was made in Paris by the workshop of Fresnel himself."
    yield case(
        "script/zh-english-source",
        "zh",
        ask("灯是谁做的？", documents),
        say("The lamp was made in Paris by the workshop of Fresnel himself."),
        unsure=["script"],
    )
    yield case("script/ja-good", "en", ask("灯台について教えてください。"), say(japanese), passes=["script"])
    yield case("script/ru-good", "en", ask("Расскажи мне про маяк, пожалуйста."), say(russian), passes=["script"])
    yield case("script/ru-slip", "en", ask("Расскажи мне про маяк, пожалуйста."), say(chinese), fail=["script"])
