"""bloom fold"""

from __future__ import annotations

import click

from bloomcli.cli import options, output
from bloomcli.cli.dataset import Dataset, dataset_options, run


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
    max_bytes: int | None,
    form: str,
) -> int:
    """Shrink oversized filters without reading a column.

    Writers that don't know how many distinct values a column has write 1 MiB filters for a handful of
    values. A filter halves by ORing neighbouring blocks, and is then exactly the filter that half the
    size would have given. Filters that can't shrink are kept as they are.
    """
    from bloomcli.commands.fold import fold
    from bloomcli.report import text

    if dataset.single is None:
        chosen = {
            "columns": columns,
            "exclude": exclude,
            "fpp": fpp,
            "max_bytes": max_bytes,
            "overwrite": overwrite,
            "force": force,
            "dry_run": dry_run,
        }
        return run("fold", dataset, chosen, form, target=output_, in_place=in_place)
    with output.Bars() as bars:
        report = fold(
            dataset.single,
            fpp=fpp,
            columns=columns,
            exclude=exclude,
            max_bytes=max_bytes,
            output=output_,
            in_place=in_place,
            force=force,
            overwrite=overwrite,
            dry_run=dry_run,
            progress=bars,
        )
    output.write("fold", report, form, text.change)
    return 0
