"""bloom index"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from bloomcli.cli import grouped, options, output
from bloomcli.cli.completion import complete_files
from bloomcli.cli.dataset import Dataset, dataset_options, engine_of, meter, named_paths
from bloomcli.commands.options import IndexOptions, IndexTarget
from bloomcli.concurrency.signals import terminable

if TYPE_CHECKING:
    from collections.abc import Callable

    from bloomcli.indexing.build import OnTasks
    from bloomcli.model.index import IndexReport

_paths = click.argument("files", nargs=-1, metavar="PATH...", shell_complete=complete_files)
_dry_run = options.options_of(IndexOptions, only=("dry_run",))
_force = options.options_of(IndexTarget, only=("force",))


@click.group(
    "index",
    cls=grouped.Group,
    short_help="Keep an index of many files' filters, for `find`.",
    epilog="""\b
Examples:
  bloom index build lake/orders/ -c user_id,trace_id -o lake.bloom-index
  bloom index update lake/orders/ -i lake.bloom-index
  bloom index inspect lake.bloom-index""",
)
def command() -> None:
    """Build, update and show an index of the filters of many files.

    An index is one file that has filters of many Parquet, ORC and Mosaic files, laid out so that one
    value's answer over all of them is a few kilobytes. `bloom find --index` reads these, and opens
    only the files that may have the value. A file that isn't in the index, or that changed since,
    is searched as without an index: an index that is out of date costs time, and no row.
    """


@command.command(
    "build",
    short_help="Build an index of columns of many files.",
    epilog="""\b
Examples:
  bloom index build lake/orders/ -c user_id,trace_id -o lake.bloom-index
  bloom index build s3://lake/orders/ -c id -o s3://lake/orders.bloom-index
  bloom index build lake/orders/ -c trace_id --dry-run""",
)
@_paths
@options.options_of(IndexOptions, only=("columns",))
@options.options_of(IndexTarget, only=("output",))
@options.options_of(IndexOptions, only=("fpp",))
@options.options_of(IndexTarget, only=("overwrite", "force"))
@options.options_of(IndexOptions, only=("allow_plaintext_index", "keys"))
@_dry_run
@options.format_option("text", "json")
@dataset_options
def build(
    dataset: Dataset,
    columns: tuple[str, ...],
    output: str | None,
    fpp: float,
    overwrite: bool,
    force: bool,
    dry_run: bool,
    form: str,
    **encrypted: Any,
) -> int:
    """Build an index of columns of many Parquet, ORC and Mosaic files.

    The filters that are in Parquet and Mosaic files are taken. A column without a filter that can be
    used is read, and a filter is made of its values; so are all columns of ORC files, whose filters
    an index can't take. The files stay as they are. Files that fail are named, and aren't in the
    index: `find` searches them as without an index.
    """
    from bloomcli.indexing import build as indexing

    chosen = IndexOptions(columns=columns, fpp=fpp, dry_run=dry_run, **encrypted)
    hint = "give -o INDEX, or --dry-run to only see what would be read"
    target = IndexTarget(output=output, overwrite=overwrite, force=force).checked(dry_run=dry_run, hint=hint)

    def work(on_tasks: OnTasks) -> IndexReport:
        return indexing.build(engine_of(dataset), named_paths(dataset), chosen, target, on_tasks=on_tasks)

    return _run(form, work)


@command.command(
    "update",
    short_help="Bring an index up to date with its files.",
    epilog="""\b
Examples:
  bloom index update lake/orders/ -i lake.bloom-index
  bloom index update lake/orders/ -i lake.bloom-index --dry-run""",
)
@_paths
@grouped.option(
    "-i",
    "--index",
    "target",
    metavar="INDEX",
    type=options.PATH,
    required=True,
    help="The index to update.",
    common=True,
)
@_force
@options.options_of(IndexOptions, only=("allow_plaintext_index", "keys"))
@_dry_run
@options.format_option("text", "json")
@dataset_options
def update(dataset: Dataset, target: str, force: bool, dry_run: bool, form: str, **encrypted: Any) -> int:
    """Bring an index up to date with the files that paths name.

    Only files that are new or changed are read. Files that are gone, or that the paths don't name,
    are dropped: name all paths of the index. If a path has no files, none is dropped. The new index
    replaces the old one when it is complete: an update that is stopped leaves the old one, and of
    two at the same time one is refused.
    """
    from bloomcli.indexing import build as indexing

    written = IndexTarget(output=target, overwrite=True, force=force)

    def work(on_tasks: OnTasks) -> IndexReport:
        return indexing.update(
            engine_of(dataset), named_paths(dataset), written, dry_run=dry_run, on_tasks=on_tasks, **encrypted
        )

    return _run(form, work)


def _run(form: str, work: Callable[[OnTasks], IndexReport]) -> int:
    """Do the work with a progress bar, print the report and the errors, and give the exit code."""
    from bloomcli.report import text_find

    with terminable(), output.Bars() as bars:
        report = work(lambda tasks: meter(bars, tasks))
    output.say_problems((row.error, row.hint) for row in report.errors)
    output.write("index", report, form, text_find.index_change)
    return report.exit_code


@command.command(
    "inspect",
    short_help="Show what an index has.",
    epilog="""\b
Examples:
  bloom index inspect lake.bloom-index
  bloom index inspect lake.bloom-index --format json""",
)
@click.argument("index", type=options.PATH, shell_complete=complete_files)
@options.format_option("text", "json")
def inspect(index: str, form: str) -> int:
    """Show the columns of an index, the size and the measured rate of its filters, and its parts.

    Reads the footer and the tables, and no filter.
    """
    from bloomcli.functions.index import index_inspect
    from bloomcli.report import text_find

    output.write("index-inspect", index_inspect(index), form, text_find.index_facts)
    return 0
