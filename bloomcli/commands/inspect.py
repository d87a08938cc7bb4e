"""inspect: the columns of a file, and every filter, measured."""

from __future__ import annotations

import os
from collections.abc import Sequence

from bloomcli.commands.column_summary import summaries
from bloomcli.commands.columns import indexes
from bloomcli.commands.options import InspectOptions
from bloomcli.errors import UsageError
from bloomcli.formats.base import FilterFile
from bloomcli.formats.registry import open_file
from bloomcli.model.file import Column
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
        indexed = tuple(file.indexed_facts(chosen))
        facts = tuple(found for _, found in indexed)
        one = _one_column(file, chosen, options) if options.pages or options.indexes else None
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
            by_column=summaries(file, chosen, indexed),
            pages=tuple(file.pages(one)) if one is not None and options.pages else (),
            index=tuple(file.index(one)) if one is not None and options.indexes else (),
            merged_filters=tuple(file.merged_filters(one)) if one is not None and options.indexes else (),
            schema_tree=tuple(file.schema_tree()) if options.schema else (),
            footer=file.footer_tree() if options.footer else None,
            columns_without_filters=_paths(file, set() if chosen is None else chosen - filtered),
            other_columns_with_filters=_paths(file, set() if chosen is None else filtered - chosen),
        )


def _one_column(file: FilterFile, chosen: set[int] | None, options: InspectOptions) -> Column:
    """The column whose pages or index entries are listed. Raises UsageError unless the options choose exactly one."""
    flag = "--pages" if options.pages else "--indexes"
    if chosen is None or len(chosen) != 1:
        number = "none" if chosen is None else str(len(chosen))
        raise UsageError(
            f"{flag} is about one column, and {number} {'is' if chosen is None else 'are'} chosen",
            path=file.source.path,
            hint=f"`bloom inspect FILE {flag} --column NAME`; without {flag} all columns are listed",
        )
    (index,) = chosen
    return next(column for column in file.columns if column.index == index)


def _paths(file: FilterFile, columns: set[int]) -> tuple[str, ...]:
    """Paths in schema order, each once."""
    return tuple(dict.fromkeys(c.path for c in file.columns if c.index in columns)) if columns else ()


def inspect(
    path: str | os.PathLike[str],
    *,
    columns: Sequence[str] = (),
    exclude: Sequence[str] = (),
    every: bool = False,
    pages: bool = False,
    indexes: bool = False,
    schema: bool = False,
    footer: bool = False,
) -> InspectReport:
    """Describe a file, its columns, and every Bloom filter in it.

    Reads the tail, the footer and the filters, and nothing else. A filter that can't be read is a row of
    the report with its `problem`, not an error.

    Args:
        path: the file, local or a URI.
        columns: one or several leaf paths or globs; none means all.
        exclude: one or several leaf paths or globs of columns to leave out, even if `columns` names them.
        every: of many files also give every filter; the report on one file always does.
        pages: also list the pages (in ORC the streams, in Mosaic the buckets) of the one chosen column.
        indexes: also list what the indexes say of the one chosen column.
        schema: also give the schema as a tree.
        footer: also give the whole decoded footer.

    Raises:
        UnreadableError: the file can't be read, or isn't what it claims to be.
        UnsupportedError: its footer is encrypted, or too large to be given as a whole.
        UnknownColumn: a name matches no leaf column.
        UsageError: pages or indexes of no or several columns.
    """
    options = InspectOptions(
        columns=columns, exclude=exclude, every=every, pages=pages, indexes=indexes, schema=schema, footer=footer
    )
    return run(path, options)
