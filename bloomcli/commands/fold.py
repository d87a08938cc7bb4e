"""fold: makes oversized filters smaller without reading a column."""

from __future__ import annotations

from bloomcli.checks.additions import Readers, tight
from bloomcli.commands.change import ChangeRequest
from bloomcli.commands.columns import indexes, why_none
from bloomcli.commands.options import FoldOptions
from bloomcli.engine_filters.base import Rewrite
from bloomcli.engine_filters.registry import rewrite_of
from bloomcli.formats.base import FilterFile, Plan
from bloomcli.policy.policy import FilePolicy


class Request(ChangeRequest):
    """Folds filters."""

    options: FoldOptions
    why_idle = "no filter can be smaller"

    def plan(self, file: FilterFile) -> Plan:
        """The change of one file. Raises UsageError."""
        readers = self.options.readers
        rules = FilePolicy(readers=tuple(readers), readers_given=bool(readers), size=self.options.size)
        least = Readers(file.format, rules).smallest()
        any_size = tight(rules, file.format, file.source.path)
        return file.plan_fold(self._chosen(file), self.options.size_rule()._replace(min_bytes=least, tight=any_size))

    def why_unchanged(self, file: FilterFile) -> str | None:
        """The reason why there is nothing to fold."""
        return file.unfoldable or why_none(file, self.options.columns, exclude=self.options.exclude)

    def rewrite(self, file: FilterFile) -> Rewrite | None:
        """The file of an engine's filters beside the file, folded."""
        chosen = self._chosen(file)
        columns = [c for c in file.columns if chosen is None or c.index in chosen]
        return rewrite_of(file, columns, self.options.size_rule(), folds=True)

    def is_result(self, file: FilterFile, output: FilterFile) -> bool:
        """Whether `output` is the file with the folded filters."""
        if file.unfoldable is not None:
            return file.differs_only_in_filters(output, set())
        chosen = self._chosen(file)
        if not file.differs_only_in_filters(output, chosen):
            return False
        planned = [(c.row_group, c.column, c.bitset_bytes, c.fpp) for c in self.plan(file).estimate]
        return planned == [(f.row_group, f.column, f.bitset_bytes, f.fpp) for f in output.facts(chosen)]

    def _chosen(self, file: FilterFile) -> set[int] | None:
        return file.with_known_filters(indexes(file, self.options.columns, exclude=self.options.exclude))
