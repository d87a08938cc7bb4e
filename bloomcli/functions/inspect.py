"""bloomcli.inspect"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bloomcli.commands import inspect as command
from bloomcli.commands.options import InspectOptions
from bloomcli.errors import UsageError
from bloomcli.functions.files import Files, OnRow, RunOptions, run, run_dataset, takes_files
from bloomcli.model.dataset import DatasetReport
from bloomcli.model.inspect import InspectReport

if TYPE_CHECKING:
    from bloomcli.datasets.engine import Engine


@takes_files(DatasetReport)
def inspect(
    path: Files,
    *,
    columns: Sequence[str] = (),
    exclude: Sequence[str] = (),
    every: bool = False,
    pages: bool = False,
    indexes: bool = False,
    schema: bool = False,
    footer: bool = False,
    jobs: int | None = None,
    fail_fast: bool = False,
    on_row: OnRow | None = None,
) -> InspectReport:
    """Describe a file, its columns, and every Bloom filter in it.

    Reads the tail, the footer and the filters, and nothing else. A filter that can't be read is a row of
    the report with its `problem`, not an error.

    Args:
        path: a file, a directory, a quoted pattern or a URI; or a list of them.
        columns: one or several leaf paths or globs; none means all.
        exclude: one or several leaf paths or globs of columns to leave out, even if `columns` names them.
        every: for many files, also return every filter; the report on one file always does.
        pages: also list the pages (in ORC the streams, in Mosaic the buckets) of the one chosen column.
        indexes: also list the index entries of the one chosen column.
        schema: also return the schema as a tree.
        footer: also return the whole decoded footer.
        jobs, fail_fast, on_row: for many files, as for `add`.

    Returns:
        The report on one file. For a directory, a pattern or a list, a `DatasetReport` with one row per file.

    Raises:
        UnreadableError: the file can't be read, or isn't what it claims to be.
        UnsupportedError: its footer is encrypted, or too large for `footer`.
        UnknownColumn: a name matches no leaf column.
        UsageError: pages or indexes of no column or several; pages, indexes, schema or footer of many files.
    """
    options = InspectOptions(
        columns=columns, exclude=exclude, every=every, pages=pages, indexes=indexes, schema=schema, footer=footer
    )
    return run(path, options, command.run, RunOptions(jobs, fail_fast, on_row), dataset=_many)


def _many(paths: Sequence[str], options: InspectOptions, engine: Engine, on_row: OnRow | None) -> DatasetReport:
    for part in ("pages", "indexes", "schema", "footer"):
        if getattr(options, part):
            raise UsageError(f"{part} is for one file", hint="name one file")
    return run_dataset(paths, options, engine, on_row)
