"""Parquet's metadata structures, by the IDL in parquet.thrift: walked in compiled code, and encoded.

`Struct` locates each field by its name in the IDL. The splice patches these bytes, and a footer of 20,000 column
chunks opens at once. The walk also checks every length and the nesting. thriftpy2 reads the same tables from the IDL,
which a test holds, but loading it takes longer than everything else in `inspect`.

`encoded` makes new structures in Thrift's compact protocol. An encoded field is (wire type, value). A boolean field
has its value in the wire type, and no bytes.

`tree_of` decodes a whole structure to JSON objects: known fields by name, unknown ones by number. thriftpy2 provides
the names and types; it drops fields that it doesn't know, so the bytes are decoded here. Binary values become
``{"hex": "..."}``, and strings text; a string that isn't UTF-8 becomes hex too.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from struct import pack, unpack, unpack_from
from typing import Any, Final, NamedTuple

from bloomcli import kernels
from bloomcli.errors import CorruptFile, UnsupportedError
from bloomcli.formats.base import Tree, binary
from bloomcli.formats.parquet import limits as parquet_limits

IDL: Final = Path(__file__).with_name("parquet.thrift")
_DEFINITION: Final = re.compile(r"(enum|struct|union) (\w+) \{([^}]*)\}")
_FIELD: Final = re.compile(r"(\d+): (?:required |optional )?([\w<>]+) (\w+)")
_VALUE: Final = re.compile(r"(\w+) = (\d+);")

_DEFINITIONS: Final = _DEFINITION.findall(IDL.read_text("ascii"))

FIELDS: Final[dict[str, dict[str, tuple[int, str]]]] = {
    name: {field: (int(number), kind) for number, kind, field in _FIELD.findall(body)}
    for what, name, body in _DEFINITIONS
    if what != "enum"
}
"""Structures and unions: (id, type) of each field, by name."""

ENUMS: Final[dict[str, dict[str, int]]] = {
    name: {value: int(number) for value, number in _VALUE.findall(body)}
    for what, name, body in _DEFINITIONS
    if what == "enum"
}
"""Enums: the values by name."""

MAGIC: Final = b"PAR1"
MAGIC_ENCRYPTED: Final = b"PARE"
FOOTER_TAIL_BYTES: Final = 8
PLAIN_DICTIONARY: Final = 1 << ENUMS["Encoding"]["PLAIN_DICTIONARY"]
"""The encoding as its bit in a set of encodings."""

# wire types of the compact protocol, with the names of its specification
BOOLEAN_TRUE: Final = 1
BOOLEAN_FALSE: Final = 2
_I8: Final = 3
_I16: Final = 4
I32: Final = 5
I64: Final = 6
DOUBLE: Final = 7
BINARY: Final = 8
LIST: Final = 9
_SET: Final = 10
_MAP: Final = 11
STRUCT: Final = 12
_WIRE: Final = {
    "bool": BOOLEAN_TRUE,
    "i8": _I8,
    "i16": _I16,
    "i64": I64,
    "double": DOUBLE,
    "binary": BINARY,
}
"""The wire types of the IDL's simple types. The others, i32 and enums, have `I32`."""

_INTEGERS_MOST: Final = 1 << 16


@cache
def field_ids(struct: str) -> dict[str, int]:
    """Field ids of a structure, by name."""
    return {field: number for field, (number, _) in FIELDS[struct].items()}


@cache
def _integer_field(struct: str, field: str) -> tuple[int, int]:
    """(id, wire type) of an integer field: a footer has hundreds of thousands of them."""
    number, kind = FIELDS[struct][field]
    return number, wire_type(kind)


_DRAFTS: Final = {("Encoding", 11): "PFOR or FSST (draft)"}
"""What writers of drafts use numbers for that the specification doesn't have. Sources: PforEncoding.md, not merged;
parquet-format#531, which has no number yet."""


@cache
def enum_name(enum: str, value: int) -> str:
    """An enum value's name, or ``CODE 17`` where neither the IDL nor a known draft has one."""
    idl_name = next((name for name, number in ENUMS[enum].items() if number == value), None)
    return idl_name or _DRAFTS.get((enum, value), f"CODE {value}")


OTHER_ENCODINGS: Final = 63
"""The bit of `ChunkMetadata.encodings` for numbers that have no bit of their own."""


def encodings_in(bits: int) -> list[int]:
    """The numbers of the encodings that have a bit in `ChunkMetadata.encodings`."""
    return [number for number in range(OTHER_ENCODINGS) if bits >> number & 1]


def zigzag(value: int) -> bytes:
    """A compact-protocol integer: zigzag, then 7 bits a byte, least significant first."""
    return varint((value << 1) ^ (value >> 63))


def varint(value: int) -> bytes:
    """An unsigned integer of 64 bits, 7 bits a byte, least significant first."""
    return kernels.encoded_varint(value & (1 << 64) - 1)


class Span(NamedTuple):
    """The location of a field, relative to the walked buffer."""

    kind: int
    header: int
    start: int
    end: int


class Location(NamedTuple):
    """The location of some bytes, for errors about them."""

    path: str
    base: int
    """File offset of the buffer's first byte."""
    field: str

    def fault(self, reason: str, at: int, field: str | None = None) -> CorruptFile:
        """The error for a fault at buffer position `at`."""
        return CorruptFile(
            reason,
            path=self.path,
            offset=self.base + at,
            field=f"{self.field}.{field}" if field and self.field else field or self.field or None,
            hint="the metadata is damaged or was not written as Parquet; get the file from its source again",
        )

    def too_many(self, what: str, most: int, at: int, field: str) -> UnsupportedError:
        """The error for a list at buffer position `at` of more than `most` elements."""
        return UnsupportedError(
            f"{what} has more than {most} elements",
            path=self.path,
            offset=self.base + at,
            field=f"{self.field}.{field}" if self.field else field,
            hint=f"bloom reads up to {most}; write files with fewer columns or row groups",
        )

    def unsupported(self, reason: str, hint: str | None = None) -> UnsupportedError:
        """The error for something at the buffer's first byte that isn't supported."""
        return UnsupportedError(reason, path=self.path, offset=self.base, field=self.field or None, hint=hint)

    def at(self, field: str) -> Location:
        """The location of a field of the structure, in the same buffer."""
        return Location(self.path, self.base, f"{self.field}.{field}" if self.field else field)


class Struct:
    """One walked structure: its fields' spans, by name."""

    __slots__ = ("data", "end", "location", "name", "spans", "start")

    def __init__(self, name: str, data: bytes, start: int, location: Location) -> None:
        self.name = name
        self.data = data
        self.start = start
        self.location = location
        try:
            self.spans, self.end = kernels.compact_struct(data, start, parquet_limits.THRIFT_MAX_DEPTH)
        except kernels.CompactError as error:
            raise location.fault(error.reason, error.offset) from None

    def span(self, field: str) -> Span | None:
        """Return the location of a field; None if the field is absent."""
        span = self.spans.get(field_ids(self.name)[field])
        return None if span is None else Span(*span)

    def _typed(self, field: str, *kinds: int) -> Span | None:
        """The location of a field of one of these types; None for other types, which readers skip."""
        span = self.span(field)
        return None if span is None or span.kind not in kinds else span

    def integer(self, field: str) -> int | None:
        """Return an integer field; None if it is missing or its width differs from the IDL's, as in other readers."""
        number, kind = _integer_field(self.name, field)
        span = self.spans.get(number)
        if span is None or span[0] != kind:
            return None
        return kernels.compact_int(self.data, span[2])

    def required_int(self, field: str, *, minimum: int = 0) -> int:
        """Return a required integer field, which must be at least `minimum`."""
        value = self.integer(field)
        if value is None:
            raise self.location.fault(f"{self.name} has no {field}", self.start, field)
        if value < minimum:
            span = self.span(field)
            assert span is not None  # noqa: S101  the value was just read from it
            raise self.location.fault(f"{field} is {value}, which isn't valid", span.header, field)
        return value

    def real(self, field: str) -> float | None:
        """Return a double; None if it is absent."""
        span = self._typed(field, DOUBLE)
        return None if span is None else float(unpack_from("<d", self.data, span.start)[0])

    def integers(self, field: str, kind: int) -> list[int] | None:
        """Return a list of integers of this wire type; None if it is missing, too long or something else."""
        span = self._typed(field, LIST)
        if span is None:
            return None
        try:
            element_kind, starts = kernels.compact_list(
                self.data, span.start, parquet_limits.THRIFT_MAX_DEPTH, _INTEGERS_MOST
            )
        except kernels.CompactLimit:
            return None
        return [kernels.compact_int(self.data, start) for start in starts[:-1]] if element_kind == kind else None

    def truth(self, field: str) -> bool | None:
        """Return a boolean field, whose value is its wire type; None if it is absent."""
        span = self._typed(field, BOOLEAN_TRUE, BOOLEAN_FALSE)
        return None if span is None else span.kind == BOOLEAN_TRUE

    def binary(self, field: str) -> bytes | None:
        """Return a binary field's bytes; None if it is absent."""
        span = self._typed(field, BINARY)
        return None if span is None else kernels.compact_bytes(self.data, span.start)

    def text(self, field: str) -> str | None:
        """A binary field as text; bytes that aren't UTF-8 become backslash escapes."""
        data = self.binary(field)
        return None if data is None else data.decode("utf-8", "backslashreplace")

    def list_starts(self, field: str) -> list[int]:
        """Return the starts of a list's structures, and the list's end; empty if the list is absent.

        Raises:
            CorruptFile: it isn't a list of structures.
            UnsupportedError: it has more than `limits.LIST_MAX` elements.
        """
        span = self._typed(field, LIST)
        if span is None:
            return []
        try:
            kind, starts = kernels.compact_list(
                self.data, span.start, parquet_limits.THRIFT_MAX_DEPTH, parquet_limits.LIST_MAX
            )
        except kernels.CompactLimit:
            raise self.location.too_many(f"{self.name}.{field}", parquet_limits.LIST_MAX, span.start, field) from None
        except kernels.CompactError as error:
            raise self.location.fault(error.reason, error.offset, field) from None
        if kind != STRUCT and len(starts) > 1:
            raise self.location.fault(f"{field} is not a list of structures", span.start, field)
        return starts

    def byte(self, field: str) -> int | None:
        """Return a field of one signed byte; None if it is absent."""
        span = self._typed(field, _I8)
        return None if span is None else int.from_bytes(self.data[span.start : span.end], "little", signed=True)

    def member(self) -> str | None:
        """Return the first known member of a union that is set; None if none is set, or only newer ones."""
        return next((name for name in field_ids(self.name) if self._typed(name, STRUCT)), None)

    def struct(self, field: str, name: str) -> Struct | None:
        """A field that is a structure, walked."""
        span = self._typed(field, STRUCT)
        return None if span is None else Struct(name, self.data, span.start, self.location.at(field))

    def raw(self, field: str) -> bytes | None:
        """Return the encoded bytes of a field's value; None if it is absent."""
        span = self.span(field)
        return None if span is None else self.data[span.start : span.end]


Field = tuple[int, bytes]
"""A field's wire type and its encoded value."""

_SHORT_LIST: Final = 15


def encoded(name: str, fields: Mapping[str, Any]) -> bytes:
    """A structure of this name with these fields, each encoded as `field` does; without those that are None."""
    ids = field_ids(name)
    return struct(
        {ids[field_name]: field(name, field_name, value) for field_name, value in fields.items() if value is not None}
    )


def field(name: str, field_name: str, value: Any) -> Field:
    """A field of a structure, with the type that the IDL gives it.

    A member of an enum can be its name or its number. A structure is a mapping of its fields, or its encoded bytes;
    a list is a sequence, or its encoded bytes.
    """
    kind = FIELDS[name][field_name][1]
    if kind == "bool":
        return (BOOLEAN_TRUE if value else BOOLEAN_FALSE), b""
    return wire_type(kind), _value(kind, value)


def _value(kind: str, value: Any) -> bytes:
    """The encoded value of a type of the IDL: of a field that isn't a boolean, or of a list's element."""
    if isinstance(value, bytes):
        return varint(len(value)) + value if kind == "binary" else value
    element = element_of(kind)
    if element is not None:
        return listed(wire_type(element), [_value(element, item) for item in value])
    if kind in FIELDS:
        return encoded(kind, value)
    if kind == "double":
        return pack("<d", value)
    if kind == "i8":
        return pack("b", value)
    if kind == "bool":
        return bytes([BOOLEAN_TRUE if value else BOOLEAN_FALSE])
    return zigzag(ENUMS[kind][value] if isinstance(value, str) else value)


@cache
def element_of(kind: str) -> str | None:
    """The type of a list's elements; None for a type that isn't a list."""
    return kind[len("list<") : -1] if kind.startswith("list<") else None


@cache
def wire_type(kind: str) -> int:
    """The wire type of a type of the IDL; of a boolean in a list."""
    if element_of(kind) is not None:
        return LIST
    return STRUCT if kind in FIELDS else _WIRE.get(kind, I32)


def struct(fields: Mapping[int, Field]) -> bytes:
    """A structure with these encoded fields, by id, with its end."""
    out, previous = bytearray(), 0
    for number, (kind, value) in sorted(fields.items()):
        out += bytes([number - previous << 4 | kind]) + value
        previous = number
    return bytes(out) + b"\0"


def listed(kind: int, items: Sequence[bytes]) -> bytes:
    """A list of encoded values of one wire type."""
    return b"".join((list_header(kind, len(items)), *items))


def list_header(kind: int, size: int) -> bytes:
    """The bytes before a list's elements."""
    return bytes([size << 4 | kind]) if size < _SHORT_LIST else bytes([0xF0 | kind]) + varint(size)


@cache
def structures() -> Any:
    """The IDL's structures as thriftpy2's classes. Loading them is slow: only `--footer` needs them."""
    import thriftpy2

    return thriftpy2.load(str(IDL), module_name="bloomcli_parquet_thrift")


_INTEGERS: Final = (_I16, I32, I64)
_BOOLEANS: Final = (BOOLEAN_TRUE, BOOLEAN_FALSE)

_TEXTS: Final = {"name", "created_by", "path_in_schema", "key", "value", "file_path", "crs"}
"""The fields that are strings in the specification; others of type binary are bytes."""

_NOTHING: Final[dict[int, Any]] = {}


def tree_of(name: str, data: bytes, location: Location) -> dict[str, Tree]:
    """Decode the structure `name` at the start of `data`.

    Raises:
        CorruptFile: the bytes aren't such a structure.
        UnsupportedError: it has too many parts for memory.
    """
    try:
        kernels.compact_struct(data, 0, parquet_limits.THRIFT_MAX_DEPTH)  # checks every length and the nesting
    except kernels.CompactError as error:
        raise location.fault(error.reason, error.offset) from None
    return _Reader(data, location).struct(getattr(structures(), name).thrift_spec)


class _Reader:
    """Decodes bytes whose lengths, types and nesting were checked."""

    def __init__(self, data: bytes, location: Location) -> None:
        self._data = data
        self._location = location
        self._at = 0
        self._parts = 0

    def _count(self, parts: int) -> None:
        self._parts += parts
        if self._parts > parquet_limits.DUMP_MAX_PARTS:
            raise UnsupportedError(
                f"metadata of more than {parquet_limits.DUMP_MAX_PARTS} parts",
                path=self._location.path,
                offset=self._location.base,
                field=self._location.field or None,
                hint="`bloom inspect` without --footer sums them up",
            )

    def _varint(self) -> int:
        value, self._at = kernels.varint(self._data, self._at)
        return value

    def _integer(self) -> int:
        raw = self._varint()
        return raw >> 1 ^ -(raw & 1)

    def _take(self, size: int) -> bytes:
        self._at += size
        return self._data[self._at - size : self._at]

    def struct(self, fields: dict[int, Any]) -> dict[str, Tree]:
        """Decode a structure. `fields`: thriftpy2's description of its known fields."""
        tree: dict[str, Tree] = {}
        number = 0
        while True:
            head = self._data[self._at]
            self._at += 1
            kind, delta = head & 0x0F, head >> 4
            if not kind:
                return tree
            number = number + delta if delta else self._integer()
            self._count(1)
            field = fields.get(number)
            if field is None or not _fits(kind, field[0]):
                value = kind == BOOLEAN_TRUE if kind in _BOOLEANS else self._value(kind, None)
                tree[str(number)] = value
            else:
                described = (field[0], field[2]) if len(field) > 3 else field[0]
                text = field[1] in _TEXTS
                value = kind == BOOLEAN_TRUE if kind in _BOOLEANS else self._value(kind, described, text=text)
                tree[str(field[1])] = value

    def _value(self, kind: int, described: Any, *, text: bool = False) -> Tree:
        detail = described[1] if isinstance(described, tuple) else None
        if kind in _INTEGERS:
            value = self._integer()
            return value if detail is None else enum_name(detail.__name__, value)
        match kind:
            case 1 | 2:  # of a list
                return self._take(1)[0] == BOOLEAN_TRUE
            case 3:
                return int.from_bytes(self._take(1), "little", signed=True)
            case 7:
                (number,) = unpack("<d", self._take(8))
                return number if math.isfinite(number) else str(number)
            case 8:
                return binary(self._take(self._varint()), text=text)
            case 9 | 10:
                return self._list(detail, text=text)
            case 11:
                return self._map()
            case 12:
                return self.struct(_NOTHING if detail is None else detail.thrift_spec)
        return binary(self._take(16), text=False)

    def _list(self, element: Any, *, text: bool) -> list[Tree]:
        head = self._data[self._at]
        self._at += 1
        kind, size = head & 0x0F, head >> 4
        if size == 15:
            size = self._varint()
        self._count(size)
        wanted = element[0] if isinstance(element, tuple) else element
        described = element if wanted is not None and size and _fits(kind, wanted) else None
        return [self._value(kind, described, text=text) for _ in range(size)]

    def _map(self) -> list[Tree]:
        size = self._varint()
        if not size:
            return []
        kinds = self._take(1)[0]
        self._count(2 * size)
        return [{"key": self._value(kinds >> 4, None), "value": self._value(kinds & 0x0F, None)} for _ in range(size)]


@cache
def _fits(kind: int, wanted: int) -> bool:
    """Whether a wire type encodes thriftpy2's type. A field of another type is treated as unknown."""
    from thriftpy2.thrift import TType

    kinds = {
        TType.BOOL: _BOOLEANS,
        TType.BYTE: (_I8,),
        TType.I16: (_I16,),
        TType.I32: (I32,),
        TType.I64: (I64,),
        TType.DOUBLE: (DOUBLE,),
        TType.STRING: (BINARY,),
        TType.BINARY: (BINARY,),
        TType.LIST: (LIST,),
        TType.SET: (_SET,),
        TType.MAP: (_MAP,),
        TType.STRUCT: (STRUCT,),
    }
    return kind in kinds.get(wanted, ())
