"""Writes small ORC files with pyarrow, hashes their columns by the reference, splits files into parts and joins
the parts."""

from __future__ import annotations

import datetime as dt
import math
import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyarrow import orc

from bloomcli.formats.orc import spec
from bloomcli.formats.orc.compression import Codec, codec_of
from bloomcli.formats.orc.footer import Footer
from bloomcli.formats.orc.schema import OrcType
from bloomcli.storage.registry import open_source
from support import orc_hashes

COMPRESSIONS: Final = ("uncompressed", "zlib", "snappy", "lz4", "zstd")
_EPOCH: Final = dt.datetime(1970, 1, 1)
ROW_INDEX, BLOOM_FILTER, BLOOM_FILTER_UTF8 = 6, 7, 8


@dataclass(frozen=True)
class Case:
    """A column: its Arrow type, its values (nulls among them), and the hash of one."""

    type: pa.DataType
    values: list[Any]
    hash: Callable[[Any], int]
    text: Callable[[Any], str] = str
    """A value as a user types it."""

    def array(self, rows: int) -> pa.Array:
        """The values, repeated."""
        return pa.array([self.values[i % len(self.values)] for i in range(rows)], self.type)

    @property
    def present(self) -> list[Any]:
        """The non-null values."""
        return [v for v in self.values if v is not None]


def long_hash(value: int) -> int:
    """The hash of an integer."""
    return orc_hashes.orc_long(value)


def double_hash(value: float) -> int:
    """The hash of a double, or of a widened float."""
    bits = 0x7FF8 << 48 if math.isnan(value) else struct.unpack("<q", struct.pack("<d", value))[0]
    return orc_hashes.orc_long(bits)


def text_hash(value: str | bytes) -> int:
    """The hash of a string's or a binary's bytes."""
    return orc_hashes.orc_bytes(value.encode() if isinstance(value, str) else value)


def decimal_text(value: Decimal) -> str:
    """The text of a decimal as HiveDecimal prints it: no zeros at the end, no exponent."""
    text = f"{value:f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text in {"-0", ""} else text


def _decimal_hash(value: Decimal) -> int:
    return orc_hashes.orc_bytes(decimal_text(value).encode())


def _days_hash(value: dt.date) -> int:
    return orc_hashes.orc_long(value.toordinal() - _EPOCH.toordinal())


def _millis_hash(value: dt.datetime) -> int:
    since = value.replace(tzinfo=None) - _EPOCH
    return orc_hashes.orc_long((since.days * 86_400 + since.seconds) * 1000 + since.microseconds // 1000)


def _float32(value: float) -> float:
    return float(struct.unpack("<f", struct.pack("<f", value))[0])


def _ints(bits: int) -> list[int | None]:
    top = 1 << bits - 1
    return [-top, None, top - 1, 0, 1, None, -1, 42]


_MOMENTS: Final = [_EPOCH, None, dt.datetime(2024, 2, 29, 13, 45, 30, 250_999), dt.datetime(1900, 1, 1), None]
_TEXTS: Final = ["", None, "a", "äöü", "null", "x" * 300, None, "prefix-1", "prefix-2", "\0", "12345678"]
_FLOATS: Final = [1.5, None, -2.25, math.inf, -math.inf, 0.1, None, 65504.0]


def _blob(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


CASES: Final[dict[str, Case]] = {
    **{f"int{b}": Case(getattr(pa, f"int{b}")(), _ints(b), long_hash) for b in (8, 16, 32, 64)},
    "float32": Case(pa.float32(), _FLOATS, lambda v: double_hash(_float32(v))),
    "float64": Case(pa.float64(), _FLOATS, double_hash),
    "string": Case(pa.string(), _TEXTS, text_hash),
    "binary": Case(pa.binary(), [_blob(t) for t in _TEXTS], text_hash, lambda v: f"0x{v.hex()}"),
    "decimal_9_2": Case(
        pa.decimal128(9, 2),
        [Decimal(t) for t in ("1.50", "-0.01", "0.00", "100.00", "9999999.99", "-12.00")] + [None],
        _decimal_hash,
    ),
    "decimal_38_10": Case(
        pa.decimal128(38, 10),
        [None, Decimal("9" * 28 + "." + "9" * 10), Decimal("-1E-10"), Decimal("-" + "9" * 28), Decimal("12.5")],
        _decimal_hash,
        lambda v: f"{v:f}",
    ),
    "decimal_38_38": Case(
        pa.decimal128(38, 38), [Decimal("0." + "9" * 38), None, Decimal("-0.5")], _decimal_hash, lambda v: f"{v:f}"
    ),
    "date": Case(
        pa.date32(), [dt.date(1970, 1, 1), None, dt.date(1969, 12, 31), dt.date(2024, 2, 29)], _days_hash
    ),
    "timestamp": Case(pa.timestamp("us"), _MOMENTS, _millis_hash, dt.datetime.isoformat),
    "timestamp_tz": Case(pa.timestamp("ns", "UTC"), _MOMENTS, _millis_hash, lambda v: f"{v.isoformat()}Z"),
    "all_null": Case(pa.string(), [None], text_hash),
}  # fmt: skip
"""Leaf columns of every type that filters can be added for."""


def everything(rows: int = 100) -> pa.Table:
    """Every case, and nested columns: struct `st`, list `li`, map `mp`, list of structs `ls`; `flag` is boolean."""
    names = ["st", None, {"x": None, "y": "b"}, {"x": 7, "y": None}, {"x": 8, "y": "c"}]
    st = [{"x": 1, "y": n} if isinstance(n, str) else n for n in names]

    def repeat(values: list[Any], kind: pa.DataType) -> pa.Array:
        return pa.array([values[i % len(values)] for i in range(rows)], kind)

    return pa.table(
        {
            **{name: case.array(rows) for name, case in CASES.items()},
            "flag": repeat([True, None, False], pa.bool_()),
            "st": repeat(st, pa.struct([("x", pa.int32()), ("y", pa.string())])),
            "li": repeat([[1, 2, None], None, [], [3]], pa.list_(pa.int64())),
            "mp": repeat([[("k", 1), ("l", None)], None, [], [("m", 2)]], pa.map_(pa.string(), pa.int32())),
            "ls": repeat([[{"z": "p"}, {"z": None}, None], [], None], pa.list_(pa.struct([("z", pa.string())]))),
        }
    )


NESTED: Final = ("st.x", "st.y", "li._elem", "mp._key", "mp._value", "ls._elem.z")


def write(
    path: Path,
    table: pa.Table | dict[str, Any],
    *,
    stripe: int | None = None,
    stride: int = 10_000,
    blooms: Iterable[int] | None = None,
    fpp: float = 0.05,
    **options: Any,
) -> Path:
    """Write a table with pyarrow. `blooms`: column ids.

    `stripe`: rows of a stripe. The writer only notices a full stripe with a text column and without compression.
    """
    table = table if isinstance(table, pa.Table) else pa.table(table)
    if stripe is not None:
        options |= {"stripe_size": 1, "batch_size": stripe}
    orc.write_table(
        table,
        path,
        row_index_stride=stride,
        bloom_filter_columns=None if blooms is None else list(blooms),
        bloom_filter_fpp=fpp,
        **options,
    )
    if stripe is not None and options.get("compression") is None:
        assert orc.ORCFile(path).nstripes == -(-table.num_rows // stripe), "stripes are longer than asked for"
    return path


def leaf_types(path: Path) -> list[OrcType]:
    """The types of the columns with values."""
    with open_source(path) as source:
        return [t for t in Footer(source).types if not t.children]


def read(path: Path) -> pa.Table:
    """The file's rows, read by pyarrow."""
    return orc.ORCFile(path).read()


@dataclass
class Part:
    """One stripe: the bytes before it, its StripeFooter message, and its streams' bytes on disk."""

    gap: bytes
    info: Any
    footer: Any
    streams: list[bytes]
    rest: bytes = b""
    """The bytes between the streams and the footer."""


@dataclass
class File:
    """A file in parts; `join` returns the file."""

    stripes: list[Part]
    metadata: bytes
    footer: Any
    postscript: Any
    codec: Codec
    end: int
    """The end of the last stripe."""

    @classmethod
    def split(cls, data: bytes) -> File:
        """Split a whole file into parts."""
        size = data[-1]
        postscript = spec.message("PostScript")()
        postscript.ParseFromString(data[-1 - size : -1])
        codec = codec_of(postscript, "test", 0)
        footer_at = len(data) - 1 - size - postscript.footer_length
        footer = spec.message("Footer")()
        footer.ParseFromString(codec.decompress(data[footer_at : -1 - size], 0, ""))
        stripes = []
        taken = 0
        for info in footer.stripes:
            at = info.offset + info.index_length + info.data_length
            end = at + info.footer_length
            message = spec.message("StripeFooter")()
            message.ParseFromString(codec.decompress(data[at:end], 0, ""))
            streams = []
            place = info.offset
            for stream in message.streams:
                streams.append(data[place : place + stream.length])
                place += stream.length
            stripes.append(Part(data[taken : info.offset], info, message, streams, data[place:at]))
            taken = end
        return cls(stripes, data[taken:footer_at], footer, postscript, codec, taken)

    def packed(self, data: bytes) -> bytes:
        """Encode a stream in the file's form, with uncompressed chunks."""
        if self.codec.name == "NONE":
            return data
        size = self.codec.block_size
        blocks = [data[at : at + size] for at in range(0, len(data), size)]
        return b"".join((len(b) << 1 | 1).to_bytes(3, "little") + b for b in blocks)

    def plain(self, stream: bytes) -> bytes:
        """A stream, decompressed."""
        return self.codec.decompress(stream, 0, "")

    def join(self, *, lengths: bool = True, tail: bool = True) -> bytes:
        """The whole file. `lengths` corrects the lengths of streams and stripes, `tail` the footer's."""
        out = bytearray()
        for part in self.stripes:
            out += part.gap
            index = 0
            in_index = True
            start = len(out)
            for stream, data in zip(part.footer.streams, part.streams, strict=True):
                in_index = in_index and stream.kind in {ROW_INDEX, BLOOM_FILTER, BLOOM_FILTER_UTF8}
                if lengths:
                    stream.length = len(data)
                index += len(data) if in_index else 0
                out += data
            out += part.rest
            data_length = len(out) - start - index
            footer = self.packed(part.footer.SerializeToString())
            out += footer
            if lengths:
                part.info.offset, part.info.index_length = start, index
                part.info.data_length, part.info.footer_length = data_length, len(footer)
        if lengths:
            self.footer.content_length += len(out) - self.end
            self.end = len(out)
        out += self.metadata
        footer = self.packed(self.footer.SerializeToString())
        if tail:
            self.postscript.footer_length = len(footer)
        postscript = self.postscript.SerializeToString()
        return bytes(out + footer + postscript) + bytes([len(postscript)])

    def streams(self, stripe: int) -> list[tuple[int, int, str]]:
        """(kind, column, hash of its bytes) of each stream of a stripe, in order."""
        part = self.stripes[stripe]
        return [
            (s.kind, s.column, sha256(data).hexdigest())
            for s, data in zip(part.footer.streams, part.streams, strict=True)
        ]

    def place(self, kind: int, column: int, stripe: int = 0) -> int:
        """The position of a stream in its stripe."""
        streams = self.stripes[stripe].footer.streams
        return next(i for i, s in enumerate(streams) if (s.kind, s.column) == (kind, column))

    def insert(self, place: int, kind: int, column: int, data: bytes, stripe: int = 0) -> None:
        """Insert a stream before the one at `place`; `data` are its bytes on disk."""
        part = self.stripes[stripe]
        streams = list(part.footer.streams)
        streams.insert(place, spec.message("Stream")(kind=kind, column=column))
        del part.footer.streams[:]
        part.footer.streams.extend(streams)
        part.streams.insert(place, data)

    def drop(self, place: int, stripe: int = 0) -> None:
        """Remove a stream."""
        part = self.stripes[stripe]
        del part.footer.streams[place], part.streams[place]

    def filters(self, column: int, stripe: int = 0, kind: int = BLOOM_FILTER_UTF8) -> Any:
        """A column's BloomFilterIndex."""
        index = spec.message("BloomFilterIndex")()
        index.ParseFromString(self.plain(self.stripes[stripe].streams[self.place(kind, column, stripe)]))
        return index

    def put(self, kind: int, column: int, data: bytes, stripe: int = 0) -> None:
        """Replace a stream by these bytes, in the file's form."""
        self.stripes[stripe].streams[self.place(kind, column, stripe)] = self.packed(data)

    def set_filters(self, column: int, index: Any, stripe: int = 0, kind: int = BLOOM_FILTER_UTF8) -> None:
        """Replace a column's BloomFilterIndex by another, or by bytes."""
        self.put(kind, column, index if isinstance(index, bytes) else index.SerializeToString(), stripe)

    def old_kind(self, column: int) -> None:
        """Change a column's BLOOM_FILTER_UTF8 streams to BLOOM_FILTER streams with the same bits."""
        for stripe, part in enumerate(self.stripes):
            index = self.filters(column, stripe)
            for item in index.bloom_filter:
                item.bitset.extend(struct.unpack(f"<{len(item.utf8bitset) // 8}Q", item.utf8bitset))
                item.ClearField("utf8bitset")
            self.set_filters(column, index, stripe)
            part.footer.streams[self.place(BLOOM_FILTER_UTF8, column, stripe)].kind = BLOOM_FILTER
            part.footer.columns[column].ClearField("bloom_encoding")


def split(path: Path) -> File:
    """A file in parts."""
    return File.split(path.read_bytes())


def edited(path: Path, target: Path, edit: Callable[[File], object], *, lengths: bool = True) -> Path:
    """Split a file into parts, edit them, and join them again."""
    file = split(path)
    edit(file)
    target.write_bytes(file.join(lengths=lengths))
    return target


def replaced(kind: int, column: int, data: bytes) -> Callable[[File], None]:
    """An edit of a stream of the first stripe."""
    return lambda file: file.put(kind, column, data)


def typed(column: int, **fields: int) -> Callable[[File], None]:
    """An edit of a column's type."""

    def edit(file: File) -> None:
        for name, value in fields.items():
            setattr(file.footer.types[column], name, value)

    return edit


def encrypted(column: int) -> Callable[[File], None]:
    """An edit that declares a column encrypted."""

    def edit(file: File) -> None:
        variant = spec.message("EncryptionVariant")(root=column)
        file.footer.encryption = spec.message("Encryption")(variants=[variant]).SerializeToString()

    return edit


def unfiltered(file: File) -> Iterator[list[tuple[int, int, str]]]:
    """Each stripe's streams except the filters."""
    for stripe in range(len(file.stripes)):
        yield [s for s in file.streams(stripe) if s[0] not in {BLOOM_FILTER, BLOOM_FILTER_UTF8}]


def bits_of(hashed: Iterable[int], bits: int, k: int) -> bytes:
    """The filter of these hashes, in plain Python."""
    out = bytearray(bits // 8)
    for place in (p for h in hashed for p in places(h, bits, k)):
        out[place // 8] |= 1 << place % 8
    return bytes(out)


def places(hashed: int, bits: int, k: int) -> list[int]:
    """The bits of a hash, by Java's signed 32-bit arithmetic."""

    def signed(value: int) -> int:
        value &= 0xFFFFFFFF
        return value - (1 << 32) if value >> 31 else value

    first, second = signed(hashed), signed(hashed >> 32)
    combined = [signed(first + i * second) for i in range(1, k + 1)]
    return [(~c if c < 0 else c) % bits for c in combined]
