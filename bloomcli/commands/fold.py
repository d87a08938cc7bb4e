"""fold: makes oversized filters smaller without reading a column."""

from __future__ import annotations

from bloomcli.checks.additions import Readers
from bloomcli.checks.sizes import tight
from bloomcli.commands.change import ChangeRequest
from bloomcli.commands.columns import indexes, why_none
from bloomcli.commands.options import FoldOptions
from bloomcli.engine_filters.base import Rewrite
from bloomcli.engine_filters.registry import rewrite_of
from bloomcli.formats.base import FilterFile, Plan
from bloomcli.policy.policy import FilePolicy


def request(options: FoldOptions) -> ChangeRequest:
    """Make the request for any file. Raises UsageError."""
    options = options.checked()
    rule = options.size_rule()
    rules = FilePolicy(readers=tuple(options.readers), readers_given=bool(options.readers), size=options.size)

    def chosen(file: FilterFile) -> set[int] | None:
        return file.with_known_filters(indexes(file, options.columns, exclude=options.exclude))

    def plan(file: FilterFile) -> Plan:
        least = Readers(file.format, rules).smallest()
        any_size = tight(rules, file.format, file.source.path)
        return file.plan_fold(chosen(file), rule._replace(min_bytes=least, tight=any_size))

    def rewrite(file: FilterFile) -> Rewrite | None:
        chosen_columns = chosen(file)
        columns = [c for c in file.columns if chosen_columns is None or c.index in chosen_columns]
        return rewrite_of(file, columns, rule, folds=True)

    def is_result(file: FilterFile, output: FilterFile) -> bool:
        if file.unfoldable is not None:
            return file.differs_only_in_filters(output, set())
        if not file.differs_only_in_filters(output, chosen(file)):
            return False
        planned = [(c.row_group, c.column, c.bitset_bytes, c.fpp) for c in plan(file).estimate]
        return planned == [(f.row_group, f.column, f.bitset_bytes, f.fpp) for f in output.facts(chosen(file))]

    return ChangeRequest(
        options=options,
        plan=plan,
        why_unchanged=lambda file: file.unfoldable or why_none(file, options.columns, exclude=options.exclude),
        is_result=is_result,
        why_idle="no filter can be smaller",
        rewrite=rewrite,
    )
