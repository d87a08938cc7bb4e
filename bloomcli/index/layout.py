"""The layout of a column's bits: the common size, the rows, the slots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from bloomcli.errors import CorruptFile
from bloomcli.filters.sizing import BLOCK_BYTES
from bloomcli.index.puffin import Blob, damaged, number_of
from bloomcli.limits import INDEX_BLOCKS_MAX, INDEX_SLOTS_MAX
from bloomcli.model.index import ColumnType, IndexedColumn
from bloomcli.words import counted

BITS: Final = "bloom-index-bits-v1"
UNITS: Final = "bloom-index-units-v1"
FILES: Final = "bloom-index-files-v1"
ENDS: Final = "bloom-index-ends-v1"
END_SIZES: Final = "bloom-index-end-sizes-v1"
"""Types of blobs."""
VERSION: Final = "bloom-index-version"
"""The property that identifies an index; its value is 1."""

BLOCK_ROWS: Final = 256
"""Rows of a block: one for each bit of its 8 words of 32 bits."""
CHECKSUM_BYTES: Final = 8
_WORD_BITS: Final = 64

_NUMBERS: Final = ("type-length", "scale", "precision", "bit-width")
_MOST: Final = 1 << 31
_FLAGS: Final = {"true": True, "false": False}


class Layout(NamedTuple):
    """The shape of a column's bits."""

    blocks: int
    slots: int

    @property
    def width(self) -> int:
        """Bytes of a row's bits: whole words, at least one."""
        return max(-(-self.slots // _WORD_BITS), 1) * 8

    @property
    def stride(self) -> int:
        """Bytes of a row: its bits and their checksum."""
        return self.width + CHECKSUM_BYTES

    @property
    def slab_bytes(self) -> int:
        """Bytes of a block's rows."""
        return BLOCK_ROWS * self.stride

    @property
    def nbytes(self) -> int:
        """Bytes of the blob."""
        return self.blocks * self.slab_bytes

    @property
    def filter_bytes(self) -> int:
        """The common size of the filters."""
        return self.blocks * BLOCK_BYTES


def properties(number: int, column: IndexedColumn, layout: Layout) -> dict[str, str]:
    """The properties of a column's bits."""
    kind = column.type
    result = {
        "column-number": str(number),
        "column": column.path,
        "physical": kind.physical,
        "blocks": str(layout.blocks),
        "slots": str(layout.slots),
        "row-bytes": str(layout.stride),
    }
    if kind.logical is not None:
        result["logical"] = kind.logical
    for name, value in zip(_NUMBERS, (kind.type_length, kind.scale, kind.precision, kind.bit_width), strict=True):
        if value:
            result[name] = str(value)
    if not kind.signed:
        result["signed"] = "false"
    if kind.unit is not None:
        result["unit"] = kind.unit
    if kind.utc is not None:
        result["utc"] = "true" if kind.utc else "false"
    return result


def read_properties(path: str, blob: Blob, field: str) -> tuple[int, IndexedColumn, Layout]:
    """A column's number, the column, and the shape of its bits. Raises CorruptFile."""

    def damaged_property(name: str, reason: str) -> CorruptFile:
        return damaged(path, reason, offset=blob.offset, field=f"{field}.properties.{name}")

    raw = blob.properties

    def number(name: str, limit: int) -> int:
        value = number_of(raw.get(name), limit)
        if value is None:
            raise damaged_property(name, f"it isn't a number up to {limit}")
        return value

    for name in ("column", "physical"):
        if name not in raw:
            raise damaged_property(name, "it is missing")
    blocks, slots = number("blocks", INDEX_BLOCKS_MAX), number("slots", INDEX_SLOTS_MAX)
    if blocks & (blocks - 1) or not blocks:
        raise damaged_property("blocks", f"{blocks} isn't a power of two")
    layout = Layout(blocks, slots)
    if number("row-bytes", _MOST) != layout.stride:
        raise damaged_property("row-bytes", f"a row of {counted(slots, 'slot')} has {counted(layout.stride, 'byte')}")
    if blob.length != layout.nbytes:
        raise damaged(
            path, f"the bits have {counted(layout.nbytes, 'byte')}", offset=blob.offset, field=f"{field}.length"
        )
    if blob.codec is not None:
        raise damaged(path, "bits aren't compressed", offset=blob.offset, field=f"{field}.compression-codec")
    for name in ("signed", "utc"):
        if raw.get(name, "true") not in _FLAGS:
            raise damaged_property(name, "it is neither true nor false")
    numbers = [number(name, _MOST) if name in raw else 0 for name in _NUMBERS]
    column = IndexedColumn(path=raw["column"], type=_type(raw, numbers))
    return number("column-number", _MOST), column, layout


def _type(raw: Mapping[str, str], numbers: Sequence[int]) -> ColumnType:
    length, scale, precision, bit_width = numbers
    return ColumnType(
        physical=raw["physical"],
        logical=raw.get("logical"),
        type_length=length or None,
        scale=scale,
        precision=precision,
        bit_width=bit_width,
        signed=_FLAGS[raw.get("signed", "true")],
        unit=raw.get("unit"),
        utc=_FLAGS[raw["utc"]] if "utc" in raw else None,
    )
