"""survey: for `validate --init`, lists the columns of a file that have filters in all or some row groups, the quality
of these filters, and their faults under any policy."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from itertools import chain

from bloomcli.checks.readers import readers as losing
from bloomcli.commands.columns import select
from bloomcli.commands.options import SurveyOptions
from bloomcli.formats.registry import open_file
from bloomcli.model.dataset import SurveyedColumn, SurveyReport
from bloomcli.model.file import Column, FilterFacts, Severity
from bloomcli.model.validate import Finding
from bloomcli.policy.policy import FilePolicy
from bloomcli.storage.os_errors import convert_os_errors_of_file
from bloomcli.storage.registry import open_source


@dataclass(slots=True)
class _Tally:
    """Running totals of one column's filters."""

    filters: int = 0
    unreadable: int = 0
    bitset_bytes: int = 0
    max_fpp: float | None = None
    everywhere: bool = False


@convert_os_errors_of_file
def run(path: str | os.PathLike[str], options: SurveyOptions) -> SurveyReport:
    """Examine a file's filters, column by column. Reads the same as `validate` without `deep`.

    Raises:
        UnreadableError, UnsupportedError, UnknownColumn: as for `inspect`.
    """
    options = options.checked()
    rules = FilePolicy() if options.policy is None else options.policy.for_file(os.fspath(path))
    with open_source(path) as source:
        file = open_file(source, options.names, options.keys)
        select(file.columns, options.columns, path=source.path, lacking=file.missing_columns)
        tallies: dict[str, _Tally] = {}
        findings: list[Finding] = []
        for_readers: list[FilterFacts] = []
        others = {column.path for column in file.columns if column.not_in_table}
        # one at a time, because an ORC file has a filter for every few thousand rows
        for item in chain(file.examine(None), file.contradictions(None)):
            if isinstance(item, Finding):
                findings.append(item)
                continue
            if item.column in others:  # no policy can require it
                continue
            tally = tallies.setdefault(item.column, _Tally())
            tally.filters += 1
            tally.unreadable += item.problem is not None
            tally.bitset_bytes += item.bitset_bytes or 0
            if item.fpp is not None:
                tally.max_fpp = max(tally.max_fpp or 0.0, item.fpp)
            if rules.readers:
                for_readers.append(item)
        findings += losing(file, for_readers, rules.readers, rules.table, None)
        named: dict[str, list[Column]] = {}  # two columns may have one name
        for column in file.columns:
            if not column.not_in_table:
                named.setdefault(column.path, []).append(column)
        for name in named if file.rows == 0 else named.keys() & tallies.keys():
            tallies.setdefault(name, _Tally()).everywhere = not any(map(file.without_filter, named[name]))
        if not any(tally.filters for tally in tallies.values()):  # columns that a policy could require
            for column in file.leaves:
                if not column.not_in_table and column.unfilterable is None and file.why_unfilterable(column) is None:
                    tallies.setdefault(column.path, _Tally())
        return SurveyReport(
            path=source.path,
            format=file.format,
            row_groups=file.row_group_count,
            file_bytes=source.size,
            seen=tuple(SurveyedColumn(column=name, **asdict(tally)) for name, tally in tallies.items()),
            findings=tuple(f for f in findings if f.severity is not Severity.NOTE),
        )
