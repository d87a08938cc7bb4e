"""The search of one column of a file: the row groups that may have values, the matching rows, and their records.

texts -> wanted -> candidates: row groups -> matches: rows -> records
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from bloomcli.concurrency.threads import Stop
from bloomcli.errors import UnsupportedError
from bloomcli.formats import answer, wanted_values
from bloomcli.formats.arrays import as_int64s, int64s
from bloomcli.formats.filter_lookup import FilterLookup
from bloomcli.formats.wanted_values import WantedValues
from bloomcli.model.file import Column
from bloomcli.values.literals import Literal, decode_bound


class Candidates(NamedTuple):
    """The values that a row group may have."""

    row_group: int
    rows: int
    chunk_bytes: int
    """Compressed bytes of the column."""
    forms: pa.Array
    """Ascending positions of the forms that the row group may have."""
    nan: bool = False
    """NaN is one of the values, and the row group may have it."""
    trusted: bool = True
    """No filter contradicts the row group's statistics."""
    stripe: int | None = None
    """The stripe of the row group, in a format with stripes."""
    first_row: int = 0
    """The number of the row group's first row in the file; `numbered` sets it."""

    @property
    def possible(self) -> bool:
        """Whether the row group may have a value: its column has to be read."""
        return self.nan or len(self.forms) > 0

    @property
    def indexed_unit(self) -> int:
        """The number in an index: of the row group, or in ORC of its stripe."""
        return self.row_group if self.stripe is None else self.stripe


def numbered(row_groups: Iterable[Candidates]) -> Iterator[Candidates]:
    """Set the numbers of the first rows of all row groups of a file."""
    first = 0
    for candidates in row_groups:
        yield candidates._replace(first_row=first)
        first += candidates.rows


_NO_OTHERS: Final[Mapping[int, Sequence[int]]] = {}


class Matches(NamedTuple):
    """Rows that have a value."""

    rows: pa.Int64Array
    """Positions in the row group, ascending, each once."""
    forms: pa.Int64Array
    """For each row, the position of a form that it has, as `WantedValues.owner_of` takes it."""
    others: Mapping[int, Sequence[int]] = _NO_OTHERS
    """The positions of further forms that rows with a list have."""

    def first(self, count: int) -> Matches:
        """The first rows."""
        return self._replace(rows=self.rows[:count], forms=self.forms[:count])

    def continued(self, following: Matches) -> tuple[Matches, Matches]:
        """These rows and the following ones, whose first row is the last one of these, with more of its values."""
        row = self.rows[-1].as_py()
        more = [following.forms[0].as_py(), *following.others.get(row, ())]
        others = {**self.others, row: [*self.others.get(row, ()), *more]}
        return self._replace(others=others), following._replace(rows=following.rows[1:], forms=following.forms[1:])


class FoundRows(NamedTuple):
    """Rows of a row group that were found."""

    candidates: Candidates
    """The row group."""
    rows: pa.Int64Array
    """Their positions in the row group, ascending, each once."""


class Scope(NamedTuple):
    """What is known of a file before its column is searched."""

    row_groups: Container[int] | None = None
    """The row groups (in ORC the stripes) that may have a value, by an index or by the filters; all if None."""
    bounds_checked: bool = False
    """Whether an index has checked that no filter and no value of `row_groups` contradicts the statistics."""
    filtered: Mapping[int, pa.Int64Array] | None = None
    """For each of `row_groups`, the ascending positions of the forms that its filter has, if its filter was read. It
    has the bounds in the statistics."""
    sound_pages: Mapping[int, int] = MappingProxyType({})
    """For row groups whose column can be decoded whole, because compiled code has checked the headers of its data
    pages, their number."""
    pages_follow: bool = False
    """Whether `ColumnSearch.matches` is going to be called for every row group that may have a value."""


SCOPE: Final = Scope()
"""Nothing is known of the file."""


class ColumnSearch(ABC):
    """Finds the rows that have values of one column of an open file.

    It computes candidates from the facts of row groups. A format supplies these, and reads the values.

    Attributes:
        pages_read: data pages that were decoded.
        pages_left_out: data pages of the row groups that were read, which the page index rules out.

    Args:
        file: the open file, a `FilterFile`, whose module imports this one.
        column: one of its leaf columns.
        typed: the column as literals are parsed for it.
    """

    def __init__(self, file: Any, column: Column, typed: Column) -> None:
        self._file = file
        self._column = column
        self._typed = typed
        self.pages_read = self.pages_left_out = 0

    @abstractmethod
    def bounded_units(self, count: int) -> Iterator[answer.UnitFacts]:
        """Each row group with its bounds and without lookups, for a lookup of `count` values."""

    def forms_of(self, literal: Literal) -> Sequence[bytes]:
        """All forms that the file may store for a value; by default the literal's encodings."""
        return literal.encodings

    def hashes_of(self, forms: pa.Array) -> bytes:
        """The hashes of forms in the format's filters, uint64s in native order; by default XXH64."""
        return wanted_values.xxh64_of(forms)

    def wanted(self, texts: pa.LargeBinaryArray, stop: Stop | None = None) -> WantedValues:
        """Convert values for the column. Raises LiteralError; Stopped soon after `stop` is set."""
        path = self._file.source.path
        return wanted_values.wanted(texts, self._typed, self.forms_of, path, self.hashes_of, stop)

    def candidates(self, wanted: WantedValues, scope: Scope = SCOPE) -> Iterator[Candidates]:
        """For each row group, the values that it may have: a few by `FilterFile.look_up`, many in batches."""
        if wanted.literals is not None:
            units = self._file.look_up(self._column, wanted.literals, explain=False)
            yield from self.of_units(wanted, units)
            return
        for facts in self.bounded_units(len(wanted.forms)):
            bounds = decoded(facts.low, self._typed), decoded(facts.high, self._typed)
            remaining = answer.may_have(facts, wanted.hashes, len(wanted.forms))
            positions = wanted.every if remaining.positions is None else as_int64s(remaining.positions)
            yield Candidates(
                facts.row_group,
                facts.rows,
                facts.chunk_bytes,
                wanted.within(positions, *bounds) if remaining.bounded else positions,
                nan=wanted.nan is not None and facts.contents is answer.Contents.VALUES,
                trusted=facts.problem != answer.WRONG,
                stripe=facts.stripe,
            )

    def of_units(self, wanted: WantedValues, units: Iterable[answer.UnitAnswers]) -> Iterator[Candidates]:
        """For each row group with its answers, the values that it may have."""
        owners = wanted.owners.to_pylist()
        for unit in units:
            possible = unit.possible()
            yield Candidates(
                unit.row_group,
                unit.rows,
                unit.chunk_bytes,
                int64s(at for at, owner in enumerate(owners) if owner in possible),
                nan=wanted.nan in possible,
                trusted=all(value_answer.trusted for value_answer in unit.answers),
                stripe=unit.stripe,
            )

    def together(self, several: Sequence[Candidates]) -> Iterator[Sequence[Candidates]]:
        """Split row groups into those that are searched together; by default each is searched alone."""
        return ([candidates] for candidates in several)

    def matches(self, wanted: WantedValues, several: Sequence[Candidates]) -> Iterator[tuple[Candidates, Matches]]:
        """The rows of row groups that have one of their candidates, in order; by default those of `matches_in`.

        Raises CorruptFile, UnsupportedError.
        """
        return ((candidates, matches) for candidates in several for matches in self.matches_in(wanted, candidates))

    def matches_in(self, wanted: WantedValues, candidates: Candidates) -> Iterator[Matches]:
        """The rows of a row group that have one of the candidates, in order, for a format that searches row groups
        alone. Raises as `matches`."""
        raise NotImplementedError

    def _chosen(self, columns: Sequence[str]) -> set[int]:
        """The ordinals of these columns."""
        return {column.index for column in self._file.columns if column.path in columns}

    def prepare(  # noqa: B027  most formats have nothing to announce
        self, wanted: WantedValues, candidates: Candidates, columns: Sequence[str] | None, *, rows: bool
    ) -> None:
        """Announce calls of `matches` and, with `rows`, of `records` for a row group. By default nothing happens."""

    @abstractmethod
    def records(self, rows: Sequence[FoundRows], columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
        """Rows of row groups by their positions, in order: these columns (all if None). Raises CorruptFile."""

    def no_records(self, columns: Sequence[str] | None) -> pa.RecordBatch:
        """An empty batch as `records` returns it, with these columns (all if None), from the metadata.

        Raises CorruptFile, UnsupportedError.
        """
        raise UnsupportedError("the columns of this format's records aren't known before they are read")

    def record_schema(self) -> pa.Schema:
        """The columns of records, from the metadata. Raises as `no_records`."""
        return self.no_records(None).schema

    def filter_lookup(self, wanted: WantedValues, columns: Sequence[str] | None) -> FilterLookup | None:
        """The lookup of the same values in files with the same schema, for records of these columns (all if None);
        None if the format or the values don't allow it."""
        return None

    @abstractmethod
    def scanned_bytes(self, columns: Sequence[str] | None) -> int:
        """Compressed bytes of the searched column and of these columns (all if None) in the whole file."""


def decoded(bound: bytes | None, column: Column) -> Any:
    """Decode a bound so that it compares with `WantedValues.keys`; None if unknown."""
    return None if bound is None else decode_bound(bound, column)


def is_nan(values: pa.Array) -> pa.Array:
    """Whether each value is NaN; a FLOAT16 is 2 bytes."""
    if pa.types.is_floating(values.type):
        return pc.is_nan(values)
    halves = [None if value is None else int.from_bytes(value, "little") & 0x7FFF for value in values.to_pylist()]
    return pa.array([None if half is None else half > 0x7C00 for half in halves], pa.bool_())


def each_row(rows: pa.Int64Array, forms: pa.Int64Array, *, repeated: bool) -> Matches:
    """Keep each row once, with the first of its values; the others are apart."""
    if not repeated:
        return Matches(rows, forms)
    first: dict[int, int] = {}
    others: dict[int, list[int]] = {}
    for row, form in zip(rows.to_pylist(), forms.to_pylist(), strict=True):
        if first.setdefault(row, form) != form:
            others.setdefault(row, []).append(form)
    ascending = sorted(first)
    return Matches(int64s(ascending), int64s(first[row] for row in ascending), others)
