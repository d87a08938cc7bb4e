"""The options of commands on tables, which select the files of a table."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Self

from bloomcli.commands.option import Checked, option
from bloomcli.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOptions(Checked):
    """A table, the selected part of it, and the way in which its files are replaced."""

    table: str = option(
        None,
        "Work on the data files of an Iceberg or Delta table instead of FILE: named as in Spark SQL or, to read it"
        " without Spark, by its directory.",
        "text",
        metavar="NAME",
    )
    """The table's name in SQL: ``catalog.db.name``, ``delta.`/path` ``; to read it without Spark, also its
    directory."""
    where: str | None = option(
        None,
        "only files that may hold rows of this condition, according to partitions and statistics.",
        "text",
        metavar="SQL",
    )
    from_properties: bool = option(
        False,
        "require the filters that the table's properties request (Iceberg:"
        " write.parquet.bloom-filter-*; Delta: parquet.bloom.filter.*).",
        "flag",
    )
    commit_every: int | None = option(
        None,
        "replace N files by each commit.  [default: 1000 files or 64 GiB]",
        "number",
        metavar="N",
        least=1,
    )
    new_row_ids: bool = option(
        False,
        "give rows of an Iceberg v3 table new row ids, instead of writing columns that keep them.",
        "flag",
    )
    snapshot: int | None = option(
        None,
        "the files of this snapshot (Iceberg) or version (Delta).  [default: the newest]",
        "integer",
        metavar="ID",
    )
    as_of: str | datetime | None = option(
        None,
        "the files of the snapshot at this time, such as 2026-11-01T12:00:00Z; without a zone it is in UTC.",
        "time",
        metavar="TIME",
    )

    def checked(self) -> Self:
        """The same options, with `as_of` as a time with a zone. Raises UsageError."""
        if self.snapshot is not None and self.as_of is not None:
            raise UsageError("--snapshot and --as-of exclude each other", hint="leave one of them out")
        return replace(self, as_of=_time(self.as_of))

    @property
    def time(self) -> datetime | None:
        """The time of checked options."""
        return None if self.as_of is None else _time(self.as_of)


def _time(text: str | datetime | None) -> datetime | None:
    """A time with its zone, by default UTC. Raises UsageError."""
    if text is None:
        return None
    try:
        time = text if isinstance(text, datetime) else datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(
            f"{text!r} is not a time", hint="--as-of 2026-11-01T12:00:00Z; without a zone it is in UTC"
        ) from None
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)
