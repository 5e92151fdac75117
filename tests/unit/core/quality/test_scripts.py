"""Scripts: counted by block, and the answer held to the request's."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.assemble import Answer, Choice
from gateway.core.quality.asked import Asked
from gateway.core.quality.finding import Verdict
from gateway.core.quality.scripts import check_script, script_of, weights
from gateway.core.quality.view import view_of

EN = "The lighthouse stands on a rock two miles from the harbour and sounds a horn in fog."
ZH = "灯塔建在离港口两海里的礁石上，雾天每三十秒鸣一次雾号。"
RU = "Маяк стоит на скале в двух милях от гавани и работает без смотрителя."


def verdict(text: str, user: str, system: str = "", context: str = "") -> Verdict:
    """The verdict on one text."""
    choice = Choice(text=text, finish_reason="stop")
    asked = Asked(user=user, system=system, context=context or user)
    return check_script(view_of(asked, Answer(choices=(choice,), done=True), choice)).verdict


@pytest.mark.parametrize(
    ("character", "script"),
    [
        ("a", "latin"),
        ("é", "latin"),
        ("中", "han"),
        ("あ", "kana"),
        ("한", "hangul"),
        ("я", "cyrillic"),
        ("ω", "greek"),
        ("ع", "arabic"),
        ("5", ""),
        ("。", ""),
        ("😀", ""),
    ],
)
def test_script_of(character: str, script: str) -> None:
    """Letters have a script; digits, marks and emoji have none."""
    assert script == script_of(character)


@given(st.text(max_size=200))
def test_weights_are_positive_and_bounded(text: str) -> None:
    """No script weighs more than three letters a character, and ASCII letters are all counted."""
    found = weights(text)
    assert all(weight > 0 for weight in found.values())
    assert sum(found.values()) <= 3 * len(text)
    assert found.get("latin", 0) >= sum(c.isascii() and c.isalpha() for c in text)


@pytest.mark.parametrize(
    ("text", "user"),
    [
        (EN, "Tell me about it, please."),
        (ZH, "请介绍一下灯塔。"),
        (RU, "Расскажи про маяк."),
        ("用 LED 和 GPS 的灯塔很常见，型号是 ML-300。" + ZH, "请介绍一下灯塔。"),
    ],
)
def test_same_script_passes(text: str, user: str) -> None:
    """The request's script, with Latin names in it."""
    assert verdict(text, user) == Verdict.PASS


@pytest.mark.parametrize(
    ("text", "user"),
    [
        (ZH, "Tell me about it, please."),
        (EN, "请介绍一下灯塔。"),
        (RU, "Tell me about it."),
        (EN + ZH, "Tell me about it."),
        (ZH, "Расскажи про маяк."),
        (EN, "请用中文介绍一下灯塔。"),
    ],
)
def test_other_script_fails(text: str, user: str) -> None:
    """Another script, wholly or in a part, also when the request names its own language."""
    assert verdict(text, user) == Verdict.FAIL


def test_what_excuses_another_script() -> None:
    """Talk of other languages, documents in it, code, and JSON."""
    assert verdict(ZH, "Translate it, please.") == Verdict.SKIP
    assert verdict(EN, "用英语介绍一下灯塔。") == Verdict.SKIP
    assert verdict(EN, "请介绍一下灯塔。", system="Always answer in English.") == Verdict.SKIP
    assert verdict(EN, "谁造的？请回答", context="谁造的？请回答" + EN * 3) == Verdict.PASS
    assert verdict("```py\nx = 1\n```", "写一个函数") == Verdict.NOT_APPLICABLE
    assert verdict('{"name": "lighthouse", "built": "on a rock in the sea"}', "用JSON描述灯塔。") == Verdict.PASS


def test_too_little_to_judge() -> None:
    """A few letters decide nothing."""
    assert verdict("OK", "请介绍一下灯塔。") == Verdict.NOT_APPLICABLE
    assert verdict(EN, "?") == Verdict.NOT_APPLICABLE
