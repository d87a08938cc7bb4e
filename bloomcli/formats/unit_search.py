"""The shared part of the formats' searches: converts values, and finds the values that each row group may have."""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from bloomcli.concurrency.cancellation import Stop
from bloomcli.formats import answer, finding
from bloomcli.formats.arrays import counting, int64s
from bloomcli.formats.finding import SCOPE, Candidates, ColumnSearch, Matches, Scope, WantedValues
from bloomcli.model.file import Column
from bloomcli.named_tuple import NamedTuple
from bloomcli.values.literals import Literal, decode_bound

if TYPE_CHECKING:
    from bloomcli.formats.base import FilterFile


class BoundedUnit(NamedTuple):
    """A row group, for values that are looked up in batches."""

    facts: answer.UnitFacts
    """Without lookups."""
    low: bytes | None
    """The minimum as PLAIN bytes of the literals' column; None if unknown."""
    high: bytes | None


class UnitSearch(ColumnSearch):
    """A search that computes candidates from the facts of row groups. A format supplies these, and reads the values.

    Args:
        file: the open file.
        column: one of its leaf columns.
        typed: the column as literals are parsed for it.
    """

    def __init__(self, file: FilterFile, column: Column, typed: Column) -> None:
        self._file = file
        self._column = column
        self._typed = typed

    @abstractmethod
    def bounded_units(self, count: int) -> Iterator[BoundedUnit]:
        """Each row group, for a lookup of `count` values."""

    def forms_of(self, literal: Literal) -> Sequence[bytes]:
        """All forms that the file may store for a value; by default the literal's encodings."""
        return literal.encodings

    def hashes_of(self, forms: pa.Array) -> bytes:
        """The hashes of forms in the format's filters, uint64s in native order; by default XXH64."""
        return finding.xxh64_of(forms)

    def hashed_alike(self, literal: Literal) -> bool:
        """Whether all writers of the format hash a value alike; by default they do."""
        del literal
        return True

    def wanted(self, texts: pa.LargeBinaryArray, stop: Stop | None = None) -> WantedValues:
        """Convert values for the column."""
        path = self._file.source.path
        return finding.wanted(texts, self._typed, self.forms_of, path, self.hashes_of, stop)

    def candidates(self, wanted: WantedValues, scope: Scope = SCOPE) -> Iterator[Candidates]:
        """For each row group, the values that it may have: a few by `FilterFile.look_up`, many in batches."""
        del scope
        if wanted.literals is not None:
            yield from self._by_literals(wanted, wanted.literals)
            return
        for facts, low, high in self.bounded_units(len(wanted.forms)):
            bounds = decoded(low, self._typed), decoded(high, self._typed)
            remaining = answer.may_have(facts, wanted.hashes, len(wanted.forms))
            positions = _positions(remaining.positions, len(wanted.forms))
            yield Candidates(
                facts.row_group,
                facts.rows,
                facts.chunk_bytes,
                within(positions, wanted.keys, *bounds) if remaining.bounded else positions,
                nan=wanted.nan is not None and facts.contents is answer.Contents.VALUES,
                trusted=facts.problem != answer.WRONG,
                stripe=facts.stripe,
            )

    def _by_literals(self, wanted: WantedValues, literals: Sequence[Any]) -> Iterator[Candidates]:
        units = self._file.look_up(self._column, literals, explain=False)
        yield from self.of_units(wanted, literals, units)

    def of_units(
        self, wanted: WantedValues, literals: Sequence[Any], units: Iterable[answer.UnitAnswers]
    ) -> Iterator[Candidates]:
        """For each row group with its answers, the values that it may have."""
        owners = wanted.owners.to_pylist()
        for unit in units:
            possible = {
                at
                for at, value_answer in enumerate(unit.answers)
                if not (
                    value_answer.excludes if self.hashed_alike(literals[at]) else value_answer.excluded_unfiltered
                )
            }
            yield Candidates(
                unit.row_group,
                unit.rows,
                unit.chunk_bytes,
                int64s(at for at, owner in enumerate(owners) if owner in possible),
                nan=wanted.nan in possible,
                trusted=all(value_answer.trusted for value_answer in unit.answers),
                stripe=unit.stripe,
            )


def decoded(bound: bytes | None, column: Column) -> Any:
    """Decode a bound so that it compares with `WantedValues.keys`; None if unknown."""
    return None if bound is None else decode_bound(bound, column)


class ByKeys:
    """The positions of forms in the order of their keys, to find those that bounds don't exclude in many row groups.

    Args:
        keys: as `WantedValues.keys`.
        count: the number of forms.
    """

    def __init__(self, keys: pa.Array | list[Any] | None, count: int) -> None:
        self._every = counting(0, count)
        self._order = self._every
        if isinstance(keys, pa.Array):
            self._order = pc.array_sort_indices(keys).cast(pa.int64())
            keys = keys.take(self._order).to_pylist()
        elif keys is not None:
            self._order = int64s(sorted(range(count), key=keys.__getitem__))
            keys = sorted(keys)
        self._ascending = keys

    def within(self, low: Any, high: Any) -> pa.Int64Array:
        """The positions of forms that bounds don't exclude, as the function `within`."""
        if self._ascending is None or (low is not None and high is not None and low > high):
            return self._every
        start = 0 if low is None else bisect_left(self._ascending, low)
        end = len(self._ascending) if high is None else bisect_right(self._ascending, high)
        return self._order[start : max(start, end)]


def within(positions: pa.Int64Array, keys: pa.Array | list[Any] | None, low: Any, high: Any) -> pa.Int64Array:
    """The positions of forms that bounds don't exclude, by the same rules as `exclusion.excluded_by`."""
    if keys is None or (low is None and high is None) or (low is not None and high is not None and low > high):
        return positions
    if isinstance(keys, list):
        inside_bounds = (
            at
            for at in positions.to_pylist()
            if not ((low is not None and keys[at] < low) or (high is not None and keys[at] > high))
        )
        return int64s(inside_bounds)
    all_forms = len(positions) == len(keys)
    chosen_keys = keys if all_forms else keys.take(positions)
    inside = pa.repeat(pa.scalar(True), len(chosen_keys))
    if low is not None:
        inside = pc.and_(inside, pc.greater_equal(chosen_keys, pa.scalar(low, keys.type)))
    if high is not None:
        inside = pc.and_(inside, pc.less_equal(chosen_keys, pa.scalar(high, keys.type)))
    return positions.filter(inside)


def _positions(found: bytes | None, count: int) -> pa.Int64Array:
    """Positions as an array. None stands for 0 to `count` - 1."""
    if found is None:
        return counting(0, count)
    return pa.Array.from_buffers(pa.int64(), len(found) // 8, [None, pa.py_buffer(found)])


def is_nan(values: pa.Array) -> pa.Array:
    """Whether each value is NaN; a FLOAT16 is 2 bytes."""
    if pa.types.is_floating(values.type):
        return pc.is_nan(values)
    halves = [None if value is None else int.from_bytes(value, "little") & 0x7FFF for value in values.to_pylist()]
    return pa.array([None if half is None else half > 0x7C00 for half in halves], pa.bool_())


def each_row(rows: pa.Int64Array, texts: pa.Int64Array, *, repeated: bool) -> Matches:
    """Keep each row once, with the first of its values."""
    if not repeated:
        return Matches(rows, texts)
    first = dict(zip(reversed(rows.to_pylist()), reversed(texts.to_pylist()), strict=True))
    ascending = sorted(first)
    return Matches(int64s(ascending), int64s(first[row] for row in ascending))
