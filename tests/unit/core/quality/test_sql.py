"""The light structural check of SQL."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.quality.sql import sql_problem


@pytest.mark.parametrize(
    "code",
    [
        "SELECT a, b FROM t WHERE x = 'it''s' GROUP BY a HAVING COUNT(*) > 1 ORDER BY b DESC LIMIT 10;",
        "WITH x AS (SELECT 1 UNION ALL SELECT n+1 FROM x WHERE n < 5) SELECT * FROM x WHERE n > 1",
        "SELECT EXTRACT(YEAR FROM d), TRIM(BOTH ' ' FROM n) FROM t WHERE a IS DISTINCT FROM b",
        "SELECT a FROM t1 UNION SELECT b FROM t2 ORDER BY 1",
        "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY x) FROM t",
        "SELECT [Order Id] FROM [My Table] WHERE a LIKE '%\\_x' ESCAPE '\\' AND b = 'c'",
        "SELECT 'it\\'s' FROM t",
        "SELECT data #>> '{a,b}' FROM t WHERE (x)",
        "-- nothing\n/* at all */",
        "CREATE FUNCTION f() RETURNS INT AS $$ BEGIN RETURN 1; END $$ LANGUAGE plpgsql;",
        "UPDATE t SET a = -1 WHERE id IN (SELECT id FROM u WHERE b);",
        "SELECT t.* FROM s.t AS t WHERE t.a = -1",
        "SELECT 姓名 FROM 学生 WHERE 年龄 > 18",
        "# a MySQL comment\nSELECT 1",
    ],
)
def test_sound_statements_of_many_dialects(code: str) -> None:
    """Nothing that some dialect accepts is called broken."""
    assert sql_problem(code) is None


@pytest.mark.parametrize(
    ("code", "word"),
    [
        ("SELECT a, FROM t", "comma"),
        ("SELECT a FROM t WHERE", "keyword"),
        ("SELECT a FROM t WHERE x = 'abc", "quote"),
        ("SELECT SUM(a FROM t", "bracket"),
        ("SELECT a FROM t)", "bracket"),
        ("SELECT a FROM t GROUP BY a WHERE x=1", "order"),
        ("SELECT a FROM FROM t", "order"),
        ("SELECT a FROM t WHERE x =", "operator"),
        ("SELECT a FROM t WHERE ORDER BY a", "empty"),
        ("SELECT a FROM WHERE x", "empty"),
        ("SELCT a FROM t", "keyword"),
        ("INSERT INTO t (a,) VALUES (1)", "comma"),
        ("SELECT a FROM t.", "operator"),
    ],
)
def test_broken_statements(code: str, word: str) -> None:
    """Each kind of damage is named."""
    found = sql_problem(code)
    assert found is not None
    assert word in found[0]


def test_too_long_is_undecided() -> None:
    """Beyond the cap the answer is 'cannot say'."""
    assert sql_problem("SELECT 1;" * 5000) == ("", -1)


@given(st.text(alphabet="select from where ()'\"`;,.=$/*-#[]\\\n", max_size=200))
def test_never_raises(code: str) -> None:
    """Any text gives None or a place inside it."""
    found = sql_problem(code)
    assert found is None or 0 <= found[1] <= len(code)
