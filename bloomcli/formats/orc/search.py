"""Finds the rows of an ORC file that have values of a column."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from functools import cached_property, partial
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from bloomcli.concurrency.cancellation import Stop
from bloomcli.errors import UnsupportedError, UsageError
from bloomcli.formats import answer, wanted_values
from bloomcli.formats.arrays import int64s
from bloomcli.formats.column_search import (
    SCOPE,
    BoundedUnit,
    Candidates,
    ColumnSearch,
    FoundRows,
    Matches,
    Scope,
    each_row,
    is_nan,
)
from bloomcli.formats.orc import search_forms, values
from bloomcli.formats.orc.column_reader import TIMESTAMPS
from bloomcli.formats.orc.filter_header import KINDS
from bloomcli.formats.orc.filters import Filters
from bloomcli.formats.orc.footer import Stripe, StripeFooter
from bloomcli.formats.orc.records import Records
from bloomcli.formats.orc.schema import COMPOUND, OrcType, literal_column
from bloomcli.formats.orc.stripe_column import StripeColumn
from bloomcli.formats.orc.value_reader import DECIMAL_BYTES, ValueBatch
from bloomcli.formats.wanted_values import WantedValues
from bloomcli.model.file import Column

if TYPE_CHECKING:
    from bloomcli.formats.base import FilterFile
    from bloomcli.values.literals import Literal


class OrcSearch(ColumnSearch):
    """The search of a column in an open file.

    Args:
        file: the open file.
        filters: its filters.
        column: one of its columns.
        units: yields the column's row groups in these stripes (None: all).

    Raises:
        UsageError: the column is a list, a map or a union.
    """

    def __init__(
        self,
        file: FilterFile,
        filters: Filters,
        column: Column,
        units: Callable[[Container[int] | None], Iterator[BoundedUnit]],
    ) -> None:
        self._orc = filters.footer.types[column.index]
        super().__init__(file.source, file.look_up, column, literal_column(self._orc))
        self._file = file
        self._filters = filters
        self._units = units
        if self._orc.kind in COMPOUND:
            raise _compound(filters, self._orc)
        self._refuse_unknown()
        self._stripe: StripeColumn | None = None
        self._within_union = any(t.kind == "UNION" for t in filters.footer.ancestors(self._orc))
        self._ignores_filters = False
        """Whether filters are ignored, because writers hash some of the values differently."""

    def forms_of(self, literal: Literal) -> Sequence[bytes]:
        """A value's bytes in the form that `ValueReader` yields."""
        if self._orc.kind in TIMESTAMPS:
            return [search_forms.moment(int.from_bytes(form, "little", signed=True)) for form in literal.encodings]
        if self._orc.kind == "DECIMAL":
            numbers = [int.from_bytes(form, "big", signed=True) for form in literal.encodings]
            return [number.to_bytes(DECIMAL_BYTES, "little", signed=True) for number in numbers]
        if self._orc.kind == "CHAR":
            return [form.rstrip(b" ") for form in literal.encodings]
        return literal.encodings

    def hashes_of(self, forms: pa.Array) -> bytes:
        """The hashes of forms in ORC's filters."""
        return search_forms.hashes_of(forms, self._orc, self._typed)

    def wanted(self, texts: pa.LargeBinaryArray, stop: Stop | None = None) -> WantedValues:
        """The values as the column stores them."""
        if self._orc.kind != "CHAR":
            return super().wanted(texts, stop)
        return super().wanted(wanted_values.without_blanks(texts), stop)._replace(texts=texts)

    def hashed_alike(self, literal: Literal) -> bool:
        """Whether all writers hash a value alike: all but timestamps before 1970 with parts of a millisecond."""
        return self._orc.kind not in TIMESTAMPS or not any(
            map(search_forms.is_rounded_otherwise, self.forms_of(literal))
        )

    def candidates(self, wanted: WantedValues, scope: Scope = SCOPE) -> Iterator[Candidates]:
        """Yield each row group with the values that it may have."""
        self._ignores_filters = self._orc.kind in TIMESTAMPS and any(
            search_forms.is_rounded_otherwise(form.as_py()) for form in wanted.forms
        )
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
        found = self.of_units(wanted, literals, answers)
        for stripe in footer.stripes:
            if stripe.ordinal in stripes:
                yield from islice(found, self._row_groups_in(stripe))
            else:
                yield from self._without_values(stripe)

    def _without_values(self, stripe: Stripe) -> Iterator[Candidates]:
        """Yield the row groups of a stripe that has none of the values."""
        footer = self._filters.footer
        chunk = self._scanned_in(footer.stripe_footer(stripe), self._column.index)
        for group in range(self._row_groups_in(stripe)):
            rows = footer.rows_in(stripe, group) if footer.stride else stripe.rows
            yield Candidates(group, rows, chunk * rows // stripe.rows, int64s(()), stripe=stripe.ordinal)

    def _row_groups_in(self, stripe: Stripe) -> int:
        footer = self._filters.footer
        return footer.row_groups(stripe) if footer.stride else min(stripe.rows, 1)

    def bounded_units(self, count: int) -> Iterator[BoundedUnit]:
        """The column's row groups."""
        del count
        for unit in self._units(None):
            yield unit._replace(facts=unit.facts._replace(bits=None)) if self._ignores_filters else unit

    def matches(self, wanted: WantedValues, several: Sequence[Candidates]) -> Iterator[tuple[Candidates, Matches]]:
        """Yield the rows of row groups that have one of their candidates."""
        for candidates in several:
            for matches in self._matches(wanted, candidates):
                yield candidates, matches

    def _matches(self, wanted: WantedValues, candidates: Candidates) -> Iterator[Matches]:
        """Yield the rows of a row group that have one of the candidates. Reads only the row group's part of the
        streams."""
        chosen = wanted.forms.take(candidates.forms)
        owners = wanted.owners.take(candidates.forms)
        stripe = (
            self._in_union(candidates) if self._within_union else self._stripe_column(wanted, candidates.stripe or 0)
        )
        last = None
        repeated = any(t.kind in COMPOUND and t.kind != "STRUCT" for t in self._filters.footer.ancestors(self._orc))
        for found in stripe.row_group(candidates.row_group, candidates.rows):
            if isinstance(stripe, _StripeValues) or stripe.dictionary is None:
                at = pc.index_in(wanted_values.comparable(found.values, self._typed), value_set=chosen)
            else:
                at = pc.index_in(found.values, value_set=candidates.forms)
            texts = owners.take(at)
            if candidates.nan and wanted.nan is not None and pa.types.is_floating(found.values.type):
                texts = pc.if_else(is_nan(found.values), wanted.nan, texts)
            there = pc.indices_nonzero(texts.is_valid())
            if not len(there):
                continue
            matches = each_row(found.rows.take(there), texts.take(there), repeated=repeated)
            if repeated and matches.rows[0].as_py() == last:  # a list that continues from the previous part
                matches = Matches(matches.rows[1:], matches.texts[1:])
            if len(matches.rows):
                last = matches.rows[-1].as_py()
                yield matches

    def records(self, found: Sequence[FoundRows], columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
        """Rows of row groups, read by pyarrow."""
        footer = self._filters.footer
        chosen = None if columns is None else frozenset(c.index for c in self._file.columns if c.path in columns)
        for candidates, rows in found:
            stripe = footer.stripes[candidates.stripe or 0]
            first = candidates.row_group * footer.stride
            yield from self._records.rows(stripe, pc.add(rows, first), chosen)

    def no_records(self, columns: Sequence[str] | None) -> pa.RecordBatch:
        """An empty batch with the columns of records, as pyarrow reads them."""
        chosen = None if columns is None else frozenset(c.index for c in self._file.columns if c.path in columns)
        return self._records.none(chosen)

    def scanned_bytes(self, columns: Sequence[str] | None) -> int:
        """Compressed bytes of the streams of the searched column and of these columns, without indexes."""
        footer = self._filters.footer
        if columns is None:
            return self._file.total_bytes()
        chosen = {c.index for c in self._file.columns if c.path in columns} | {self._column.index}
        return sum(self._scanned_in(footer.stripe_footer(s), column) for s in footer.stripes for column in chosen)

    def _scanned_in(self, stripe: StripeFooter, column: int) -> int:
        return sum(s.length for s in stripe.of_column(column) if s.kind not in {*KINDS, "ROW_INDEX"})

    @cached_property
    def _records(self) -> Records:
        return Records(self._file.source, self._filters.footer)

    def _stripe_column(self, wanted: WantedValues, ordinal: int) -> StripeColumn:
        """The column in a stripe. The last one stays in memory."""
        if self._stripe is None or self._stripe.ordinal != ordinal or self._stripe.wanted is not wanted:
            self._stripe = None
            self._refuse_unreadable()
            footer = self._filters.footer
            self._stripe = StripeColumn(
                self._filters, footer.stripe_footer(footer.stripes[ordinal]), self._orc, self._typed, wanted
            )
        return self._stripe

    def _in_union(self, candidates: Candidates) -> _StripeValues:
        """The column in a stripe, decoded by pyarrow with the top-level column that contains it."""
        from bloomcli.formats.orc import union_values

        self._refuse_unreadable()
        footer = self._filters.footer
        above = [*footer.ancestors(self._orc), self._orc][1:]
        stripe = footer.stripes[candidates.stripe or 0]
        whole = self._records.stripe(stripe, frozenset({self._orc.id}))
        at = footer.types[0].children.index(above[0].id) if whole.num_columns > 1 else 0
        read = partial(union_values.values_of, whole.column(at), above)
        return _StripeValues(self._records.guarded(stripe, read), footer.stride)

    def _refuse_unknown(self) -> None:
        """Raise UnsupportedError if bloom doesn't know what values of the column are: neither its statistics nor its
        type's range then rule a value out."""
        self._filters.footer.refuse_unknown_version()
        orc = self._orc
        if orc.fault is not None or (orc.kind not in values.HASHABLE and orc.kind != "BOOLEAN"):
            raise UnsupportedError(
                f"column {orc.label} can't be searched: " + (orc.fault or f"values of {orc.name} aren't read here"),
                path=self._file.source.path,
                hint="--column names the column to search",
            )

    def _refuse_unreadable(self) -> None:
        """Raise UnsupportedError where values can't be read."""
        footer, orc, path = self._filters.footer, self._orc, self._file.source.path
        if orc.id in footer.encrypted_columns:
            raise UnsupportedError(
                f"column {orc.label} is encrypted",
                path=path,
                hint="bloom has no keys; decrypt the file with the engine that wrote it",
            )


class _StripeValues(NamedTuple):
    """All values of a column of a stripe."""

    values: ValueBatch
    stride: int

    def row_group(self, group: int, rows: int) -> Iterator[ValueBatch]:
        """The values of a row group."""
        first = group * self.stride
        inside = pc.and_(pc.greater_equal(self.values.rows, first), pc.less(self.values.rows, first + rows))
        yield ValueBatch(self.values.values.filter(inside), pc.subtract(self.values.rows.filter(inside), first))


def _compound(filters: Filters, orc: OrcType) -> UsageError:
    types = filters.footer.types
    leaves = [t.path for t in types[orc.id + 1 : orc.last + 1] if t.kind not in COMPOUND]
    return UsageError(
        f"column {orc.label} is a {orc.name}, and has no values to find",
        path=filters.source.path,
        hint=f"its columns with values: {', '.join(leaves[:3])}" + (", ..." if len(leaves) > 3 else ""),
    )
