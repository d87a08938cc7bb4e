"""bloomcli.trial"""

from __future__ import annotations

from typing import Unpack

from bloomcli.commands.keywords import TrialKeywords
from bloomcli.commands.option import taken_paths, takes_options
from bloomcli.commands.options import TrialOptions
from bloomcli.datasets.engine import choose_engine
from bloomcli.functions.files import Files, Table
from bloomcli.model.trial import TrialReport
from bloomcli.tables.reading import opened, paths_of
from bloomcli.trials.trial import run


@takes_options(TrialOptions)
def trial(path: Files | Table, **options: Unpack[TrialKeywords]) -> TrialReport:
    """Look values up with installed readers, with filters and without, and compare rows, metrics and times.

    If the file has filters of the columns, it is read with the reader's option for filters on and off; a reader
    without such an option also reads a copy without filters. If it has none, filters are added to a copy. Copies are
    in a temporary folder, which is removed. Each reader runs in a separate process.

    Args:
        path: a file, a directory, a quoted pattern or a URI; or a list of them; or a `bloomcli.Table`, whose
            files are read as plain files.
        {options}

    Returns:
        The report. Its `differences` are the lookups for which a reader returned other rows with filters.

    Raises:
        UsageError: a figure out of range, an unknown reader or column, a column that can't be looked up, no files.
        UnreadableError: the file can't be read.
        UnsupportedError: none of the readers is installed or reads the file.
        WriteError: the temporary copies can't be written.
    """
    if not isinstance(path, Table):
        return run(taken_paths("path", path), TrialOptions(**options))
    table, where = opened(choose_engine(), path.options()), path.where
    return run(paths_of(table, where), TrialOptions(**options))
