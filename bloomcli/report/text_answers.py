"""Text of `probe` on many files: for each value, the number of files without it, and the files that may have it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from bloomcli.model.dataset import FileRow
from bloomcli.model.file import Presence
from bloomcli.model.probe import ValueTotals
from bloomcli.report.human import rule_out_text, size
from bloomcli.report.layout import PRESENCE_STYLE, Block, line
from bloomcli.words import plural


def answers(rows: Iterable[FileRow], *, listed: bool) -> Iterator[Block]:
    """Yield a line for each value and, unless a table lists all files, the files that answer maybe.

    Args:
        rows: the files; files without answers don't count.
        listed: whether a table above lists every file with its answers.
    """
    found: dict[str, _Sum] = {}
    for row in rows:
        for totals in row.totals:
            if totals.value not in found:
                found[totals.value] = _Sum()
            found[totals.value].add(totals)
    for value, total in found.items():
        yield line(
            f"{value}: absent in {total.answers[Presence.ABSENT]:,} of {plural(total.answers.total(), 'file')};"
            f" a reader may skip {total.absent_row_groups:,} of {plural(total.row_groups, 'row group')},"
            f" {size(total.absent_bytes)}"
            f" ({rule_out_text(total)})"
        )
        if not listed:
            yield from _files(rows, value, total)


class _Sum:
    """The sums of all files' answers for a value."""

    def __init__(self) -> None:
        self.answers: Counter[Presence] = Counter()
        self.absent_row_groups = self.absent_bytes = self.row_groups = 0
        self.skipped_row_groups = self.stats_skipped_row_groups = self.dictionary_skipped_row_groups = 0

    def add(self, totals: ValueTotals) -> None:
        self.answers[totals.answer] += 1
        self.absent_row_groups += totals.absent_row_groups
        self.absent_bytes += totals.absent_bytes
        self.row_groups += totals.row_groups
        self.skipped_row_groups += totals.skipped_row_groups
        self.stats_skipped_row_groups += totals.stats_skipped_row_groups
        self.dictionary_skipped_row_groups += totals.dictionary_skipped_row_groups


def _files(rows: Iterable[FileRow], value: str, total: _Sum) -> Iterator[Block]:
    """Yield the files that answer maybe, and how many have no filter or a filter that can't tell."""
    for row in rows:
        if any(totals.value == value and totals.answer is Presence.MAYBE for totals in row.totals):
            yield line(f"maybe: {row.path}", PRESENCE_STYLE[Presence.MAYBE], indent=2)
    for presence in (Presence.NO_FILTER, Presence.UNKNOWN):
        number = total.answers[presence]
        if number:
            yield line(f"{presence.value}: {plural(number, 'file')}; --files-with-matches lists them, too", indent=2)
