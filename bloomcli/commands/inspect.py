"""inspect: describes the columns of a file and every filter, with measured rates."""

from __future__ import annotations

import os

from bloomcli.commands.column_summary import summaries
from bloomcli.commands.columns import indexes
from bloomcli.commands.options import InspectOptions
from bloomcli.errors import UsageError
from bloomcli.formats.base import FilterFile
from bloomcli.formats.registry import open_file
from bloomcli.hints import NAME, Command, Hint, listed
from bloomcli.model.file import Column
from bloomcli.model.inspect import InspectReport
from bloomcli.policy.globs import matches
from bloomcli.storage.os_errors import convert_os_errors_of_file
from bloomcli.storage.registry import open_source
from bloomcli.storage.traffic import counted


@convert_os_errors_of_file
@counted
def run(path: str | os.PathLike[str], options: InspectOptions) -> InspectReport:
    """Describe one file. Raises: as `inspect`."""
    options = options.checked()
    with open_source(path) as source:
        file = open_file(source, options.names)
        chosen = indexes(file, options.columns, exclude=options.exclude)
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
            details=(*file.details, *_lacking(file, options)),
            by_column=summaries(file, chosen, indexed),
            pages=tuple(file.pages(one)) if one is not None and options.pages else (),
            index=tuple(file.index(one)) if one is not None and options.indexes else (),
            merged_filters=tuple(file.merged_filters(one)) if one is not None and options.indexes else (),
            schema_tree=tuple(file.schema_tree()) if options.schema else (),
            footer=file.footer_tree() if options.footer else None,
            columns_without_filters=_paths(file, set() if chosen is None else chosen - filtered),
            other_columns_with_filters=_paths(file, set() if chosen is None else filtered - chosen),
        )


def _lacking(file: FilterFile, options: InspectOptions) -> tuple[tuple[str, str], ...]:
    """The selected columns of the table that the file doesn't have, as a detail of the file."""
    found = [
        path
        for path in file.missing_columns
        if (not options.columns or matches(options.columns, path)) and not matches(options.exclude, path)
    ]
    return (("not in the file", ", ".join(map(listed, found))),) if found else ()


def _one_column(file: FilterFile, chosen: set[int] | None, options: InspectOptions) -> Column:
    """The column whose pages or index entries are listed. Raises UsageError unless the options choose exactly one."""
    flag = "--pages" if options.pages else "--indexes"
    if chosen is None or len(chosen) != 1:
        number = "none" if chosen is None else str(len(chosen))
        first = next((c.path for c in file.columns if chosen is None or c.index in chosen), NAME)
        raise UsageError(
            f"{flag} is for one column, and {number} {'is' if chosen is None else 'are'} chosen",
            path=file.source.path,
            hint=Hint(
                Command("inspect", (flag, "--column", listed(first))),
                f"; without {flag} all columns are listed",
                "such as ",
            ),
        )
    (index,) = chosen
    return next(column for column in file.columns if column.index == index)


def _paths(file: FilterFile, columns: set[int]) -> tuple[str, ...]:
    """Paths in schema order, each once."""
    return tuple(dict.fromkeys(c.path for c in file.columns if c.index in columns)) if columns else ()
