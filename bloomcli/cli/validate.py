"""bloom validate"""

from __future__ import annotations

import click

from bloomcli.cli import options, output
from bloomcli.cli.dataset import Dataset, dataset_options, run


@click.command(
    short_help="Prove that filters are sound and miss no value.",
    epilog="""\b
Examples:
  bloom validate orders.parquet
  bloom validate orders.parquet --require id,user.email --max-fpp 0.01
  bloom validate orders.parquet --deep
  bloom validate /data/orders --require id --format json""",
)
@options.files_argument
@options.columns_option("Check the filters of these leaf columns only; globs are allowed.")
@click.option(
    "-r",
    "--require",
    metavar="NAMES",
    multiple=True,
    callback=options.split_names,
    shell_complete=options.complete_columns,
    help="Leaf columns that must have a filter in every row group; repeats, takes commas and globs.",
)
@click.option("--max-fpp", type=options.Rate(), metavar="RATE", help="Highest measured false-positive rate accepted.")
@click.option("--deep", is_flag=True, help="Read the columns again and prove that no value is missing.")
@options.format_option("text", "json")
@dataset_options
def command(
    dataset: Dataset, columns: tuple[str, ...], require: tuple[str, ...], max_fpp: float | None, deep: bool, form: str
) -> int:
    """Check that filters are sound, wanted ones are there, and (--deep) that none misses a value.

    Structure always: headers, lengths, offsets, overlaps with other parts of the file, and the wrong
    filters that known writers leave. Each finding has a stable id.

    Exits with 1 if there is a finding worse than a note.
    """
    from functools import partial

    from bloomcli.commands.validate import validate
    from bloomcli.report import text

    if dataset.single is None:
        chosen = {"columns": columns, "require": require, "max_fpp": max_fpp, "deep": deep}
        return run("validate", dataset, chosen, form)
    with output.Bars() as bars:
        report = validate(dataset.single, columns=columns, require=require, max_fpp=max_fpp, deep=deep, progress=bars)
    policy = f"--require {','.join(require)}" if require else ""
    if max_fpp is not None:
        policy = f"{policy} --max-fpp {max_fpp:g}".strip()
    output.write("validate", report, form, partial(text.validate, policy=policy, scope=", ".join(columns)))
    return 0 if report.ok else 1
