"""Parses Mosaic's schema block: columns in name-sorted order, with types, buckets, and the types of their literals.

    varint columns | varint buckets | u8 name encoding | [BPE: varint rules, rules x 2 bytes]
    columns x { varint shared | varint length | bytes | type }  | original order (zigzag deltas)

A name is `shared` bytes of the previous name, then `length` further bytes. With byte-pair encoding a byte from 0x80
on expands to the two bytes of a rule, which may expand to earlier rules in turn. Bucket of column i: i * buckets
/ columns, rounded down.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from bloomcli import limits
from bloomcli.formats.mosaic import limits as mosaic_limits
from bloomcli.formats.mosaic.spec import TYPES, Cursor
from bloomcli.model.file import Column
from bloomcli.values.literals import parquet_column
from bloomcli.words import are, counted

_TOKEN: Final = 0x80
_RULES_MAX: Final = 128
_LEAST_COLUMN: Final = 4
"""Minimum bytes of a column: two varints, two bytes of type."""
_COMPACT_DIGITS: Final = 18
_TEXTS: Final = ("CHAR", "VARCHAR", "STRING")
_BYTES: Final = ("BINARY", "VARBINARY", "BYTES")
_BITS: Final = {"INT8": 8, "INT16": 16, "INT32": 32, "INT64": 64}
WIDTHS: Final = {
    "BOOLEAN": 1,
    "INT8": 1,
    "INT16": 2,
    "INT32": 4,
    "INT64": 8,
    "FLOAT": 4,
    "DOUBLE": 8,
    "DATE": 4,
}
"""Bytes of a value of each family of numbers that the draft hashes."""
COMPOUND: Final = ("LIST", "MAP")


@dataclass(frozen=True, slots=True, kw_only=True)
class MosaicColumn:
    """One column. `index` is its position in the name-sorted order, `length` a CHAR's or BINARY's, else 0."""

    name: str
    index: int
    bucket: int
    kind: str
    nullable: bool
    length: int = 0
    precision: int = 0
    scale: int = 0
    zone: str | None = None
    inner: str = ""
    """The element types of a list or map, as text."""
    parts: int = 0
    """The number of columns that store a list's or map's elements, at all depths."""

    @property
    def type_name(self) -> str:
        """The type, for reports."""
        if self.kind in {"CHAR", "VARCHAR", "BINARY", "VARBINARY"}:
            return f"{self.kind}({self.length})"
        if self.kind == "DECIMAL":
            return f"DECIMAL({self.precision},{self.scale})"
        if self.kind in {"TIME", "TIMESTAMP"}:
            return f"{self.kind}({self.precision})"
        if self.kind == "TIMESTAMP_LTZ":
            return f"TIMESTAMP_LTZ({self.precision},{self.zone})"
        return f"{self.kind}<{self.inner}>" if self.inner else self.kind

    @property
    def family(self) -> str:
        """The kind without differences that Mosaic doesn't store: CHAR and VARCHAR are STRING, binaries are BYTES."""
        return "STRING" if self.kind in _TEXTS else "BYTES" if self.kind in _BYTES else self.kind

    @property
    def unit(self) -> str | None:
        """Unit of a time or timestamp."""
        if self.kind not in {"TIME", "TIMESTAMP", "TIMESTAMP_LTZ"}:
            return None
        if self.kind == "TIME" or self.precision <= 3:
            return "MILLIS"
        return "MICROS" if self.precision <= 6 else "NANOS"

    @property
    def width(self) -> int | None:
        """Bytes of a value in the statistics; None if its length precedes it."""
        if self.kind == "DECIMAL":
            return 8 if self.precision <= _COMPACT_DIGITS else None
        if self.kind in {"TIMESTAMP", "TIMESTAMP_LTZ"}:
            return 12 if self.unit == "NANOS" else 8
        return 4 if self.kind == "TIME" else WIDTHS.get(self.kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """The schema block."""

    columns: tuple[MosaicColumn, ...]
    buckets: int
    rules: int | None
    """The number of byte-pair rules of the names; None if names aren't encoded."""
    order: tuple[int, ...]
    """The columns' positions, in the order that the writer was given."""


def read_schema(cursor: Cursor) -> Schema:
    """Parse an uncompressed schema block. Raises CorruptFile."""
    count = cursor.parts("columns", _LEAST_COLUMN)
    buckets = cursor.varint("buckets")
    if not 1 <= buckets <= max(count, 1):
        raise cursor.fault(f"{counted(buckets, 'bucket')} for {counted(count, 'column')}")
    encoding = cursor.byte("the names' encoding")
    rules = _Rules(cursor) if encoding == 1 else None
    if encoding > 1:
        raise cursor.fault(f"column names in the unknown encoding {encoding}")
    names: set[str] = set()
    columns: list[MosaicColumn] = []
    encoded = b""
    total = 0
    for index in range(count):
        cursor.field = f"schema.columns[{index}]"
        shared = cursor.varint("bytes shared with the name before")
        if shared > len(encoded):
            raise cursor.fault(f"{counted(shared, 'byte')} of a name of {len(encoded)} {are(shared)} shared")
        encoded = encoded[:shared] + cursor.take(cursor.varint("a name's length"), "a name")
        room = mosaic_limits.SCHEMA_MAX_BYTES - total
        raw = encoded if rules is None else rules.expand(encoded, cursor, room)
        total += len(raw)
        if len(raw) > room:
            raise cursor.fault(f"the columns' names take more than {mosaic_limits.SCHEMA_MAX_BYTES} bytes")
        try:
            name = raw.decode("utf-8")
        except UnicodeDecodeError:
            raise cursor.fault("a name that isn't UTF-8") from None
        if not name or name in names:
            raise cursor.fault(f"two columns are called {name!r}" if name else "a column without a name")
        names.add(name)
        columns.append(replace(_read_type(cursor, 0), name=name, index=index, bucket=index * buckets // count))
    cursor.field = "schema.order"
    return Schema(
        columns=tuple(columns),
        buckets=buckets,
        rules=None if rules is None else len(rules.pairs),
        order=_read_order(cursor, count),
    )


class _Rules:
    """Byte-pair rules: the two bytes that each byte from 0x80 on is replaced by."""

    def __init__(self, cursor: Cursor) -> None:
        """Parse the rules. Raises CorruptFile."""
        count = cursor.count("rules", 2)
        if count > _RULES_MAX:
            raise cursor.fault(f"{counted(count, 'rule')} for names; a byte has room for {_RULES_MAX}")
        self.pairs = [cursor.take(2, "a rule") for _ in range(count)]
        self.lengths = [1] * _TOKEN
        self._texts: dict[int, bytes] = {}
        for index, pair in enumerate(self.pairs):
            if max(pair) >= _TOKEN + index:
                raise cursor.fault(f"rule {index} of the names is made of rules that come after it")
            self.lengths.append(self.lengths[pair[0]] + self.lengths[pair[1]])

    def expand(self, encoded: bytes, cursor: Cursor, room: int) -> bytes:
        """Decode a name. Its length is checked before memory is allocated."""
        if encoded and max(encoded) >= len(self.lengths):
            raise cursor.fault(f"a name uses rule {max(encoded) - _TOKEN}, there are {len(self.pairs)}")
        if sum(self.lengths[byte] for byte in encoded) > room:
            raise cursor.fault(f"a name takes more than {counted(room, 'byte')}")
        return b"".join(self._text(byte) for byte in encoded)

    def _text(self, token: int) -> bytes:
        if token < _TOKEN:
            return bytes([token])
        if token not in self._texts:
            left, right = self.pairs[token - _TOKEN]
            self._texts[token] = self._text(left) + self._text(right)
        return self._texts[token]


def _read_type(cursor: Cursor, depth: int) -> MosaicColumn:
    """Parse a type, as a column without a name."""
    if depth > limits.SCHEMA_MAX_DEPTH:
        raise cursor.fault(f"the type nests deeper than {limits.SCHEMA_MAX_DEPTH}")
    code = cursor.byte("a type")
    kind = TYPES.get(code)
    if kind is None:
        raise cursor.fault(f"the type {code} isn't known")
    column = MosaicColumn(name="", index=0, bucket=0, kind=kind, nullable=cursor.byte("nullability") != 0)
    if kind in {"CHAR", "VARCHAR", "BINARY", "VARBINARY"}:
        return replace(column, length=cursor.varint("a length"))
    if kind == "DECIMAL":
        precision, scale = cursor.varint("a precision"), cursor.varint("a scale")
        if not 1 <= precision <= 38:
            raise cursor.fault(f"a decimal of {counted(precision, 'digit')}")
        # the scale is one byte, two's complement, widened to 32 bits
        return replace(column, precision=precision, scale=(scale & 0xFF) - (0x100 if scale & 0x80 else 0))
    if kind in {"TIME", "TIMESTAMP"}:
        return replace(column, precision=cursor.varint("a precision"))
    if kind == "TIMESTAMP_LTZ":
        precision = cursor.varint("a precision")
        return replace(column, precision=precision, zone=_text(cursor, "a time zone"))
    if kind == "LIST":
        _text(cursor, "an element's name")
        element = _read_type(cursor, depth + 1)
        return replace(column, inner=element.type_name, parts=1 + element.parts)
    if kind == "MAP":
        _text(cursor, "the entries' name")
        _text(cursor, "the key's name")
        key = _read_type(cursor, depth + 1)
        if key.kind in COMPOUND:
            raise cursor.fault(f"a map with keys of the type {key.kind}")
        _text(cursor, "the value's name")
        value = _read_type(cursor, depth + 1)
        return replace(column, inner=f"{key.type_name},{value.type_name}", parts=2 + value.parts)
    return column


def _text(cursor: Cursor, what: str) -> str:
    try:
        return cursor.take(cursor.varint(what), what).decode("utf-8")
    except UnicodeDecodeError:
        raise cursor.fault(f"{what} isn't UTF-8") from None


def _read_order(cursor: Cursor, count: int) -> tuple[int, ...]:
    """The columns' original order; the sorted order if the file has none."""
    if not cursor.remaining:
        return tuple(range(count))
    order: list[int] = []
    position = 0
    for _ in range(count):
        position += cursor.zigzag("a position in the original order")
        order.append(position)
    if sorted(order) != list(range(count)):
        raise cursor.fault("the original order is no permutation of the columns")
    return tuple(order)


def column_of(mosaic: MosaicColumn) -> Column:
    """A column, for reports."""
    return Column(
        path=mosaic.name,
        index=mosaic.index,
        physical=mosaic.type_name,
        scale=mosaic.scale,
        precision=mosaic.precision,
        unit=mosaic.unit,
    )


def literal_column(mosaic: MosaicColumn) -> Column:
    """The column with the Parquet type that holds the same values, by which `literals` reads and compares them."""
    column = replace(column_of(mosaic), type_name=mosaic.type_name)
    kind = mosaic.family
    if kind == "TIME":
        return replace(column, physical="INT32", logical="TIME(MILLIS)")
    if kind in {"TIMESTAMP", "TIMESTAMP_LTZ"}:
        utc = kind == "TIMESTAMP_LTZ"
        return replace(column, physical="INT64", logical=f"TIMESTAMP({mosaic.unit})", utc=utc)
    return parquet_column(column, kind, _BITS.get(kind))
