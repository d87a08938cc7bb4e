"""remove: filters out of a file, the rest as it was."""

from __future__ import annotations

import os
from collections.abc import Sequence

from bloomcli.commands.change import Progress, Target, change
from bloomcli.commands.columns import indexes
from bloomcli.formats.base import Draft, FilterFile
from bloomcli.model import ChangeReport


def remove(
    path: str | os.PathLike[str],
    *,
    columns: Sequence[str] = (),
    output: str | os.PathLike[str] | None = None,
    in_place: bool = False,
    force: bool = False,
    overwrite: bool = False,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> ChangeReport:
    """Remove Bloom filters. What `add` added and this removes leaves the original file, bit for bit.

    Filters that lie at the file's end, among page indexes, are cut out; those between row groups are only
    forgotten, since pages can't move.

    Args:
        path: a local file.
        columns: leaf paths or globs; none means all.
        output, in_place, force, overwrite, dry_run, progress: as for `add`.

    Raises:
        As `add`.
    """

    def draft(file: FilterFile) -> Draft:
        return file.draft_remove(indexes(file.columns, columns, path=file.source.path))

    target = Target(output=output, in_place=in_place, force=force, overwrite=overwrite, dry_run=dry_run)
    return change(path, "remove", target, draft, progress=progress)
