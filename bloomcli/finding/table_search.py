"""`find` on a table without Spark."""

from __future__ import annotations

from bloomcli.commands.find_values import Values
from bloomcli.commands.options import FindOptions
from bloomcli.finding.lake import Search
from bloomcli.finding.of_table import of_snapshot
from bloomcli.finding.search_files import SearchFiles
from bloomcli.tables.base import TableSnapshot


class SnapshotSearch(Search):
    """The search of a table's snapshot by threads of this process, without the rows that the table has deleted.

    Args:
        table: the table.
        where: a condition in SQL that leaves files out.
        values, options, jobs, index: as for `Search`.

    Raises: as `Search` and `of_snapshot`.
    """

    def __init__(
        self,
        table: TableSnapshot,
        where: str | None,
        values: Values,
        options: FindOptions,
        jobs: int | None = None,
        index: str | None = None,
    ) -> None:
        self._table, self._where = table, where
        super().__init__((), values, options, jobs, index)

    def _files(self) -> SearchFiles:
        return of_snapshot(self._table, self._where, self._options, typed=False)
