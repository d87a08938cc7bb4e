"""Arrow arrays of Python's numbers and bytes, made of buffers.

`pyarrow.array` and `pyarrow.scalar` import pandas, where it is installed, to look whether an object is one of its:
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
    """An array of ascending integers."""
    return pa.Array.from_buffers(pa.int64(), count, [None, pa.py_buffer(kernels.counting(first, count))])


def repeated(number: int, count: int) -> pa.Int64Array:
    """An array of equal integers."""
    return pa.Array.from_buffers(pa.int64(), count, [None, pa.py_buffer(array("q", [number]) * count)])


def numbers_of(integers: pa.Int64Array) -> memoryview:
    """An array's integers of 64 bits. It has no nulls."""
    if not len(integers):
        return memoryview(b"").cast("q")
    return memoryview(integers.buffers()[1]).cast("q")[integers.offset : integers.offset + len(integers)]


def shifted(integers: pa.Int64Array, by: int) -> pa.Int64Array:
    """An array's integers with another one, from 0 on, added to each."""
    found = kernels.shifted_hashes(numbers_of(integers).cast("B"), by)
    return pa.Array.from_buffers(pa.int64(), len(integers), [None, pa.py_buffer(found)])


def binaries(values: Sequence[bytes]) -> pa.LargeBinaryArray:
    """An array of bytes."""
    offsets = array("q", chain((0,), accumulate(map(len, values))))
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(values))]
    return pa.Array.from_buffers(pa.large_binary(), len(values), buffers)
