"""bloomcli.inspect and bloomcli.probe"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from bloomcli.commands import inspect as inspecting
from bloomcli.commands import probe as probing
from bloomcli.commands.keywords import InspectKeywords, ProbeKeywords
from bloomcli.commands.option import takes_options
from bloomcli.commands.options import InspectOptions, ProbeOptions
from bloomcli.commands.values import Value
from bloomcli.datasets.engine import Engine
from bloomcli.errors import UsageError
from bloomcli.functions.files import Files, OnRow, RunOptions, Table, options_of, run, run_dataset, takes_files
from bloomcli.model.dataset import DatasetReport
from bloomcli.model.inspect import InspectReport
from bloomcli.model.probe import ProbeReport


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
    return run(path, options_of(InspectOptions, options), options, inspecting.run, _many)


def _many(paths: Sequence[str], options: InspectOptions, engine: Engine, on_row: OnRow | None) -> DatasetReport:
    for part in ("pages", "indexes", "schema", "footer"):
        if getattr(options, part):
            raise UsageError(f"{part} is for one file", hint="name one file")
    return run_dataset(paths, options, engine, on_row)


@takes_files(DatasetReport)
@takes_options(ProbeOptions, RunOptions)
def probe(
    path: Files | Table, values: Value | Sequence[Value] | Any, **options: Unpack[ProbeKeywords]
) -> ProbeReport:
    """Look up each value in every row group's filter.

    Args:
        path: a file, a directory, a quoted pattern or a URI; or a list of them; or a `bloomcli.Table`.
        values: one value or several: texts as a person types them, numbers, dates, UUIDs; or an Arrow array, a
            series or a data frame of Pandas, Polars or another library that gives Arrow data, without nulls. They are
            parsed by the column's logical type.
        {options}

    Returns:
        The report on one file. For a directory, a pattern, a list or a table, a `DatasetReport` with a row per file.

    Raises:
        UsageError: no values; without `column`, not exactly one column with filters.
        LiteralError: a value can't be parsed by the column's type.
        UnreadableError, UnsupportedError: as for `inspect`.
    """
    return run(path, options_of(ProbeOptions, options, values=values), options, probing.run)
