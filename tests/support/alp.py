"""Writes ALP pages by the Parquet format's AlpEncoding.md, independently of bloomcli."""

from __future__ import annotations

import io
import struct
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from support import footers, fuzzparquet, thrift
from support.thrift import Fields, Items

ALP: Final = 10
MOST: Final = {4: 10, 8: 18}
"""The greatest exponent, by the bytes of a value."""
_TYPES: Final = {4: ("<f4", "<i4", "<u4"), 8: ("<f8", "<i8", "<u8")}


def power(number: int, width: int) -> Any:
    """A power of ten, correctly rounded from its decimal."""
    return np.dtype(_TYPES[width][0]).type(f"1e{number}")


def decoded(integers: np.ndarray[Any, Any], exponent: int, factor: int, width: int) -> np.ndarray[Any, Any]:
    """The values of integers: two multiplications, in the precision of the values."""
    with np.errstate(all="ignore"):
        values = integers.astype(_TYPES[width][0]) * power(factor, width) * power(-exponent, width)
    return np.asarray(values, _TYPES[width][0])


def vector(
    integers: np.ndarray[Any, Any],
    exponent: int,
    factor: int,
    exceptions: Mapping[int, bytes],
    width: int,
    bits: int = 0,
) -> bytes:
    """A vector of integers, of which some are placeholders of exceptions. `bits`: the least width of a delta."""
    _, signed, unsigned = _TYPES[width]
    frame = integers.min()
    deltas = integers.astype(unsigned) - np.asarray(frame, signed).astype(unsigned)
    bits = max(bits, int(deltas.max()).bit_length())
    flags = deltas[:, None] >> np.arange(bits, dtype=unsigned)[None, :] & np.asarray(1, unsigned)
    head = struct.pack("<BBH", exponent, factor, len(exceptions)) + np.asarray(frame, signed).tobytes()
    packed = np.packbits(flags.astype(np.uint8).ravel(), bitorder="little").tobytes()
    return b"".join(
        [head, bytes([bits]), packed, struct.pack(f"<{len(exceptions)}H", *exceptions), *exceptions.values()]
    )


def page(vectors: Sequence[bytes], count: int, log: int) -> bytes:
    """The values of a page of `count` values, in vectors of 2^`log`."""
    at, offsets = 4 * len(vectors), []
    for one in vectors:
        offsets.append(at)
        at += len(one)
    return struct.pack("<BBBi", 0, 0, log, count) + struct.pack(f"<{len(offsets)}I", *offsets) + b"".join(vectors)


def encoded(plain: bytes, width: int, log: int, exponent: int, factor: int) -> bytes:
    """PLAIN values as an ALP page."""
    floats, signed, _ = _TYPES[width]
    values, size = np.frombuffer(plain, floats), 1 << log
    vectors = []
    for first in range(0, len(values), size):
        some = values[first : first + size]
        with np.errstate(all="ignore"):
            scaled = np.rint(some * power(exponent, width) * power(-factor, width))
            fits = np.abs(scaled) < 2.0 ** (8 * width - 2)
            integers = np.where(fits, scaled, 0).astype(signed)
        same = fits & (decoded(integers, exponent, factor, width).view(signed) == some.view(signed))
        integers = np.where(same, integers, integers[same][0] if same.any() else 0).astype(signed)
        exceptions = {int(at): some[at].tobytes() for at in np.flatnonzero(~same)}
        vectors.append(vector(integers, exponent, factor, exceptions, width))
    return page(vectors, len(values), log)


def written(
    table: pa.Table, leaves: Sequence[str], *, log: int = 5, exponent: int = 6, factor: int = 2, **options: Any
) -> bytes:
    """A file by Arrow whose pages of these columns have been encoded again in ALP, in place of PLAIN.

    Args:
        table: the values.
        leaves: the paths of columns of FLOAT and DOUBLE.
        log, exponent, factor: as in `encoded`.
        options: of `pq.write_table`.
    """
    out = io.BytesIO()
    pq.write_table(table, out, use_dictionary=False, **options)
    data = out.getvalue()
    schema = pq.ParquetFile(io.BytesIO(data)).schema
    for old in reversed(fuzzparquet.pages(data)):
        column = schema.column(old.column)
        if column.path in leaves:
            data = fuzzparquet.with_page(data, old, _again(old, column, log, exponent, factor))

    def named(metadata: Fields) -> None:
        for group, index in footers.places(data):
            if schema.column(index).path in leaves:
                meta = footers.meta(metadata, group, index)
                meta[2] = (thrift.LIST, Items(thrift.I32, [3, ALP]))
                meta.pop(13, None)

    return footers.edited(data, named)


def _again(old: fuzzparquet.Page, column: Any, log: int, exponent: int, factor: int) -> bytes:
    """The page with its header, in ALP."""
    header, head_id = dict(old.header), 8 if 8 in old.header else 5
    head = dict(header[head_id][1])
    name = fuzzparquet.CODECS[old.codec]
    levels = head[5][1] + head[6][1] if head_id == 8 else 0
    front, body = old.body[:levels], bytes(old.body[levels:])
    codec = None if name is None or head.get(7, (thrift.TRUE, True))[0] == thrift.FALSE else pa.Codec(name)
    if codec is not None and body:
        body = codec.decompress(body, header[2][1] - levels, asbytes=True)
    start = 0
    for highest in (column.max_repetition_level, column.max_definition_level) if head_id == 5 else ():
        start += 4 + int.from_bytes(body[start : start + 4], "little") if highest else 0
    width = {"FLOAT": 4, "DOUBLE": 8}[column.physical_type]
    body = body[:start] + encoded(body[start:], width, log, exponent, factor)
    packed = body if codec is None else codec.compress(body, asbytes=True)
    head[2 if head_id == 5 else 4] = (thrift.I32, ALP)
    header |= {
        head_id: (thrift.STRUCT, head),
        2: (thrift.I32, levels + len(body)),
        3: (thrift.I32, levels + len(packed)),
    }
    header.pop(4, None)  # the checksum
    return thrift.encode(dict(sorted(header.items()))) + front + packed
