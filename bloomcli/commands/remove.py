"""remove: removes filters from a file, and changes nothing else."""

from __future__ import annotations

import os

from bloomcli.commands.change import ChangeRequest, change, no_filters, target_of
from bloomcli.commands.columns import indexes, why_none
from bloomcli.commands.options import RemoveOptions
from bloomcli.commands.progress import Progress
from bloomcli.formats.base import FilterFile
from bloomcli.model.change import ChangeReport


def request(options: RemoveOptions) -> ChangeRequest:
    """Make the request for any file. Raises UsageError."""
    options = options.checked()

    def chosen(file: FilterFile) -> set[int] | None:
        return indexes(file, options.columns, exclude=options.exclude)

    def why_unchanged(file: FilterFile) -> str | None:
        if next(file.facts(chosen(file)), None) is not None:
            return None
        return why_none(file, options.columns, exclude=options.exclude) or no_filters(file)

    def is_result(file: FilterFile, output: FilterFile) -> bool:
        return file.differs_only_in_filters(output, chosen(file)) and why_unchanged(output) is not None

    return ChangeRequest(
        options=options,
        plan=lambda file: file.plan_remove(chosen(file)),
        why_unchanged=why_unchanged,
        is_result=is_result,
        why_idle="there are no filters",
    )


def run(path: str | os.PathLike[str], options: RemoveOptions, *, progress: Progress | None = None) -> ChangeReport:
    """Change one file. Raises: as `remove`."""
    return change(path, request(options), target_of(options, progress=progress))
