"""Code in fences."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.core.assemble import Answer, Choice
from gateway.core.quality.asked import Asked
from gateway.core.quality.code import check_fences, check_json_fence, check_python, check_sql
from gateway.core.quality.finding import Verdict
from gateway.core.quality.view import View, view_of


def view(text: str, finish: str = "stop", user: str = "") -> View:
    """A view of one text."""
    choice = Choice(text=text, finish_reason=finish)
    return view_of(Asked(user=user), Answer(choices=(choice,), done=True), choice)


def python(code: str, user: str = "") -> Verdict:
    """The verdict on a Python fence."""
    return check_python(view(f"```python\n{code}\n```", user=user)).verdict


def test_fences_close() -> None:
    """Closed, open, open at the limit, and none."""
    assert check_fences(view("```\na\n```")).verdict == Verdict.PASS
    found = check_fences(view("x\n```py\na"))
    assert (found.verdict, found.start) == (Verdict.FAIL, 2)
    assert check_fences(view("```\na", "length")).verdict == Verdict.SKIP
    assert check_fences(view("a")).verdict == Verdict.NOT_APPLICABLE


@pytest.mark.parametrize(
    "code",
    [
        "x = 1",
        "    return x",
        "await f()",
        ">>> 1 +\n1",
        "!ls\n%time\nx = 1",
        "def f(): ...",
        "re.compile('\\d')",
        "if (n := 1):\n    pass",
    ],
)
def test_python_parses(code: str) -> None:
    """Programs, fragments, notebook lines, sessions and top-level await."""
    assert python(code) == Verdict.PASS


@pytest.mark.parametrize(
    "code", ["def f(\n", "x = = 1", "print 'a'", "class A\n    pass", "for x in y print(x)", "x = 'a"]
)
def test_python_does_not_parse(code: str) -> None:
    """Broken programs, with the line as evidence."""
    assert python(code) == Verdict.FAIL


def test_evidence_is_the_line() -> None:
    """The offset of a syntax error is its line inside the answer."""
    text = "See:\n```python\nx = 1\ny = = 2\n```"
    assert text.index("y = =") == check_python(view(text)).start


@pytest.mark.parametrize(
    "code",
    [
        'f"{a["b"]}"',
        "type X = int",
        "def f[T](x): pass",
        "(" * 95 + ")" * 95,
        "-" * 9000 + "1",
        "x = 1\n" * 9000,
    ],
)
def test_newer_or_hostile_python_is_undecided(code: str) -> None:
    """Syntax of later versions and code that would strain the parser are skipped, never crash."""
    assert python(code) == Verdict.SKIP


def test_python_2_on_request() -> None:
    """Who asks for Python 2 gets it."""
    assert python("print 'a'", user="How do I print in Python 2?") == Verdict.NOT_APPLICABLE


@pytest.mark.parametrize(
    ("code", "verdict"),
    [("{}", "pass"), ('{"a":1}\n{"a":2}', "pass"), ("{a:1}", "fail"), ('{"a":1,}', "fail"), ("", "not_applicable")],
)
def test_json_fences(code: str, verdict: str) -> None:
    """JSON and JSON lines pass; near-JSON fails."""
    assert verdict == check_json_fence(view(f"```json\n{code}\n```")).verdict


def test_sql_fences() -> None:
    """Sound, broken, open and unlabelled."""
    assert check_sql(view("```sql\nSELECT 1;\n```")).verdict == Verdict.PASS
    assert check_sql(view("```SQL\nSELECT a, FROM t;\n```")).verdict == Verdict.FAIL
    assert check_sql(view("```sql\nSELECT a,", "length")).verdict == Verdict.SKIP
    assert check_sql(view("```\nSELECT a, FROM t;\n```")).verdict == Verdict.NOT_APPLICABLE


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="()[]{}'\"\\\n\t:=#@ abdefilnrx0.,*-", max_size=300))
def test_any_python_text_gets_a_verdict(code: str) -> None:
    """The parser's own trouble never gets out."""
    assert python(code) in set(Verdict)
