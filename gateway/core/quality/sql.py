"""A light structural check of SQL: what every dialect agrees on, and nothing more.

Owns brackets, quotes, the order of a query's clauses, and ends that dangle. A full parser was weighed against it:
dialects differ so much that a parser refuses correct statements of the next dialect, while damaged answers show
themselves in exactly these places. Must not know tables or types. Called by the code checks.
"""

import re
from typing import Final

_MAX_CHARS: Final = 16_384
_STRINGS: Final = (
    r"'(?:[^'\\]|''|\\.)*'",  # MySQL, BigQuery: a backslash escapes
    r"'(?:[^']|'')*'",  # the standard: it does not
)
_REST: Final = (
    r"""|--[^\n]*|\#(?=\s)[^\n]*|/\*.*?(?:\*/|\Z)|"(?:[^"]|"")*"|`[^`]*`|\[[A-Za-z_][^\]\n]{0,128}\]"""
    r"""|\$(?P<tag>\w*)\$.*?(?:\$(?P=tag)\$|\Z)|(?P<open_quote>['"`])|(?P<word>[^\W\d]\w*)|\d[\w.]*"""
    r"""|(?P<mark>[(),;.]|<=|>=|<>|!=|::|\|\||[-+*/%<>=])|\S"""
)
_TOKENS: Final = tuple(re.compile(string + _REST, re.DOTALL) for string in _STRINGS)
_CLAUSES: Final = {"select": 0, "from": 1, "where": 2, "group": 3, "having": 4, "window": 5, "order": 6, "limit": 7}
_SETS: Final = frozenset({"union", "intersect", "except", "minus"})
_STARTS: Final = frozenset(
    {
        "select",
        "insert",
        "update",
        "delete",
        "merge",
        "replace",
        "upsert",
        "with",
        "create",
        "alter",
        "drop",
        "truncate",
        "grant",
        "revoke",
        "begin",
        "start",
        "commit",
        "rollback",
        "savepoint",
        "release",
        "set",
        "use",
        "show",
        "describe",
        "desc",
        "explain",
        "analyze",
        "vacuum",
        "call",
        "exec",
        "execute",
        "declare",
        "values",
        "table",
        "pragma",
        "copy",
        "load",
        "lock",
        "unlock",
        "comment",
        "refresh",
        "if",
        "do",
        "end",
        "delimiter",
        "go",
        "print",
        "return",
        "while",
        "fetch",
        "open",
        "close",
        "deallocate",
        "prepare",
        "reset",
        "attach",
        "detach",
        "rename",
        "import",
        "export",
        "for",
        "loop",
        "else",
        "elsif",
        "exception",
        "raise",
        "perform",
        "optimize",
        "check",
        "kill",
        "flush",
        "cluster",
        "from",
    }
)
_PROCEDURAL: Final = frozenset({"begin", "declare", "delimiter", "procedure", "function", "trigger", "loop", "do"})
_NEEDS_MORE: Final = frozenset(
    {
        "select",
        "from",
        "where",
        "and",
        "or",
        "on",
        "having",
        "by",
        "join",
        "set",
        "values",
        "in",
        "like",
        "between",
        "as",
        "into",
        "using",
        "union",
        "case",
        "when",
        "then",
    }
)
_Token = tuple[str, str, int]
"""Kind, text (words in lower case) and offset."""

_OPERATORS: Final = frozenset({"=", "<", ">", "<=", ">=", "<>", "!=", "+", "-", "/", "%", "||", "::", ",", "."})


def sql_problem(code: str) -> tuple[str, int] | None:
    """What is wrong with the SQL, and where; None when nothing is; ("", -1) when it is too long. Never raises.

    Dialects disagree on the backslash, so the code is broken only if it is under both readings.
    """
    if len(code) > _MAX_CHARS:
        return "", -1
    problems = [_problem(code, tokens) for tokens in _TOKENS]
    return None if None in problems else problems[0]


def _problem(code: str, pattern: re.Pattern[str]) -> tuple[str, int] | None:
    tokens: list[_Token] = []
    for found in pattern.finditer(code):
        if found["open_quote"]:
            return "a quote never closes", found.start()
        text = found[0]
        if text.startswith(("--", "/*")) or (text.startswith("#") and len(text) > 1):
            continue
        kind = "word" if found["word"] else "mark" if found["mark"] else "value"
        tokens.append((kind, text.lower() if kind == "word" else text, found.start()))
    procedural = any(kind == "word" and text in _PROCEDURAL for kind, text, _ in tokens)
    problem = _brackets(tokens)
    if problem or procedural:
        return problem  # the bodies of procedures follow no common grammar
    return next(filter(None, map(_statement_problem, _statements(tokens))), None)


def _brackets(tokens: list[_Token]) -> tuple[str, int] | None:
    opened: list[int] = []
    for kind, text, at in tokens:
        if kind != "mark":
            continue
        if text == "(":
            opened.append(at)
        elif text == ")":
            if not opened:
                return "a bracket closes that was never opened", at
            opened.pop()
        elif text == ";" and opened:
            return "a bracket never closes", opened[-1]
    return ("a bracket never closes", opened[-1]) if opened else None


def _statements(tokens: list[_Token]) -> list[list[_Token]]:
    statements: list[list[_Token]] = [[]]
    for token in tokens:
        if token[1] == ";" and token[0] == "mark":
            statements.append([])
        else:
            statements[-1].append(token)
    return [statement for statement in statements if statement]


def _statement_problem(statement: list[_Token]) -> tuple[str, int] | None:
    kind, text, at = statement[0]
    while text == "(" and len(statement) > 1:
        statement = statement[1:]
        kind, text, at = statement[0]
    if len(statement) > 1 and kind == "word" and text not in _STARTS:
        return "a statement starts with no SQL keyword", at
    return _dangling(statement) or _clause_order(statement)


def _dangling(statement: list[_Token]) -> tuple[str, int] | None:
    """Operators and keywords that want something after them and get an end, a closing bracket or a clause."""
    for index, (kind, text, at) in enumerate(statement):
        following = statement[index + 1] if index + 1 < len(statement) else ("end", "", at)
        at_end = following[0] == "end" or (following[0] == "mark" and following[1] == ")")
        if kind == "mark" and text in _OPERATORS:
            clause = following[0] == "word" and following[1] in {"from", "where", "having", "limit"}
            if at_end or clause or (text == "," and following[1] == ","):
                return f"{'a comma' if text == ',' else 'an operator'} dangles", at
        elif kind == "word" and text in _NEEDS_MORE and following[0] == "end":
            return "the statement ends in a keyword that wants more", at
        elif (
            kind == "word"
            and text in {"from", "where", "having", "set"}
            and following[1] in {"order", "group", "limit", "where"}
        ):
            return "a clause is empty", at
    return None


def _clause_order(statement: list[_Token]) -> tuple[str, int] | None:
    """Clauses of each query must come in the order of the grammar, each once; one stack level per bracket."""
    if statement[0][1] not in {"select", "with"}:
        return None
    reached = [-1]
    calls = [False]  # whether a bracket belongs to a function: extract(year from d), trim(x from y)
    for index, (kind, text, at) in enumerate(statement):
        before = statement[index - 1] if index else ("", "", 0)
        if kind == "mark" and text == "(":
            reached.append(-1)
            following = statement[index + 1][1] if index + 1 < len(statement) else ""
            calls.append(following not in {"select", "with"})
        elif kind == "mark" and text == ")" and len(reached) > 1:
            reached.pop()
            calls.pop()
        elif kind == "word" and not calls[-1]:
            if text in _SETS:
                reached[-1] = -1
            rank = _CLAUSES.get(text)
            if rank is None or before[1] in {"distinct", "within", ".", "as"}:
                continue
            if text == "select" and before[1] == ")":
                reached[-1] = -1  # the query behind WITH
            if rank <= reached[-1]:
                return "the clauses are out of order", at
            reached[-1] = rank
    return None
