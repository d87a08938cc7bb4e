"""The contents of a file: columns, chunks, and the facts of filters, as in reports.

Sizes and offsets are bytes from the start of the file, rates are probabilities in [0, 1],
"values" are leaf values (each list element counts), including nulls unless stated otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Presence(StrEnum):
    """The answer of a filter to whether a value is in its rows."""

    ABSENT = "absent"
    MAYBE = "maybe"
    NO_FILTER = "no filter"
    UNKNOWN = "can't tell"


class Severity(StrEnum):
    """The severity of a finding. ERROR: readers lose rows or fail. WARNING: wasteful, or against the policy."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


SIGNATURE = "footer signature"
"""The name of an entry in a report's `details`. Changing a file with a signed footer would break the signature."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A leaf column of the file's schema, in schema order."""

    path: str
    """Dotted leaf path as the schema spells it, e.g. ``user.tags.list.element``; in a file that was opened with a
    table's names, as the table spells it."""
    index: int
    """Leaf ordinal: the position of the column's chunk in every row group."""
    physical: str
    """Physical type under the format's own name: ``INT64``, ``FIXED_LEN_BYTE_ARRAY``, ..."""
    logical: str | None = None
    """Logical type as text, e.g. ``DECIMAL(9,2)``, ``TIMESTAMP(MICROS,UTC)``; None when there is none."""
    type_length: int | None = None
    """Width in bytes of a fixed-length type."""
    scale: int = 0
    """Decimal scale."""
    precision: int = 0
    """Decimal precision; 0 for other types."""
    bit_width: int = 0
    """Width of an INTEGER logical type in bits; 0 for other types."""
    signed: bool = True
    """False for unsigned INTEGER logical types."""
    unit: str | None = None
    """``MILLIS``, ``MICROS`` or ``NANOS`` for times and timestamps."""
    utc: bool | None = None
    """isAdjustedToUTC of a time or timestamp; None for other types."""
    max_definition_level: int = 0
    max_repetition_level: int = 0
    type_name: str | None = None
    """The type's usual name, if that is neither the logical nor the physical type."""
    unfilterable: str | None = None
    """Why the column can't or shouldn't have a filter; None if it can."""
    field_id: int | None = None
    """The field id in a file that was opened with a table's names; None without them, or if the column has none."""
    not_in_table: bool = False
    """The file was opened with a table's names, and the table doesn't have the column: `path` says so, and no name or
    glob selects it."""
    wide: str | None = None
    """The type of the table's column, as in `bloomcli.model.names.ColumnName`; None without a table's names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnChunk:
    """The metadata of one column in one row group, including that of its filter."""

    row_group: int
    column: Column
    num_values: int
    """Leaf values in the chunk, nulls included."""
    null_count: int | None
    """From the statistics; None if they don't contain it."""
    compressed_bytes: int
    uncompressed_bytes: int
    codec: str
    data_offset: int
    """Offset of the chunk's first page, which may be the dictionary page."""
    dictionary_bytes: int | None = None
    """Bytes from the dictionary page's start to the first data page; None when there is no dictionary."""
    bloom_filter_offset: int | None
    """None when the metadata names no filter. An offset of 0 or less means no filter (PARQUET-1979)."""
    bloom_filter_length: int | None
    """Header included; None in files older than format 2.10."""
    min_value: bytes | None = None
    max_value: bytes | None = None
    """PLAIN-encoded bounds from the statistics; None if they are missing or unreliable."""
    min_exact: bool | None = None
    max_exact: bool | None = None
    """Whether the bound is a value of the chunk, according to the statistics; None if they don't say."""
    only_dictionary_encoded: bool = False
    """Every data page is dictionary-encoded, according to the encoding statistics."""
    encodings_known: bool = False
    """The chunk has encoding statistics."""
    encrypted: bool = False
    """The chunk is encrypted with its own key: its pages and its filter can't be read."""
