"""bloom trial"""

from __future__ import annotations

import sys
from typing import Any

import click

from bloomcli.cli import grouped, options, output
from bloomcli.cli.dataset import no_files
from bloomcli.cli.reports import prepare, save_all
from bloomcli.commands.option import OUTPUT, TABLES
from bloomcli.commands.options import TrialOptions


@grouped.command(
    short_help="Look values up with installed readers, with filters and without.",
    epilog="""\b
Examples:
  bloom trial orders.parquet --columns id
  bloom trial orders.parquet --columns id --readers duckdb,spark --values 50
  bloom trial filtered.parquet            # the columns that have filters
  bloom trial /data/orders --columns id --sample 2
  bloom trial orders.parquet --queries queries.sql --table-name orders
  bloom trial orders.parquet --columns id --report html=trial.html
  pip install duckdb datafusion polars chdb""",
)
@options.files_argument
@options.options_of(TrialOptions)
@grouped.option(
    "--table",
    metavar="NAME",
    help="Try data files of this Iceberg or Delta table, as plain files: also the rows that the table has deleted.",
    group=TABLES,
)
@grouped.option(
    "-q",
    "--quiet",
    is_flag=True,
    help="Print only errors and findings; JSON and CSV are still printed.",
    group=OUTPUT,
)
@options.format_option("text", "json", "csv")
@options.reports_option("text", "json", "csv", "html")
def command(
    files: tuple[str, ...],
    table: str | None,
    quiet: bool,
    form: str,
    reports: tuple[tuple[str, str], ...],
    **options_: Any,
) -> int:
    """Look values up with installed readers, with filters and without, and compare.

    For each reader: whether it returns the same rows, how much it reads by its own metrics, and the ratio of times.
    If the file has filters of the columns, it is read with the reader's option for filters on and off; a reader
    without such an option also reads a copy without filters. If it has none, filters are added to a copy. Copies
    are in a temporary folder, which is removed.

    Present values are the extremes of the column (minimum, maximum, zeros, NaN, the empty string, the first and last
    of row groups) and those of random rows; absent ones lie between minimum and maximum of a row
    group, if they can. The files are in the page cache when times are taken.

    Without --values and --readers, a trial takes about a minute: the installed readers that look at filters get equal
    parts of it, and look up values of all columns in turn.

    Each reader runs in a separate process. A reader that crashes or doesn't answer is shown with its error.

    Exits with 1 if a reader returns other rows with filters than without.
    """
    if table is not None:
        from bloomcli.tables.reading import paths_of
        from bloomcli.tables.without_spark import open_snapshot

        if files:
            raise no_files(files[0])
        files = paths_of(open_snapshot(table))
    if not files:
        raise click.UsageError("Missing argument 'FILE...'.")
    from bloomcli.report import render, text_trial
    from bloomcli.trials import trial

    prepare(reports, tuple(options_["queries"]))
    with output.StatusLine() as status:

        def plan(text: str) -> None:
            if status.shown:
                output.say(text, err=True)

        report = trial.run(files, TrialOptions(**options_), on_plan=plan, on_step=status.say)
    if form == "text" and quiet:
        render.write(text_trial.faults(report), sys.stdout)
    else:
        output.write("trial", report, form, text_trial.trial)
    save_all(reports, lambda other, stream: output.write("trial", report, other, text_trial.trial, stream))
    return report.exit_code
