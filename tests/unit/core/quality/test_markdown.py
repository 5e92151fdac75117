"""Telling code from prose."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.quality.markdown import MAX_FENCES, blank_code, find_fences


def test_fences_with_their_language_and_body() -> None:
    """Language, body and closing of two fences of different marks."""
    text = "a\n```Python title=x\nprint(1)\n```\n~~~\nb\n~~~\n"
    fences = find_fences(text)
    assert [fence.language for fence in fences] == ["python", ""]
    assert [text[fence.body_start : fence.body_end] for fence in fences] == ["print(1)\n", "b\n"]
    assert all(fence.closed for fence in fences)


@pytest.mark.parametrize(
    ("text", "closed"),
    [
        ("```py\nx\n```", [True]),
        ("```py\nx", [False]),
        ("```py\nx```\nrest", [False]),
        ("````md\n```py\nx\n```\n````", [True]),
        ("```markdown\n```py\nx\n```\n```", [True]),
        ("~~~\n```\n~~~", [True]),
        ("- item\n      ```py\n      x\n      ```", [True]),
        ("```a``` inline", []),
        ("no code", []),
    ],
)
def test_closing(text: str, closed: list[bool]) -> None:
    """A fence closes by its own mark, alone on its line; longer fences and markdown fences hold inner ones."""
    assert closed == [fence.closed for fence in find_fences(text)]


def test_number_of_fences_is_bounded() -> None:
    """A text of nothing but fences is not read for ever."""
    assert len(find_fences("```\nx\n```\n" * 500)) == MAX_FENCES


@given(st.text(alphabet="`~ab \n", max_size=120))
def test_blanking_keeps_every_offset(text: str) -> None:
    """Prose has the length and the line ends of the text, and no character that was not there."""
    prose = blank_code(text, find_fences(text))
    assert len(text) == len(prose)
    assert all(left in {right, " "} for left, right in zip(prose, text, strict=True))
    assert [i for i, c in enumerate(text) if c == "\n"] == [i for i, c in enumerate(prose) if c == "\n"]


def test_inline_code_is_blanked() -> None:
    """Single and double back quotes are code too."""
    assert blank_code("use `a[1]` and ``b[2]`` now", ()) == "use " + " " * 6 + " and " + " " * 8 + " now"
