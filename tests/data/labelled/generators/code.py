"""Code in fences: good programs in many styles, and programs broken by hand; Python, JSON, SQL, and fences themselves."""

# ruff: noqa: E501 - sample texts are kept whole

from __future__ import annotations

from collections.abc import Iterator

from generators.shapes import Body, ask, case, say

GOOD_PYTHON = {
    "fibonacci": "def fib(n: int) -> int:\n    a, b = 0, 1\n    for _ in range(n):\n        a, b = b, a + b\n    return a\n",
    "class": (
        'class Account:\n    """A bank account."""\n\n    def __init__(self, owner, balance=0):\n        self.owner = owner\n'
        "        self.balance = balance\n\n    def withdraw(self, amount):\n        if amount > self.balance:\n"
        "            raise ValueError('insufficient funds')\n        self.balance -= amount\n"
    ),
    "fragment": "    return sorted(items, key=lambda item: (-item.score, item.name))\n",
    "await": "async with session.get(url) as response:\n    print(await response.text())\n\nawait main()\n",
    "doctest": ">>> add(1, 2)\n3\n>>> add('a', 'b')\n'ab'\n",
    "ellipsis": "class Repository(Protocol):\n    def get(self, key: str) -> bytes: ...\n    def put(self, key: str, value: bytes) -> None: ...\n",
    "notebook": "%matplotlib inline\n!pip install pandas\nimport pandas as pd\ndf = pd.read_csv('data.csv')\n",
    "match": "match command.split():\n    case ['go', where]:\n        move(where)\n    case _:\n        print('what?')\n",
    "zeros": "matrix = [\n" + "    [0, 0, 0, 0, 0, 0, 0, 0],\n" * 8 + "]\n",
    "regex": "import re\nPATTERN = re.compile('\\d+')  # digits\n",
    "newer-fstring": 'print(f"{names["first"]}")\n',
    "newer-generic": "def first[T](items: list[T]) -> T:\n    return items[0]\n",
    "comment-only": "# nothing to do here\n",
    "zh-comments": "def 平均值(数据):\n    # 计算平均值\n    return sum(数据) / len(数据)\n\nprint(平均值([1, 2, 3]))\n",
}
BAD_PYTHON = {
    "colon": "def fib(n)\n    return n\n",
    "bracket": "print(sum([1, 2, 3])\n",
    "indent": "def f(x):\nreturn x\n",
    "quote": "name = 'Ann\nprint(name)\n",
    "javascript": "function add(a, b) {\n    return a + b;\n}\n",
    "print-2": "print 'hello'\n",
    "glued": "def area(r):\n    return 3.14 * r ** 2 return area\n",
    "prose": "First we open the file and then we read it line by line.\n",
    "stray-brace": "for i in range(3):\n    print(i)\n}\n",
    "else": "if x > 3:\n    y = 1\nelse\n    y = 2\n",
    "elided": "def load(path):\n    # ... as before\n\ndef save(path):\n    # ... as before\n",
    "dedent": "def f(x):\n        y = x\n    return y\n",
}
GOOD_JSON = {
    "object": '{"name": "Ann", "roles": ["admin", "editor"], "age": 30}',
    "lines": '{"id": 1, "ok": true}\n{"id": 2, "ok": false}\n',
    "array": '[\n  {"a": 1},\n  {"a": 2}\n]',
    "scalar": '"hello"',
    "escapes": '{"path": "C:\\\\data", "quote": "\\"", "emoji": "\\ud83d\\ude00"}',
}
BAD_JSON = {
    "comment": '{\n  "name": "Ann", // her name\n  "age": 30\n}',
    "ellipsis": '{\n  "name": "Ann",\n  ...\n}',
    "single": "{'name': 'Ann'}",
    "trailing": '{"a": [1, 2, 3,]}',
    "half": '{"name": "Ann", "roles": ["admin"',
    "bare": "{name: Ann}",
}
GOOD_SQL = {
    "join": (
        "SELECT c.name, SUM(o.total) AS spent\nFROM customers c\nJOIN orders o ON o.customer_id = c.id\nWHERE o.created_at >= '2024-01-01'\n"
        "GROUP BY c.name\nHAVING SUM(o.total) > 100\nORDER BY spent DESC\nLIMIT 10;"
    ),
    "cte": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9)\nSELECT i FROM n ORDER BY i;",
    "ddl": "CREATE TABLE users (\n  id SERIAL PRIMARY KEY,\n  name VARCHAR(80) NOT NULL,\n  email TEXT UNIQUE\n);\nCREATE INDEX ON users (email);",
    "window": "SELECT dept, name, RANK() OVER (PARTITION BY dept ORDER BY pay DESC) AS r FROM staff WHERE active;",
    "quote": "SELECT * FROM people WHERE name = 'O''Brien' AND note LIKE '%it\\'s%';",
    "escape-clause": "SELECT * FROM files WHERE path LIKE '%\\_tmp' ESCAPE '\\' AND size > 0;",
    "upsert": "INSERT INTO t (id, n) VALUES (1, 'a'), (2, 'b') ON CONFLICT (id) DO UPDATE SET n = EXCLUDED.n RETURNING id;",
    "procedure": "CREATE FUNCTION f(x INT) RETURNS INT AS $$\nBEGIN\n  IF x > 0 THEN RETURN x; END IF;\n  RETURN 0;\nEND;\n$$ LANGUAGE plpgsql;",
    "extract": "SELECT EXTRACT(YEAR FROM born) AS y, COUNT(*) FROM people GROUP BY y ORDER BY y;",
    "zh": "SELECT 姓名, 成绩 FROM 学生 WHERE 成绩 >= 60 ORDER BY 成绩 DESC; -- 及格的学生",
}
BAD_SQL = {
    "comma": "SELECT id, name, FROM users;",
    "order": "SELECT city, COUNT(*) FROM users GROUP BY city WHERE active = 1;",
    "bracket": "SELECT COUNT(DISTINCT(city FROM users;",
    "quote": "SELECT * FROM users WHERE name = 'Ann;",
    "end": "SELECT * FROM users WHERE age > ;",
    "where": "SELECT * FROM users WHERE ORDER BY name;",
    "keyword": "SELCT * FORM users;",
    "join": "SELECT * FROM users u LEFT JOIN",
    "values": "INSERT INTO users (id, name,) VALUES (1, 'Ann');",
    "twice": "SELECT name FROM users FROM orders;",
}


def _answer(language: str, code: str, after: str = "") -> str:
    return f"Here it is:\n\n```{language}\n{code.rstrip()}\n```\n{after}"


def cases() -> Iterator[Body]:
    """Every program once, with a sentence before and sometimes after it."""
    for language, check, good, bad in (
        ("python", "python", GOOD_PYTHON, BAD_PYTHON),
        ("json", "json_fence", GOOD_JSON, BAD_JSON),
        ("sql", "sql", GOOD_SQL, BAD_SQL),
    ):
        for name, code in good.items():
            lang = "zh" if name.startswith("zh") else "en"
            user = "请写一段代码示例。" if lang == "zh" else f"Show me an example in {language}."
            answer = say(_answer(language, code, "Let me know if you want it explained.\n"))
            judged = [] if name.startswith("newer") or name == "comment-only" else [check]
            yield case(f"code/{language}-{name}", lang, ask(user), answer, passes=["fences", *judged])
        for name, code in bad.items():
            yield case(
                f"code/{language}-bad-{name}",
                "en",
                ask(f"Show me an example in {language}."),
                say(_answer(language, code)),
                fail=[check],
                passes=["fences"],
            )
    yield from _fences()


def _fences() -> Iterator[Body]:
    user = ask("Show me how to print hello in three languages.")
    three = "```python\nprint('hello')\n```\n\n```js\nconsole.log('hello');\n```\n\n~~~sh\necho hello\n~~~\n"
    yield case("fence/three", "en", user, say(three), passes=["fences", "python"])
    yield case("fence/open", "en", user, say("```python\nprint('hello')\n\nThat prints hello."), fail=["fences"])
    yield case(
        "fence/open-second",
        "en",
        user,
        say("```python\nprint('hello')\n```\n\n```js\nconsole.log('hello');\n"),
        fail=["fences"],
        passes=["python"],
    )
    yield case("fence/open-cut", "en", user, say("```python\nprint('hel", "length"), fail=["truncation"])
    yield case("fence/glued-close", "en", user, say("```python\nprint('hello')```\n\nThat is all."), fail=["fences"])
    yield case(
        "fence/in-list",
        "en",
        user,
        say("1. Python:\n   ```python\n   print('hello')\n   ```\n2. Shell:\n   ```sh\n   echo hello\n   ```\n"),
        passes=["fences", "python"],
    )
    yield case(
        "fence/inline",
        "en",
        user,
        say("Use ```print('hello')``` in Python and `echo hello` in a shell."),
        unsure=["fences"],
    )
    nested = "````markdown\n# Title\n\n```sh\nmake\n```\n````\nDone."
    yield case("fence/longer-outer", "en", ask("Write a README in a code block."), say(nested), passes=["fences"])
    readme = "```markdown\n# Tool\n\n```bash\npip install tool\n```\n\nMore text.\n```\nDone."
    yield case("fence/nested-readme", "en", ask("Write a README in a code block."), say(readme), passes=["fences"])
    yield case(
        "fence/mismatched", "en", user, say("~~~python\nprint('hello')\n```\nThat prints hello."), fail=["fences"]
    )
    yield case(
        "fence/python-2-asked",
        "en",
        ask("How do I print in Python 2?"),
        say(_answer("python", "print 'hello'")),
        passes=["fences"],
    )
    yield case(
        "fence/jsonc-asked",
        "en",
        ask("Show a tsconfig.json with comments."),
        say(_answer("json", '{\n  // strict checks\n  "strict": true\n}')),
        passes=["fences"],
    )
    yield case(
        "fence/zh-open",
        "zh",
        ask("用Python打印你好。"),
        say("代码如下：\n```python\nprint('你好')\n这样就可以了。"),
        fail=["fences"],
    )
    yield case(
        "fence/zh-good",
        "zh",
        ask("用Python打印你好。"),
        say("代码如下：\n```python\nprint('你好')\n```\n运行后会输出“你好”。"),
        passes=["fences", "python"],
    )
    yield case("fence/no-language", "en", user, say("```\nthis is not code at all: {[(\n```\n"), passes=["fences"])
    diff = "```diff\n-print 'a'\n+print('a')\n```\n"
    yield case("fence/diff", "en", user, say(diff), passes=["fences"])
    yield case("fence/dashes", "en", user, say("Before\n---\nAfter\n\n- - -\n"), passes=["empty"])
