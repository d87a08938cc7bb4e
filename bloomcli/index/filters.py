"""The filters of new units: their bitsets in a temporary file, and the common size that the column's filters get.

The common size is a number of blocks that is a power of two. It is the smallest at which the mean of the filters'
measured rates meets the wanted rate. If no size does, it is the smallest at which the mean is near the best one.
Filters of other sizes are folded or replicated. A few very large filters among many small ones could make the index
much larger than the filters: a limit on its growth takes precedence.
"""

from __future__ import annotations

import os
import tempfile
from array import array
from collections.abc import Iterable, Iterator
from typing import IO, Final

import numpy as np
from numpy.typing import NDArray

from bloomcli import kernels
from bloomcli.errors import WriteError
from bloomcli.filters.sizing import BLOCK_BYTES
from bloomcli.limits import INDEX_BLOCKS_MAX
from bloomcli.storage.os_errors import convert_temporary_file_errors

_BUFFER_BYTES: Final = 1 << 20
_NEAR_BEST: Final = 1.05
"""A mean rate is near the best one if it is at most this many times as high."""
_GROWTH: Final = 4
"""The bits of a column take at most this many times the bytes of its filters, or `_SMALL_BYTES`."""
_SMALL_BYTES: Final = 1 << 20
LEVELS: Final = INDEX_BLOCKS_MAX.bit_length()
"""Number of common sizes: 1 block, 2 blocks, 4 blocks and so on."""


class Spool:
    """Byte strings in a temporary file, by their numbers. Without any, there is no file."""

    def __init__(self) -> None:
        self._file: IO[bytes] | None = None
        self._offsets = array("q")
        self._size = 0
        self.sizes = array("i")
        """Bytes of each string."""

    def add(self, data: bytes | bytearray) -> int:
        """Add a string, which may be empty; returns its number. Raises WriteError."""
        with convert_temporary_file_errors("filters"):
            if data and self._file is None:
                self._file = tempfile.TemporaryFile(buffering=_BUFFER_BYTES)  # noqa: SIM115
            if data and self._file is not None:
                self._file.write(data)
        self._offsets.append(self._size)
        self.sizes.append(len(data))
        self._size += len(data)
        return len(self.sizes) - 1

    def finish(self) -> None:
        """Flush the file. Nothing can be added afterwards. Raises WriteError."""
        if self._file is not None:
            with convert_temporary_file_errors("filters"):
                self._file.flush()

    def pieces(self) -> Iterator[bytes]:
        """Yield the strings joined, in pieces of up to 1 MiB. Raises WriteError."""
        for at in range(0, self._size, _BUFFER_BYTES):
            yield self._read(at, min(_BUFFER_BYTES, self._size - at))

    def read(self, numbers: Iterable[int], blocks: int, first: int, count: int) -> bytearray:
        """Read `count` blocks from `first` on of each of these bitsets, folded or replicated to `blocks` blocks.

        Raises WriteError if the temporary file can't be read any more.
        """
        out = bytearray()
        for number in numbers:
            source = self.sizes[number] // BLOCK_BYTES
            low, needed = kernels.sbbf_needed(source, blocks, first, count)
            part = self._read(self._offsets[number] + low * BLOCK_BYTES, needed * BLOCK_BYTES)
            out += part if source == blocks else kernels.sbbf_resized_part(part, source, blocks, first, count)
        return out

    def _read(self, offset: int, length: int) -> bytes:
        """Bytes of the finished file. Raises WriteError."""
        if self._file is None:
            raise ValueError("it has no temporary file")
        with convert_temporary_file_errors("filters"):
            data = os.pread(self._file.fileno(), length, offset)
        if len(data) < length:
            raise WriteError("the temporary file of the filters has become shorter", hint="build the index again")
        return data

    def close(self) -> None:
        """Remove the file."""
        file, self._file = self._file, None
        if file is not None:
            file.close()


def rates(bitset: bytes | bytearray) -> NDArray[np.float32]:
    """The measured rates of a filter at each of `LEVELS` common sizes. From its own size or the next power of two on,
    the rate stays the same."""
    blocks = len(bitset) // BLOCK_BYTES
    size = 1 << (blocks - 1).bit_length()
    bits = bitset if size == blocks else kernels.sbbf_resized(bitset, size)
    result = [kernels.sbbf_stats(bits)[1]]
    while size > 1:
        size //= 2
        bits = kernels.sbbf_resized(bits, size)
        result.append(kernels.sbbf_stats(bits)[1])
    return np.array([*reversed(result), *result[:1] * (LEVELS - len(result))], np.float32)


class Rates:
    """The rates of many filters, and the common size that they need.

    Attributes:
        count: number of filters.
    """

    def __init__(self) -> None:
        self._sums = np.zeros(LEVELS)
        self.count = 0
        self._bytes = 0

    def add(self, measured: NDArray[np.float32] | float, blocks: int) -> None:
        """Add a filter by the result of `rates`, or by its one rate in an old index, and its number of blocks."""
        self._sums += measured
        self.count += 1
        self._bytes += BLOCK_BYTES << (blocks - 1).bit_length()

    def level(self, fpp: float, slots: int, least: int) -> int:
        """The common size, as the exponent of a power of two.

        Args:
            fpp: the wanted mean rate.
            slots: number of slots in a row of bits.
            least: the level of an old index, whose filters can't be folded further.
        """
        if not self.count:
            return least
        wanted = max(fpp, self._sums[-1] / self.count * _NEAR_BEST)
        level = int(np.argmax(self._sums / self.count <= wanted))  # the first one
        limit_bytes = max(_GROWTH * self._bytes, _SMALL_BYTES)
        while level > 0 and (slots * BLOCK_BYTES) << level > limit_bytes:
            level -= 1
        return max(level, least)
