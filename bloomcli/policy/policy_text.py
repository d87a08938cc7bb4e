"""The parts of the text that every generated policy contains."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from glob import escape
from typing import Final

_WIDEST: Final = 100


REST: Final = (
    "# Files that are not checked.",
    '# exclude = ["**/staging/**"]',
    "",
    "# Severities other than the rules' defaults: error and warning make the check fail, note doesn't.",
    "[severity]",
    '# filter-no-length = "warning"',
    "",
    "# Rules that are switched off, each with a reason, which reports show with the findings.",
    "[off]",
    '# filter-not-power-of-two = "only Spark reads these, and it accepts any size"',
    "",
    "# Keys for some columns: require, max-fpp, max-oversize and off, as above.",
    '# [columns."user.*"]',
    "# max-fpp = 0.05",
    "",
    "# Keys for some files: paths, and all of the above except exclude. Later parts override earlier ones; required",
    "# columns accumulate.",
    "# [[files]]",
    '# paths = ["archive/**"]',
    "# max-fpp = 0.05",
)
"""Keys that can't be derived from a dataset."""


def reader_lines(readers: Sequence[str], table_schema: str | None) -> Iterator[str]:
    """Yield the keys max-oversize, readers and table-schema, with comments."""
    yield "# The largest ratio of a filter's size to the size that its values need (rule filter-oversized)."
    yield "# max-oversize = 4"
    yield ""
    yield "# The engines that read the files. Columns in which one of them looks values up wrongly are findings"
    yield "# (rules reader-negative-zero, reader-millis, reader-decimal-width, reader-widened)."
    yield f"readers = [{', '.join(map(toml_string, readers))}]" if readers else '# readers = ["spark", "trino"]'
    yield ""
    yield "# The table's schema, relative to this file. Readers look up values at its types (rule reader-widened)."
    yield f"table-schema = {toml_string(table_schema)}" if table_schema else '# table-schema = "schemas/orders.json"'
    yield ""


def column_glob(name: str) -> str:
    """Return a column's name as a TOML string. A name that is a glob or looks empty becomes a glob that matches only
    it."""
    return toml_string(escape(name) if name.strip() or not name else f"[{name[0]}]{name[1:]}")


def toml_string(text: str) -> str:
    """Return a TOML string. TOML has JSON's escapes, except for DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def comment(text: str) -> str:
    """Return text for a comment, without line breaks and control characters."""
    plain = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    return plain if len(plain) <= _WIDEST else "..." + plain[-_WIDEST:]
