"""bloomcli.trial"""

from __future__ import annotations

import os
from collections.abc import Sequence

from bloomcli.commands.options import FPP, Name, TrialOptions
from bloomcli.functions.files import Files
from bloomcli.model.trial import TrialReport
from bloomcli.trials.trial import run


def trial(
    path: Files,
    *,
    columns: Sequence[str] = (),
    exclude: Sequence[str] = (),
    readers: Sequence[str] = (),
    values: int = 20,
    queries: Name | Sequence[Name] = (),
    dialect: str = "spark",
    table_name: Sequence[str] = (),
    seed: int = 0,
    fpp: float = FPP,
    runs: int = 5,
    sample: str = "4",
    timeout: float = 300.0,
) -> TrialReport:
    """Look values up with installed readers, with filters and without, and compare rows, metrics and times.

    If the file has filters of the columns, it is read with the reader's option for filters on and off; a reader
    without such an option also reads a copy without filters. If it has none, filters are added to a copy. Copies are
    in a temporary folder, which is removed. Each reader runs in a separate process.

    Args:
        path: a file, a directory, a quoted pattern or a URI; or a list of them.
        columns: one or several leaf paths or globs; by default the columns that have filters, or that `queries` look
            up.
        exclude: one or several leaf paths or globs of columns to leave out.
        readers: ``duckdb``, ``spark``, ``datafusion``, ``pyarrow``, ``polars``, ``chdb``; all by default. The report
            has a row for each, also if it isn't installed.
        values: number of values of each column that the file has, and of values that it doesn't have. With `queries`,
            the most frequent ones.
        queries: logs of SQL queries, files or directories, whose values are looked up.
        dialect: the SQL dialect of the queries, by sqlglot's name.
        table_name: names of the table in the queries; none if they read only one.
        seed: seed of the values and of the sample. The same seed selects the same ones.
        fpp: false-positive rate of the filters in temporary copies, between 0 and 1.
        runs: how often each lookup is timed with filters and without.
        sample: for many files, ``5%`` or a number of files to try.
        timeout: seconds that a reader may take to start, and for each lookup.

    Returns:
        The report. Its `differences` are the lookups for which a reader returned other rows with filters.

    Raises:
        UsageError: a figure out of range, an unknown reader or column, a column that can't be looked up, no files.
        UnreadableError: the file can't be read.
        UnsupportedError: none of the readers is installed or reads the file.
        WriteError: the temporary copies can't be written.
    """
    options = TrialOptions(
        columns=columns,
        exclude=exclude,
        readers=readers,
        values=values,
        queries=queries,
        dialect=dialect,
        table_name=table_name,
        seed=seed,
        fpp=fpp,
        runs=runs,
        sample=sample,
        timeout=timeout,
    )
    named = [path] if isinstance(path, str | os.PathLike) else path
    return run([os.fspath(one) for one in named], options)
