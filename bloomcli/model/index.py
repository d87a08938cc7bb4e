"""What an index of filters holds: files, and their chunks."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from bloomcli.model.file import Column
from bloomcli.named_tuple import NamedTuple


class ColumnType(NamedTuple):
    """The type of a column, as far as it decides which bytes are hashed for a value."""

    physical: str
    """Parquet's name: ``INT64``, ``BYTE_ARRAY``, ..."""
    logical: str | None = None
    """As `Column.logical`: ``STRING``, ``DECIMAL(9,2)``; None where there is none."""
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
        """A column of this type, as the parsing of values takes it. Its `index` is -1: it is no file's."""
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
    """A column in one of the types that files have it in."""

    path: str
    """Dotted leaf path."""
    type: ColumnType


class IndexedFile(NamedTuple):
    """A data file in an index, and what tells whether it is still the file that was indexed."""

    path: str
    """As its store spells it."""
    size: int
    """Bytes."""
    mtime_ns: int = 0
    """Modification time in nanoseconds since 1970; 0 where a tag identifies the content."""
    tag: str = ""
    """ETag or generation; empty where the store has none."""
    rows: tuple[int, ...] = ()
    """Rows of each row group, in the file's order."""


class ChunkState(StrEnum):
    """What an index says of a chunk."""

    FILTER = "filter"
    """Its bits, folded or replicated to the common size."""
    ALWAYS = "always"
    """Every value is possible: there is no filter, or none that can be used."""
    NEVER = "never"
    """No value is possible: the chunk has only nulls, or no values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedChunk:
    """A column of one row group."""

    row_group: int
    """Its number in the file, from 0."""
    column: IndexedColumn
    state: ChunkState
    bitset: bytes | bytearray | None = field(default=None, repr=False)
    """The bits of a split-block filter of any number of blocks, with Parquet's hash and block selection; given for
    `ChunkState.FILTER`, and only then."""
