"""remove: filters out of a file, the rest as it was."""

from __future__ import annotations

import os
from collections.abc import Sequence

from bloomcli.commands.arguments import names
from bloomcli.commands.change import ChangeRequest, Target, change
from bloomcli.commands.columns import indexes
from bloomcli.commands.progress import Progress
from bloomcli.formats.base import FilterFile
from bloomcli.model.file import ChangeReport


def order(*, columns: Sequence[str] = (), exclude: Sequence[str] = ()) -> ChangeRequest:
    """What to remove, from whichever file."""

    wanted = names(columns, "columns")
    unwanted = names(exclude, "columns")

    def chosen(file: FilterFile) -> set[int] | None:
        return indexes(file.columns, wanted, path=file.source.path, exclude=unwanted)

    def done(file: FilterFile) -> str | None:
        return "there are no filters" if next(file.facts(chosen(file)), None) is None else None

    def made(file: FilterFile, output: FilterFile) -> bool:
        return file.alike(output, chosen(file)) and done(output) is not None

    return ChangeRequest(command="remove", plan=lambda file: file.plan_remove(chosen(file)), done=done, made=made)


def remove(
    path: str | os.PathLike[str],
    *,
    columns: Sequence[str] = (),
    exclude: Sequence[str] = (),
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
        exclude: leaf paths or globs of columns to leave out, whatever `columns` says.
        output, in_place, force, overwrite, dry_run, progress: as for `add`.

    Raises:
        As `add`.
    """
    target = Target(output=output, in_place=in_place, force=force, overwrite=overwrite, dry_run=dry_run)
    return change(path, order(columns=columns, exclude=exclude), target, progress=progress)
