"""The options of commands on tables, which select the files of a table."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Self

from bloomcli.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOptions:
    """A table, the selected part of it, and the way in which its files are replaced."""

    table: str
    """The table's name in SQL: ``catalog.db.name``, ``delta.`/path` ``."""
    where: str | None = None
    from_properties: bool = False
    commit_every: int | None = None
    new_row_ids: bool = False
    snapshot: int | None = None
    as_of: str | datetime | None = None

    def checked(self) -> Self:
        """The same options, with `as_of` as a time with a zone. Raises UsageError."""
        if self.commit_every is not None and self.commit_every < 1:
            raise UsageError(f"a commit replaces 1 file or more, not {self.commit_every}")
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
