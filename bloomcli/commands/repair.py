"""repair: mends or adds what readers skip by besides filters, and changes nothing else."""

from __future__ import annotations

from typing import Final

from bloomcli.commands.change import ChangeRequest
from bloomcli.commands.columns import indexes, why_none
from bloomcli.commands.options import RepairOptions
from bloomcli.commands.progress import cores
from bloomcli.formats.base import FilterFile, Plan, Repair
from bloomcli.model.table_statistics import FileStatistics

_NAMED: Final = 3
"""The most wrong statements of a table's metadata that a remark names."""


class TableCheck:
    """Compares what a table's metadata say about a file with the values that a repair reads.

    Attributes:
        right: what the metadata should say, where they are wrong; None if they are right, or the file wasn't planned.
    """

    def __init__(self, said: FileStatistics) -> None:
        self.said = said
        self.right: FileStatistics | None = None

    def __call__(self, file: FilterFile, plan: Plan) -> tuple[str, ...]:
        """Compare, and return remarks on what is wrong. `plan` is the repair's, which has read the values."""
        from bloomcli.checks.table_statistics import correction  # most files are in no table

        found = correction(file, self.said, plan.measured)
        self.right = None if found is None else found.right
        if found is None:
            return ()
        more = len(found.problems) - _NAMED
        named = "; ".join(found.problems[:_NAMED]) + (f"; and {more:,} more" if more > 0 else "")
        return (f"the commit corrects what the {self.said.source} says of the file: {named}",)


def request(options: RepairOptions, table: TableCheck | None = None) -> ChangeRequest:
    """Make the request for any file; `table` compares it with its table's metadata. Raises UsageError."""
    options = options.checked()
    repair = Repair(frozenset(options.add), options.threads or cores())

    def plan(file: FilterFile) -> Plan:
        return file.plan_repair(indexes(file, options.columns, exclude=options.exclude), repair)

    def is_result(file: FilterFile, output: FilterFile) -> bool:
        if not file.differs_only_in_structures(output):
            return False
        return all(one.action == "keep" for one in plan(output).structures)

    return ChangeRequest(
        options=options,
        plan=plan,
        why_unchanged=lambda file: file.unrepairable or why_none(file, options.columns, exclude=options.exclude),
        is_result=is_result,
        why_idle="there is nothing to add" if options.add else "there is nothing to mend",
        corrects=table or (lambda *_: ()),
    )
