"""bloomcli.fold"""

from __future__ import annotations

from typing import Unpack

from bloomcli.commands import fold as command
from bloomcli.commands.keywords import FoldKeywords
from bloomcli.commands.option import takes_options
from bloomcli.commands.options import FoldOptions
from bloomcli.functions.files import Files, ProgressOption, RunOptions, options_of, run, takes_files
from bloomcli.model.change import ChangeReport
from bloomcli.model.dataset import DatasetReport


@takes_files(DatasetReport)
@takes_options(FoldOptions, RunOptions, ProgressOption)
def fold(path: Files, **options: Unpack[FoldKeywords]) -> ChangeReport:
    """Fold filters to the smallest size whose measured false-positive rate still meets `fpp`.

    A split-block filter of z blocks (z even) becomes exactly the filter that z/2 blocks would have given,
    by ORing neighbouring blocks: block i of the smaller one is chosen by the same hashes as 2i and 2i+1.
    From its bits alone, a filter of z blocks can be resized exactly to divisors of z; at the other sizes of
    `size="tight"`, some of its blocks are copied into two new blocks.

    Args:
        path: a file, a directory, a quoted pattern or a URI; or a list of them.
        {options}

    Returns:
        The report on one file. For a directory, a pattern or a list, a `DatasetReport` with one row per file.

    Raises:
        As `add`; CorruptFile if a filter can't be read.
    """
    return run(path, options_of(FoldOptions, options), options, command.run)
