"""Makes the tasks of the Spark engine for a table's data files.

Executors open a file by a portable path; the table's commit uses the path in its metadata.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from bloomcli.commands.options import Options
from bloomcli.datasets.hadoop_paths import portable
from bloomcli.datasets.task import Task, failed_row
from bloomcli.errors import BloomError, UnsupportedError
from bloomcli.formats.keys import Keys
from bloomcli.model.dataset import FileRow, Status
from bloomcli.model.schema import ColumnNames
from bloomcli.tables.base import DataFile, TableSnapshot
from bloomcli.tables.columns import FORMATS

O = TypeVar("O", bound=Options)  # noqa: E741  options


def with_names(options: O, names: ColumnNames) -> dict[str, O]:
    """The options for files of each format, with the table's column names."""
    return dict.fromkeys(FORMATS, replace(options, names=names))


def with_keys(options: O, files: Sequence[DataFile]) -> O:
    """The options with the keys that a table's metadata have for its encrypted files."""
    found = {portable(file.path): file.key for file in files if file.key is not None}
    return replace(options, keys=replace(options.keys or Keys(), files=found)) if found else options


def task_of(file: DataFile, options: Mapping[str, O], new: str | None = None, *, changing: bool = False) -> Task:
    """Make the task for a data file.

    Args:
        file: the data file.
        options: the checked options for files of each format, with the table's names.
        new: the path of the new file, from `Table.new_path`; None for a command that only reads.
        changing: the file's store must be writable.
    """
    some = next(iter(options.values()))
    task = Task(options=some, path=file.path, size=file.size, only_changed=True, no_table=True, lineage=file.lineage)
    try:
        task = replace(task, path=portable(file.path, changing=changing))
        if file.format not in FORMATS:
            raise UnsupportedError(
                f"a data file of the format {file.format}, which has no Bloom filters", path=task.path
            )
        if file.format not in options:
            reason = f"the table's properties ask for no filter in {file.format} files"
            return replace(task, row=FileRow(path=task.path, status=Status.SKIPPED, reason=reason))
        output = None if new is None else portable(new, changing=True)
    except BloomError as error:
        return replace(task, row=failed_row(task.path, error))
    return replace(task, options=options[file.format], output=output)


def paths_of(table: TableSnapshot, where: str | None = None) -> tuple[str, ...]:
    """The paths by which a snapshot's data files are opened. Raises: as `TableSnapshot.files`, UnsupportedError."""
    return tuple(portable(file.path) for file in table.files(where))


def with_statistics(
    tasks: Sequence[Task], table: TableSnapshot, files: Sequence[DataFile]
) -> tuple[list[Task], tuple[str, ...]]:
    """The tasks of data files with what the table's metadata say about them, and remarks on why they don't have it.

    Raises: as `Table.statistics`, except UnsupportedError.
    """
    try:
        packed = [one.packed() for one in table.statistics(files)]
    except UnsupportedError as error:
        hint = "" if error.hint is None else f"; {error.hint}"
        return list(tasks), (
            f"what the table's metadata say about files isn't compared with them: {error.reason}{hint}",
        )
    if not packed:
        return list(tasks), ()
    return [replace(task, statistics=one) for task, one in zip(tasks, packed, strict=True)], ()
