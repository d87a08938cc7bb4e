"""The search of one file with Arrow, row group by row group."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from bloomcli.commands.find_columns import Emit, batch_of
from bloomcli.commands.find_options import FindOptions
from bloomcli.commands.find_values import Values
from bloomcli.commands.record_columns import selected
from bloomcli.formats.base import FilterFile
from bloomcli.model.file import Column

if TYPE_CHECKING:
    import pyarrow as pa

    from bloomcli.commands.value_parts import PartedSearch, ValueParts
    from bloomcli.formats.finding import Candidates, ColumnSearch, Wanted


class Place(NamedTuple):
    """A row group, and the number of its first row in the file."""

    candidates: Candidates
    first_row: int


def placed(found: Iterable[Candidates]) -> Iterator[Place]:
    """The row groups of a file, in order, with the numbers of their first rows."""
    first = 0
    for candidates in found:
        yield Place(candidates, first)
        first += candidates.rows


class Work:
    """The search of one file, row group by row group."""

    def __init__(
        self, file: FilterFile, search: ColumnSearch, wanted: Wanted | None, options: FindOptions, emit: Emit
    ) -> None:
        """`wanted`: the values; None where they are in parts."""
        self.file, self.search, self.wanted, self.options = file, search, wanted, options
        self.columns, self._emit = selected(file, options), emit
        self.rows = 0
        self.row_groups = 0

    def candidates(self) -> Iterable[Candidates]:
        """Of each row group the values that it may have."""
        assert self.wanted is not None  # noqa: S101  see `_PartedWork`
        return self.search.candidates(self.wanted)

    @property
    def enough(self) -> bool:
        """No further row is wanted."""
        return self.rows == self.options.limit or (self.options.files_only and self.rows > 0)

    def scan_bytes(self, groups: Iterable[Place]) -> int:
        """What a scan of the file reads."""
        if self.options.rows:
            return self.search.scanned_bytes(self.columns)
        return sum(place.candidates.chunk_bytes for place in groups)

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

    def matches(self, wanted: Wanted, candidates: Candidates) -> tuple[pa.Int64Array, pa.Int64Array]:
        """Rows of a row group that have one of the candidates, as many as are shown or more, and the positions of
        their texts."""
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


class _PartedWork(Work):
    """The search of one file for values in parts."""

    parted: PartedSearch

    def candidates(self) -> Iterable[Candidates]:
        """Of each row group whether it may have values."""
        return self.parted.candidates()

    def row_group(self, place: Place) -> None:
        """Find the rows of a row group, and give them to `emit`."""
        from bloomcli.commands.value_parts import first_of_each

        self.row_groups += 1
        found, owners, texts = [], [], []
        for wanted, positions in self.parted.rounds(place.candidates):
            forms = wanted.owners  # from 0 on
            rows, own = self.matches(wanted, place.candidates._replace(forms=forms, nan=wanted.nan is not None))
            found.append(rows)
            owners.append(positions.take(own))
            texts.append(wanted.texts.take(own))
            if self.options.files_only and len(rows):
                break
        if any(map(len, found)):
            self.show(place, *first_of_each(found, owners, texts))


def work_of(
    values: Values | ValueParts,
    file: FilterFile,
    column: Column,
    search: ColumnSearch,
    options: FindOptions,
    emit: Emit,
) -> Work:
    """The search of a file. Raises LiteralError."""
    if isinstance(values, Values):
        return Work(file, search, values.of(file, column, search), options, emit)
    if column.physical == "BOOLEAN":  # millions of texts are two values
        return Work(file, search, search.wanted(values.distinct()), options, emit)
    from bloomcli.commands.value_parts import PartedSearch

    work = _PartedWork(file, search, None, options, emit)
    work.parted = PartedSearch(search, values.of(file, column, search))
    return work
