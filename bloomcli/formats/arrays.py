"""Makes Arrow arrays of numbers and bytes from buffers, and the forms of Arrow values that `find` compares. pyarrow
reads a file of any store through a `SourceStream`.

`pyarrow.array` and `pyarrow.scalar` import pandas, if it is installed, to check whether an object is one of pandas:
that takes longer than looking a value up in a thousand files.
"""

from __future__ import annotations

import io
from array import array
from collections.abc import Iterable, Sequence
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

if TYPE_CHECKING:
    from bloomcli.storage.base import Source


_DECIMAL_BYTES: Final = 16


def forms_of(values: pa.Array) -> pa.Array:
    """Convert integers, dates and times to integers of their width, decimals to integers of 128 bits as bytes,
    booleans to 0 and 1, strings and binaries to large binaries. Floating point stays unchanged."""
    kind = values.type
    types = pa.types
    if types.is_floating(kind):
        return values
    if types.is_boolean(kind):
        return values.cast(pa.uint8())
    if types.is_integer(kind):
        return values.cast(pa.int64() if kind.bit_width == 64 else pa.int32())
    if types.is_decimal(kind):
        validity, data = values.cast(pa.decimal128(38, kind.scale)).buffers()
        forms = pa.Array.from_buffers(pa.binary(_DECIMAL_BYTES), len(values), [validity, data], offset=values.offset)
        return forms.cast(pa.large_binary())
    if types.is_date32(kind) or types.is_time32(kind):
        return values.view(pa.int32())
    if types.is_timestamp(kind) or types.is_time64(kind) or types.is_date64(kind):
        return values.view(pa.int64())
    if types.is_fixed_size_binary(kind) or types.is_binary(kind) or types.is_string(kind):
        return values.cast(pa.large_binary())
    return values.view(pa.large_binary())


def int64s(numbers: Iterable[int]) -> pa.Int64Array:
    """An array of integers of 64 bits."""
    stored = array("q", numbers)
    return pa.Array.from_buffers(pa.int64(), len(stored), [None, pa.py_buffer(stored)])


def as_int64s(data: bytes | NDArray[np.int64]) -> pa.Int64Array:
    """An array of int64s in native order."""
    stored = pa.py_buffer(data)
    return pa.Array.from_buffers(pa.int64(), stored.size // 8, [None, stored])


def counting(first: int, count: int) -> pa.Int64Array:
    """An array of `count` consecutive integers from `first` on."""
    return as_int64s(np.arange(first, first + count, dtype=np.int64))


def repeated(number: int, count: int) -> pa.Int64Array:
    """An array of `count` times the same integer."""
    return pa.Array.from_buffers(pa.int64(), count, [None, pa.py_buffer(array("q", [number]) * count)])


def numbers_of(integers: pa.Int64Array) -> memoryview:
    """The int64s of an array without nulls."""
    if not len(integers):
        return memoryview(b"").cast("q")
    return memoryview(integers.buffers()[1]).cast("q")[integers.offset : integers.offset + len(integers)]


def shifted(integers: pa.Int64Array, by: int) -> pa.Int64Array:
    """An array with `by`, which isn't negative, added to each integer."""
    return as_int64s(np.asarray(numbers_of(integers)) + by)


def binaries(values: Sequence[bytes]) -> pa.LargeBinaryArray:
    """An array of byte strings."""
    offsets = array("q", chain((0,), accumulate(map(len, values))))
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(values))]
    return pa.Array.from_buffers(pa.large_binary(), len(values), buffers)


class SourceStream(io.RawIOBase):
    """A source as a Python file object.

    Args:
        source: the source.
        end: the number of its bytes that are read; None for all.
        tail: the bytes that follow in place of the others.
    """

    def __init__(self, source: Source, end: int | None = None, tail: bytes = b"") -> None:
        self._source, self._at = source, 0
        self._end, self._tail = source.size if end is None else end, tail

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def read(self, size: int = -1) -> bytes:
        """The next bytes."""
        stop = self._end + len(self._tail)
        stop = stop if size < 0 else min(self._at + size, stop)
        end = min(stop, self._end)
        data = self._source.read_at(self._at, end - self._at) if self._at < end else b""
        data += self._tail[max(self._at - self._end, 0) : max(stop - self._end, 0)]
        self._at += len(data)
        return data

    def readinto(self, into: Any) -> int:
        """Read the next bytes into a buffer."""
        data = self.read(len(into))
        into[: len(data)] = data
        return len(data)

    def seek(self, offset: int, whence: int = 0) -> int:
        """Go to an offset, which is returned."""
        self._at = offset + (0, self._at, self._end + len(self._tail))[whence]
        return self._at
