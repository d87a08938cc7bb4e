"""The files of a table's snapshot as a search takes them: with the table's columns, deletes and partition values."""

from __future__ import annotations

from dataclasses import replace

from bloomcli.commands.options import FindOptions, ProbeOptions
from bloomcli.datasets.hadoop_paths import portable
from bloomcli.datasets.record_shape import Shape, chosen_leaves, leaves, prune_shape
from bloomcli.errors import BloomError, UnknownColumn, UnsupportedError, UsageError
from bloomcli.finding.search_files import FileWork, Job, SearchFiles, failed
from bloomcli.model.schema import ColumnName
from bloomcli.storage.base import FileEntry
from bloomcli.tables.base import TableSnapshot
from bloomcli.tables.columns import check_columns
from bloomcli.tables.reading import with_keys


def chosen_shape(shape: Shape, options: FindOptions) -> Shape:
    """The selected columns. Raises UnknownColumn."""
    chosen, missing = chosen_leaves(leaves(shape), options.select)
    if missing:
        raise UnknownColumn(
            f"no column {missing[0]!r} to select", hint=f"there are {', '.join(field.name for field in shape[:20])}"
        )
    pruned = prune_shape(shape, set(chosen))
    untyped = [field.name for field in pruned if field.type is None]
    if untyped:
        raise UnsupportedError(
            f"the column {untyped[0]} has a type that Arrow or Spark doesn't have",
            hint="--select names other columns",
        )
    return pruned


def of_snapshot(
    table: TableSnapshot, where: str | None, options: FindOptions, *, cores: int = 1, typed: bool
) -> SearchFiles:
    """The files of a table's snapshot.

    Args:
        table: the table.
        where: a condition in SQL that leaves files out.
        options: checked.
        cores: tasks that run at a time.
        typed: as `Job.typed`.

    Raises:
        UsageError: no such column, a wrong condition, a column that no file has.
        UnsupportedError: deletes that can't be read, columns of types that Arrow or Spark doesn't have.
    """
    names = table.names()
    check_columns(table, ProbeOptions(column=options.column), names)
    listed = table.files(where)
    rows = table.rows(listed)
    chosen = chosen_shape(rows.shape, options)
    _check_column(rows.shape, options.column, table.name)
    needed = {name for deletes in rows.deleted.values() for name in deletes.columns}
    chosen_by_name = {field.name: field for field in chosen}
    needed_fields = [
        field
        for field in (*rows.shape, *rows.dropped)
        if field.name in needed and chosen_by_name.get(field.name) != field
    ]
    if any(field.name in chosen_by_name for field in needed_fields):  # deletes compare the whole column
        raise UsageError(f"--select names a part of {needed_fields[0].name}, which deletes of the table compare")
    files, items = [], []
    for file in listed:
        path, result = file.path, None
        try:
            path = portable(file.path)
        except BloomError as error:
            result = failed(file.path, error)
        items.append(FileEntry(path, file.size, path, walked=False))
        files.append(
            FileWork(path, deleted=rows.deleted.get(file.path), constants=rows.constants.get(file.path), found=result)
        )
    dropped = (ColumnName(field.name, field.field_id, field.names) for field in rows.dropped)
    job = Job(
        replace(with_keys(options, listed), names=names._replace(columns=(*names.columns, *dropped))),
        shape=chosen,
        read=(*chosen, *needed_fields),
        of_table=True,
        typed=typed,
        why_not_lacking=_why_not_lacking(rows.shape, options.column),
    )
    return SearchFiles(job, files, items, cores)


def _why_not_lacking(shape: Shape, column: str) -> str | None:
    """Why a file without a leaf column can't be searched."""
    for field in shape:
        if field.name == column:
            return field.missing_reason
        if column.startswith(f"{field.name}.") and (
            why := _why_not_lacking(field.parts, column[len(field.name) + 1 :])
        ):
            return why
    return None


def _check_column(shape: Shape, column: str, table: str) -> None:
    """Raise UsageError for a partition column that no file has: without a `missing_reason`."""
    if any(field.name == column and field.constant is not None and field.missing_reason is None for field in shape):
        raise UsageError(
            f"{column} is a partition column, whose values aren't in files",
            path=table,
            hint=f'--where chooses partitions: --where "{column} = ..."',
        )
