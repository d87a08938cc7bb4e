"""repair: mends or adds what readers skip by besides filters, and changes nothing else."""

from __future__ import annotations

from typing import Final

from bloomcli.commands.change import ChangeRequest
from bloomcli.commands.columns import indexes, why_none
from bloomcli.commands.options import RepairOptions, WriteOptions
from bloomcli.concurrency.threads import cores
from bloomcli.formats.base import FilterFile, Plan, Repair
from bloomcli.model.table_statistics import FileStatistics

_NAMED: Final = 3
"""The most wrong statements of a table's metadata that a remark names."""


class Request(ChangeRequest):
    """Mends or adds statistics and page indexes.

    Attributes:
        right: what the metadata of the file's table should say, where they are wrong; None if they are right, or the
            file wasn't planned.
    """

    options: RepairOptions

    def __init__(self, options: WriteOptions, table: FileStatistics | None = None) -> None:
        """`table`: what the metadata of the file's table say, to compare it with the values that a repair reads."""
        super().__init__(options)
        self.why_idle = "there is nothing to add" if self.options.add else "there is nothing to mend"
        self._table = table
        self.right: FileStatistics | None = None

    def plan(self, file: FilterFile) -> Plan:
        """The change of one file."""
        repair = Repair(frozenset(self.options.add), self.options.threads or cores())
        return file.plan_repair(indexes(file, self.options.columns, exclude=self.options.exclude), repair)

    def why_unchanged(self, file: FilterFile) -> str | None:
        """The reason why the file can't be repaired."""
        return file.unrepairable or why_none(file, self.options.columns, exclude=self.options.exclude)

    def is_result(self, file: FilterFile, output: FilterFile) -> bool:
        """Whether `output` is the file with nothing left to repair."""
        if not file.differs_only_in_structures(output):
            return False
        return all(structure.action == "keep" for structure in self.plan(output).structures)

    def corrects(self, file: FilterFile, plan: Plan) -> tuple[str, ...]:
        """Remarks on what is wrong in the table's metadata. `plan` has read the values."""
        if self._table is None:
            return ()
        from bloomcli.checks.table_statistics import correction  # most files are in no table

        correction_ = correction(file, self._table, plan.measured)
        self.right = None if correction_ is None else correction_.right
        if correction_ is None:
            return ()
        more = len(correction_.problems) - _NAMED
        named = "; ".join(correction_.problems[:_NAMED]) + (f"; and {more:,} more" if more > 0 else "")
        return (f"the commit corrects what the {self._table.source} says of the file: {named}",)
