"""Compares a row group's statistics (null count, minimum, maximum) with a column's values, and with each other.

A bound that is too wide excludes no row and isn't reported. Mosaic's reader hands the statistics to its caller, which
skips row groups by them.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Container, Iterator
from decimal import Context
from typing import Any, Final

from bloomcli.formats.mosaic.footer import Footer, RowGroup
from bloomcli.formats.mosaic.schema import COMPOUND, MosaicColumn
from bloomcli.model.file import Severity
from bloomcli.model.validate import Finding
from bloomcli.words import counted

HINT: Final = "write the file again, or let readers ignore statistics; report the fault to the project of its writer"
_FORMS: Final = {"FLOAT": ">f", "DOUBLE": ">d"}
_NANOS: Final = 1_000_000
"""In a millisecond."""
_EXACT: Final = Context(prec=100)


def _finding(
    footer: Footer,
    group: RowGroup,
    column: MosaicColumn,
    id: str,  # noqa: A002  it is the rule's id
    message: str,
    severity: Severity = Severity.ERROR,
) -> Finding:
    return Finding(
        id=id,
        severity=severity,
        message=message,
        row_group=group.ordinal,
        column=column.name,
        offset=footer.index_at,
        hint=HINT,
    )


def by_metadata(footer: Footer, columns: set[int], filled: Container[tuple[int, int]]) -> Iterator[Finding]:
    """Find minima above their maxima, and statistics without values beside a filter with some.

    Args:
        footer: the file's metadata.
        columns: ordinals of the columns.
        filled: (row group, column) of each filter that has a bit.
    """
    for group in footer.row_groups:
        for column in (footer.columns[index] for index in sorted(columns)):
            stats = group.statistics.get(column.index)
            if stats is not None and stats.nulls >= group.rows > 0 and (group.ordinal, column.index) in filled:
                message = (
                    "the row group's statistics count only nulls, and the filter has values: one of them is wrong"
                )
                yield _finding(footer, group, column, "statistics-counts", message)
            low, high = _bounds(group, column)
            if low is not None and high is not None and low > high:
                message = f"the minimum of the row group's statistics, {low}, is above the maximum, {high}"
                yield _finding(footer, group, column, "statistics-bounds", f"{message}: readers skip all rows")


def by_values(footer: Footer, group: RowGroup, column: MosaicColumn, values: Any) -> Iterator[Finding]:
    """Compare the statistics with the column's values, an Arrow array."""
    stats = group.statistics.get(column.index)
    if stats is None or column.kind in COMPOUND:
        return
    if stats.nulls != values.null_count:
        message = (
            f"the row group's statistics count {counted(stats.nulls, 'null')}, and there are {values.null_count:,}"
        )
        lost = stats.nulls in {0, group.rows}
        yield _finding(footer, group, column, "statistics-counts", message, Severity.ERROR if lost else Severity.NOTE)
    low, high = _bounds(group, column)
    if low is None or high is None or values.null_count == len(values):
        return
    least, greatest = _extremes(values, column)
    if isinstance(least, float) and math.isnan(least):
        return
    for which, where, bound, value, wrong in (
        ("minimum", "above", low, least, not least >= low),
        ("maximum", "below", high, greatest, not greatest <= high),
    ):
        if wrong:
            message = f"the {which} of the row group's statistics, {bound}, is {where} the value {value}"
            yield _finding(footer, group, column, "statistics-bounds", f"{message}: readers skip its rows")


def _bounds(group: RowGroup, column: MosaicColumn) -> tuple[Any, Any]:
    stats = group.statistics.get(column.index)
    if stats is None or stats.minimum is None or stats.maximum is None:
        return None, None
    return _stored(stats.minimum, column), _stored(stats.maximum, column)


def _stored(bound: bytes, column: MosaicColumn) -> Any:
    """A bound in the form of `_extremes`."""
    if column.family in {"STRING", "BYTES"}:
        return bound
    if column.family in _FORMS:
        return struct.unpack(_FORMS[column.family], bound)[0]
    if column.width == 12:
        millis, nanos = struct.unpack(">qi", bound)
        return millis * _NANOS + nanos
    return int.from_bytes(bound, "big", signed=True)


def _extremes(values: Any, column: MosaicColumn) -> tuple[Any, Any]:
    """The least and the greatest value: bytes, float or int; dates, times and timestamps in their unit, decimals in
    the column's scale."""
    import pyarrow.compute as pc

    from bloomcli.formats.arrays import forms_of

    decimal = column.kind == "DECIMAL"
    extremes = pc.min_max(values if decimal else forms_of(values))
    least, greatest = extremes["min"].as_py(), extremes["max"].as_py()
    if decimal:
        return int(least.scaleb(column.scale, _EXACT)), int(greatest.scaleb(column.scale, _EXACT))
    return least, greatest
