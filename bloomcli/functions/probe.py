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
    """Ask every row group's filter about each value.

    Args:
        path: a file, a directory, a quoted pattern or a URI; or a list of them.
        values: one or several: texts as a person types them, numbers, dates, UUIDs. They are read as the column's
            logical type.
        column: leaf path; may be left out where only one column has filters.
        exclude: one or several leaf paths or globs of columns that aren't considered where `column` is left out.
        explain: also give the hash, the block and the bits that were tested.
        skip_blank: leave out blank values where the column's type has none; for lines of a file.
        jobs, fail_fast, on_row: of many files, as for `add`.

    Returns:
        The report of one file. Of a directory, a pattern or a list, a `DatasetReport` with one row per file.

    Raises:
        UsageError: no values; without `column`, not exactly one column with filters.
        LiteralError: a value can't be read as the column's type at all.
        UnreadableError, UnsupportedError: as for `inspect`.
    """
    options = ProbeOptions(values=values, column=column, exclude=exclude, explain=explain, skip_blank=skip_blank)
    return run(path, options, command.run, RunOptions(jobs, fail_fast, on_row))
