"""survey: for `validate --init`, lists the columns of a file that have filters in all or some row groups, the quality
of these filters, and their faults under any policy."""

from __future__ import annotations

import os
from dataclasses import replace
from itertools import chain

from bloomcli.checks.readers import readers as losing
from bloomcli.commands.columns import select
from bloomcli.commands.options import SurveyOptions
from bloomcli.formats.registry import open_file
from bloomcli.model.dataset import FileRow, Status, SurveyedColumn
from bloomcli.model.file import Column, FilterFacts, Severity
from bloomcli.model.validate import Finding
from bloomcli.storage.os_errors import convert_os_errors_of_file
from bloomcli.storage.registry import open_source


@convert_os_errors_of_file
def run(path: str | os.PathLike[str], options: SurveyOptions) -> FileRow:
    """Examine a file's filters, column by column. Reads the same as `validate` without `deep`.

    Raises:
        UnreadableError, UnsupportedError, UnknownColumn: as for `inspect`.
    """
    options = options.checked()
    rules = options.policy.for_file(os.fspath(path))
    with open_source(path) as source:
        file = open_file(source, options.names, options.keys)
        select(file.columns, options.columns, path=source.path, lacking=file.missing_columns)
        surveys: dict[str, SurveyedColumn] = {}
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
            survey = surveys.setdefault(item.column, SurveyedColumn(column=item.column))
            rates = [rate for rate in (survey.max_fpp, item.fpp) if rate is not None]
            surveys[item.column] = replace(
                survey,
                filters=survey.filters + 1,
                unreadable=survey.unreadable + (item.problem is not None),
                bitset_bytes=survey.bitset_bytes + (item.bitset_bytes or 0),
                max_fpp=max(rates, default=None),
            )
            if rules.readers:
                for_readers.append(item)
        findings += losing(file, for_readers, rules.readers, rules.table, None)
        named: dict[str, list[Column]] = {}  # two columns may have one name
        for column in file.columns:
            if not column.not_in_table:
                named.setdefault(column.path, []).append(column)
        for name in named if file.rows == 0 else named.keys() & surveys.keys():
            everywhere = not any(map(file.without_filter, named[name]))
            surveys[name] = replace(surveys.get(name, SurveyedColumn(column=name)), everywhere=everywhere)
        columns = sum(column.filters > 0 for column in surveys.values())
        if not columns:  # columns that a policy could require
            for column in file.leaves:
                if not column.not_in_table and file.why_not_added(column) is None:
                    surveys.setdefault(column.path, SurveyedColumn(column=column.path))
        return FileRow(
            path=source.path,
            status=Status.DONE,
            format=file.format,
            row_groups=file.row_group_count,
            columns=columns,
            filters=sum(column.filters for column in surveys.values()),
            bytes_before=source.size,
            max_fpp=max((column.max_fpp for column in surveys.values() if column.max_fpp is not None), default=None),
            seen=tuple(surveys.values()),
            findings=tuple(f for f in findings if f.severity is not Severity.NOTE),
        )
