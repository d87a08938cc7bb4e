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


def binaries(values: Sequence[bytes]) -> pa.LargeBinaryArray:
    """An array of bytes."""
    offsets = array("q", chain((0,), accumulate(map(len, values))))
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(values))]
    return pa.Array.from_buffers(pa.large_binary(), len(values), buffers)
