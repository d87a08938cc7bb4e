"""inspect: every filter of a file, measured."""

from __future__ import annotations

import os
from collections.abc import Sequence

from bloomcli.commands.columns import indexes
from bloomcli.commands.options import InspectOptions
from bloomcli.formats.base import FilterFile
from bloomcli.formats.registry import open_file
from bloomcli.model.inspect import InspectReport
from bloomcli.storage.os_errors import of_file
from bloomcli.storage.registry import open_source
from bloomcli.storage.traffic import counted


@of_file
@counted
def run(path: str | os.PathLike[str], options: InspectOptions) -> InspectReport:
    """Describe one file. Raises: as `inspect`."""
    options = options.checked()
    with open_source(path) as source:
        file = open_file(source)
        chosen = indexes(file.columns, options.columns, path=source.path, exclude=options.exclude)
        facts = tuple(file.facts(chosen))
        filtered = set() if chosen is None else file.filtered_columns()
        return InspectReport(
            path=source.path,
            format=file.format,
            file_bytes=source.size,
            rows=file.rows,
            row_groups=file.row_group_count,
            columns=file.column_count,
            created_by=file.created_by,
            filters=facts,
            summary=file.summary(facts),
            stripes=file.stripes,
            details=file.details,
            columns_without_filters=_paths(file, set() if chosen is None else chosen - filtered),
            other_columns_with_filters=_paths(file, set() if chosen is None else filtered - chosen),
        )


def _paths(file: FilterFile, columns: set[int]) -> tuple[str, ...]:
    """Paths in schema order, each once."""
    return tuple(dict.fromkeys(c.path for c in file.columns if c.index in columns)) if columns else ()


def inspect(
    path: str | os.PathLike[str], *, columns: Sequence[str] = (), exclude: Sequence[str] = ()
) -> InspectReport:
    """Describe a file and every Bloom filter in it.

    Reads the tail, the footer and the filters, and nothing else. A filter that can't be read is a row of
    the report with its `problem`, not an error.

    Args:
        path: the file, local or a URI.
        columns: one or several leaf paths or globs; none means all.
        exclude: one or several leaf paths or globs of columns to leave out, even if `columns` names them.

    Raises:
        UnreadableError: the file can't be read, or isn't what it claims to be.
        UnsupportedError: its footer is encrypted.
        UnknownColumn: a name matches no leaf column.
    """
    return run(path, InspectOptions(columns=columns, exclude=exclude))
