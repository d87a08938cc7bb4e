"""bloom remove"""

from __future__ import annotations

import click

from bloomcli.cli import options, output
from bloomcli.cli.dataset import Dataset, dataset_options, run


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
def command(
    dataset: Dataset,
    columns: tuple[str, ...],
    exclude: tuple[str, ...],
    output_: str | None,
    in_place: bool,
    force: bool,
    overwrite: bool,
    dry_run: bool,
    form: str,
) -> int:
    """Remove Bloom filters, everything else staying as it is.

    What `bloom add` added and this removes leaves the original file, bit for bit. Filters that another
    writer put between row groups are forgotten, but their bytes stay: pages can't move.

    In Parquet, both fields that name a filter are taken out. A writer that left them where there was no
    filter (an offset of 0 or -1, a length alone) won't find them there again after `bloom add` and this;
    every other byte is the original's.
    """
    from bloomcli.commands.remove import remove
    from bloomcli.report import text

    if dataset.single is None:
        chosen = {"columns": columns, "exclude": exclude, "overwrite": overwrite, "force": force, "dry_run": dry_run}
        return run("remove", dataset, chosen, form, target=output_, in_place=in_place)
    with output.Bars() as bars:
        report = remove(
            dataset.single,
            columns=columns,
            exclude=exclude,
            output=output_,
            in_place=in_place,
            force=force,
            overwrite=overwrite,
            dry_run=dry_run,
            progress=bars,
        )
    output.write("remove", report, form, text.change)
    return 0
