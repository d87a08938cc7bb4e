"""The common part of `bloom add`, `remove`, `fold` and `repair`: their options, the change, and its report."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from bloomcli.cli import options, output
from bloomcli.cli.dataset import Dataset, dataset_options, run
from bloomcli.cli.table_options import table_options
from bloomcli.concurrency.signals import terminable
from bloomcli.errors import UsageError

if TYPE_CHECKING:
    from bloomcli.commands.options import WriteOptions

F = TypeVar("F", bound=Callable[..., Any])


def changing(kind: type, *, properties: bool = False) -> Callable[[F], F]:
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


def change(dataset: Dataset, chosen: WriteOptions, form: str, *, every: bool = False) -> int:
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
