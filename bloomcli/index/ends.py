"""The ends of files that an index keeps: footers and page indexes.

With its end, a file in a store is opened without a request, and the first request reads the column. A packed end is

    XXH64 of the frame | zstd frame: number of ranges, int32 | offset and length of each, int64s | their bytes

with the seed 0 for the checksum. All numbers are little-endian. The last range ends where the file ends.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Final

from bloomcli import kernels
from bloomcli.index.puffin import Blob, damaged
from bloomcli.index.tables import END_SCHEMA, Files, unpacked
from bloomcli.limits import INDEX_END_MAX_BYTES
from bloomcli.storage.base import Source
from bloomcli.words import counted

Range = tuple[int, bytes]
"""An offset in the file, and the bytes."""

CHECKSUM_BYTES: Final = 8
_RANGES_MOST: Final = 1 << 16
_HEAD_BYTES: Final = 4 + 16 * _RANGES_MOST


def packed_end(ranges: Sequence[Range]) -> bytes:
    """Pack ranges of a file, in order; the last one ends where the file ends."""
    import zstandard

    numbers = [number for offset, data in ranges for number in (offset, len(data))]
    raw = struct.pack(f"<i{len(numbers)}q", len(ranges), *numbers) + b"".join(data for _, data in ranges)
    frame = zstandard.ZstdCompressor().compress(raw)
    return kernels.xxh64(frame).to_bytes(CHECKSUM_BYTES, "little") + frame


def unpacked_end(packed: bytes, size: int) -> list[Range]:
    """Unpack the ranges of a file of `size` bytes. Raises ValueError if the bytes are damaged."""
    import zstandard

    frame = packed[CHECKSUM_BYTES:]
    if kernels.xxh64(frame).to_bytes(CHECKSUM_BYTES, "little") != packed[:CHECKSUM_BYTES]:
        raise ValueError("the bytes don't match their checksum")
    try:
        length = zstandard.frame_content_size(frame)
        if not 4 <= length <= INDEX_END_MAX_BYTES + _HEAD_BYTES:
            raise ValueError(f"the end of a file can't have {counted(length, 'byte')}")
        raw = zstandard.ZstdDecompressor().decompress(frame)
    except (zstandard.ZstdError, MemoryError) as error:
        raise ValueError(f"the end of a file can't be unpacked: {error}") from None
    (count,) = struct.unpack_from("<i", raw)
    if not 0 < count <= _RANGES_MOST or len(raw) < 4 + 16 * count:
        raise ValueError("it has no ranges")
    numbers = struct.unpack_from(f"<{2 * count}q", raw, 4)
    ranges: list[Range] = []
    at, end = 4 + 16 * count, 0
    for offset, length in zip(numbers[::2], numbers[1::2], strict=True):
        if offset < end or not 0 < length <= len(raw) - at:
            raise ValueError("the ranges aren't those of a file")
        ranges.append((offset, raw[at : at + length]))
        at, end = at + length, offset + length
    if at != len(raw) or end != size:
        raise ValueError("the ranges aren't those of the file's end")
    return ranges


class Ends:
    """The packed ends of an index's files, one after the other in the order of the files.

    Args:
        source: the index.
        ends: the blob of the ends, and its field path.
        sizes: the blob of the table of their sizes, which are 0 for files without an end, and its field path.
        data: the bytes of this table.
        files: the index's files.

    Raises:
        CorruptFile: the table is damaged, or doesn't match the files or the ends.
    """

    def __init__(
        self, source: Source, ends: tuple[Blob, str], sizes: tuple[Blob, str], data: bytes, files: Files
    ) -> None:
        self._source, self._files = source, files
        self._blob, self._field = ends
        blob, field = sizes
        count, (column,) = unpacked(source.path, blob, data, END_SCHEMA, field)
        self._bytes = column.tolist()
        if count != len(files):
            raise damaged(source.path, f"{count} ends of {len(files)} files", offset=blob.offset, field=field)
        if min(self._bytes, default=0) < 0 or sum(self._bytes) != self._blob.length:
            raise damaged(source.path, "the sizes aren't those of the ends", offset=blob.offset, field=field)
        self._starts = list(accumulate(self._bytes, initial=0))

    def read(self, files: Iterable[int], most: int | None = None) -> Iterator[tuple[int, bytes]]:
        """Yield the packed ends of files, for those that have one. Raises CorruptFile.

        One request reads all of them, with the ends in between, if they span no more than the source's largest part
        (16 MiB).

        Args:
            files: positions of files.
            most: the limit for the bytes of all ends; the files after it are left out. There is no limit if None.
        """
        chosen = [at for at in files if self._bytes[at]]
        if most is not None:
            sums = accumulate(self._bytes[at] for at in chosen)
            chosen = [at for at, total in zip(chosen, sums, strict=True) if total <= most]
        if not chosen:
            return
        ranges = [(self._blob.offset + self._starts[at], self._bytes[at]) for at in chosen]
        first, end = min(ranges)[0], sum(max(ranges))
        self._source.will_read([(first, end - first)] if end - first <= self._source.part_bytes else ranges)
        for at in chosen:
            offset = self._blob.offset + self._starts[at]
            packed = self._source.read_at(offset, self._bytes[at])
            try:
                unpacked_end(packed, self._files.fingerprint(at).size)
            except ValueError as error:
                raise damaged(self._source.path, str(error), offset=offset, field=self._field) from None
            yield at, packed
