"""Messages don't say "1 bytes": what the code formats with a noun goes through `bloomcli.words`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "bloomcli"

NOUNS = ("bytes", "rows", "values", "filters", "row groups", "column chunks", "buckets")

NEVER_ONE = {
    ("advice/recommend.py", "groups"),  # 1 has a text of its own
    ("checks/additions.py", "lose(wrong)"),  # a verb
    ("checks/additions.py", "lose(fault.wrong)"),
    ("checks/limits.py", "fact.bitset_bytes"),  # 32 or more
    ("checks/profit.py", "len(ranges)"),  # several
    ("checks/readers.py", "lose(wrong)"),
    ("commands/add.py", "facts.bitset_bytes"),  # 32 or more
    ("formats/deep_check.py", "its"),  # a pronoun
    ("formats/mosaic/footer.py", "length"),  # "more", or what a schema decompresses to
    ("formats/mosaic/spec.py", "most"),  # 5 or 10
    ("formats/parquet/check.py", "value"),  # thousands
    ("formats/parquet/check.py", "loaded.bits.nbytes"),  # 32 or more
    ("formats/parquet/footer.py", "source.size"),  # 12 or more
    ("formats/parquet/footer.py", "tail.footer_length"),  # millions
    ("formats/parquet/pages.py", "together"),  # millions
    ("formats/parquet/schema.py", "length"),  # 0 or less
    ("report/text_inspect.py", "number"),  # 1 has a text of its own
}
"""Files and expressions whose value is never 1, or no number."""


def problems(text: str) -> Iterator[str]:
    """The expressions in f-strings whose value can be 1, before a noun that is always in the plural."""
    for string in (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.JoinedStr)):
        for number, after in zip(string.values, string.values[1:], strict=False):
            if not isinstance(number, ast.FormattedValue) or not isinstance(after, ast.Constant):
                continue
            words = str(after.value)
            if words.startswith(tuple(f" {noun}" for noun in NOUNS)) and _can_be_one(number.value):
                yield ast.unparse(number.value)


def _can_be_one(value: ast.expr) -> bool:
    """Whether an expression isn't a constant, which is written in capitals and above 1."""
    name = value.attr if isinstance(value, ast.Attribute) else value.id if isinstance(value, ast.Name) else ""
    return not name.lstrip("_").isupper()


def test_a_number_before_a_plural_is_found() -> None:
    noun = NOUNS[-1]
    assert list(problems(f'x = f"{{size}} {noun} are left"')) == ["size"]
    assert not list(problems(f'x = f"{{limits.MOST}} {noun} are read"'))
    assert not list(problems(f'x = f"{{counted(size, {noun[:-1]!r})}} are left"'))


@pytest.mark.slow
def test_numbers_that_can_be_1_have_a_noun_that_fits() -> None:
    files = sorted(PACKAGE.rglob("*.py"))
    assert len(files) > 300
    found = {
        (path.relative_to(PACKAGE).as_posix(), value)
        for path in files
        for value in problems(path.read_text(encoding="utf-8"))
    }
    assert found == NEVER_ONE
