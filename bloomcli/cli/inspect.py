"""bloom inspect"""

from __future__ import annotations

import sys
from functools import partial

import click

from bloomcli.cli import options, output
from bloomcli.cli.dataset import Dataset, dataset_options, run
from bloomcli.errors import UsageError


@click.command(
    short_help="Show every Bloom filter of a file.",
    epilog="""\b
Examples:
  bloom inspect orders.parquet
  bloom inspect orders.parquet --columns id --format json
  bloom inspect /data/orders --format csv
  bloom inspect orders.parquet -c 'user.*' --format csv > filters.csv""",
)
@options.files_argument
@options.columns_option("Show filters of these leaf columns only; globs are allowed.")
@options.exclude_option("Leave the filters of these leaf columns out.")
@click.option(
    "-a", "--all", "every", is_flag=True, help="ORC: show every filter, not one line a column that sums them up."
)
@options.format_option("text", "json", "csv")
@dataset_options
def command(dataset: Dataset, columns: tuple[str, ...], exclude: tuple[str, ...], every: bool, form: str) -> int:
    """Show every Bloom filter of a file.

    For each filter: row group, column, type, where it lies, its size and blocks, the number of
    distinct values estimated from its bits, the share of bits set (fill), the measured
    false-positive rate (FPP), and bits per distinct value. Only the footer and the filters are read.

    An ORC file has a filter for each few thousand rows: they are summed up by column, with the rate that
    their writer asked for beside the one that the bits give, and filters that readers must not trust.

    In text and CSV, control characters in names are written as escapes (\\n, \\x1b) and, in CSV, a
    backslash as two; JSON has every name as it is.

    A filter that can't be read is a row that says why. Of directories, globs and several files: one row each.
    Links to directories are followed where they are named; those found in a directory are rows that say so.
    """
    from bloomcli.commands import inspect
    from bloomcli.commands.options import InspectOptions

    asked = InspectOptions(columns=columns, exclude=exclude)
    if dataset.single is None:
        if every:
            raise UsageError("--all is for one file: of several, each is a row", hint="name one file")
        return run(dataset, asked, form)
    report = inspect.run(dataset.single, asked)
    if form == "csv":
        from bloomcli.report import csv

        csv.write(report, sys.stdout)
    else:
        from bloomcli.report import text

        output.write("inspect", report, form, partial(text.inspect, every=every))
    return 0
