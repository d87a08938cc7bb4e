"""Looks up values in the filters of many Parquet files, in compiled code: which row groups can't have any of the
values and, of many values, which ones a file may have.

These are local files with the schema of a file that was opened before. A file that may have a value, or isn't encoded
as writers usually do, is opened; `search.py` then searches it for the remaining values.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Final

from bloomcli import kernels
from bloomcli.formats.filter_lookup import FilterLookup
from bloomcli.formats.parquet import idl
from bloomcli.formats.parquet import limits as parquet_limits
from bloomcli.formats.parquet.spec import field_ids

if TYPE_CHECKING:
    from bloomcli.formats.parquet.footer import Footer
    from bloomcli.formats.wanted_values import WantedValues
    from bloomcli.model.file import Column

_ORDERED: Final = 1
_DEPRECATED: Final = 2
_SAME: Final = ("schema", "created_by", "column_orders")
"""Footer fields that determine the columns, and whose bounds can be trusted."""


def _numbers(footer: Footer, column: Column) -> tuple[int, int, int, int]:
    """The numbers of a column for `kernels.FilterQuery`."""
    trust = footer.trust(column)
    flags = _ORDERED * trust.ordered + _DEPRECATED * trust.deprecated
    return idl.ENUMS["Type"].get(column.physical, -1), flags, *trust.kind_of_bounds


def filter_lookup(
    footer: Footer, column: Column, wanted: WantedValues, summed: set[int] | None
) -> FilterLookup | None:
    """The lookup in files with the schema of an open one; None if their filters can't answer it.

    Args:
        footer: the footer of the open file.
        column: the searched column.
        wanted: the values to find, converted for the column.
        summed: the ordinals of the columns whose bytes a scan reads; None: all.
    """
    if (
        footer.signed
        or column.physical == "BOOLEAN"
        or len(footer.columns) != footer.column_count
        or wanted.nan is not None
        or any(literal.unknowable is not None for literal in wanted.literals or ())
    ):
        return None
    hashes, positions = (wanted.hashes, None) if wanted.literals is not None else wanted.by_hash
    ids = field_ids("FileMetaData")
    query = kernels.FilterQuery(
        parquet_limits.THRIFT_MAX_DEPTH,
        {ids[field]: footer.top.raw(field) for field in _SAME},
        array("i", (number for column in footer.columns for number in _numbers(footer, column))),
        column.index,
        None if summed is None else bytes(c.index in summed for c in footer.columns),
        hashes,
    )
    return FilterLookup("parquet", query, positions)
