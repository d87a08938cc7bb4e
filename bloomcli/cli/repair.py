"""bloom repair"""

from __future__ import annotations

from typing import Any

from bloomcli.cli import grouped
from bloomcli.cli.changes import change, changing
from bloomcli.cli.dataset import Dataset
from bloomcli.commands.options import RepairOptions


@grouped.command(
    short_help="Mend or add statistics and page indexes.",
    epilog="""\b
Examples:
  bloom repair orders.parquet --dry-run
  bloom repair orders.parquet --in-place
  bloom repair orders.parquet --add page-index,statistics -o out.parquet
  bloom repair /data/orders --add page-index --columns id,ts --in-place""",
)
@changing(RepairOptions)
def command(dataset: Dataset, form: str, every: bool, **options_: Any) -> int:
    """Mend what readers skip by besides filters, without rewriting the data, or add it where it is missing.

    Readers also skip row groups by statistics and pages by page indexes. Without --add, the columns are read, as by
    `bloom validate --deep`, and wrong bounds, counts and page indexes are replaced by right ones, or taken out where
    the format has no right value. What isn't wrong stays as it is.

    With --add page-index, row groups without a page index get one: a column index (minimum, maximum and nulls of
    each page) for the chosen columns, which are read for it, and an offset index for every column, which takes page
    headers alone, because readers skip pages only where all columns that they read have one. With --add statistics,
    columns get the minimum, the maximum and the null count that they don't have.

    With --table and without --add, the table's commit also corrects bounds, counts and split offsets in Iceberg's
    manifests and Delta's log that the values contradict.

    Existing bytes are copied unchanged: new page indexes are written in front of the footer, and the footer is
    patched. The file appears under its name only when it is complete and checked.

    Only Parquet files can be repaired. In ORC and Mosaic files, statistics lie among the data; `bloom validate
    --deep` checks them.
    """
    return change(dataset, RepairOptions(**options_), form, every=every)
