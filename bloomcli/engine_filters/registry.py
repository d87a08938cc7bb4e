"""Finds the filters that engines keep for a file: asks each of `MODULES`."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

from bloomcli.engine_filters.base import EngineFilters
from bloomcli.formats.base import FilterFile
from bloomcli.model.file import Column

if TYPE_CHECKING:
    import pyarrow as pa

MODULES: Final = ("hudi", "paimon")
"""Folders next to this module. Each has a function ``filters_of(file)``, which returns `EngineFilters`, and sends no
request unless the file's name, columns or footer show that the engine wrote it."""


def filters_of(file: FilterFile, columns: set[int] | None = None) -> EngineFilters:
    """The filters that engines keep for these columns of a file (None: all), and the faults of their places."""
    found = [import_module(f"{__package__}.{name}").filters_of(file) for name in MODULES]
    paths = {column.path for column in file.columns if columns is None or column.index in columns}
    return EngineFilters(
        [one for some in found for one in some.filters if columns is None or one.facts.column in paths],
        [
            one
            for some in found
            for one in some.findings
            if columns is None or one.column is None or one.column in paths
        ],
    )


def excludes_all(file: FilterFile, column: Column, forms: pa.Array) -> bool:
    """Whether a sound filter of an engine says that the file has none of the values. `forms`: as `EngineFilter.check`
    takes them."""
    filters = filters_of(file, {column.index}).filters
    return any(one.facts.problem is None and not any(one.check(forms)) for one in filters)
