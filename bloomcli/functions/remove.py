"""bloomcli.remove"""

from __future__ import annotations

import os
from collections.abc import Sequence

from bloomcli.commands import remove as command
from bloomcli.commands.options import RemoveOptions
from bloomcli.commands.progress import Progress
from bloomcli.functions.files import Files, OnRow, RunOptions, run, takes_files
from bloomcli.model.change import ChangeReport
from bloomcli.model.dataset import DatasetReport


@takes_files(DatasetReport)
def remove(
    path: Files,
    *,
    columns: Sequence[str] = (),
    exclude: Sequence[str] = (),
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
    """Remove Bloom filters.

    In Parquet and Mosaic, removing the filters that `add` added restores the original file, bit for bit. In ORC, all
    other streams and all fields of the footers stay the same, but the footers are encoded and compressed again, and
    those of another writer may then have other bytes.

    Filters at the file's end, among page indexes, are cut out. For filters between row groups, only the references
    are removed: their bytes stay, because pages can't move.

    Args:
        path: a file, a directory, a quoted pattern or a URI; or a list of them.
        columns: one or several leaf paths or globs; none means all.
        exclude: one or several leaf paths or globs of columns to leave out, even if `columns` names them.
        output, in_place, force, overwrite, dry_run, progress: as for `add`.
        jobs, fail_fast, on_row: for many files, as for `add`.

    Returns:
        The report on one file. For a directory, a pattern or a list, a `DatasetReport` with one row per file.

    Raises:
        As `add`.
    """
    options = RemoveOptions(
        columns=columns,
        exclude=exclude,
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
