"""bloom add"""

from __future__ import annotations

from typing import Any

from bloomcli.cli import grouped
from bloomcli.cli.changes import change, changing
from bloomcli.cli.dataset import Dataset
from bloomcli.cli.options import policy_file, taken_format_options
from bloomcli.commands.options import AddOptions


@grouped.command(
    short_help="Add filters without rewriting the data.",
    epilog="""\b
Examples:
  bloom add orders.parquet --columns id,user.email -o out.parquet
  bloom add orders.parquet --columns 'user.*' --fpp 0.1% --in-place
  bloom add orders.parquet --columns id --dry-run
  bloom add /data/orders --columns id --in-place --jobs 8
  bloom add /data/orders --policy bloom.toml --in-place
  bloom add /data/orders --columns '*' --in-place --readers spark,trino
  bloom add orders.parquet --columns id --max-bytes 1MiB -o out.parquet
  bloom add --table ice.db.orders --columns id --dry-run
  bloom add --table 'delta.`/data/orders`' --columns id""",
)
@changing(AddOptions, properties=True)
def command(dataset: Dataset, form: str, every: bool, no_policy: bool, **options_: Any) -> int:
    """Add Bloom filters for chosen columns, without rewriting the data.

    Existing bytes are copied unchanged. Only the chosen columns are read; for dictionary-encoded columns, only
    the dictionary and enough pages to show that all of its entries are used. In Parquet, filters and a patched footer
    are written after the data, `bloom remove` restores the original file, bit for bit, and each filter has the
    smallest size that meets --fpp. In ORC, filters are written into the stripes, next to their row indexes, and
    sized as ORC's own writer sizes them.

    The file appears under its name only when it is complete and checked. On an error, nothing is left behind.

    A sound filter can make a reader with a bug lose rows. Columns in which this would happen get no filter, and
    the report names the reader, its versions, and the evidence. --readers names the engines that read the files.

    In a dataset, columns that have no filter yet get one, and files that have all filters are skipped. A file
    fails if its filters can't be read, must not be used, or don't meet the options (the rate only if --fpp or the
    policy gives it), unless --replace is given.

    Without --columns, the columns that the policy requires get filters where they have none, so that `bloom
    validate` with this policy finds them. Files that the policy excludes are left alone.
    """
    options_["format_options"] = taken_format_options(options_)
    options_["policy"] = policy_file(options_["policy"], no_policy=no_policy)
    return change(dataset, AddOptions(**options_), form, every=every)
