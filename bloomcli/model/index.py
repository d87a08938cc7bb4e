"""The content of an index of filters: files and their chunks."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from bloomcli.model.file import Column


class ColumnType(NamedTuple):
    """The parts of a column's type that decide which bytes are hashed for a value."""

    physical: str
    """Parquet's name: ``INT64``, ``BYTE_ARRAY``, ..."""
    logical: str | None = None
    """As `Column.logical`: ``STRING``, ``DECIMAL(9,2)``; None if the column has none."""
    type_length: int | None = None
    """Width in bytes of a fixed-length type."""
    scale: int = 0
    precision: int = 0
    bit_width: int = 0
    signed: bool = True
    unit: str | None = None
    utc: bool | None = None

    @classmethod
    def of(cls, column: Column) -> ColumnType:
        """The type of a file's column."""
        return cls(
            physical=column.physical,
            logical=column.logical,
            type_length=column.type_length,
            scale=column.scale,
            precision=column.precision,
            bit_width=column.bit_width,
            signed=column.signed,
            unit=column.unit,
            utc=column.utc,
        )

    def column(self, path: str) -> Column:
        """A column of this type, for parsing values. Its `index` is -1: it belongs to no file."""
        return Column(
            path=path,
            index=-1,
            physical=self.physical,
            logical=self.logical,
            type_length=self.type_length,
            scale=self.scale,
            precision=self.precision,
            bit_width=self.bit_width,
            signed=self.signed,
            unit=self.unit,
            utc=self.utc,
        )

    def __str__(self) -> str:
        """INT64, or INT64 TIMESTAMP(MICROS,UTC)."""
        return self.physical if self.logical is None else f"{self.physical} {self.logical}"


class IndexedColumn(NamedTuple):
    """A column in one of the types that it has in files."""

    path: str
    """Dotted leaf path."""
    type: ColumnType


class IndexedFile(NamedTuple):
    """A data file in an index, with its size, time and tag, by which a change is noticed."""

    path: str
    """The path in the spelling of its store."""
    size: int
    """Bytes."""
    mtime_ns: int = 0
    """Modification time in nanoseconds since 1970; 0 where a tag identifies the content."""
    tag: str = ""
    """ETag or generation; empty if the store has none."""
    rows: tuple[int, ...] = ()
    """Rows of each row group, in the file's order."""


class ChunkState(StrEnum):
    """What an index has for a chunk."""

    FILTER = "filter"
    """The bits of a filter, folded or replicated to the common size."""
    ALWAYS = "always"
    """The chunk may have every value: it has no filter that can be used."""
    NEVER = "never"
    """The chunk has no values, or only nulls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedChunk:
    """A column of one row group."""

    row_group: int
    """Its number in the file, from 0."""
    column: IndexedColumn
    state: ChunkState
    bitset: bytes | bytearray | None = field(default=None, repr=False)
    """The bits of a split-block filter of any number of blocks, with Parquet's hash and block selection. Set if, and
    only if, the state is `ChunkState.FILTER`."""
