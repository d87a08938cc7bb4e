"""Makes Arrow arrays of Python's numbers and bytes from buffers.

`pyarrow.array` and `pyarrow.scalar` import pandas, if it is installed, to check whether an object is one of pandas:
that takes longer than looking a value up in a thousand files.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from itertools import accumulate, chain

import pyarrow as pa

from bloomcli import kernels


def int64s(numbers: Iterable[int]) -> pa.Int64Array:
    """An array of integers of 64 bits."""
    stored = array("q", numbers)
    return pa.Array.from_buffers(pa.int64(), len(stored), [None, pa.py_buffer(stored)])


def counting(first: int, count: int) -> pa.Int64Array:
    """An array of `count` consecutive integers from `first` on."""
    return pa.Array.from_buffers(pa.int64(), count, [None, pa.py_buffer(kernels.counting(first, count))])


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
    found = kernels.shifted_hashes(numbers_of(integers).cast("B"), by)
    return pa.Array.from_buffers(pa.int64(), len(integers), [None, pa.py_buffer(found)])


def binaries(values: Sequence[bytes]) -> pa.LargeBinaryArray:
    """An array of byte strings."""
    offsets = array("q", chain((0,), accumulate(map(len, values))))
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(values))]
    return pa.Array.from_buffers(pa.large_binary(), len(values), buffers)
