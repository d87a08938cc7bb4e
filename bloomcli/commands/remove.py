"""remove: removes filters from a file; everything else stays unchanged."""

from __future__ import annotations

import os
from collections.abc import Sequence

from bloomcli.commands.change import ChangeRequest, change
from bloomcli.commands.columns import indexes
from bloomcli.commands.options import RemoveOptions
from bloomcli.commands.progress import Progress
from bloomcli.commands.targets import target_of
from bloomcli.formats.base import FilterFile
from bloomcli.model.change import ChangeReport


def request(options: RemoveOptions) -> ChangeRequest:
    """Make the request for any file. Raises UsageError."""
    options = options.checked()

    def chosen(file: FilterFile) -> set[int] | None:
        return indexes(file.columns, options.columns, path=file.source.path, exclude=options.exclude)

    def done(file: FilterFile) -> str | None:
        return "there are no filters" if next(file.facts(chosen(file)), None) is None else None

    def made(file: FilterFile, output: FilterFile) -> bool:
        return file.alike(output, chosen(file)) and done(output) is not None

    return ChangeRequest(command="remove", plan=lambda file: file.plan_remove(chosen(file)), done=done, made=made)


def run(path: str | os.PathLike[str], options: RemoveOptions, *, progress: Progress | None = None) -> ChangeReport:
    """Change one file. Raises: as `remove`."""
    return change(path, request(options), target_of(options), progress=progress)


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

    Filters at the file's end, among page indexes, are cut out. Of filters between row groups only the references are
    removed: their bytes stay, as pages can't move.

    Args:
        path: the file, a local path or a URI of a store.
        columns: one or several leaf paths or globs; none means all.
        exclude: one or several leaf paths or globs of columns to leave out, even if `columns` names them.
        output, in_place, force, overwrite, dry_run, progress: as for `add`.

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
    return run(path, options, progress=progress)
