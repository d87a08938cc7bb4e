"""Finds the rows of an ORC file that have values of a column.

A column is read stripe by stripe, and row group by row group.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from bloomcli.concurrency.threads import Stop
from bloomcli.errors import CorruptFile, UnsupportedError, UsageError
from bloomcli.formats import answer, wanted_values
from bloomcli.formats.arrays import int64s
from bloomcli.formats.column_search import (
    SCOPE,
    Candidates,
    ColumnSearch,
    FoundRows,
    Matches,
    Scope,
    each_row,
    is_nan,
)
from bloomcli.formats.orc import arrow_forms, hashes
from bloomcli.formats.orc.arrow_forms import Numbered, RowForms, forms_of, indexes_of
from bloomcli.formats.orc.bloom_filter import KINDS, Filters
from bloomcli.formats.orc.footer import Stripe, StripeFooter
from bloomcli.formats.orc.records import Records
from bloomcli.formats.orc.row_index import RowIndex, end_before
from bloomcli.formats.orc.schema import COMPOUND, OrcType, literal_column
from bloomcli.formats.orc.streams import Position
from bloomcli.formats.orc.values import ValueReader
from bloomcli.formats.wanted_values import WantedValues
from bloomcli.model.file import Column
from bloomcli.values.literals import Literal

if TYPE_CHECKING:
    from bloomcli.formats.orc.file import OrcFile


class StripeColumn:
    """A column of a stripe, read row group by row group.

    Consecutive row groups are read one after the other. Otherwise the reader seeks, if the row indexes of the column
    and of the types above it have usable positions, or decodes all rows before.
    """

    def __init__(self, filters: Filters, stripe: StripeFooter, orc: OrcType, wanted: WantedValues) -> None:
        self.ordinal = stripe.stripe.ordinal
        self.wanted = wanted
        self._filters, self._stripe, self._orc = filters, stripe, orc
        self._types = [*filters.footer.ancestors(orc), orc]
        self._units = filters.footer.units(stripe.stripe)
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
        return ValueReader(filters.footer, self._stripe, self._orc, Numbered, Stop(), longest)

    def _dictionary_positions(self) -> pa.Int64Array | None:
        """For each entry of the dictionary, the position of its form or null; None without a dictionary."""
        leaf = self._reader.leaf
        if leaf.entries is None:
            return None
        positions = [pc.index_in(forms_of(part, leaf), value_set=self.wanted.forms) for part in leaf.dictionary()]
        return pa.chunked_array(positions, pa.int32()).combine_chunks().cast(pa.int64())

    def row_group(self, group: int, rows: int) -> Iterator[RowForms]:
        """The values of a row group; with a dictionary, positions of forms. Raises CorruptFile, UnsupportedError."""
        if group != self._next and self._trusts_positions and self._seek(group):
            try:
                parts = list(self._values(group, rows))
            except CorruptFile:
                parts = None  # the positions may be wrong
            if parts is not None and self._is_whole(group, sum(len(part.rows) for part in parts)):
                yield from parts
                return
            self._trusts_positions = False
            self._reader = self._open()
        if self._next is None or group < self._next:
            self._reader = self._open()
        for before in range(self._next or 0, group):
            for _ in self._values(before, self._units[before]):
                pass
        self._read_until(self._positions(group + 1) if self._trusts_positions else None)
        yield from self._values(group, rows)

    def _values(self, group: int, rows: int) -> Iterator[RowForms]:
        self._next = None  # until all are consumed
        for values, numbered in self._reader.take(rows):
            if self.dictionary is None:
                forms = forms_of(values, self._reader.leaf)
            else:
                try:
                    forms = self.dictionary.take(indexes_of(values))
                except IndexError:
                    raise self._reader.leaf.fault("an index beyond the dictionary's entries") from None
            yield RowForms(forms, numbered.numbers)
        self._next = group + 1

    def _is_whole(self, group: int, count: int) -> bool:
        """Whether as many values were read as the row index counts. If not, its positions may be wrong."""
        stats = self._indexes[-1].believed[group]
        return stats is None or not stats.HasField("number_of_values") or bool(stats.number_of_values == count)

    @cached_property
    def _indexes(self) -> list[RowIndex]:
        """The row indexes of all types from the root down to the column."""
        streams = (self._stripe.find("ROW_INDEX", t.id) for t in self._types)
        self._filters.source.will_read(s.range for s in streams if s is not None)
        return [RowIndex(self._filters.footer, self._stripe, t) for t in self._types]

    def _positions(self, group: int) -> list[dict[str, Position]] | None:
        """The positions of a row group in the streams of each type; None if some are unknown."""
        positions: list[dict[str, Position]] = []
        for index, parts in zip(self._indexes, self._reader.parts, strict=True):
            here: dict[str, Position] | None = {}
            if parts:
                if group >= len(index.entries) or len(index.entries[group].positions) != index.numbers:
                    return None
                here = index.positions(group)
            if here is None:
                return None
            positions.append(here)
        return positions

    def _read_until(self, behind: list[dict[str, Position]] | None) -> None:
        """Read ahead at most to the positions of the next row group, if they are known."""
        for at, parts in enumerate(self._reader.parts):
            for kind, part in parts.items():
                part.read_until(None if behind is None else self._end(behind[at][kind]))

    def _end(self, behind: Position) -> int:
        return end_before(behind, compressed=self._filters.footer.codec.name != "NONE")

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


class Search(ColumnSearch):
    """The search of a column in an open file.

    Args:
        file: the open file.
        column: one of its columns.

    Raises:
        UsageError: the column is a list, a map or a union.
        UnsupportedError: the file has an unknown version, or the column an unknown type.
    """

    _file: OrcFile

    def __init__(self, file: OrcFile, column: Column) -> None:
        self._filters = filters = file.filters
        self._orc = filters.footer.types[column.index]
        super().__init__(file, column, literal_column(self._orc))
        orc = self._orc
        if orc.kind in COMPOUND:
            leaves = [t.path for t in filters.footer.types[orc.id + 1 : orc.last + 1] if t.kind not in COMPOUND]
            raise UsageError(
                f"column {orc.label} is a {orc.name}, and has no values to find",
                path=filters.source.path,
                hint=f"its columns with values: {', '.join(leaves[:3])}" + (", ..." if len(leaves) > 3 else ""),
            )
        filters.footer.refuse_unknown_version()
        # neither statistics nor the type's range rule out values whose meaning isn't known
        if orc.fault is not None or (orc.kind not in hashes.HASHABLE and orc.kind != "BOOLEAN"):
            raise UnsupportedError(
                f"column {orc.label} can't be searched: " + (orc.fault or f"values of {orc.name} aren't read here"),
                path=file.source.path,
                hint="--column names the column to search",
            )
        self._stripe: StripeColumn | None = None
        self._ignores_filters = False
        """Whether filters are ignored, because writers hash some of the values differently."""

    def forms_of(self, literal: Literal) -> Sequence[bytes]:
        """A value's bytes in the form of the column's values."""
        return [form.rstrip(b" ") for form in literal.encodings] if self._orc.kind == "CHAR" else literal.encodings

    def hashes_of(self, forms: pa.Array) -> bytes:
        """The hashes of forms in ORC's filters."""
        return arrow_forms.hashes_of(forms, self._orc, self._typed)

    def wanted(self, texts: pa.LargeBinaryArray, stop: Stop | None = None) -> WantedValues:
        """The values as the column stores them."""
        if self._orc.kind != "CHAR":
            return super().wanted(texts, stop)
        return replace(super().wanted(wanted_values.without_blanks(texts), stop), texts=texts)

    def candidates(self, wanted: WantedValues, scope: Scope = SCOPE) -> Iterator[Candidates]:
        """Yield each row group with the values that it may have."""
        forms = (form.as_py() for form in wanted.forms)
        self._ignores_filters = hashes.why_hashed_otherwise(forms, self._orc) is not None
        if scope.row_groups is not None and wanted.literals is not None:
            return self._indexed(wanted, wanted.literals, scope.row_groups)
        return super().candidates(wanted, scope)

    def _indexed(
        self, wanted: WantedValues, literals: Sequence[Literal], stripes: Container[int]
    ) -> Iterator[Candidates]:
        """Yield each row group with the values that it may have, if an index has excluded stripes. Neither filters
        nor row indexes of excluded stripes are read."""
        footer = self._filters.footer
        answers = answer.answers(self._file.unit_facts(self._column, literals, stripes), explain=False)
        candidates = self.of_units(wanted, answers)
        for stripe in footer.stripes:
            if stripe.ordinal in stripes:
                yield from islice(candidates, len(footer.units(stripe)))
            else:
                yield from self._without_values(stripe)

    def _without_values(self, stripe: Stripe) -> Iterator[Candidates]:
        """Yield the row groups of a stripe that has none of the values."""
        footer = self._filters.footer
        chunk = self._scanned_in(footer.stripe_footer(stripe), self._column.index)
        for group, rows in enumerate(footer.units(stripe)):
            yield Candidates(group, rows, chunk * rows // stripe.rows, int64s(()), stripe=stripe.ordinal)

    def bounded_units(self, count: int) -> Iterator[answer.UnitFacts]:
        """The column's row groups."""
        del count
        for facts in self._file.unit_facts(self._column, ()):
            yield facts._replace(bits=None) if self._ignores_filters else facts

    def matches_in(self, wanted: WantedValues, candidates: Candidates) -> Iterator[Matches]:
        """Yield the rows of a row group that have one of the candidates. Reads only the row group's part of the
        streams."""
        chosen = wanted.forms.take(candidates.forms)
        stripe = self._stripe_column(wanted, candidates.stripe or 0)
        waiting: Matches | None = None
        repeated = any(t.kind in COMPOUND and t.kind != "STRUCT" for t in self._filters.footer.ancestors(self._orc))
        for part in stripe.row_group(candidates.row_group, candidates.rows):
            if stripe.dictionary is None:
                at = pc.index_in(wanted_values.comparable(part.forms, self._typed), value_set=chosen)
            else:
                at = pc.index_in(part.forms, value_set=candidates.forms)
            forms = candidates.forms.take(at)
            if candidates.nan and wanted.nan is not None and pa.types.is_floating(part.forms.type):
                forms = pc.if_else(is_nan(part.forms), len(wanted.forms), forms)
            indexes = pc.indices_nonzero(forms.is_valid())
            if not len(indexes):
                continue
            matches = each_row(part.rows.take(indexes), forms.take(indexes), repeated=repeated)
            if waiting is not None:
                if repeated and waiting.rows[-1] == matches.rows[0]:  # a list that continues from the previous part
                    waiting, matches = waiting.continued(matches)
                if not len(matches.rows):
                    continue
                yield waiting
            waiting = matches
        if waiting is not None:
            yield waiting

    def records(self, rows: Sequence[FoundRows], columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
        """Rows of row groups, read by pyarrow."""
        footer = self._filters.footer
        chosen = None if columns is None else frozenset(self._chosen(columns))
        for candidates, positions in rows:
            stripe = footer.stripes[candidates.stripe or 0]
            first = candidates.row_group * footer.stride
            yield from self._records.rows(stripe, pc.add(positions, first), chosen)

    def no_records(self, columns: Sequence[str] | None) -> pa.RecordBatch:
        """An empty batch with the columns of records, as pyarrow reads them."""
        chosen = None if columns is None else frozenset(self._chosen(columns))
        return self._records.none(chosen)

    def scanned_bytes(self, columns: Sequence[str] | None) -> int:
        """Compressed bytes of the streams of the searched column and of these columns, without indexes."""
        footer = self._filters.footer
        if columns is None:
            return self._file.total_bytes()
        chosen = self._chosen(columns) | {self._column.index}
        return sum(self._scanned_in(footer.stripe_footer(s), column) for s in footer.stripes for column in chosen)

    def _scanned_in(self, stripe: StripeFooter, column: int) -> int:
        return sum(s.length for s in stripe.of_column(column) if s.kind not in {*KINDS, "ROW_INDEX"})

    @cached_property
    def _records(self) -> Records:
        return Records(self._filters.footer)

    def _stripe_column(self, wanted: WantedValues, ordinal: int) -> StripeColumn:
        """The column in a stripe. The last one stays in memory."""
        if self._stripe is None or self._stripe.ordinal != ordinal or self._stripe.wanted is not wanted:
            self._stripe = None
            footer = self._filters.footer
            if self._orc.id in footer.encrypted_columns:
                raise UnsupportedError(
                    f"column {self._orc.label} is encrypted",
                    path=self._file.source.path,
                    hint="bloom has no keys; decrypt the file with the engine that wrote it",
                )
            streams = footer.stripe_footer(footer.stripes[ordinal])
            self._stripe = StripeColumn(self._filters, streams, self._orc, wanted)
        return self._stripe
