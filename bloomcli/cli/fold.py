"""bloom fold"""

from __future__ import annotations

from typing import Any

import click

from bloomcli.cli import options
from bloomcli.cli.changes import change
from bloomcli.cli.dataset import Dataset, dataset_options


@click.command(
    short_help="Shrink oversized filters.",
    epilog="""\b
Examples:
  bloom fold orders.parquet --fpp 0.01 -o out.parquet
  bloom fold orders.parquet --max-bytes 64KiB --in-place
  bloom fold orders.parquet --dry-run""",
)
@options.files_argument
@options.columns_option("Fold the filters of these leaf columns only; globs are allowed.")
@options.exclude_option("Leave the filters of these leaf columns as they are.")
@options.target_options
@options.fpp_option("False-positive rate that each filter has to keep to, measured on its bits.")
@options.max_bytes_option("Fold further, down to this size, even where that misses the rate.")
@options.format_option("text", "json")
@dataset_options
def command(dataset: Dataset, form: str, **options_: Any) -> int:
    """Shrink oversized filters without reading a column.

    Writers that don't know how many distinct values a column has write 1 MiB filters for a handful of values.
    ORing neighbouring blocks halves a filter: the result is exactly the filter that a writer would have built at
    half the size. Filters that can't shrink stay as they are.
    """
    from bloomcli.commands.options import FoldOptions

    return change(dataset, FoldOptions(**options_), form)
