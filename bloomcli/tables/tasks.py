"""Makes the tasks of the Spark engine for a table's data files.

Executors open a file by a portable path; the table's commit names it as its metadata spell it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final, TypeVar

from bloomcli.commands.options import Options
from bloomcli.datasets.hadoop_paths import portable
from bloomcli.datasets.task import Task, failed
from bloomcli.errors import BloomError, UnsupportedError
from bloomcli.model.names import ColumnNames
from bloomcli.tables.base import DataFile, Table

O = TypeVar("O", bound=Options)  # noqa: E741  options

_FORMATS: Final = ("parquet", "orc")
"""The formats of data files that can have filters. Tables of no kind have Mosaic files."""


def with_names(options: O, names: ColumnNames) -> O:
    """The options with which files are opened under the table's column names."""
    return replace(options, names=names)


def problem_of(table: Table, file: DataFile) -> BloomError | None:
    """Why a data file can't be opened; None if it can be, as far as the table knows."""
    if file.format not in _FORMATS:
        return UnsupportedError(
            f"a data file of the format {file.format}, which has no Bloom filters", path=table.location(file.path)
        )
    return None


def task_of(table: Table, file: DataFile, options: Options, new: str | None = None) -> Task:
    """The task for a data file.

    Args:
        table: the table.
        file: one of its data files.
        options: checked, with the table's names.
        new: the path of the new file, as `Table.new_path` gave it; None for a command that only reads.
    """
    location = table.location(file.path)
    try:
        path = portable(location)
        output = None if new is None else portable(table.location(new), changing=True)
        problem = problem_of(table, file)
    except BloomError as error:
        path, output, problem = location, None, error
    return Task(
        options=options,
        path=path,
        size=file.size,
        output=output,
        only_changed=True,
        no_table=True,
        row=None if problem is None else failed(path, problem),
    )
