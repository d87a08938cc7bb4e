"""bloom probe"""

from __future__ import annotations

import sys
from codecs import BOM_UTF8
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import click

from bloomcli.cli import grouped, options, output
from bloomcli.cli.completion import complete_files
from bloomcli.cli.dataset import (
    Dataset,
    dataset_options,
    engine_of,
    named_paths,
    no_files,
    read_named,
    run,
    run_tasks,
    table_options,
)
from bloomcli.cli.options import NegativesCommand, unmarked
from bloomcli.commands.option import OUTPUT
from bloomcli.commands.options import ProbeOptions
from bloomcli.errors import UsageError


@click.command(
    short_help="Look up values in the filters.",
    cls=NegativesCommand,
    epilog="""\b
Examples:
  bloom probe orders.parquet --column id 42 43   # values follow the path
  bloom probe orders.parquet 42                  # if one column has filters
  bloom probe orders.parquet -c user.email --values-from emails.txt --explain
  bloom probe /data/orders -c id 42 43           # every file of a directory
  bloom probe day=*/*.parquet -c id -v 42        # several paths
  bloom probe /data/orders -c id 42 -l           # the files that may hold it
  bloom probe orders.parquet -c id 42 > /dev/null || echo "not in this file"

Values by type: integers 42 or 0x2a, floats 1.5, decimals 12.34, dates 2024-02-29,
+20240-01-01 or 0044-03-15 (BC), times 13:45:30.250, timestamps 2024-02-29T13:45:30.250Z,
UUIDs, binary 0x0fff, strings without quotes. Zones only if the column is in UTC.

Blank lines of a file are skipped, except for columns of strings and binary, where they are the
empty value. A byte order mark is not part of the first line.""",
)
@click.argument("files", nargs=-1, metavar="PATH... [VALUE...]", shell_complete=complete_files)
@options.options_of(ProbeOptions, only=("column", "exclude"))
@options.value_options(
    "A value to look up; repeats. With it, all arguments are paths.",
    "Read values from a UTF-8 file, one per line; - is standard input.",
)
@options.options_of(ProbeOptions, only=("explain", "keys"))
@grouped.option(
    "-l",
    "--files-with-matches",
    "matches",
    is_flag=True,
    help="Print only the paths of files that may hold at least one of the values.",
    group=OUTPUT,
    common=True,
)
@options.all_option("For many files, show every file.")
@options.format_option("text", "json", "csv")
@table_options(values=True)
@dataset_options
def command(
    dataset: Dataset,
    column: str | None,
    exclude: tuple[str, ...],
    values: tuple[str, ...],
    source: str | None,
    values_column: str | None,
    explain: bool,
    matches: bool,
    every: bool,
    form: str,
    keys: Any,
) -> int:
    """Look up values in the filters.

    For each row group: absent (a reader can skip it), maybe, no filter, or can't tell. The answer is
    absent if the filter, min/max statistics or the column's dictionary rule out the value; the columns
    next to it show what each says. The dictionary is read only where filter and min/max don't rule
    out the value, and where every page of the row group is dictionary-encoded: up to 4 MiB each and
    64 MiB per file. Then, for each value, the row groups that a reader can skip.

    PATH is a file, a directory or a quoted pattern, and values follow it. With --value or --values-from,
    all arguments are paths; a value that is the name of a file is refused without them. With
    --files-from or --table, and without --value, all arguments are values.

    The exit code is 0 if a value may be present, and 1 if all values are absent everywhere.
    """
    from bloomcli.cli.value_arguments import split
    from bloomcli.commands import probe
    from bloomcli.report import text

    paths, wanted = split(
        list(map(unmarked, dataset.paths)),
        list(map(unmarked, values)),
        listed=dataset.files_from is not None or dataset.table is not None,
        from_file=source is not None,
    )
    options.check_values_column(source, values_column)
    if source is not None:
        wanted += _lines(source) if values_column is None else _column(source, values_column)
    if dataset.table is not None and paths:
        raise no_files(paths[0])
    where = replace(dataset, paths=tuple(paths))
    probe_options = ProbeOptions(
        values=wanted, column=column, exclude=exclude, explain=explain, skip_blank=source is not None, keys=keys
    )
    if matches and (explain or form != "text"):
        raise UsageError("--files-with-matches prints paths alone", hint="leave out --explain and --format")
    if matches and options.is_quiet():
        raise UsageError("--quiet prints no paths", hint="leave out --files-with-matches or --quiet")
    if where.single is None:
        if explain:
            raise UsageError(
                "--explain is for one file; the report on several has a line for each", hint="name one file"
            )
        return _print_matches(where, probe_options) if matches else run(where, probe_options, form, every=every)
    report = probe.run(where.single, probe_options)
    if matches:
        _print([] if report.absent_everywhere else [report.path], err=False)
    else:
        output.write("probe", report, form, text.probe)
    if report.unverified:
        _print([f"note: {report.unverified}"], err=True)
    return 1 if report.absent_everywhere else 0


def _print_matches(where: Dataset, probe_options: ProbeOptions) -> int:
    """Print the paths of the files that may hold a value, and errors to standard error."""
    from bloomcli.datasets.engine import plan_files
    from bloomcli.model.dataset import Status

    engine = engine_of(where)
    report = run_tasks(engine, plan_files(engine, named_paths(where), probe_options))
    _print((row.path for row in report.rows if row.status is Status.DONE and row.exit_code == 0), err=False)
    _print((f"bloom: {row.error}" for row in report.rows if row.error is not None), err=True)
    return report.exit_code


def _print(lines: Iterable[str], *, err: bool) -> None:
    """Print lines without wrapping them, even on terminals."""
    from bloomcli.report.layout import line
    from bloomcli.report.render import plain

    (sys.stderr if err else sys.stdout).writelines(f"{text}\n" for text in plain(map(line, lines)))


def _column(source: str, column: str) -> list[str]:
    """Read values from a column of a CSV or Parquet file."""
    from bloomcli.finding.value_file import values_of

    return [text.decode("utf-8", "surrogateescape") for text in values_of(source, column).texts.to_pylist()]


def _lines(source: str) -> list[str]:
    """Read values from a file, one per line. Bytes that aren't UTF-8 are kept; a byte order mark isn't."""
    lines = read_named(source).removeprefix(BOM_UTF8).decode("utf-8", "surrogateescape").split("\n")
    if lines[-1] == "":
        lines.pop()
    return [line.removesuffix("\r") for line in lines]
