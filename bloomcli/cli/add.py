"""bloom add"""

from __future__ import annotations

from typing import Any

import click

from bloomcli.cli import options
from bloomcli.cli.changes import change
from bloomcli.cli.dataset import Dataset, dataset_options
from bloomcli.cli.format_options import format_options
from bloomcli.cli.reader_options import policy_file, policy_options, readers_option, table_schema_option
from bloomcli.cli.table_options import table_options

_filter_options = options.bundle(
    click.option(
        "--ndv",
        type=click.IntRange(min=1),
        metavar="N",
        help="Size filters by formula for N distinct values per row group, instead of measuring. In ORC, N is at most"
        " the number of rows of a row group, except below lists and maps.",
    ),
    options.max_bytes_option("Maximum size of one filter; the report names the filters that then miss the rate."),
    options.size_option(
        "Sizes of Parquet filters: powers of two, or any multiple of 32 bytes, a third less on average. Tight"
        " sizes need --readers, or the policy's readers, which all have to accept them.  [default: the policy's, or"
        " else power-of-two]"
    ),
    format_options,
    click.option("--replace", is_flag=True, help="Build new filters for columns that have filters already."),
)
"""Options for the filters, except for their rate."""


@click.command(
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
@options.files_argument
@options.columns_option(
    "Leaf columns to add filters for, as dotted paths; repeats, takes commas and globs. Globs leave out "
    "columns that can't have a filter.  [default: the columns that the policy requires]",
)
@options.exclude_option("Leaf columns to leave out, even if --columns names them.")
@options.target_options
@options.fpp_option(
    "False-positive rate that each filter has to meet, measured on its bits."
    "  [default: the policy's max-fpp for the column, or else 0.01]",
    default=None,
)
@_filter_options
@readers_option(
    "Engines that read the files. Globs leave out columns in which one of them would lose rows because of a sound"
    " filter; naming such a column is an error. Impala needs filters of two blocks: 32 bytes more for up to 26"
    " distinct values in a row group.  [default: the policy's, or else all that read files directly] Known:"
)
@table_schema_option(
    "The table's schema (Spark's or Iceberg's JSON, or DDL), for readers that look values up at its types."
)
@policy_options(
    "The policy, TOML. Without --columns, it selects the columns that get filters. Its rates, its readers, its"
    " table's schema and its settings for the rules about readers apply."
)
@click.option(
    "--threads", type=click.IntRange(min=1), metavar="N", help="Column chunks read at a time [default: cores]."
)
@options.all_option("For many files, show every file.")
@options.format_option("text", "json", "csv")
@table_options(changes=True, properties=True)
@dataset_options
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
    from bloomcli.commands.options import AddOptions

    options_["policy"] = policy_file(options_["policy"], no_policy=no_policy)
    return change(dataset, AddOptions(**options_), form, every=every)
