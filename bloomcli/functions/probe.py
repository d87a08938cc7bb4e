"""bloomcli.probe"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from bloomcli.commands import probe as command
from bloomcli.commands.keywords import ProbeKeywords
from bloomcli.commands.option import takes_options
from bloomcli.commands.options import ProbeOptions
from bloomcli.commands.values import Value
from bloomcli.functions.files import Files, RunOptions, Table, options_of, run, takes_files
from bloomcli.model.dataset import DatasetReport
from bloomcli.model.probe import ProbeReport


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
    return run(path, options_of(ProbeOptions, options, values=values), options, command.run)
