"""Garbage, and odd but honest text."""

import pytest

from gateway.core.assemble import Answer, Choice
from gateway.core.quality.asked import Asked
from gateway.core.quality.finding import Verdict
from gateway.core.quality.garbage import check_garbage
from gateway.core.quality.view import view_of


def verdict(text: str, finish: str = "stop", context: str = "") -> Verdict:
    """The verdict on one text."""
    choice = Choice(text=text, finish_reason=finish)
    return check_garbage(view_of(Asked(context=context), Answer(choices=(choice,), done=True), choice)).verdict


GARBAGE = {
    "replacement": "The \ufffd\ufffd lamp",
    "control": "a\x00b",
    "private": "\ue000\ue001\ue002",
    "mojibake": "itâ€™s donâ€™t",
    "template": "Hello<|im_end|>",
    "template-deepseek": "好的<｜end▁of▁sentence｜>",
    "bpe": "HelloĠthereĠfriend",
    "bytes": "a<0x0A><0x0A>",
    "letters": "to toDDDDDDDDDDDDDDDDD",
    "marks": "so " + "$" * 20,
    "exclamations": "a!!!!!!!!!!!!",
    "endless": "FRESMPAMESMMALEMFRESMPAMESMMALEMCS " * 3,
    "pieces": "fooBAR bazQUX the cat " * 8,
    "salad": "ation ment zor plin quex dral vost krim blen tarp snuv wold grim yost falk dren " * 3,
    "scripts": "абвг αβγδ กขคง hello world this is a long enough line of text אבגד",
}


@pytest.mark.parametrize("text", GARBAGE.values(), ids=GARBAGE.keys())
def test_garbage(text: str) -> None:
    """Each sign by itself fails."""
    assert verdict(text) == Verdict.FAIL


@pytest.mark.parametrize(
    ("text", "name"), [(GARBAGE[name], name) for name in ("replacement", "template", "bpe", "marks", "letters")]
)
def test_what_the_request_holds_is_not_held_against_the_answer(text: str, name: str) -> None:
    """Who asks about these signs gets them back."""
    assert verdict(text, context=text) == Verdict.PASS, name


@pytest.mark.parametrize(
    "text",
    [
        "Plain text, 100 % fine: a/b, c_d, e-f.",
        "-" * 80,
        "Wow!!! Great!!",
        "hmm… ok ……………………",
        "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "JavaScript, PostgreSQL, LaTeX, macOS, iPhone, GitHub and McDonald are names with capitals inside, and fine.",
        "eggs, flour, sugar, butter, vanilla, salt, milk, lemon, yeast, raisins, almonds, jam, cream, nuts, oil, rum, "
        "corn, peas, honey, cocoa, walnuts, cherries, cinnamon, pepper, mustard, thyme, sage, dill, leek, figs, plums",
        "日本語と中文和English混ぜ",
        "∑ ∫ √ ≤ ≥ ∞ α β γ",
        "Use `<|im_end|>` to end a turn.",
        "\x1b[31mred\x1b[0m",
    ],
)
def test_honest_text(text: str) -> None:
    """Rulers, hashes, names, lists, formulas, quoted tokens and terminal colours pass."""
    assert verdict(text) == Verdict.PASS


def test_half_a_character_at_the_cut() -> None:
    """The token limit may split one emoji; two broken characters are garbage."""
    assert verdict("Hi \ufffd", "length") == Verdict.PASS
    assert verdict("H\ufffd \ufffd\ufffd", "length") == Verdict.FAIL


def test_nothing_is_not_judged() -> None:
    """Blank text has no signs."""
    assert verdict(" \n") == Verdict.NOT_APPLICABLE
