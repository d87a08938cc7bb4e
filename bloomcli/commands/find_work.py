"""The search of one file with Arrow, row group by row group."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from bloomcli.commands.find_columns import Emit, batch_of
from bloomcli.commands.find_options import FindOptions
from bloomcli.commands.find_values import Values
from bloomcli.commands.record_columns import selected
from bloomcli.concurrency.cancellation import Stop
from bloomcli.formats.base import FilterFile
from bloomcli.model.file import Column
from bloomcli.named_tuple import NamedTuple

if TYPE_CHECKING:
    import pyarrow as pa

    from bloomcli.commands.value_lookup import FoundValues
    from bloomcli.commands.value_parts import PartedSearch, ValueParts
    from bloomcli.formats.finding import Candidates, ColumnSearch, WantedValues


_ROWS_BEFORE_FIRST: Final = 1 << 20
"""Limit for the rows of a file whose whole column is read although the first rows may be enough."""


class Place(NamedTuple):
    """A row group, and the number of its first row in the file."""

    candidates: Candidates
    first_row: int


def placed(found: Iterable[Candidates]) -> Iterator[Place]:
    """Add the numbers of their first rows to the row groups of a file."""
    first = 0
    for candidates in found:
        yield Place(candidates, first)
        first += candidates.rows


class Work:
    """The search of one file, row group by row group."""

    def __init__(
        self, file: FilterFile, search: ColumnSearch, wanted: WantedValues | None, options: FindOptions, emit: Emit
    ) -> None:
        """`wanted`: the values to find; None if they are in parts."""
        self.file, self.search, self.wanted, self.options = file, search, wanted, options
        self.columns, self._emit = selected(file, options), emit
        self.rows = 0
        self.row_groups = 0

    def candidates(self) -> Iterable[Candidates]:
        """For each row group, the values that it may have."""
        assert self.wanted is not None  # noqa: S101  see `_PartedWork`
        return self.search.candidates(self.wanted)

    def was_read(self, candidates: Candidates) -> bool:
        """Whether the row group's column was read to determine the values that it may have. By default False."""
        del candidates
        return False

    @property
    def pages_read(self) -> int:
        """Data pages that were decoded."""
        return self.search.pages_read

    @property
    def pages_left_out(self) -> int:
        """Data pages that the page index rules out, in the row groups that were read."""
        return self.search.pages_left_out

    @property
    def enough(self) -> bool:
        """Whether the search has all the rows that it needs."""
        return self.rows == self.options.limit or (self.options.files_only and self.rows > 0)

    def scan_bytes(self, groups: Iterable[Place]) -> int:
        """Compressed bytes that a scan of the file reads."""
        if self.options.rows:
            return self.search.scanned_bytes(self.columns)
        return sum(place.candidates.chunk_bytes for place in groups)

    def row_groups_of(self, places: Iterable[Place], stop: Stop | None) -> None:
        """Find the rows of row groups, until the search has enough rows. Raises Stopped."""
        for place in places:
            if stop is not None:
                stop.check()
            self.row_group(place)
            if self.enough:
                break

    def row_group(self, place: Place) -> None:
        """Find the rows of a row group, and give them to `emit`."""
        assert self.wanted is not None  # noqa: S101  see `_PartedWork`
        self.row_groups += 1
        rows, texts = self.matches(self.wanted, place.candidates)
        self.show(place, rows, self.wanted.texts.take(texts))

    def show(self, place: Place, rows: pa.Int64Array, texts: pa.LargeBinaryArray) -> None:
        """Count rows, up to the limit, and give them to `emit`."""
        count = len(rows) if self.options.limit is None else min(len(rows), self.options.limit - self.rows)
        self.rows += count
        if self.options.rows and count:
            self._records(place, rows[:count], texts[:count])

    def matches(self, wanted: WantedValues, candidates: Candidates) -> tuple[pa.Int64Array, pa.Int64Array]:
        """The rows of a row group that have one of the candidates, and the positions of their texts.

        With a limit, and with `files_only`, the search ends early, but not before it has enough rows.
        """
        import pyarrow as pa

        from bloomcli.formats.arrays import int64s

        rows, texts = [int64s(())], [int64s(())]
        count = 0
        self.search.prepare(wanted, candidates, self.columns, rows=self.options.rows)
        for matches in self.search.matches(wanted, candidates):
            count += len(matches.rows)
            rows.append(matches.rows)
            texts.append(matches.texts)
            if self.options.files_only or (
                self.options.limit is not None and self.rows + count >= self.options.limit
            ):
                break
        return pa.concat_arrays(rows), pa.concat_arrays(texts)

    def _records(self, place: Place, rows: pa.Int64Array, texts: pa.LargeBinaryArray) -> None:
        """Read rows of a row group, and give them to `emit`."""
        from bloomcli.formats.arrays import repeated, shifted

        path, stripe = self.file.source.path, place.candidates.stripe
        at = 0
        for batch in self.search.records(place.candidates, rows, self.columns):
            count = batch.num_rows
            groups = repeated(place.candidates.row_group, count)
            numbers = shifted(rows[at : at + count], place.first_row)
            self._emit(batch_of(path, stripe, groups, numbers, texts[at : at + count], batch))
            at += count


class _FoundValuesWork(Work):
    """The search of one file for those of many values that it may have, by the hashes of its column."""

    def __init__(
        self, file: FilterFile, search: ColumnSearch, found: FoundValues, options: FindOptions, emit: Emit
    ) -> None:
        super().__init__(file, search, found.wanted, options, emit)
        self._found = found
        self.row_groups = len(found.pages)

    def candidates(self) -> Iterable[Candidates]:
        """For each row group, the values that it may have."""
        return super().candidates() if self._found.any_value else self._found.row_groups

    def was_read(self, candidates: Candidates) -> bool:
        """Whether the row group's column was read to determine the values that it may have."""
        return (candidates.stripe, candidates.row_group) in self._found.pages

    def row_group(self, place: Place) -> None:
        """Find the rows of a row group, and give them to `emit`."""
        self.row_groups -= self.was_read(place.candidates)  # counted already
        super().row_group(place)

    @property
    def pages_read(self) -> int:
        """Data pages that were decoded. Those with values are decoded twice, and counted once."""
        return max(sum(self._found.pages.values()), self.search.pages_read)

    @property
    def pages_left_out(self) -> int:
        """Data pages that the page index rules out, and that weren't decoded for their hashes."""
        return max(self.search.pages_read + self.search.pages_left_out - self.pages_read, 0)


class _PartedWork(Work):
    """The search of one file for values in parts."""

    parted: PartedSearch

    def candidates(self) -> Iterable[Candidates]:
        """For each row group, whether it may have values."""
        return self.parted.candidates()

    def row_group(self, place: Place) -> None:
        """Find the rows of a row group, and give them to `emit`."""
        from bloomcli.commands.value_parts import first_of_each

        self.row_groups += 1
        found_rows, owners, texts = [], [], []
        for wanted, positions in self.parted.rounds(place.candidates):
            forms = wanted.owners  # 0, 1, 2 and so on
            rows, matched = self.matches(wanted, place.candidates._replace(forms=forms, nan=wanted.nan is not None))
            found_rows.append(rows)
            owners.append(positions.take(matched))
            texts.append(wanted.texts.take(matched))
            if self.options.files_only and len(rows):
                break
        if any(map(len, found_rows)):
            self.show(place, *first_of_each(found_rows, owners, texts))


def work_of(
    values: Values | ValueParts,
    file: FilterFile,
    column: Column,
    search: ColumnSearch,
    options: FindOptions,
    emit: Emit,
    stop: Stop | None,
) -> Work:
    """Make the search of a file. Raises LiteralError, Stopped."""
    if isinstance(values, Values):
        return Work(file, search, values.of(file, column, search), options, emit)
    if search.boolean:
        return Work(file, search, values.booleans(file, column, search), options, emit)
    from bloomcli.commands.value_parts import PartedSearch

    found_values = _found_values(values, file, column, search, options, stop)
    if found_values is not None:
        return _FoundValuesWork(file, search, found_values, options, emit)
    work = _PartedWork(file, search, None, options, emit)
    work.parted = PartedSearch(search, values.of(file, column, search), maybe=options.maybe)
    return work


def _found_values(
    values: ValueParts,
    file: FilterFile,
    column: Column,
    search: ColumnSearch,
    options: FindOptions,
    stop: Stop | None,
) -> FoundValues | None:
    """Of many values, those that a file may have; None if only the search determines them."""
    if options.maybe:  # filters and statistics decide, for all values
        return None
    if (options.files_only or options.limit is not None) and file.rows > _ROWS_BEFORE_FIRST:
        return None
    return values.lookup(file, column, search).look_up(search, stop or Stop())
