"""Functions stay small: 60 lines of code at most, without docstring, comments and blank lines."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MOST = 60
FILES = sorted(
    path for part in ("bloomcli", "tools", "tests", "fixtures", "benchmarks") for path in (ROOT / part).rglob("*.py")
)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
NO_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """The statements below a node, at any depth, and their clauses. Functions are in no expression: to visit those,
    as `ast.walk` does, takes four times as long."""
    for name in ("body", "orelse", "finalbody", "handlers", "cases"):
        for below in getattr(node, name, ()):
            yield below
            yield from statements(below)


def sizes(text: str, longer: int = 0) -> Iterator[tuple[str, int]]:
    """The functions of more than `longer` lines, each with its lines of code."""
    functions = [node for node in statements(ast.parse(text)) if isinstance(node, FUNCTIONS)]
    found = [(node, range(node.lineno, (node.end_lineno or node.lineno) + 1)) for node in functions]
    found = [(node, lines) for node, lines in found if len(lines) > longer]
    code: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline) if found else ():
        if token.type not in NO_CODE:
            code.update(range(token.start[0], token.end[0] + 1))
    for node, lines in found:
        first, described = node.body[0], ast.get_docstring(node) is not None
        docstring = range(first.lineno, (first.end_lineno or first.lineno) + 1) if described else ()
        yield node.name, len(code.intersection(lines).difference(docstring))


def test_docstrings_comments_and_blank_lines_are_not_counted() -> None:
    text = 'def f(\n    a,\n):\n    """One.\n\n    Two."""\n\n    # three\n    b = """4\n5"""  # 5\n    return b\n'
    assert dict(sizes(text)) == {"f": 6}


def test_functions_are_found_in_every_clause() -> None:
    text = (
        "if 1:\n async def a(): 1\nelse:\n def b():\n  class c:\n   def d(): 1\ntry:\n def e(): 1\n"
        "except OSError:\n def f(): 1\nelse:\n def g(): 1\nfinally:\n def h(): 1\n"
        "match 1:\n case 1:\n  with 1:\n   def i(): 1\nfor _ in 1:\n def j(): 1\n"
    )
    assert sorted(name for name, _ in sizes(text)) == list("abdefghij")


@pytest.mark.slow
def test_no_function_has_more_than_60_lines_of_code() -> None:
    texts = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in FILES}
    assert len(texts) > 500
    long = [text for text in texts.items() if text[1].count("\n") >= MOST]  # others have no function of so many
    assert [(path, name, size) for path, text in long for name, size in sizes(text, MOST) if size > MOST] == []
