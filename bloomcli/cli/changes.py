"""The common part of `bloom add`, `bloom remove` and `bloom fold`: changes a file or a dataset, and reports."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from bloomcli.cli import output
from bloomcli.cli.dataset import Dataset, run

if TYPE_CHECKING:
    from bloomcli.commands.options import WriteOptions


def change(dataset: Dataset, options: WriteOptions, form: str) -> int:
    """Change one file or the files of a dataset, print the report, and give the exit code."""
    options = options.checked()
    if dataset.single is None:
        return run(dataset, options, form)
    command = import_module(f"bloomcli.commands.{options.command}")
    with output.Bars() as bars:
        report = command.run(dataset.single, options, progress=bars)
    from bloomcli.report import text

    output.write(options.command, report, form, text.change)
    return 0
