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
        path: a file, a directory, a quoted pattern or a URI; or a list of them.
        fpp: false-positive rate to keep to, between 0 and 1.
        columns: one or several leaf paths or globs; none means all.
        exclude: one or several leaf paths or globs of columns to leave out, even if `columns` names them.
        max_bytes: fold further down to this many bytes even where that misses `fpp`.
        size: "power-of-two", or "tight" for any multiple of 32 bytes. From the bits alone, a filter of z blocks can
            be had exactly at the divisors of z; at other sizes, some of its blocks go into two of the new ones. The
            smallest filter whose measured rate meets `fpp` is taken, which may be the power of two.
        readers: the engines that read the file; tight sizes need them, and all of them have to take such filters.
        output, in_place, force, overwrite, dry_run, progress: as for `add`.
        jobs, fail_fast, on_row: of many files, as for `add`.

    Returns:
        The report of one file. Of a directory, a pattern or a list, a `DatasetReport` with one row per file.

    Raises:
        As `add`; CorruptFile where a filter can't be read.
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
