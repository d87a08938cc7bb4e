"""bloom add"""

from __future__ import annotations

import click

from bloomcli.cli import options, output
from bloomcli.cli.dataset import Dataset, dataset_options, run
from bloomcli.cli.format_options import format_options
from bloomcli.cli.reader_options import policy_file, policy_options, readers_option, table_schema_option


@click.command(
    short_help="Add filters without rewriting the data.",
    epilog="""\b
Examples:
  bloom add orders.parquet --columns id,user.email -o out.parquet
  bloom add orders.parquet --columns 'user.*' --fpp 0.1% --in-place
  bloom add orders.parquet --columns id --dry-run
  bloom add /data/orders --columns id --in-place --jobs 8
  bloom add /data/orders --columns '*' --in-place --readers spark,trino
  bloom add orders.parquet --columns id --replace --max-bytes 1MiB -o out.parquet""",
)
@options.files_argument
@options.columns_option(
    "Leaf columns to add filters for, as dotted paths; repeats, takes commas and globs, which leave out "
    "columns that can't have a filter.",
    required=True,
)
@options.exclude_option("Leaf columns to leave out, whatever --columns says.")
@options.target_options
@options.fpp_option("False-positive rate that each filter has to meet, measured on its bits.")
@click.option(
    "--ndv",
    type=click.IntRange(min=1),
    metavar="N",
    help="Size filters by formula for N distinct values per row group, instead of measuring. In ORC a row group's"
    " rows are the most, except below lists and maps.",
)
@options.max_bytes_option("Cap of one filter's size; the report says which filters then miss the rate.")
@format_options
@click.option("--replace", is_flag=True, help="Build new filters where there are some already.")
@readers_option(
    "Engines that read the files: globs leave out columns in which one of them would lose rows by a sound filter, and"
    " where such a column is named, that is an error. Impala needs filters of two blocks: 32 bytes more for up to 26"
    " distinct values in a row group.  [default: all that read files as they are, or the policy's] Known:"
)
@table_schema_option(
    "The table's schema (Spark's or Iceberg's JSON, or DDL), for readers that look values up at its types."
)
@policy_options("The policy, TOML, of which the readers, the table's schema and the rules about readers count.")
@click.option(
    "--threads", type=click.IntRange(min=1), metavar="N", help="Column chunks read at a time [default: cores]."
)
@options.format_option("text", "json")
@dataset_options
def command(
    dataset: Dataset,
    columns: tuple[str, ...],
    exclude: tuple[str, ...],
    output_: str | None,
    in_place: bool,
    force: bool,
    overwrite: bool,
    dry_run: bool,
    fpp: float,
    ndv: int | None,
    max_bytes: int | None,
    format_options: dict[str, str | bool],
    replace: bool,
    readers: tuple[str, ...],
    table_schema: str | None,
    policy: str | None,
    no_policy: bool,
    threads: int | None,
    form: str,
) -> int:
    """Add Bloom filters for chosen columns, without rewriting the data.

    Existing bytes are copied as they are; only the chosen columns are read, and of dictionary-encoded ones
    the dictionary and as much as refers to all of it. In Parquet, filters and a patched footer are put
    behind the data, and `bloom remove` gives the original file back, bit for bit; each filter has the
    smallest size that meets --fpp. In ORC, filters go into the stripes beside their row indexes, sized as
    ORC's own writer does it.

    The file appears under its name only when it is whole and checked; on any error nothing is left behind.

    A filter can be right and a reader of the file wrong: columns in which one would lose rows get no filter, and the
    report says which reader, which version, and how that is known. --readers names who really reads the files.

    Of many files, filters are added where there are none yet; files that have them all are skipped. One whose
    filters can't be read, must not be used or miss what is asked for (--fpp only where it is given) fails, unless
    --replace is given.
    """
    from bloomcli.commands.add import add
    from bloomcli.commands.arguments import readers_policy
    from bloomcli.report import text

    found = policy_file(policy, no_policy=no_policy)
    asked = readers_policy(found, readers=readers, table_schema=table_schema)
    if dataset.single is None:
        chosen = {
            "columns": columns,
            "exclude": exclude,
            "overwrite": overwrite,
            "force": force,
            "dry_run": dry_run,
            "fpp": fpp if options.was_given("fpp") else None,
            "ndv": ndv,
            "max_bytes": max_bytes,
            "format_options": format_options,
            "replace": replace,
            "policy": asked,
            "threads": threads,
        }
        return run("add", dataset, chosen, form, target=output_, in_place=in_place)
    with output.Bars() as bars:
        report = add(
            dataset.single,
            columns,
            exclude=exclude,
            output=output_,
            in_place=in_place,
            force=force,
            overwrite=overwrite,
            dry_run=dry_run,
            fpp=fpp if options.was_given("fpp") else None,
            ndv=ndv,
            max_bytes=max_bytes,
            format_options=format_options,
            replace=replace,
            policy=asked,
            threads=threads,
            progress=bars,
        )
    output.write("add", report, form, text.change)
    return 0
