"""bloomcli.repair"""

from __future__ import annotations

from typing import Unpack

from bloomcli.commands import repair as command
from bloomcli.commands.keywords import RepairKeywords
from bloomcli.commands.option import takes_options
from bloomcli.commands.options import RepairOptions
from bloomcli.functions.files import Files, ProgressOption, RunOptions, options_of, run, takes_files
from bloomcli.model.change import ChangeReport
from bloomcli.model.dataset import DatasetReport


@takes_files(DatasetReport)
@takes_options(RepairOptions, RunOptions, ProgressOption)
def repair(path: Files, **options: Unpack[RepairKeywords]) -> ChangeReport:
    """Mend what readers skip by besides filters, or add it where it is missing: statistics and page indexes.

    Without `add`, the columns are read, and statistics and page indexes that are wrong are replaced by right ones, or
    taken out where the format has no right value. With `add`, only columns that lack something are read. No page
    changes, and columns without a finding keep their metadata.

    Args:
        path: a Parquet file, a directory, a quoted pattern or a URI; or a list of them.
        {options}

    Returns:
        The report on one file. For a directory, a pattern or a list, a `DatasetReport` with one row per file.

    Raises:
        As `add`; UnsupportedError for files of other formats.
    """
    return run(path, options_of(RepairOptions, options), options, command.run)
