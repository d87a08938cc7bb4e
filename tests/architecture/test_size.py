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
NO_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def sizes(text: str, longer: int = 0) -> Iterator[tuple[str, int]]:
    """The functions of more than `longer` lines, each with its lines of code."""
    functions = [
        node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
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


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_function_has_more_than_60_lines_of_code(path: Path) -> None:
    long = {name: size for name, size in sizes(path.read_text(encoding="utf-8"), MOST) if size > MOST}
    assert not long
