"""remove: removes filters from a file, and changes nothing else."""

from __future__ import annotations

from bloomcli.commands.change import ChangeRequest, no_filters
from bloomcli.commands.columns import indexes, why_none
from bloomcli.commands.options import RemoveOptions
from bloomcli.formats.base import FilterFile


def request(options: RemoveOptions) -> ChangeRequest:
    """Make the request for any file. Raises UsageError."""
    options = options.checked()

    def chosen(file: FilterFile) -> set[int] | None:
        return file.with_known_filters(indexes(file, options.columns, exclude=options.exclude))

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
