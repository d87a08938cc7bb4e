"""bloom add, remove, fold and repair"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from bloomcli.cli import grouped, options, output
from bloomcli.cli.dataset import Dataset, dataset_options, run, table_options
from bloomcli.cli.options import policy_file, taken_format_options
from bloomcli.commands.options import AddOptions, FoldOptions, RemoveOptions, RepairOptions, WriteOptions
from bloomcli.concurrency.signals import terminable
from bloomcli.errors import UsageError

F = TypeVar("F", bound=Callable[..., Any])


def _changing(kind: type, *, properties: bool = False) -> Callable[[F], F]:
    """The argument and the options of a command that changes files.

    Args:
        kind: the class of the command's options.
        properties: the command has ``--from-properties``.
    """
    return options.bundle(
        options.files_argument,
        options.options_of(kind),
        options.all_option("For many files, show every file."),
        options.format_option("text", "json", "csv"),
        table_options(changes=True, properties=properties),
        partial(dataset_options, changes=True),
    )


def _change(dataset: Dataset, chosen: WriteOptions, form: str, *, every: bool = False) -> int:
    """Change one file or the files of a dataset, print the report (all rows if `every`), and return the exit code."""
    if dataset.table is None or not dataset.table.from_properties:  # the table's properties name the columns
        chosen = chosen.checked()
    elif chosen.columns:
        raise UsageError("--columns and --from-properties exclude each other", hint="leave one of them out")
    with terminable():  # resolving a path may already send a request to a store
        if dataset.single is None:
            return run(dataset, chosen, form, every=every)
        from bloomcli.commands.change import run as run_one

        with output.Bars() as bars:
            report = run_one(dataset.single, chosen, progress=bars)
    from bloomcli.report import text

    output.write(chosen.command, report, form, text.change)
    return 0


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
@_changing(AddOptions, properties=True)
def add(dataset: Dataset, form: str, every: bool, no_policy: bool, **options_: Any) -> int:
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
    return _change(dataset, AddOptions(**options_), form, every=every)


@grouped.command(
    short_help="Remove filters again.",
    epilog="""\b
Examples:
  bloom remove orders.parquet -o plain.parquet
  bloom remove orders.parquet --columns id --in-place""",
)
@_changing(RemoveOptions)
def remove(dataset: Dataset, form: str, every: bool, **options_: Any) -> int:
    """Remove Bloom filters; everything else stays unchanged.

    In Parquet and Mosaic, removing the filters that `bloom add` added restores the original file, bit for bit. In
    ORC, all other streams and all fields of the footers stay the same, but the footers are encoded and compressed
    again, and those of another writer may then have other bytes. For filters that another writer put between row
    groups, only the references are removed: their bytes stay, because pages can't move.

    In Parquet, both fields that refer to a filter are removed. If a writer set them without a filter (an offset
    of 0 or -1, a length alone), `bloom add` and `bloom remove` remove them; all other bytes are unchanged.
    """
    return _change(dataset, RemoveOptions(**options_), form, every=every)


@grouped.command(
    short_help="Shrink oversized filters.",
    epilog="""\b
Examples:
  bloom fold orders.parquet --fpp 0.01 -o out.parquet
  bloom fold orders.parquet --max-bytes 64KiB --in-place
  bloom fold orders.parquet --size tight --readers spark,duckdb --in-place
  bloom fold orders.parquet --dry-run""",
)
@_changing(FoldOptions)
def fold(dataset: Dataset, form: str, every: bool, **options_: Any) -> int:
    """Shrink oversized filters without reading a column.

    Writers that don't know the number of distinct values of a column write 1 MiB filters for a few
    values. ORing neighbouring blocks halves a filter, and the result is exactly the filter that the
    same values build at half the size. Filters that can't shrink stay unchanged. No policy is read: if
    bloom.toml has a max-fpp below 0.01, give it as --fpp.

    With --size tight, a filter shrinks to any divisor of its number of blocks, and below a quarter of its size
    usually to sizes between: some of its blocks are then copied into two new blocks. For sizes that need the
    values, use `bloom add --replace --size tight`.
    """
    return _change(dataset, FoldOptions(**options_), form, every=every)


@grouped.command(
    short_help="Mend or add statistics and page indexes.",
    epilog="""\b
Examples:
  bloom repair orders.parquet --dry-run
  bloom repair orders.parquet --in-place
  bloom repair orders.parquet --add page-index,statistics -o out.parquet
  bloom repair /data/orders --add page-index --columns id,ts --in-place""",
)
@_changing(RepairOptions)
def repair(dataset: Dataset, form: str, every: bool, **options_: Any) -> int:
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
    return _change(dataset, RepairOptions(**options_), form, every=every)
