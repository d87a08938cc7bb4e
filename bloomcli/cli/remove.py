"""bloom remove"""

from __future__ import annotations

from typing import Any

import click

from bloomcli.cli import options
from bloomcli.cli.changes import change
from bloomcli.cli.dataset import Dataset, dataset_options


@click.command(
    short_help="Take filters out again.",
    epilog="""\b
Examples:
  bloom remove orders.parquet -o plain.parquet
  bloom remove orders.parquet --columns id --in-place""",
)
@options.files_argument
@options.columns_option("Remove the filters of these leaf columns only; globs are allowed.")
@options.exclude_option("Leave the filters of these leaf columns where they are.")
@options.target_options
@options.format_option("text", "json")
@dataset_options
def command(dataset: Dataset, form: str, **options_: Any) -> int:
    """Remove Bloom filters, everything else staying as it is.

    What `bloom add` added and this removes leaves the original file, bit for bit. Filters that another
    writer put between row groups are forgotten, but their bytes stay: pages can't move.

    In Parquet, both fields that name a filter are taken out. A writer that left them where there was no
    filter (an offset of 0 or -1, a length alone) won't find them there again after `bloom add` and this;
    every other byte is the original's.
    """
    from bloomcli.commands.options import RemoveOptions

    return change(dataset, RemoveOptions(**options_), form)
