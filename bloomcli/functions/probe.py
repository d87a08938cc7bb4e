"""bloomcli.probe"""

from __future__ import annotations

from collections.abc import Sequence

from bloomcli.commands import probe as command
from bloomcli.commands.options import ProbeOptions
from bloomcli.commands.values import Value
from bloomcli.functions.files import Files, OnRow, RunOptions, run, takes_files
from bloomcli.model.dataset import DatasetReport
from bloomcli.model.probe import ProbeReport


@takes_files(DatasetReport)
def probe(
    path: Files,
    values: Value | Sequence[Value],
    *,
    column: str | None = None,
    exclude: Sequence[str] = (),
    explain: bool = False,
    skip_blank: bool = False,
    jobs: int | None = None,
    fail_fast: bool = False,
    on_row: OnRow | None = None,
) -> ProbeReport:
    """Look up each value in every row group's filter.

    Args:
        path: a file, a directory, a quoted pattern or a URI; or a list of them.
        values: one value or several: texts as a person types them, numbers, dates, UUIDs. They are parsed by the
            column's logical type.
        column: leaf path; optional if only one column has filters.
        exclude: one or several leaf paths or globs of columns to ignore if `column` is missing.
        explain: also return the hash, the block and the bits that were tested.
        skip_blank: skip blank values if the column's type has none; for lines of a file.
        jobs, fail_fast, on_row: for many files, as for `add`.

    Returns:
        The report on one file. For a directory, a pattern or a list, a `DatasetReport` with one row per file.

    Raises:
        UsageError: no values; without `column`, not exactly one column with filters.
        LiteralError: a value can't be parsed by the column's type.
        UnreadableError, UnsupportedError: as for `inspect`.
    """
    options = ProbeOptions(values=values, column=column, exclude=exclude, explain=explain, skip_blank=skip_blank)
    return run(path, options, command.run, RunOptions(jobs, fail_fast, on_row))
