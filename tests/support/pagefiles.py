"""Builds Parquet files from pages that no writer writes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import zstandard

from support import footers, thrift
from support.thrift import Fields, Items

PHYSICAL: Final = {"INT32": 1, "INT64": 2, "BYTE_ARRAY": 6}
MEBI: Final = 1 << 20
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
    """(ZSTD of the parts, their size), for bodies that are too large for memory."""
    packer = zstandard.ZstdCompressor(level=1).compressobj()
    size = 0
    out = []
    for part in parts:
        size += len(part)
        out.append(packer.compress(part))
    return b"".join(out) + packer.flush(), size


def data_page(body: bytes, count: int, encoding: str = "PLAIN") -> bytes:
    """An uncompressed page of version 1 with `count` values, including nulls."""
    i32 = thrift.I32
    head: Fields = {1: (i32, count), 2: (i32, ENCODINGS[encoding]), 3: (i32, 3), 4: (i32, 3)}
    sizes: Fields = {1: (i32, 0), 2: (i32, len(body)), 3: (i32, len(body))}
    return thrift.encode({**sizes, 5: (thrift.STRUCT, head)}) + body


def dictionary_page(body: bytes, count: int, encoding: str = "PLAIN") -> bytes:
    """An uncompressed dictionary page with `count` entries."""
    i32 = thrift.I32
    head: Fields = {1: (i32, count), 2: (i32, ENCODINGS[encoding])}
    sizes: Fields = {1: (i32, 2), 2: (i32, len(body)), 3: (i32, len(body))}
    return thrift.encode({**sizes, 7: (thrift.STRUCT, head)}) + body


def indices(index: int, count: int) -> bytes:
    """Dictionary indices of 16 bits: `count` equal ones."""
    return b"\x10" + thrift.varint(count << 1) + index.to_bytes(2, "little")


def of_pages(
    path: Path, columns: Mapping[str, tuple[str, Sequence[bytes]]], rows: int, values: int | None = None
) -> Path:
    """A file of one row group.

    Args:
        path: the path of the file.
        columns: the physical type and the pages of each column; a dictionary comes first.
        rows: the number of rows in the footer.
        values: the number of values of each column in the footer; None: the number of rows.
    """
    i32, i64 = thrift.I32, thrift.I64
    data, chunks, leaves = b"PAR1", [], []
    for name, (physical, pages) in columns.items():
        start, size = len(data), sum(map(len, pages))
        data += b"".join(pages)
        at = start + (len(pages[0]) if thrift.parse(pages[0])[0][1][1] == 2 else 0)
        meta: Fields = {
            1: (i32, PHYSICAL[physical]),
            2: (thrift.LIST, Items(i32, [0, 8])),
            3: (thrift.LIST, Items(thrift.BINARY, [name.encode()])),
            4: (i32, 0),
            5: (i64, rows if values is None else values),
            6: (i64, size),
            7: (i64, size),
            9: (i64, at),
        }
        if at > start:
            meta[11] = (i64, start)
        chunks.append({2: (i64, start), 3: (thrift.STRUCT, meta)})
        leaves.append({1: (i32, PHYSICAL[physical]), 3: (i32, 0), 4: (thrift.BINARY, name.encode())})
    total = (i64, len(data) - 4)
    group: Fields = {1: (thrift.LIST, Items(thrift.STRUCT, chunks)), 2: total, 3: (i64, rows), 6: total}
    root: Fields = {4: (thrift.BINARY, b"root"), 5: (i32, len(leaves))}
    footer: Fields = {
        1: (i32, 2),
        2: (thrift.LIST, Items(thrift.STRUCT, [root, *leaves])),
        3: (i64, rows),
        4: (thrift.LIST, Items(thrift.STRUCT, [group])),
    }
    path.write_bytes(footers.join(data, thrift.encode(footer)))
    return path


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
    """Write a file of one column `c` with a data page of `body`; with a `size`, it is ZSTD of that many bytes. All
    row groups have this page, according to their metadata."""
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
        page_header: Fields = {
            1: (i32, 2),
            2: (i32, len(dictionary)),
            3: (i32, len(packed)),
            7: (thrift.STRUCT, {1: (i32, len(dictionary) // 4 if entries is None else entries), 2: (i32, 0)}),
        }
        data += thrift.encode(page_header) + packed
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


def prefixes(path: Path, groups: int = 1, blocks: int = 21) -> Path:
    """Each value is the previous one and another byte: the values' bytes are the square of the read ones."""
    count = 1 + 8192 * blocks
    lengths = deltas(count, 0, [1] * blocks) + deltas(count, 1, [0] * blocks)
    return one_page(path, lengths + b"x" * count, "BYTE_ARRAY", "DELTA_BYTE_ARRAY", count, groups=groups)


def steps(path: Path, groups: int = 1) -> Path:
    """Consecutive numbers, 8192 in two bytes: more values than a page may have."""
    count = 1 + 8192 * 4095
    return one_page(path, deltas(count, 0, [1] * 4095), "INT64", "DELTA_BINARY_PACKED", count, groups=groups)


def one_string(path: Path, groups: int = 1) -> Path:
    """A string of 1 GiB."""
    body, size = squeezed([(1000 * MEBI).to_bytes(4, "little"), *[bytes(MEBI)] * 1000])
    return one_page(path, body, "BYTE_ARRAY", "PLAIN", 1, size=size, groups=groups)
