"""bloom inspect"""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TextIO

from bloomcli.cli import grouped, options, output
from bloomcli.cli.dataset import Dataset, dataset_options, run, table_options
from bloomcli.cli.reports import prepare, save_all
from bloomcli.commands.options import InspectOptions
from bloomcli.errors import UsageError

if TYPE_CHECKING:
    from bloomcli.model.inspect import InspectReport

_PARTS = ("pages", "indexes", "schema", "footer")


@grouped.command(
    short_help="Show the columns and Bloom filters of a file.",
    epilog="""\b
Examples:
  bloom inspect orders.parquet
  bloom inspect orders.parquet --all
  bloom inspect orders.parquet --columns id --format json
  bloom inspect orders.parquet --columns id --pages --indexes
  bloom inspect orders.parquet --footer | jq .FileMetaData.row_groups[0]
  bloom inspect /data/orders
  bloom inspect /data/orders --all --format csv > filters.csv
  bloom inspect /data/orders --report html=orders.html""",
)
@options.files_argument
@options.options_of(InspectOptions)
@options.format_option("text", "json", "csv")
@options.reports_option("text", "json", "csv", "html")
@table_options()
@dataset_options
def command(
    dataset: Dataset,
    every: bool,
    form: str,
    reports: tuple[tuple[str, str], ...],
    **options_: Any,
) -> int:
    """Show the columns of a file and its Bloom filters.

    For each column: type, nulls, minimum and maximum as `bloom probe` takes values, number of
    distinct values (NDV), encodings without those of levels, compressed size, in how many row groups
    it has a filter, the size of its filters, and the worst measured false-positive rate (FPP).
    Statistics that are known to be wrong aren't shown. Only the footer and the filters are read.

    --all has a line per filter: row group, column, type, offset, size, number of blocks, number of
    distinct values (estimated from its bits), share of set bits (fill), measured false-positive rate,
    and bits per distinct value. --format csv has a line per filter, too, and JSON has both. The size
    counts a filter's bits, without its header, as in `bloom add` and for --max-bytes; in JSON and CSV,
    bitset_bytes is this size, and length includes the header.

    An ORC file has a filter for every few thousand rows. A second table has one line per column, with
    the requested and the measured rate, and marks filters that readers must not use.

    Text and CSV contain escapes (\\n, \\x1b) for control characters in names, and CSV two backslashes
    for one. JSON has the original names.

    The line of a filter that can't be read has the reason. For directories, globs and several files,
    the output has a line per column over all files, and the files that differ from the others. Links
    to directories are followed if they are arguments; links found in a directory are reported.

    --report html=FILE writes a page with charts and tables, which needs Jinja2 and markdown-it-py.
    """
    from bloomcli.commands import inspect

    forms = [form, *(other for other, _ in reports)]
    chosen = InspectOptions(every=every and not {"json", "csv"}.isdisjoint(forms), **options_)
    asked = [name for name in _PARTS if getattr(chosen, name)]
    if dataset.single is None and asked:
        column = ", and its column by -c COLUMN" if asked[0] in {"pages", "indexes"} else ""
        raise UsageError(f"--{asked[0]} is for one file", hint=f"name one file{column}")
    for output_form in forms:
        _check(asked, output_form)
    prepare(reports, (dataset.files_from,))
    if dataset.single is None:
        return run(dataset, chosen, form, every=every, reports=reports)
    report = inspect.run(dataset.single, chosen)
    _write(report, form, None, asked, every=every)
    save_all(reports, lambda other, stream: _write(report, other, stream, asked, every=every))
    return 0


def _check(asked: Sequence[str], form: str) -> None:
    """Raise UsageError if a form of report can't show the requested parts of a file."""
    if asked and form == "html":
        raise UsageError(
            f"the page shows columns and filters, but nothing of --{asked[0]}", hint=f"leave --{asked[0]} out"
        )
    if len(asked) > 1 and (form == "csv" or (form == "text" and "footer" in asked)):
        raise UsageError(
            f"--{asked[0]} and --{asked[1]} are different tables", hint="give one of them, or --format json"
        )
    if form == "csv" and not {"schema", "footer"}.isdisjoint(asked):
        raise UsageError(f"--{asked[0]} isn't a table", hint="use --format json")


def _write(report: InspectReport, form: str, stream: TextIO | None, asked: Collection[str], *, every: bool) -> None:
    """Write the report in one form to a stream, or to standard output."""
    from bloomcli.report import text_inspect

    if form == "csv" and asked:
        from bloomcli.report import csv

        csv.write_parts(report, sys.stdout if stream is None else stream, pages="pages" in asked)
    elif form == "text" and "footer" in asked:
        for part in text_inspect.footer(report):
            output.say(part, stream=stream)
    elif form == "text" and asked:
        show = partial(
            text_inspect.parts,
            with_pages="pages" in asked,
            with_indexes="indexes" in asked,
            with_schema="schema" in asked,
        )
        output.write("inspect", report, form, show, stream)
    else:
        output.write("inspect", report, form, partial(text_inspect.inspect, every=every), stream)
