"""Thrift compact structures as trees, for tests that build or break metadata. Independent of bloomcli.

A struct is a `Fields`: {field id: (type, value)}; a list is a `Items`(type, values); binaries are bytes,
integers ints, booleans bools. `parse` and `encode` are inverses for the output of known writers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)

Fields = dict[int, tuple[int, Any]]


@dataclass
class Items:
    """A list and its elements' type."""

    kind: int
    values: list[Any]


@dataclass
class Pairs:
    """A map; keys and values with their types."""

    key_kind: int
    value_kind: int
    entries: list[tuple[Any, Any]]


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """(value, the position after it)."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def _value(data: bytes, at: int, kind: int, *, element: bool = False) -> tuple[Any, int]:
    if kind in (TRUE, FALSE):
        return (data[at] == TRUE, at + 1) if element else (kind == TRUE, at)
    if kind == BYTE:
        return data[at], at + 1
    if kind in (I16, I32, I64):
        raw, at = read_varint(data, at)
        return (raw >> 1) ^ -(raw & 1), at
    if kind == DOUBLE:
        return data[at : at + 8], at + 8
    if kind == BINARY:
        size, at = read_varint(data, at)
        return data[at : at + size], at + size
    if kind in (LIST, SET):
        size, inner = data[at] >> 4, data[at] & 15
        at += 1
        if size == 15:
            size, at = read_varint(data, at)
        values = []
        for _ in range(size):
            value, at = _value(data, at, inner, element=True)
            values.append(value)
        return Items(inner, values), at
    if kind == MAP:
        size, at = read_varint(data, at)
        if size == 0:
            return Pairs(0, 0, []), at
        kinds = data[at]
        at += 1
        entries = []
        for _ in range(size):
            key, at = _value(data, at, kinds >> 4, element=True)
            value, at = _value(data, at, kinds & 15, element=True)
            entries.append((key, value))
        return Pairs(kinds >> 4, kinds & 15, entries), at
    if kind == STRUCT:
        return parse(data, at)
    raise ValueError(f"type {kind} at {at}")


def parse(data: bytes, at: int = 0) -> tuple[Fields, int]:
    """The struct at `at` and the position after it."""
    fields: Fields = {}
    number = 0
    while True:
        head = data[at]
        at += 1
        if head == 0:
            return fields, at
        kind = head & 15
        if head >> 4:
            number += head >> 4
        else:
            raw, at = read_varint(data, at)
            number = (raw >> 1) ^ -(raw & 1)
        value, at = _value(data, at, kind)
        fields[number] = (kind, value)


def varint(value: int) -> bytes:
    """An unsigned varint."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def zigzag(value: int) -> bytes:
    """A signed integer."""
    return varint((value << 1) ^ (value >> 63) if value >= 0 else ((-value) << 1) - 1)


def _encoded(kind: int, value: Any, *, element: bool = False) -> bytes:
    if kind in (TRUE, FALSE):
        return bytes([TRUE if value else FALSE]) if element else b""
    if kind == BYTE:
        return bytes([value & 0xFF])
    if kind in (I16, I32, I64):
        return zigzag(value)
    if kind == DOUBLE:
        return bytes(value)
    if kind == BINARY:
        return varint(len(value)) + value
    if kind in (LIST, SET):
        size = len(value.values)
        head = bytes([size << 4 | value.kind]) if size < 15 else bytes([0xF0 | value.kind]) + varint(size)
        return head + b"".join(_encoded(value.kind, v, element=True) for v in value.values)
    if kind == MAP:
        if not value.entries:
            return b"\0"
        head = varint(len(value.entries)) + bytes([value.key_kind << 4 | value.value_kind])
        return head + b"".join(
            _encoded(value.key_kind, k, element=True) + _encoded(value.value_kind, v, element=True)
            for k, v in value.entries
        )
    return encode(value)


def encode(fields: Fields) -> bytes:
    """The struct's bytes, fields in the order of the mapping."""
    out = bytearray()
    previous = 0
    for number, (kind, value) in fields.items():
        if kind in (TRUE, FALSE):
            kind = TRUE if value else FALSE
        delta = number - previous
        out += bytes([delta << 4 | kind]) if 0 < delta <= 15 else bytes([kind]) + zigzag(number)
        out += _encoded(kind, value)
        previous = number
    return bytes(out) + b"\0"
