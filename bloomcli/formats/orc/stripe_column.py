"""Reads a column of a stripe row group by row group."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from bloomcli.concurrency.cancellation import Stop
from bloomcli.errors import CorruptFile
from bloomcli.formats.orc import row_index
from bloomcli.formats.orc.arrow_forms import Numbered, RowForms, forms_of, indexes_of
from bloomcli.formats.orc.filters import Filters
from bloomcli.formats.orc.footer import StripeFooter
from bloomcli.formats.orc.schema import OrcType
from bloomcli.formats.orc.streams import Position
from bloomcli.formats.orc.values import ValueReader
from bloomcli.formats.wanted_values import WantedValues
from bloomcli.model.file import Column


class StripeColumn:
    """A column of a stripe, read row group by row group.

    Consecutive row groups are read one after the other. Otherwise the reader seeks, if the row indexes of the column
    and of the types above it have usable positions, or decodes all rows before.
    """

    def __init__(
        self, filters: Filters, stripe: StripeFooter, orc: OrcType, typed: Column, wanted: WantedValues
    ) -> None:
        self.ordinal = stripe.stripe.ordinal
        self.wanted = wanted
        self._filters, self._stripe, self._orc, self._typed = filters, stripe, orc, typed
        self._types = [*filters.footer.ancestors(orc), orc]
        self._trusts_positions = True
        self._next: int | None = 0
        """The row group at which the reader is; None while one is read."""
        self._reader = self._open()
        self.dictionary = self._dictionary_positions()

    def _open(self) -> ValueReader[Numbered]:
        longest = 0
        if pa.types.is_large_binary(self.wanted.forms.type) and len(self.wanted.forms):
            longest = pc.max(pc.binary_length(self.wanted.forms)).as_py()
        filters = self._filters
        self._next = 0
        return ValueReader(filters.source, filters.footer, self._stripe, self._orc, Numbered, Stop(), longest)

    def _dictionary_positions(self) -> pa.Int64Array | None:
        """For each entry of the dictionary, the position of its form or null; None without a dictionary."""
        leaf = self._reader.leaf
        if leaf.entries is None:
            return None
        found = [pc.index_in(forms_of(part, leaf), value_set=self.wanted.forms) for part in leaf.dictionary()]
        return pa.chunked_array(found, pa.int32()).combine_chunks().cast(pa.int64())

    def row_group(self, group: int, rows: int) -> Iterator[RowForms]:
        """The values of a row group; with a dictionary, positions of forms. Raises CorruptFile, UnsupportedError."""
        if group != self._next and self._trusts_positions and self._seek(group):
            try:
                found = list(self._values(group, rows))
            except CorruptFile:
                found = None  # the positions may be wrong
            if found is not None and self._is_whole(group, sum(len(part.rows) for part in found)):
                yield from found
                return
            self._trusts_positions = False
            self._reader = self._open()
        if self._next is None or group < self._next:
            self._reader = self._open()
        for before in range(self._next or 0, group):
            for _ in self._values(before, self._rows_in(before)):
                pass
        self._read_until(self._positions(group + 1) if self._trusts_positions else None)
        yield from self._values(group, rows)

    def _values(self, group: int, rows: int) -> Iterator[RowForms]:
        self._next = None  # until all are consumed
        for values, found in self._reader.take(rows):
            if self.dictionary is None:
                forms = forms_of(values, self._reader.leaf)
            else:
                forms = self._forms(indexes_of(values))
            yield RowForms(forms, found.numbers)
        self._next = group + 1

    def _forms(self, indexes: pa.Int64Array) -> pa.Int64Array:
        try:
            return self.dictionary.take(indexes)  # type: ignore[union-attr]
        except IndexError:
            raise self._reader.leaf.fault("an index beyond the dictionary's entries") from None

    def _rows_in(self, group: int) -> int:
        footer = self._filters.footer
        return footer.rows_in(self._stripe.stripe, group) if footer.stride else self._stripe.stripe.rows

    def _is_whole(self, group: int, count: int) -> bool:
        """Whether as many values were read as the row index counts. If not, its positions may be wrong."""
        stats = self._entries[-1][group].statistics
        return not stats.HasField("number_of_values") or bool(stats.number_of_values == count)

    @cached_property
    def _entries(self) -> list[Sequence[Any]]:
        """The row indexes of all types from the root down to the column."""
        streams = (self._stripe.find("ROW_INDEX", t.id) for t in self._types)
        self._filters.source.will_read((s.offset, s.length) for s in streams if s is not None)
        return [self._filters.index_entries(self._stripe, t.id) for t in self._types]

    def _positions(self, group: int) -> list[dict[str, Position]] | None:
        """The positions of a row group in the streams of each type; None if some are unknown."""
        compressed = self._filters.footer.codec.name != "NONE"
        columns = self._stripe.message.columns
        found: list[dict[str, Position]] = []
        for orc, entries, parts in zip(self._types, self._entries, self._reader.parts, strict=True):
            if not parts:
                found.append({})
                continue
            if group >= len(entries) or orc.id >= len(columns):
                return None
            encoding = "DICTIONARY" if orc is self._orc and self.dictionary is not None else "DIRECT"
            here = row_index.stream_positions(
                self._stripe, orc, encoding, entries[group].positions, compressed=compressed
            )
            if here is None:
                return None
            found.append(here)
        return found

    def _read_until(self, behind: list[dict[str, Position]] | None) -> None:
        """Read ahead at most to the positions of the next row group, if they are known."""
        for at, parts in enumerate(self._reader.parts):
            for kind, part in parts.items():
                part.read_until(None if behind is None else self._end(behind[at][kind]))

    def _end(self, behind: Position) -> int:
        return row_index.end_before(behind, compressed=self._filters.footer.codec.name != "NONE")

    def _seek(self, group: int) -> bool:
        """Go to a row group, and announce the ranges to read for it. Returns False if its positions can't be used."""
        here, behind = self._positions(group), self._positions(group + 1)
        if here is None:
            return False
        self._read_until(behind)
        ranges = []
        for at, (orc, parts) in enumerate(zip(self._types, self._reader.parts, strict=True)):
            for kind in parts:
                stream = self._stripe.find(kind, orc.id)
                if stream is not None:
                    start = min(here[at][kind].chunk, stream.length)
                    end = stream.length if behind is None else min(self._end(behind[at][kind]), stream.length)
                    ranges.append((stream.offset + start, max(end - start, 0)))
        self._filters.source.will_read(ranges)
        try:
            for at, parts in enumerate(self._reader.parts):
                for kind, part in parts.items():
                    part.seek(here[at][kind])
        except CorruptFile:
            self._trusts_positions = False
            self._reader = self._open()
            return False
        return True
