"""bloomcli.inspect"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from bloomcli.commands import inspect as command
from bloomcli.commands.keywords import InspectKeywords
from bloomcli.commands.option import takes_options
from bloomcli.commands.options import InspectOptions
from bloomcli.datasets.engine import Engine
from bloomcli.errors import UsageError
from bloomcli.functions.files import Files, OnRow, RunOptions, Table, options_of, run, run_dataset, takes_files
from bloomcli.model.dataset import DatasetReport
from bloomcli.model.inspect import InspectReport


@takes_files(DatasetReport)
@takes_options(InspectOptions, RunOptions)
def inspect(path: Files | Table, **options: Unpack[InspectKeywords]) -> InspectReport:
    """Describe a file, its columns, and every Bloom filter in it.

    Reads the tail, the footer and the filters, and nothing else. A filter that can't be read is a row of
    the report with its `problem`, not an error.

    Args:
        path: a file, a directory, a quoted pattern or a URI; or a list of them; or a `bloomcli.Table`.
        every: for many files, also return every filter; the report on one file always does.
        {options}

    Returns:
        The report on one file. For a directory, a pattern, a list or a table, a `DatasetReport` with a row per file.

    Raises:
        UnreadableError: the file can't be read, or isn't what it claims to be.
        UnsupportedError: its footer is encrypted, or too large for `footer`.
        UnknownColumn: a name matches no leaf column.
        UsageError: pages or indexes of no column or several; pages, indexes, schema or footer of many files.
    """
    return run(path, options_of(InspectOptions, options), options, command.run, _many)


def _many(paths: Sequence[str], options: InspectOptions, engine: Engine, on_row: OnRow | None) -> DatasetReport:
    for part in ("pages", "indexes", "schema", "footer"):
        if getattr(options, part):
            raise UsageError(f"{part} is for one file", hint="name one file")
    return run_dataset(paths, options, engine, on_row)
