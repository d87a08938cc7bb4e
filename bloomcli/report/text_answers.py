"""Text of `probe` on many files: for each value how many files don't have it, and the files that may have it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bloomcli.model.dataset import FileRow
from bloomcli.model.file import Presence
from bloomcli.model.probe import ValueTotals
from bloomcli.report.human import alone, size
from bloomcli.report.layout import PRESENCE_STYLE, Block, line
from bloomcli.words import plural


def answers(rows: Sequence[FileRow], *, listed: bool) -> Iterator[Block]:
    """Yield a line for each value and, unless a table lists all files, the files that answer maybe.

    Args:
        rows: the files that were probed.
        listed: a table above lists every file with its answers.
    """
    for value in dict.fromkeys(t.value for r in rows for t in r.totals):
        found = [(r, t) for r in rows for t in r.totals if t.value == value]
        totals = [t for _, t in found]
        absent = sum(t.answer is Presence.ABSENT for t in totals)
        skipped = sum(t.absent_row_groups for t in totals)
        yield line(
            f"{value}: absent in {absent:,} of {plural(len(totals), 'file')};"
            f" a reader may skip {skipped:,} of {plural(sum(t.row_groups for t in totals), 'row group')},"
            f" {size(sum(t.absent_bytes for t in totals))}"
            f" ({alone(totals)})"
        )
        if not listed:
            yield from _files(found)


def _files(found: Sequence[tuple[FileRow, ValueTotals]]) -> Iterator[Block]:
    """Yield the files that answer maybe, and how many have no filter or a filter that can't tell."""
    for row, totals in found:
        if totals.answer is Presence.MAYBE:
            yield line(f"maybe: {row.path}", PRESENCE_STYLE[Presence.MAYBE], indent=2)
    for presence in (Presence.NO_FILTER, Presence.UNKNOWN):
        number = sum(totals.answer is presence for _, totals in found)
        if number:
            yield line(f"{presence.value}: {plural(number, 'file')}; --files-with-matches lists them, too", indent=2)
