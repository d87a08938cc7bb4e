"""bloom remove"""

from __future__ import annotations

from typing import Any

from bloomcli.cli import grouped
from bloomcli.cli.changes import change, changing
from bloomcli.cli.dataset import Dataset
from bloomcli.commands.options import RemoveOptions


@grouped.command(
    short_help="Remove filters again.",
    epilog="""\b
Examples:
  bloom remove orders.parquet -o plain.parquet
  bloom remove orders.parquet --columns id --in-place""",
)
@changing(RemoveOptions)
def command(dataset: Dataset, form: str, every: bool, **options_: Any) -> int:
    """Remove Bloom filters; everything else stays unchanged.

    In Parquet and Mosaic, removing the filters that `bloom add` added restores the original file, bit for bit. In
    ORC, all other streams and all fields of the footers stay the same, but the footers are encoded and compressed
    again, and those of another writer may then have other bytes. For filters that another writer put between row
    groups, only the references are removed: their bytes stay, because pages can't move.

    In Parquet, both fields that refer to a filter are removed. If a writer set them without a filter (an offset
    of 0 or -1, a length alone), `bloom add` and `bloom remove` remove them; all other bytes are unchanged.
    """
    return change(dataset, RemoveOptions(**options_), form, every=every)
