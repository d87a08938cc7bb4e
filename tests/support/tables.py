"""Arrow tables of every type, the PLAIN bytes of their leaves in plain Python, and files of them by pyarrow."""

from __future__ import annotations

import datetime as dt
import math
import struct
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import xxhash

EPOCH: Final = dt.datetime(1970, 1, 1)
_UNITS: Final = {"ms": 10**3, "us": 10**6, "ns": 10**9}


@dataclass(frozen=True)
class Case:
    """A column: its Arrow type, its values, and the PLAIN encoding of a leaf's value."""

    type: pa.DataType
    values: list[Any]
    plain: Callable[[Any], bytes]

    def array(self, repeat: int = 1) -> pa.Array:
        """The values as an array, repeated."""
        return pa.array(self.values * repeat, self.type)

    def hashes(self) -> set[int]:
        """XXH64 of every distinct leaf, nulls left out."""
        return hashes(map(self.plain, leaves(self.values)))


def hashes(encoded: Iterable[bytes]) -> set[int]:
    """The hashes of PLAIN values, by the xxhash package."""
    return {xxhash.xxh64_intdigest(value) for value in encoded}


def leaves(value: Any) -> Iterator[Any]:
    """The leaves of nested Python values of one column, nulls left out."""
    if isinstance(value, list | tuple):
        for element in value:
            yield from leaves(element)
    elif isinstance(value, dict):
        yield from leaves(list(value.values()))
    elif value is not None:
        yield value


def packed(form: str) -> Callable[[Any], bytes]:
    """Values by a struct format; integers wrap, as the physical type's bits do."""
    size = struct.calcsize(form)

    def plain(value: Any) -> bytes:
        if isinstance(value, int):
            return (value & (1 << 8 * size) - 1).to_bytes(size, "little")
        return struct.pack(form, value)

    return plain


def _decimal(width: int, scale: int) -> Callable[[Decimal], bytes]:
    return lambda value: int(value.scaleb(scale)).to_bytes(width, "big", signed=True)


def _days(value: dt.date) -> bytes:
    return struct.pack("<i", value.toordinal() - EPOCH.toordinal())


def _clock(unit: str) -> Callable[[dt.time], bytes]:
    form = "<i" if unit == "ms" else "<q"

    def plain(value: dt.time) -> bytes:
        micros = ((value.hour * 60 + value.minute) * 60 + value.second) * 10**6 + value.microsecond
        return struct.pack(form, micros * _UNITS[unit] // 10**6)

    return plain


def _moment(unit: str) -> Callable[[dt.datetime], bytes]:
    def plain(value: dt.datetime) -> bytes:
        since = value.replace(tzinfo=None) - EPOCH
        micros = (since.days * 86_400 + since.seconds) * 10**6 + since.microseconds
        return struct.pack("<q", micros * _UNITS[unit] // 10**6)

    return plain


def int96(value: dt.datetime) -> bytes:
    """The deprecated timestamp: nanoseconds of the day, Julian day."""
    since = value - EPOCH
    return struct.pack("<qi", since.seconds * 10**9 + since.microseconds * 1000, since.days + 2440588)


def _text(value: str) -> bytes:
    return value.encode()


def _ints(bits: int, signed: bool) -> list[int | None]:
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    return [low, None, high, 0, 1, 42, None, high - 1, low + 1, 7]


_TEXTS: Final = ["", None, "a", "äöü", "null", "x" * 300, None, "prefix-1", "prefix-2", "\0"]
_BLOBS: Final = [None if t is None else t.encode() for t in _TEXTS]
_FLOATS: Final = [1.5, None, -2.25, math.inf, -math.inf, 0.1, None, 65504.0]
_MOMENTS: Final = [EPOCH, None, dt.datetime(2024, 2, 29, 13, 45, 30, 250_000), dt.datetime(1900, 1, 1), None]
_WHOLE: Final = [EPOCH, None, dt.datetime(2024, 2, 29, 13, 45, 30), dt.datetime(1900, 1, 1), None]
_CLOCKS: Final = [dt.time(), None, dt.time(23, 59, 59, 999_000), dt.time(13, 45, 30, 250_000)]
_DAYS: Final = [dt.date(1970, 1, 1), None, dt.date(2024, 2, 29), dt.date(1900, 1, 1)]
_UUIDS: Final = [uuid.UUID(int=i * 0x1234567890ABCDEF1234567 + 1) for i in range(5)]


def _money(precision: int, scale: int) -> list[Decimal | None]:
    top = Decimal(10**precision - 1).scaleb(-scale)
    return [top, None, -top, Decimal(0).scaleb(-scale), Decimal(1).scaleb(-scale), Decimal(-1).scaleb(-scale)]


def _width(precision: int) -> int:
    return next(n for n in range(1, 33) if 2 ** (8 * n - 1) > 10**precision - 1)


CASES: Final[dict[str, Case]] = {
    **{f"int{b}": Case(getattr(pa, f"int{b}")(), _ints(b, True), packed("<i")) for b in (8, 16, 32)},
    "int64": Case(pa.int64(), _ints(64, True), packed("<q")),
    **{f"uint{b}": Case(getattr(pa, f"uint{b}")(), _ints(b, False), packed("<i")) for b in (8, 16, 32)},
    "uint64": Case(pa.uint64(), _ints(64, False), packed("<q")),
    "float16": Case(pa.float16(), [*_FLOATS[:5], 0.5, 65504.0], packed("<e")),
    "float32": Case(pa.float32(), _FLOATS, packed("<f")),
    "float64": Case(pa.float64(), _FLOATS, packed("<d")),
    "decimal32": Case(pa.decimal32(7, 2), _money(7, 2), _decimal(_width(7), 2)),
    "decimal64": Case(pa.decimal64(15, 4), _money(15, 4), _decimal(_width(15), 4)),
    **{
        f"decimal128_{p}": Case(pa.decimal128(p, s), _money(p, s), _decimal(_width(p), s))
        for p, s in ((1, 0), (2, 1), (5, 2), (9, 2), (18, 3), (28, 10))
    },
    "decimal256": Case(pa.decimal256(28, 5), _money(28, 5), _decimal(_width(28), 5)),
    "string": Case(pa.string(), _TEXTS, _text),
    "large_string": Case(pa.large_string(), _TEXTS, _text),
    "binary": Case(pa.binary(), _BLOBS, bytes),
    "large_binary": Case(pa.large_binary(), _BLOBS, bytes),
    "fixed_binary": Case(pa.binary(5), [b"abcde", None, b"\0" * 5, b"\xff" * 5, b"abcdf"], bytes),
    "date32": Case(pa.date32(), _DAYS, _days),
    "date64": Case(pa.date64(), _DAYS, _days),
    "time32_ms": Case(pa.time32("ms"), _CLOCKS, _clock("ms")),
    "time64_us": Case(pa.time64("us"), _CLOCKS, _clock("us")),
    "time64_ns": Case(pa.time64("ns"), _CLOCKS, _clock("ns")),
    "timestamp_s": Case(pa.timestamp("s"), _WHOLE, _moment("ms")),
    **{f"timestamp_{u}": Case(pa.timestamp(u), _MOMENTS, _moment(u)) for u in _UNITS},
    **{f"timestamp_{u}_utc": Case(pa.timestamp(u, "UTC"), _MOMENTS, _moment(u)) for u in _UNITS},
    "uuid": Case(pa.uuid(), [None if i == 2 else u for i, u in enumerate(_UUIDS)], lambda u: u.bytes),
    "dictionary": Case(pa.dictionary(pa.int8(), pa.string()), _TEXTS, _text),
    "list": Case(pa.list_(pa.int64()), [[1, 2, None], None, [], [3], [None], [2**60, 1]], packed("<q")),
    "list_of_lists": Case(pa.large_list(pa.list_(pa.string())), [[["a", None], [], None], None, [], [["b"]]], _text),
    "struct": Case(
        pa.struct([("inner", pa.struct([("leaf", pa.int32())]))]),
        [{"inner": {"leaf": 5}}, {"inner": {"leaf": None}}, {"inner": None}, None, {"inner": {"leaf": -6}}],
        packed("<i"),
    ),
    "list_of_structs": Case(
        pa.list_(pa.struct([("leaf", pa.float64())])),
        [[{"leaf": 1.5}, {"leaf": None}, None], [], None, [{"leaf": 2.5}]],
        packed("<d"),
    ),
    "all_null": Case(pa.string(), [None] * 10, _text),
    "null": Case(pa.null(), [None] * 10, packed("<i")),
}
"""Small cases with one leaf column each: bounds of decimals and integers, nulls, empty values."""

MAP: Final = pa.array([[("k", 1), ("l", None)], None, [], [("m", 3)]], pa.map_(pa.string(), pa.int32()))

ENCODINGS: Final = {
    "PLAIN": tuple(CASES),
    "DELTA_BINARY_PACKED": ("int8", "int32", "int64", "uint32", "uint64", "date32", "timestamp_us", "list", "struct"),
    "DELTA_LENGTH_BYTE_ARRAY": ("string", "large_string", "binary", "large_binary", "list_of_lists", "all_null"),
    "DELTA_BYTE_ARRAY": ("string", "large_string", "binary", "fixed_binary", "decimal128_28", "list_of_lists"),
    "BYTE_STREAM_SPLIT": (
        "int32", "int64", "float16", "float32", "float64", "fixed_binary", "decimal128_28", "uuid", "list_of_structs",
    ),
}  # fmt: skip
"""For each encoding, the cases with its physical types."""

COMPRESSIONS: Final = ("none", "snappy", "gzip", "brotli", "zstd", "lz4")


def write(
    path: Path,
    table: pa.Table | dict[str, Any],
    *,
    rows: int | None = None,
    page_version: int = 1,
    dictionary: bool | list[str] = True,
    encoding: str | dict[str, str] | None = None,
    compression: str = "none",
    blooms: dict[str, Any] | bool | None = None,
    **options: Any,
) -> Path:
    """Write a table with pyarrow; `rows` is the row group's size, `blooms` the options of pyarrow's filters."""
    table = table if isinstance(table, pa.Table) else pa.table(table)
    if encoding is not None:
        options["column_encoding"] = encoding
        dictionary = False if dictionary is True else dictionary
    pq.write_table(
        table,
        path,
        row_group_size=rows,
        data_page_version=f"{page_version}.0",
        use_dictionary=dictionary,
        compression=compression,
        bloom_filter_options=blooms,
        **options,
    )
    return path
