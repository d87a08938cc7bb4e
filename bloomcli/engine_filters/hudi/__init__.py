"""Hudi's filters of record keys, in the footers of Parquet and ORC base files.

`layout` decodes a filter's bytes, `footer` finds it in a file, and `copies` reads the table's copies of it.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Final

from bloomcli.engine_filters.base import EngineFilters
from bloomcli.engine_filters.hudi.layout import COLUMN
from bloomcli.formats.base import FilterFile

_MARKS: Final = ("org.apache.hudi.", "com.uber.hoodie.", "hoodie_")
"""The beginnings of Hudi's keys in footers."""


def filters_of(file: FilterFile, columns: Container[str] | None = None) -> EngineFilters:
    """The filter of a base file's record keys; none in a file without a sign of Hudi's, which takes no time."""
    del columns
    signs = any(key.startswith(_MARKS) for key in file.footer_entries())
    if not signs and all(column.path != COLUMN for column in file.columns):
        return EngineFilters()
    from bloomcli.engine_filters.hudi import footer

    return footer.filters_of(file)
