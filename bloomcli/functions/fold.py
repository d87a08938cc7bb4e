"""bloomcli.fold"""

from __future__ import annotations

import os
from collections.abc import Sequence

from bloomcli.commands import fold as command
from bloomcli.commands.options import FPP, FoldOptions
from bloomcli.commands.progress import Progress
from bloomcli.functions.files import Files, OnRow, RunOptions, run, takes_files
from bloomcli.model.change import ChangeReport
from bloomcli.model.dataset import DatasetReport
from bloomcli.model.sizes import POWER_OF_TWO


@takes_files(DatasetReport)
def fold(
    path: Files,
    *,
    fpp: float = FPP,
    columns: Sequence[str] = (),
    exclude: Sequence[str] = (),
    max_bytes: int | None = None,
    size: str = POWER_OF_TWO,
    readers: Sequence[str] = (),
    output: str | os.PathLike[str] | None = None,
    in_place: bool = False,
    force: bool = False,
    overwrite: bool = False,
    dry_run: bool = False,
    progress: Progress | None = None,
    jobs: int | None = None,
    fail_fast: bool = False,
    on_row: OnRow | None = None,
) -> ChangeReport:
    """Fold filters to the smallest size whose measured false-positive rate still meets `fpp`.

    A split-block filter of z blocks (z even) becomes exactly the filter that z/2 blocks would have given,
    by ORing neighbouring blocks: block i of the smaller one is chosen by the same hashes as 2i and 2i+1.

    Args:
        path: a file, a directory, a quoted pattern or a URI; or a list of them. fpp: the highest false-positive rate
        of a folded filter, between 0 and 1. columns: one or several leaf paths or globs; none means all. exclude: one
        or several leaf paths or globs of columns to leave out, even if `columns` names them. max_bytes: fold to at
        most this many bytes, even if the filter then misses `fpp`. size: "power-of-two", or "tight" for any multiple
        of 32 bytes. From its bits alone, a filter of z blocks can be
            resized exactly to divisors of z; at other sizes, some of its blocks are copied into two new blocks. The
            smallest filter whose measured rate meets `fpp` is used, which may be a power of two.
        readers: the engines that read the file. Tight sizes need them, and all of them have to accept such filters.
        output, in_place, force, overwrite, dry_run, progress: as for `add`.
        jobs, fail_fast, on_row: for many files, as for `add`.

    Returns:
        The report on one file. For a directory, a pattern or a list, a `DatasetReport` with one row per file.

    Raises:
        As `add`; CorruptFile if a filter can't be read.
    """
    options = FoldOptions(
        fpp=fpp,
        columns=columns,
        exclude=exclude,
        max_bytes=max_bytes,
        size=size,
        readers=readers,
        output=output,
        in_place=in_place,
        force=force,
        overwrite=overwrite,
        dry_run=dry_run,
    )
    return run(
        path,
        options,
        command.run,
        RunOptions(jobs, fail_fast, on_row),
        progress=progress,
    )
