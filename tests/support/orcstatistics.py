"""Edits the statistics and the row index of ORC files."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, Final

from bloomcli.formats.orc import spec
from support.orcfiles import ROW_INDEX, File

GROUP, STRIPE, FILE = "group", "stripe", "file"
LEVELS: Final = (GROUP, STRIPE, FILE)


def row_index(file: File, column: int, stripe: int = 0) -> Any:
    """A column's RowIndex."""
    index = spec.message("RowIndex")()
    index.ParseFromString(file.plain(file.stripes[stripe].streams[file.place(ROW_INDEX, column, stripe)]))
    return index


def set_row_index(file: File, column: int, index: Any, stripe: int = 0) -> None:
    """Replace a column's RowIndex by another, or by bytes."""
    file.put(ROW_INDEX, column, index if isinstance(index, bytes) else index.SerializeToString(), stripe)


def metadata(file: File) -> Any:
    """The Metadata message, with the statistics of stripes."""
    message = spec.message("Metadata")()
    message.ParseFromString(file.plain(file.metadata))
    return message


def set_metadata(file: File, message: Any) -> None:
    """Replace the Metadata message."""
    file.metadata = file.packed(message.SerializeToString())
    file.postscript.metadata_length = len(file.metadata)


def edit(
    file: File,
    column: int,
    change: Callable[[Any], object],
    *,
    levels: Collection[str] = LEVELS,
    stripe: int = 0,
    group: int = 0,
) -> None:
    """Change the statistics of a column in a row group, in its stripe and in the file."""
    if GROUP in levels:
        index = row_index(file, column, stripe)
        change(index.entry[group].statistics)
        set_row_index(file, column, index, stripe)
    if STRIPE in levels:
        message = metadata(file)
        change(message.stripe_statistics[stripe].column_statistics[column])
        set_metadata(file, message)
    if FILE in levels:
        statistics = spec.message("ColumnStatistics")()
        statistics.ParseFromString(file.footer.statistics[column])
        change(statistics)
        file.footer.statistics[column] = statistics.SerializeToString()


def shown(path: Path, column: int) -> list[Any]:
    """The statistics of a column in the first row group, in the first stripe and in the file."""
    file = File.split(path.read_bytes())
    statistics = spec.message("ColumnStatistics")()
    statistics.ParseFromString(file.footer.statistics[column])
    entry = row_index(file, column).entry[0]
    return [entry, metadata(file).stripe_statistics[0].column_statistics[column], statistics]


def put(path: str, value: Any) -> Callable[[Any], None]:
    """An edit that sets a field of statistics, or clears it for None."""
    *above, last = path.split(".")

    def change(statistics: Any) -> None:
        for name in above:
            statistics = getattr(statistics, name)
        if value is None:
            statistics.ClearField(last)
        else:
            setattr(statistics, last, value)

    return change
