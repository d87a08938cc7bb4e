"""bloom inspect"""

from __future__ import annotations

import sys
from functools import partial

import click

from bloomcli.cli import options, output
from bloomcli.cli.dataset import Dataset, dataset_options, run


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
@options.columns_option("Show only filters of these leaf columns; globs are allowed.")
@options.exclude_option("Don't show filters of these leaf columns.")
@click.option(
    "-a",
    "--all",
    "every",
    is_flag=True,
    help="Show every filter of an ORC file instead of one summary line per column; show every file of many.",
)
@options.format_option("text", "json", "csv")
@dataset_options
def command(dataset: Dataset, columns: tuple[str, ...], exclude: tuple[str, ...], every: bool, form: str) -> int:
    """Show every Bloom filter of a file.

    For each filter: row group, column, type, offset, size, number of blocks, number of distinct
    values (NDV, estimated from its bits), share of set bits (fill), measured false-positive rate
    (FPP), and bits per distinct value. Only the footer and the filters are read. The size is that of
    a filter's bits, without its header, as in `bloom add` and for --max-bytes; in JSON and CSV,
    bitset_bytes is this size, and length includes the header.

    An ORC file has a filter for every few thousand rows. The output has one line per column, with
    the requested and the measured rate, and marks filters that readers must not use.

    Text and CSV contain escapes (\\n, \\x1b) for control characters in names, and CSV two backslashes
    for one. JSON has the original names.

    The row of a filter that can't be read has the reason. For directories, globs and several files,
    there is one row per file. Links to directories are followed if they are arguments; links found
    in a directory are reported in a row.
    """
    from bloomcli.commands import inspect
    from bloomcli.commands.options import InspectOptions

    options = InspectOptions(columns=columns, exclude=exclude)
    if dataset.single is None:
        return run(dataset, options, form, every=every)
    report = inspect.run(dataset.single, options)
    if form == "csv":
        from bloomcli.report import csv

        csv.write(report, sys.stdout)
    else:
        from bloomcli.report import text

        output.write("inspect", report, form, partial(text.inspect, every=every))
    return 0
