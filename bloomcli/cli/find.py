"""bloom find"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import IO, TYPE_CHECKING, Any, Final

import click

from bloomcli.cli import grouped, options, output
from bloomcli.cli.completion import complete_files
from bloomcli.cli.dataset import (
    Dataset,
    check_engine_options,
    engine_of,
    engine_options,
    in_dataset,
    named_paths,
    no_files,
    table_options,
)
from bloomcli.cli.options import NegativesCommand, is_quiet, unmarked
from bloomcli.cli.reports import check_new_file, new_output, output_option
from bloomcli.commands.option import OUTPUT, RUN
from bloomcli.commands.options import FindOptions, TableOptions
from bloomcli.errors import UnsupportedError, UsageError
from bloomcli.report.human import printable
from bloomcli.words import plural

if TYPE_CHECKING:
    from bloomcli.commands.find_values import Values
    from bloomcli.finding.lake import Search
    from bloomcli.report.found_rows import Writer

_ROWS: Final = ("text", "table", "jsonl", "csv", "parquet", "json", "paths")


@click.command(
    short_help="Find the rows that have values.",
    cls=NegativesCommand,
    epilog="""\b
Examples:
  bloom find /data/orders 42 -c id                # every row with the id 42
  bloom find s3://lake/orders/ 8f2c91ab -c trace_id --select time -f jsonl
  bloom find orders/ --values-from ids.txt -c id -f parquet -o hits.parquet
  bloom find /data/orders 42 -c id --files-only   # the files that have it
  bloom find /data/orders 42 -c id --maybe        # files that may have it
  bloom find day=*/*.parquet -v 42 -v 43 -c id --limit 10
  bloom find --values-from ids.txt -c user_id --table ice.db.orders
  bloom find --values-from ids.txt -c id --table db.t --reachable

Values are written as for `bloom probe`. A row number is that of the file, from 0 on, without
regard to row groups. A list has a value if one of its elements equals it.""",
)
@click.argument("files", nargs=-1, metavar="PATH... [VALUE...]", shell_complete=complete_files)
@options.options_of(FindOptions, only=("column",))
@options.value_options(
    "A value to find; repeats. All arguments are paths.",
    "Values of a UTF-8 file, one per line; - is standard input. All arguments are paths.",
)
@options.files_from_option()
@options.options_of(FindOptions, only=("select", "limit", "files_only", "maybe", "as_files"))
@grouped.option(
    "-f",
    "--format",
    "form",
    type=click.Choice(_ROWS),
    default="text",
    show_default=True,
    help="How rows are written; table: aligned; paths: only those of files; json: only the report on what was read.",
    group=OUTPUT,
    common=True,
)
@output_option
@grouped.option(
    "--index",
    metavar="INDEX",
    type=options.PATH,
    help="An index of `bloom index build`: open only the files that it doesn't rule out.",
)
@grouped.option("-j", "--jobs", type=click.IntRange(min=1), metavar="N", help="Files searched at a time.", group=RUN)
@grouped.option(
    "--reachable",
    is_flag=True,
    help="With --table: look in all that the table still reaches: older snapshots, branches, tags, deleted rows,"
    " delete files, bounds in the metadata. -o writes a certificate if nothing is left.",
)
@options.key_options
@table_options(values=True)
@engine_options
@grouped.option("-q", "--quiet", is_flag=True, help="Print no report on standard error.", group=OUTPUT)
@in_dataset
def command(
    dataset: Dataset,
    column: str,
    values: tuple[str, ...],
    source: str | None,
    values_column: str | None,
    form: str,
    target: str | None,
    index: str | None,
    as_files: bool,
    reachable: bool,
    quiet: bool,
    **options_: Any,
) -> int:
    """Find the rows whose column equals a value.

    Filters, min/max statistics, dictionaries and indexes say which pages of Parquet files, row groups of
    ORC files and row groups of Mosaic files can have the value; only these are read, and compared. Rows
    come in the order of files and rows, each with its path, row group, number and record. A report on
    standard error says what was read, and how many bytes the columns have.

    Files below the directory of a Delta, Iceberg, Hudi or Paimon table are searched with --as-files only: they
    may have rows that the table has deleted. --table searches the table's rows.

    PATH is a file, a directory or a quoted pattern, and values follow it. With --value or --values-from,
    all arguments are paths. As with grep, one value may come before the paths instead, if it isn't
    the name of a file and they are. With --table, rows that the table has deleted aren't shown, and
    there is no PATH.

    The exit code is 0 if rows were found (with --maybe: if there may be some), 1 if not, and 2 or more
    if there was an error, as that of grep. With --reachable, it is 0 if nothing is left, and 1 if
    something is.
    """
    from bloomcli.cli.value_arguments import split_in_any_order
    from bloomcli.commands.find_values import Values

    listed = dataset.files_from is not None or dataset.table is not None
    paths, wanted = split_in_any_order(
        list(map(unmarked, dataset.paths)), list(map(unmarked, values)), listed=listed, from_file=source is not None
    )
    _check_table(dataset.table, paths, index, as_files=as_files, reachable=reachable)
    options.check_values_column(source, values_column)
    if source == "-" and dataset.files_from == "-":
        raise UsageError(
            "--values-from and --files-from can't both read standard input", hint="write one of them to a file"
        )
    chosen = FindOptions(column=options.as_text(column), as_files=as_files, **options_)
    _check_output(form, target, rows=chosen.checked().rows, reachable=reachable)
    if source is None:
        sought = Values(wanted)
    else:
        from bloomcli.finding.value_file import values_of

        sought = values_of(source, values_column, chosen.column)
    where = replace(dataset, paths=tuple(paths))
    if reachable:
        return _find_reachable(where, sought, chosen, form, target)
    search = _search(where, sought, chosen, index)
    _write(search, form, target, rows=chosen.rows, maybe=chosen.maybe)
    return _report(search, form, wanted, quiet=quiet)


def _check_table(
    table: TableOptions | None, paths: list[str], index: str | None, *, as_files: bool, reachable: bool
) -> None:
    """Raise UsageError for arguments that name files beside --table, and for --reachable without a table."""
    if table is None:
        if reachable:
            raise UsageError("--reachable is for tables", hint="add --table NAME")
        return
    if reachable and index is not None:
        raise UsageError("an index doesn't have what a table has deleted", hint="leave out --index or --reachable")
    if paths:
        raise no_files(paths[0])
    if as_files:
        raise UsageError("--table and --as-files exclude each other", hint="leave out one of them")


def _search(where: Dataset, values: Values, chosen: FindOptions, index: str | None) -> Search:
    """The search by the engine that the options name. For a table's snapshot without Spark, standard error says what
    was read."""
    from bloomcli.finding.lake import Search

    which, engine = where.table, replace(where, table=None)
    paths = named_paths(where)
    if where.engine == "spark":
        from bloomcli.finding.on_spark import SparkSearch
        from bloomcli.tables.reading import session_of

        return SparkSearch(session_of(engine_of(engine)), paths, values, chosen, which, index)
    if which is None:
        check_engine_options(where, changing=False)
        return Search(paths, values, chosen, where.jobs, index)
    from bloomcli.finding.of_table import of_snapshot
    from bloomcli.tables.reading import opened, read_from

    table = opened(engine_of(engine), which)
    if not is_quiet():
        output.say(f"note: {read_from(table)}", err=True)
    return Search(partial(of_snapshot, table, which.where, typed=False), values, chosen, where.jobs, index)


def _find_reachable(where: Dataset, values: Values, chosen: FindOptions, form: str, target: str | None) -> int:
    """Look in all that a table reaches; print the report, and write the certificate if there is one."""
    from bloomcli.finding.reachable import find_in_reachable
    from bloomcli.report import json
    from bloomcli.report.text_find import problems, reachable
    from bloomcli.tables.reading import session_of

    assert where.table is not None  # noqa: S101  `_check_table`
    report = find_in_reachable(
        session_of(engine_of(replace(where, table=None, engine="spark"))), where.table, values, chosen
    )
    output.say_problems(problems(report.errors))
    output.write("reachable", report, form, reachable)
    if report.certificate is not None and target is not None:
        with new_output(target, binary=False) as stream:
            json.write("reachable", report, stream)
    return report.exit_code


def _check_output(form: str, target: str | None, *, rows: bool, reachable: bool) -> None:
    """Raise UsageError for formats and targets that don't go together."""
    from bloomcli.report.found_rows import OF_FILES

    if reachable and form not in {"text", "json"}:
        raise UsageError(f"--reachable has no --format {form}", hint="--format json")
    if not rows and form not in OF_FILES:
        raise UsageError(f"--format {form} is for rows", hint="leave out --files-only and --maybe")
    if form == "parquet" and target is None:
        raise UsageError("a Parquet file isn't written to standard output", hint="name a file with -o")
    if target is None:
        return
    if form == "json" and not reachable:
        raise UsageError("--format json prints the report, and no rows", hint="leave out -o, or --format")
    check_new_file(target)
    suffix = target.rpartition(".")[2]
    if form == "text" and suffix in {"csv", "jsonl", "parquet"}:
        raise UsageError(f"rows as text aren't a file of {suffix}", path=target, hint=f"--format {suffix}")


def _write(search: Search, form: str, target: str | None, *, rows: bool, maybe: bool) -> None:
    from bloomcli.report.found_rows import write_all

    of_files = not rows or form in {"paths", "json"}
    with new_output(target, binary=form == "parquet") as stream, output.StatusLine(output.PATIENCE) as counting:
        before = counting.clear if target is None and sys.stdout.isatty() else None  # rows and the line in turn

        def show_progress(done: int, files: int, matches: int) -> None:
            """Update the line of progress."""
            counting.say(
                f"{done:,} of {plural(files, 'file')} searched, {plural(matches, 'row' if rows else 'file')} found"
            )

        if counting.shown:
            search.on_files = show_progress
        writer = _writer(form, stream, rows=rows)
        write_all(search, writer, of_files=of_files, maybe=maybe, before=before)


def _writer(form: str, stream: IO[bytes] | IO[str], *, rows: bool) -> Writer:
    from bloomcli.report.found_rows import Csv, Files, Lines, Parquet, Table

    as_it_is = form == "jsonl" or (form == "paths" and not stream.isatty())  # programs open what a list of paths has

    def say(text: str) -> None:
        if form == "paths" and as_it_is and "\n" in text:
            raise UnsupportedError(
                "a list of paths can't have its name, which has a line break; the search ends here, and its output"
                " isn't complete",
                path=text,
                hint="--format jsonl takes it",
            )
        stream.write((text if as_it_is else printable(text)) + "\n")  # type: ignore[call-overload]

    def ignore(text: str) -> None:
        """Print nothing: the output is only the report."""

    if form == "json":
        return Files(ignore, as_json=False)
    if not rows or form == "paths":
        return Files(say, as_json=form == "jsonl")
    if form == "csv":
        return Csv(stream)  # type: ignore[arg-type]
    if form == "table":
        return Table(stream)  # type: ignore[arg-type]
    if form == "parquet":
        return Parquet(stream)  # type: ignore[arg-type]
    return Lines(say, as_json=form == "jsonl")


def _report(search: Search, form: str, texts: Sequence[str], *, quiet: bool) -> int:
    """Print errors and the report; returns the exit code. `texts`: the values on the command line."""
    from bloomcli.report.text_find import lines, problems

    report = search.report
    output.say_problems(problems(report.errors))
    if form == "json":
        from bloomcli.report import json

        json.write("find", report, sys.stdout)
    elif not quiet:
        sys.stdout.flush()
        remarks = [] if report.files_found else search.lookup_remarks(texts)
        for line in (*lines(report), *(f"value: {remark}" for remark in remarks)):
            output.say(line, err=True)
    return report.exit_code
