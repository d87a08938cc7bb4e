"""The common part of `bloom add`, `bloom remove` and `bloom fold`: changes a file or a dataset, and reports."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING

from bloomcli.cli import output
from bloomcli.cli.dataset import Dataset, run
from bloomcli.concurrency.signals import terminable
from bloomcli.errors import UsageError

if TYPE_CHECKING:
    from bloomcli.commands.options import WriteOptions


def change(dataset: Dataset, options: WriteOptions, form: str, *, every: bool = False) -> int:
    """Change one file or the files of a dataset, print the report (all rows if `every`), and return the exit code."""
    if dataset.table is None or not dataset.table.from_properties:  # the table's properties name the columns
        options = options.checked()
    elif getattr(options, "columns", ()):
        raise UsageError("--columns and --from-properties exclude each other", hint="leave one of them out")
    with terminable():  # resolving a path may already send a request to a store
        if dataset.single is None:
            return run(dataset, options, form, every=every)
        command = import_module(f"bloomcli.commands.{options.command}")
        with output.Bars() as bars:
            report = command.run(dataset.single, options, progress=bars)
    if form == "csv":
        from bloomcli.report import csv

        csv.write_changes(report, sys.stdout)
    else:
        from bloomcli.report import text

        output.write(options.command, report, form, text.change)
    return 0
