"""Parquet's metadata structures: thriftpy2 reads them, by the IDL that is shipped beside this file.

Two tools, one description. `decode` gives a structure as an object. `Struct` walks it in compiled
code and says where each field lies, by its name in the IDL; that is how the splice finds the bytes
that it patches, and why a footer of 20,000 column chunks opens at once. The walk also checks every
length and the nesting, and `decode` only ever gets bytes that were walked.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import thriftpy2
from thriftpy2.protocol.compact import TCompactProtocol
from thriftpy2.thrift import TType
from thriftpy2.transport import TMemoryBuffer

from bloomcli import kernels, limits
from bloomcli.errors import CorruptFile

MAGIC: Final = b"PAR1"
MAGIC_ENCRYPTED: Final = b"PARE"
FOOTER_TAIL_BYTES: Final = 8

idl: Final = thriftpy2.load(str(Path(__file__).with_name("parquet.thrift")), module_name="bloomcli_parquet_thrift")

# wire types of the compact protocol, by the names that its specification gives them
BOOLEAN_TRUE: Final = 1
_BOOLEAN_FALSE: Final = 2
I32: Final = 5
I64: Final = 6
BINARY: Final = 8
LIST: Final = 9
STRUCT: Final = 12
_KIND_NAMES: Final = {
    1: "bool",
    2: "bool",
    3: "i8",
    4: "i16",
    5: "i32",
    6: "i64",
    7: "double",
    8: "binary",
} | {
    9: "list",
    10: "set",
    11: "map",
    12: "struct",
    13: "uuid",
}


@cache
def field_ids(struct: str) -> dict[str, int]:
    """Field ids of a structure, by name."""
    spec = getattr(idl, struct).thrift_spec
    return {entry[1]: number for number, entry in spec.items()}


@cache
def integer_kind(struct: str, field: str) -> int:
    """The wire type of an integer field, by the IDL."""
    return I64 if getattr(idl, struct).thrift_spec[field_ids(struct)[field]][0] == TType.I64 else I32


@cache
def _integer_field(struct: str, field: str) -> tuple[int, int]:
    """(id, wire type) of an integer field: a footer has hundreds of thousands of them."""
    return field_ids(struct)[field], integer_kind(struct, field)


@cache
def enum_name(enum: str, value: int) -> str:
    """An enum value's name, or ``CODE 17`` where the IDL has none."""
    return str(getattr(idl, enum)._VALUES_TO_NAMES.get(value, f"CODE {value}"))


def enum_value(enum: str, name: str) -> int:
    """An enum value by its name."""
    return int(getattr(idl, enum)._NAMES_TO_VALUES[name])


class Span(NamedTuple):
    """Where a field lies, relative to the walked buffer."""

    kind: int
    header: int
    start: int
    end: int


class Place(NamedTuple):
    """What an error about some bytes has to name."""

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

    def at(self, field: str) -> Place:
        """The same buffer, one level further in."""
        return Place(self.path, self.base, f"{self.field}.{field}" if self.field else field)


class Struct:
    """One walked structure: its fields' spans, by name."""

    __slots__ = ("data", "end", "name", "place", "spans", "start")

    def __init__(self, name: str, data: bytes, start: int, place: Place) -> None:
        self.name = name
        self.data = data
        self.start = start
        self.place = place
        try:
            self.spans, self.end = kernels.compact_struct(data, start, limits.THRIFT_MAX_DEPTH)
        except kernels.CompactError as error:
            raise place.fault(error.reason, error.offset) from None

    def span(self, field: str) -> Span | None:
        """Where a field lies; None when it isn't there."""
        found = self.spans.get(field_ids(self.name)[field])
        return None if found is None else Span(*found)

    def _typed(self, field: str, *kinds: int) -> Span | None:
        span = self.span(field)
        if span is not None and span.kind not in kinds:
            want = _KIND_NAMES[kinds[0]]
            got = _KIND_NAMES.get(span.kind, "unknown")
            raise self.place.fault(f"{self.name}.{field} is a {got}, not a {want}", span.header, field)
        return span

    def integer(self, field: str) -> int | None:
        """An integer field; None when it isn't there. Of the IDL's width only, as `decode` takes it."""
        number, kind = _integer_field(self.name, field)
        found = self.spans.get(number)
        if found is None:
            return None
        if found[0] != kind:
            self._typed(field, kind)  # raises
        return kernels.compact_int(self.data, found[2])

    def required_int(self, field: str, *, minimum: int = 0) -> int:
        """An integer field that has to be there and be at least `minimum`."""
        value = self.integer(field)
        if value is None:
            raise self.place.fault(f"{self.name} has no {field}", self.start, field)
        if value < minimum:
            span = self.span(field)
            assert span is not None  # noqa: S101  the value was just read from it
            raise self.place.fault(f"{field} is {value}, which can't be", span.header, field)
        return value

    def truth(self, field: str) -> bool | None:
        """A boolean field, whose value is its wire type; None when it isn't there."""
        span = self._typed(field, BOOLEAN_TRUE, _BOOLEAN_FALSE)
        return None if span is None else span.kind == BOOLEAN_TRUE

    def binary(self, field: str) -> bytes | None:
        """A binary field's bytes; None when it isn't there."""
        span = self._typed(field, BINARY)
        return None if span is None else kernels.compact_bytes(self.data, span.start)

    def text(self, field: str) -> str | None:
        """A binary field as text; bytes that aren't UTF-8 become backslash escapes."""
        found = self.binary(field)
        return None if found is None else found.decode("utf-8", "backslashreplace")

    def list_starts(self, field: str) -> list[int]:
        """Start of each element of a list of structures, and the list's end; empty when it isn't there."""
        span = self._typed(field, LIST)
        if span is None:
            return []
        try:
            kind, starts = kernels.compact_list(self.data, span.start, limits.THRIFT_MAX_DEPTH)
        except kernels.CompactError as error:
            raise self.place.fault(error.reason, error.offset, field) from None
        if kind != STRUCT and len(starts) > 1:
            raise self.place.fault(f"{field} is not a list of structures", span.start, field)
        return starts

    def struct(self, field: str, name: str) -> Struct | None:
        """A field that is a structure, walked."""
        span = self._typed(field, STRUCT)
        return None if span is None else Struct(name, self.data, span.start, self.place.at(field))

    def raw(self, field: str) -> bytes | None:
        """The encoded bytes of a field's value; None when it isn't there."""
        span = self.span(field)
        return None if span is None else self.data[span.start : span.end]

    def decode(self) -> Any:
        """The whole structure as thriftpy2's object."""
        return decode(self.name, self.data[self.start : self.end], self.place, self.start)


def decode(name: str, data: bytes, place: Place, at: int = 0) -> Any:
    """Decode one structure that was walked before. `at` is its position in the place's buffer."""
    obj = getattr(idl, name)()
    try:
        obj.read(TCompactProtocol(TMemoryBuffer(data), decode_response=False))
    except Exception as error:  # noqa: BLE001  thriftpy2 raises whatever its bytes lead it to
        raise place.fault(f"{name} can't be decoded ({error})", at) from None
    _require_all(obj, name, place, at)
    return obj


def _require_all(obj: Any, name: str, place: Place, at: int) -> None:
    """Raise where a required field is missing, in the structure itself or in one below it."""
    for entry in obj.thrift_spec.values():
        field, value = entry[1], getattr(obj, entry[1])
        if value is None:
            if entry[-1]:
                raise place.fault(f"{name} lacks its required field {field}", at, field)
            continue
        for below in value if isinstance(value, list) else (value,):
            if hasattr(below, "thrift_spec"):
                _require_all(below, type(below).__name__, place, at)
