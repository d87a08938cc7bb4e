"""Parquet files of one page made by hand: what no writer would write, in row groups that all say it is theirs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import zstandard

from support import footers, thrift
from support.thrift import Fields, Items

PHYSICAL: Final = {"INT32": 1, "INT64": 2, "BYTE_ARRAY": 6}
ENCODINGS: Final = {
    "PLAIN": 0,
    "DELTA_BINARY_PACKED": 5,
    "DELTA_LENGTH_BYTE_ARRAY": 6,
    "DELTA_BYTE_ARRAY": 7,
    "RLE_DICTIONARY": 8,
}


def deltas(count: int, first: int, blocks: Iterable[int]) -> bytes:
    """DELTA_BINARY_PACKED: `count` values from `first` on, in blocks of 8192 with equal deltas."""
    head = b"".join(map(thrift.varint, (8192, 1, count))) + thrift.zigzag(first)
    return head + b"".join(thrift.zigzag(step) + b"\0" for step in blocks)


def squeezed(parts: Iterable[bytes]) -> tuple[bytes, int]:
    """(ZSTD of the parts, their size): for bodies that are too large to be there at once."""
    packer = zstandard.ZstdCompressor(level=1).compressobj()
    size = 0
    out = []
    for part in parts:
        size += len(part)
        out.append(packer.compress(part))
    return b"".join(out) + packer.flush(), size


def one_page(
    path: Path,
    body: bytes,
    physical: str,
    encoding: str,
    count: int,
    *,
    size: int | None = None,
    optional: bool = False,
    dictionary: bytes | None = None,
    entries: int | None = None,
    groups: int = 1,
) -> Path:
    """A file of one column `c`, whose data page holds `body`; with a `size`, it is ZSTD of as many bytes."""
    i32, i64 = thrift.I32, thrift.I64
    head: Fields = {
        1: (i32, 0),
        2: (i32, len(body) if size is None else size),
        3: (i32, len(body)),
        5: (thrift.STRUCT, {1: (i32, count), 2: (i32, ENCODINGS[encoding]), 3: (i32, 3), 4: (i32, 3)}),
    }
    data = b"PAR1"
    meta: Fields = {
        1: (i32, PHYSICAL[physical]),
        2: (thrift.LIST, Items(i32, [0])),
        3: (thrift.LIST, Items(thrift.BINARY, [b"c"])),
        4: (i32, 0 if size is None else 6),
        5: (i64, count),
    }
    if dictionary is not None:
        packed = dictionary if size is None else zstandard.compress(dictionary)
        told: Fields = {
            1: (i32, 2),
            2: (i32, len(dictionary)),
            3: (i32, len(packed)),
            7: (thrift.STRUCT, {1: (i32, len(dictionary) // 4 if entries is None else entries), 2: (i32, 0)}),
        }
        data += thrift.encode(told) + packed
    start = len(data)
    data += thrift.encode(head) + body
    grown = (size or 0) + len(data)
    meta |= {6: (i64, grown), 7: (i64, len(data) - 4), 9: (i64, start)}
    if dictionary is not None:
        meta[11] = (i64, 4)
    leaf: Fields = {1: (i32, PHYSICAL[physical]), 3: (i32, int(optional)), 4: (thrift.BINARY, b"c")}
    root: Fields = {4: (thrift.BINARY, b"root"), 5: (i32, 1)}
    chunk: Fields = {2: (i64, 4), 3: (thrift.STRUCT, meta)}
    group: Fields = {1: (thrift.LIST, Items(thrift.STRUCT, [chunk])), 2: (i64, grown), 3: (i64, count)}
    footer: Fields = {
        1: (i32, 2),
        2: (thrift.LIST, Items(thrift.STRUCT, [root, leaf])),
        3: (i64, count * groups),
        4: (thrift.LIST, Items(thrift.STRUCT, [group] * groups)),
    }
    path.write_bytes(footers.join(data, thrift.encode(footer)))
    return path
