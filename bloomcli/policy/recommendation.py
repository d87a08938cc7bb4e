"""Generates the policy that `bloom advise` recommends: the columns that need filters, and each one's rate."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from textwrap import wrap
from typing import Final, NamedTuple

from bloomcli.policy.policy_text import REST, column_glob, comment, reader_lines
from bloomcli.words import plural

_WIDTH: Final = 96
"""Width of a reason's lines; `comment` doesn't shorten them."""


class RequiredColumn(NamedTuple):
    """A column that needs filters."""

    column: str
    fpp: float
    """The highest rate that its filters may have."""
    reason: str


def recommended_policy(
    required: Sequence[RequiredColumn],
    *,
    files: int,
    readers: Sequence[str] = (),
    table_schema: str | None = None,
    tight: bool = False,
) -> str:
    """Return the text of a policy that requires these filters.

    Args:
        required: the columns, at least one.
        files: the number of files that the recommendation is for.
        readers: engines that read the files.
        table_schema: file with the table's schema, relative to the policy's directory.
        tight: filters have any number of blocks, which all these engines accept.
    """
    return "\n".join(_lines(required, files, readers, table_schema, tight)) + "\n"


def _lines(
    required: Sequence[RequiredColumn], files: int, readers: Sequence[str], table_schema: str | None, tight: bool
) -> Iterator[str]:
    usual = min(one.fpp for one in required)
    yield "# The Bloom filters that these files need, for `bloom add` and `bloom validate`."
    yield f"# Written by `bloom advise` for {plural(files, 'file')}: it requires the filters that are worth their"
    yield "# bytes."
    yield "#"
    yield "# Remove the # to enable other keys. `bloom validate --explain RULE` explains a rule, and without RULE"
    yield "# lists all rules. Columns are leaf paths or globs. Paths are globs as in .gitignore, relative to this"
    yield "# file's directory."
    yield ""
    yield "# Columns that must have a filter in every row group with values (rule filter-required)."
    yield "require = ["
    for one in required:
        yield from (f"  # {comment(line)}" for line in wrap(one.reason, _WIDTH))
        yield f"  {column_glob(one.column)},"
    yield "]"
    yield ""
    yield "# The highest measured false-positive rate, 0 to 1 (rule filter-fpp)."
    yield f"max-fpp = {_up(usual):g}"
    yield ""
    if tight:
        yield "# The sizes of new Parquet filters: any number of blocks, which all readers below take."
        yield 'size = "tight"'
        yield ""
    yield from reader_lines(readers, table_schema)
    yield from REST
    for one in required:
        if one.fpp > usual:
            yield ""
            yield f"[columns.{column_glob(one.column)}]"
            yield f"max-fpp = {_up(one.fpp):g}"


def _up(rate: float) -> float:
    """A measured rate, rounded up to two digits, so that the filters meet it."""
    unit: float = 10.0 ** (math.floor(math.log10(rate)) - 1)
    return min(round(math.ceil(round(rate / unit, 9)) * unit, 12), 0.99)
