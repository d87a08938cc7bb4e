"""Finds the filters that engines keep for a file: asks each of `MODULES`."""

from __future__ import annotations

from collections.abc import Container, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from bloomcli.engine_filters.base import EngineFilters, Rewrite
from bloomcli.engine_filters.paimon import may_have_index
from bloomcli.formats.base import FilterFile
from bloomcli.formats.size_rule import SizeRule
from bloomcli.model.file import Column

if TYPE_CHECKING:
    import pyarrow as pa

MODULES: Final = ("databricks", "hudi", "paimon")
"""Folders next to this module. Each has a function ``filters_of(file, columns)``, which returns `EngineFilters`, of
these columns or more (all if None), and sends no request unless the file's name, columns or footer show that the
engine wrote it."""

_ALL: Final[WeakKeyDictionary[FilterFile, list[EngineFilters]]] = WeakKeyDictionary()
"""The filters of all columns, of files that are open."""


def filters_of(file: FilterFile, columns: set[int] | None = None) -> EngineFilters:
    """The filters that engines keep for these columns of a file (all if None), and the faults of their places."""
    paths = {column.path for column in file.columns if columns is None or column.index in columns}
    wanted = None if columns is None else paths
    engines = _ALL.get(file)
    if engines is None:
        engines = [import_module(f"{__package__}.{name}").filters_of(file, wanted) for name in MODULES]
        if columns is None:
            _ALL[file] = engines
    return EngineFilters(
        [filter_ for some in engines for filter_ in some.filters if columns is None or filter_.facts.column in paths],
        [fault for some in engines for fault in some.findings if columns is None or fault.column in {None, *paths}],
        [remark for some in engines for remark in some.remarks],
        lambda: (fault for some in engines for fault in some.later()),
    )


def excludes_all(file: FilterFile, column: Column, forms: pa.Array) -> bool:
    """Whether a sound filter of an engine says that the file has none of the values. `forms`: as `EngineFilter.check`
    takes them."""
    filters = filters_of(file, {column.index}).filters
    return any(filter_.facts.problem is None and not any(filter_.check(forms)) for filter_ in filters)


def rewrite_of(
    file: FilterFile, columns: Sequence[Column], rule: SizeRule, *, folds: bool, named: Container[str] = ()
) -> Rewrite | None:
    """A file of an engine's filters beside a data file, with new filters of these columns; None without one.

    Args:
        file: the data file.
        columns: the columns.
        rule: the sizes.
        folds: write only filters that become smaller.
        named: paths of the columns that must have such a filter; others that have none are left out.

    Raises CorruptFile, UnsupportedError, UsageError.
    """
    if not may_rewrite(file.source.path):
        return None
    from bloomcli.engine_filters.paimon import rewriting  # imports NumPy

    return rewriting.rewrite_of(file, columns, rule, folds=folds, named=named)


def may_rewrite(path: str) -> bool:
    """Whether an engine may keep filters beside a file, by the file's path: only Paimon does."""
    return may_have_index(path)
