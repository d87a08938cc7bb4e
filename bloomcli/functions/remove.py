"""bloomcli.remove"""

from __future__ import annotations

from typing import Unpack

from bloomcli.commands import remove as command
from bloomcli.commands.keywords import RemoveKeywords
from bloomcli.commands.option import takes_options
from bloomcli.commands.options import RemoveOptions
from bloomcli.functions.files import Files, ProgressOption, RunOptions, options_of, run, takes_files
from bloomcli.model.change import ChangeReport
from bloomcli.model.dataset import DatasetReport


@takes_files(DatasetReport)
@takes_options(RemoveOptions, RunOptions, ProgressOption)
def remove(path: Files, **options: Unpack[RemoveKeywords]) -> ChangeReport:
    """Remove Bloom filters.

    In Parquet and Mosaic, removing the filters that `add` added restores the original file, bit for bit. In ORC, all
    other streams and all fields of the footers stay the same, but the footers are encoded and compressed again, and
    those of another writer may then have other bytes.

    Filters at the file's end, among page indexes, are cut out. For filters between row groups, only the references
    are removed: their bytes stay, because pages can't move.

    Args:
        path: a file, a directory, a quoted pattern or a URI; or a list of them.
        {options}

    Returns:
        The report on one file. For a directory, a pattern or a list, a `DatasetReport` with one row per file.

    Raises:
        As `add`.
    """
    return run(path, options_of(RemoveOptions, options), options, command.run)
