"""survey: which columns of a file have filters, everywhere or not, and how good they are; for `validate --init`."""

from __future__ import annotations

import os
from dataclasses import dataclass

from bloomcli.formats.registry import open_file
from bloomcli.model import Column
from bloomcli.rows import ColumnSeen, SurveyReport
from bloomcli.source import open_source


@dataclass(slots=True)
class _Tally:
    """One column's filters, as they are counted."""

    filters: int = 0
    unreadable: int = 0
    bitset_bytes: int = 0
    max_fpp: float | None = None
    everywhere: bool = False


def survey(path: str | os.PathLike[str]) -> SurveyReport:
    """Look at a file's filters, column by column. Reads what `inspect` reads.

    Args:
        path: the file, local or a URI.

    Raises:
        UnreadableError, UnsupportedError: as for `inspect`.
    """
    with open_source(path) as source:
        file = open_file(source)
        tallies: dict[str, _Tally] = {}
        for fact in file.facts(None):  # one at a time: an ORC file has one for each few thousand rows
            tally = tallies.setdefault(fact.column, _Tally())
            tally.filters += 1
            tally.unreadable += fact.problem is not None
            tally.bitset_bytes += fact.bitset_bytes or 0
            if fact.fpp is not None:
                tally.max_fpp = max(tally.max_fpp or 0.0, fact.fpp)
        columns: dict[str, list[Column]] = {}  # two may have one name
        for column in file.columns:
            columns.setdefault(column.path, []).append(column)
        for name in columns if file.rows == 0 else columns.keys() & tallies.keys():
            tallies.setdefault(name, _Tally()).everywhere = not any(map(file.without_filter, columns[name]))
        return SurveyReport(
            path=source.path,
            format=file.format,
            row_groups=file.row_group_count,
            file_bytes=source.size,
            seen=tuple(
                ColumnSeen(
                    column=name,
                    filters=tally.filters,
                    everywhere=tally.everywhere,
                    unreadable=tally.unreadable,
                    bitset_bytes=tally.bitset_bytes,
                    max_fpp=tally.max_fpp,
                )
                for name, tally in tallies.items()
            ),
        )
