"""bloom fold"""

from __future__ import annotations

from typing import Any

import click

from bloomcli.cli import options
from bloomcli.cli.changes import change
from bloomcli.cli.dataset import Dataset, dataset_options
from bloomcli.cli.table_options import table_options


@click.command(
    short_help="Shrink oversized filters.",
    epilog="""\b
Examples:
  bloom fold orders.parquet --fpp 0.01 -o out.parquet
  bloom fold orders.parquet --max-bytes 64KiB --in-place
  bloom fold orders.parquet --dry-run""",
)
@options.files_argument
@options.columns_option("Fold only the filters of these leaf columns; globs are allowed.")
@options.exclude_option("Don't fold the filters of these leaf columns.")
@options.target_options
@options.fpp_option("The highest false-positive rate of a folded filter, measured on its bits.")
@options.max_bytes_option("Fold to at most this size, even if the filter then exceeds the rate.")
@options.all_option("Of many files, show every file.")
@options.format_option("text", "json", "csv")
@table_options(changes=True)
@dataset_options
def command(dataset: Dataset, form: str, every: bool, **options_: Any) -> int:
    """Shrink oversized filters without reading a column.

    Writers that don't know the number of distinct values of a column write 1 MiB filters for a few
    values. ORing neighbouring blocks halves a filter, and the result is exactly the filter that the
    values build at half the size. Filters that can't shrink stay unchanged.
    """
    from bloomcli.commands.options import FoldOptions

    return change(dataset, FoldOptions(**options_), form, every=every)
