"""bloom fold"""

from __future__ import annotations

from typing import Any

from bloomcli.cli import grouped
from bloomcli.cli.changes import change, changing
from bloomcli.cli.dataset import Dataset
from bloomcli.commands.options import FoldOptions


@grouped.command(
    short_help="Shrink oversized filters.",
    epilog="""\b
Examples:
  bloom fold orders.parquet --fpp 0.01 -o out.parquet
  bloom fold orders.parquet --max-bytes 64KiB --in-place
  bloom fold orders.parquet --size tight --readers spark,duckdb --in-place
  bloom fold orders.parquet --dry-run""",
)
@changing(FoldOptions)
def command(dataset: Dataset, form: str, every: bool, **options_: Any) -> int:
    """Shrink oversized filters without reading a column.

    Writers that don't know the number of distinct values of a column write 1 MiB filters for a few
    values. ORing neighbouring blocks halves a filter, and the result is exactly the filter that the
    same values build at half the size. Filters that can't shrink stay unchanged. No policy is read: if
    bloom.toml has a max-fpp below 0.01, give it as --fpp.

    With --size tight, a filter shrinks to any divisor of its number of blocks, and below a quarter of its size
    usually to sizes between: some of its blocks are then copied into two new blocks. For sizes that need the
    values, use `bloom add --replace --size tight`.
    """
    return change(dataset, FoldOptions(**options_), form, every=every)
