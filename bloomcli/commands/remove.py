"""remove: removes filters from a file, and changes nothing else."""

from __future__ import annotations

from bloomcli.commands.change import ChangeRequest, no_filters
from bloomcli.commands.columns import indexes, why_none
from bloomcli.commands.options import RemoveOptions
from bloomcli.formats.base import FilterFile, Plan


class Request(ChangeRequest):
    """Removes filters."""

    options: RemoveOptions
    why_idle = "there are no filters"

    def plan(self, file: FilterFile) -> Plan:
        """The change of one file."""
        return file.plan_remove(self._chosen(file))

    def why_unchanged(self, file: FilterFile) -> str | None:
        """The reason why there is nothing to remove."""
        if next(file.facts(self._chosen(file)), None) is not None:
            return None
        return why_none(file, self.options.columns, exclude=self.options.exclude) or no_filters(file)

    def is_result(self, file: FilterFile, output: FilterFile) -> bool:
        """Whether `output` is the file without the filters."""
        return file.differs_only_in_filters(output, self._chosen(file)) and self.why_unchanged(output) is not None

    def _chosen(self, file: FilterFile) -> set[int] | None:
        return file.with_known_filters(indexes(file, self.options.columns, exclude=self.options.exclude))
