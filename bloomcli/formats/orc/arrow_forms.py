"""Values as Arrow arrays, in the forms that `find` compares (`wanted_values.WantedValues.forms`) and an index has:
the PLAIN bytes of `schema.literal_column`, as integers where Arrow has these; strings without the blanks that a CHAR
ends with; timestamps on the writer's wall clock. Reports and samples have values as text and bytes made of these.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterator
from functools import cache, lru_cache, partial
from typing import Any, Final, NamedTuple, Self, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bloomcli import kernels, limits
from bloomcli.formats.orc import hashes
from bloomcli.formats.orc.schema import OrcType, literal_column
from bloomcli.formats.orc.streams import Bits
from bloomcli.formats.orc.values import (
    DECIMAL_BYTES,
    FLOATS,
    INTEGERS,
    REPEATED,
    SHOWN_BYTES,
    Counted,
    LeafReader,
    Values,
)
from bloomcli.formats.wanted_values import without_blanks
from bloomcli.model.file import Column
from bloomcli.values.literals import render
from bloomcli.words import counted

_MOMENT: Final = np.dtype([("millis", "<i8"), ("nanos", "<i4")])
"""A timestamp as `kernels.orc_moments` writes it: milliseconds, and the nanoseconds above them."""
_NANOS_PER_MILLI: Final = 1_000_000
_LOW: Final = (1 << 32) - 1
_HASH_BYTES: Final = 8
_FLOATS: Final = {"FLOAT": pa.float32(), "DOUBLE": pa.float64()}
_KEPT_BYTES: Final = 1 << 16
"""Maximum bytes of a value whose PLAIN bytes are asked for."""
_TEXTS_HELD: Final = 64
"""Texts of a dictionary's entries that are kept: equal values are often missing together."""

T = TypeVar("T")


class Numbered(Counted):
    """Rows with their numbers."""

    __slots__ = ("numbers",)

    def __init__(self, numbers: pa.Int64Array) -> None:
        super().__init__(len(numbers))
        self.numbers = numbers

    @classmethod
    def batches(cls, count: int) -> Iterator[Self]:
        """The numbers up to `count`, in batches."""
        batch = pa.array(range(min(count, limits.ROWS_PER_BATCH)), pa.int64())
        for first in range(0, count, limits.ROWS_PER_BATCH):
            yield cls(pc.add(batch[: count - first], first))

    def where(self, present: Bits) -> Self:
        """The rows that have a value."""
        return type(self)(self.numbers.filter(present.take(len(self)).arrow()))

    def elements(self, lengths: memoryview, total: int) -> Iterator[Self]:
        """The row of each element of their lists or maps, in batches."""
        ends = pc.cumulative_sum(_array(pa.int64(), lengths, len(self)))
        if total <= limits.ROWS_PER_BATCH:
            bounds = pa.concat_arrays([pa.array([0], pa.int64()), ends])
            yield type(self)(self.numbers.take(_parents(bounds, total)))
            return
        starts = [0, *ends.to_pylist()]
        for start in range(0, total, limits.ROWS_PER_BATCH):
            count = min(limits.ROWS_PER_BATCH, total - start)
            first, last = bisect_right(starts, start) - 1, bisect_left(starts, start + count)
            clipped = [min(max(bound - start, 0), count) for bound in starts[first : last + 1]]
            yield type(self)(self.numbers[first:last].take(_parents(pa.array(clipped, pa.int64()), count)))

    def of_member(self, tags: memoryview, member: int) -> Self:
        """The rows whose union has its value in a member."""
        chosen = pc.equal(_array(pa.uint8(), tags, len(self)), pa.scalar(member, pa.uint8()))
        return type(self)(self.numbers.filter(chosen))

    def part(self, first: int, count: int) -> Self:
        """Some of them."""
        return type(self)(self.numbers[first : first + count])


class RowForms(NamedTuple):
    """Forms of values, in order."""

    forms: pa.Array
    """Null for a string that is longer than any value to find."""
    rows: pa.Int64Array
    """The row of each, counted from the first requested row."""


def _parents(bounds: pa.Int64Array, total: int) -> pa.Int64Array:
    return pc.list_parent_indices(pa.LargeListArray.from_arrays(bounds, pa.nulls(total)))


def _array(kind: pa.DataType, values: Any, count: int) -> pa.Array:
    return pa.Array.from_buffers(kind, count, [None, pa.py_buffer(bytes(values))])


def forms_of(values: Values, leaf: LeafReader) -> pa.Array:
    """The forms of a column's values; of a dictionary's entries, not of their indexes. A string that was cut off is
    null. Raises CorruptFile."""
    orc, count = leaf.orc, values.count
    if orc.kind == "BOOLEAN":
        return _array(pa.uint8(), values.data, count)
    if orc.kind in {*INTEGERS, *REPEATED}:
        return _array(pa.int64(), values.data, count).cast(
            pa.int64() if INTEGERS.get(orc.kind, 8) == 8 else pa.int32()
        )
    if orc.kind == "BYTE":
        return _array(pa.int8(), values.data, count).cast(pa.int32())
    if orc.kind in FLOATS:
        return _array(_FLOATS[orc.kind], values.data, count)
    if values.nanos is not None and leaf.zone is not None:
        out = bytearray(count * _MOMENT.itemsize)
        try:
            kernels.orc_moments(values.data, values.nanos, count, leaf.zone, out)
        except kernels.RunError as error:
            raise leaf.fault(str(error), "SECONDARY") from None
        return _array(pa.binary(16), _nanos(np.frombuffer(out, _MOMENT)), count).cast(pa.large_binary())
    if orc.kind == "DECIMAL":
        return _array(pa.binary(DECIMAL_BYTES), values.data, count).cast(pa.large_binary())
    if values.cut:
        return pa.nulls(1, pa.large_binary())
    return trimmed(_binaries(values), orc)


def indexes_of(values: Values) -> pa.Int64Array:
    """The indexes of entries of a dictionary."""
    return _array(pa.int64(), values.data, values.count)


def _binaries(values: Values) -> pa.LargeBinaryArray:
    ends = pc.cumulative_sum(_array(pa.int64(), values.lengths, values.count))
    offsets = pa.concat_arrays([pa.array([0], pa.int64()), ends])
    buffers = [None, offsets.buffers()[1], pa.py_buffer(bytes(values.data))]
    return pa.Array.from_buffers(pa.large_binary(), values.count, buffers, offset=offsets.offset)


def trimmed(forms: pa.Array, orc: OrcType) -> pa.Array:
    """Values of a CHAR without the blanks at their ends, which have no meaning."""
    return without_blanks(forms) if orc.kind == "CHAR" else forms


def _nanos(moments: Any) -> Any:
    """Moments as nanoseconds of 128 bits, computed in units of 32 so that no product overflows."""
    low = (moments["millis"] & _LOW) * _NANOS_PER_MILLI + moments["nanos"]
    high = (moments["millis"] >> 32) * _NANOS_PER_MILLI + (low >> 32)
    return np.column_stack((high << 32 | low & _LOW, high >> 32)).tobytes()


def hashes_of(forms: pa.Array, orc: OrcType, typed: Column) -> bytes:
    """ORC's hashes of forms, uint64s in native order."""
    count = len(forms)
    if not count:
        return b""
    if not pa.types.is_large_binary(forms.type):
        out = bytearray(count * _HASH_BYTES)
        data = memoryview(forms.buffers()[1]).cast("B")
        width = forms.type.bit_width // 8
        if orc.kind in FLOATS:
            kernels.orc_hash_double(data, width, forms.offset, count, out)
        else:
            kernels.orc_hash_long(data, width, forms.offset, count, out)
        return bytes(out)
    return array("Q", (hashes.encoded_hash(form, orc, typed) for form in forms.to_pylist())).tobytes()


class PlainValues:
    """Some of a column's values as PLAIN bytes (see `schema.literal_column`) and as text.

    Args:
        values: the values or, with a dictionary, entries; valid as long as they are asked for.
        leaf: the column's values.
    """

    def __init__(self, values: Values, leaf: LeafReader) -> None:
        self._values, self._orc, self._typed = values, leaf.orc, literal_column(leaf.orc)
        self._forms = cache(partial(forms_of, values, leaf))

    def plain(self, at: int) -> bytes | None:
        """The bytes of a value; None for a string of more than 64 KiB."""
        value, size = self._start(at)
        return value if len(value) == size <= _KEPT_BYTES else None

    def text(self, at: int) -> str:
        """A value as `bloom probe` takes it; a long string is cut off."""
        value, size = self._start(at)
        text = render(value[:SHOWN_BYTES], self._typed)
        return text if size <= SHOWN_BYTES else f"{text}... ({counted(size, 'byte')})"

    def _start(self, at: int) -> tuple[bytes, int]:
        """A value and its size; of a string that was cut off, its start."""
        if self._values.cut:
            return bytes(self._values.data), memoryview(self._values.lengths or b"").cast("q")[0]
        forms = self._forms()
        if pa.types.is_large_binary(forms.type):
            value = forms[at].as_py()
        else:
            width = forms.type.bit_width // 8
            value = bytes(memoryview(forms.buffers()[1])[at * width : (at + 1) * width])
        return value, len(value)


def entries_of(leaf: LeafReader, indexes: Collection[int], form: Callable[[PlainValues, int], T]) -> dict[int, T]:
    """A form of the entries of a dictionary with these indexes. Raises CorruptFile, UnsupportedError, Stopped."""
    forms: dict[int, T] = {}
    first = 0
    for part in leaf.dictionary():
        values = PlainValues(part, leaf)
        forms |= {index: form(values, index - first) for index in indexes if first <= index < first + part.count}
        first += part.count
    return forms


def texts_of(leaf: LeafReader) -> Callable[[Values], Callable[[int], str]]:
    """The function that returns, for values that `leaf.take` gave, the function that returns a value's text."""
    entry = lru_cache(maxsize=_TEXTS_HELD)(lambda index: entries_of(leaf, [index], PlainValues.text)[index])

    def texts(values: Values) -> Callable[[int], str]:
        if leaf.entries is None:
            return PlainValues(values, leaf).text
        indexes = memoryview(values.data).cast("q")
        return lambda at: entry(indexes[at])

    return texts
