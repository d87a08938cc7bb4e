"""Compares the values that a reader finds in a file with the file's filters, without code of bloomcli."""

from __future__ import annotations

import datetime as dt
import re
import struct
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import orc

from support import blooms, footers, orcfiles, orcwalk, thrift
from support.blooms import holds
from support.orcwalk import Orc
from support.thrift import Fields

VALUES_MAX: Final = 500
"""Distinct values of a column chunk that are looked up."""

# SchemaElement and FileMetaData
_CONVERTED, _LOGICAL, _CHILDREN, _SCHEMA, _KEY_VALUE = 6, 10, 5, 2, 5
_ANNOTATIONS: Final = (_CONVERTED, 7, 8, _LOGICAL)

_PACKED: Final = {pa.int32(): "<i", pa.int64(): "<q"}
_SAME_BITS: Final = {pa.float32(): pa.int32(), pa.float64(): pa.int64()}
"""Floats are compared by their bits: Python turns a signalling NaN into a quiet one, which has a different hash."""


class Unreadable(Exception):
    """The reader can't read the file."""


def parquet_lost(path: Path, columns: Container[str] | None = None) -> list[str]:
    """The values that Arrow reads and that aren't in their chunk's filter; None: all columns. Raises Unreadable.

    Annotations are removed from the schema first, so that Arrow returns the physical values.
    """
    data = path.read_bytes()
    try:
        filters = {(group, column): _bitset(data, offset) for group, column, offset, _ in footers.claims(data)}
        bare = pq.ParquetFile(pa.BufferReader(footers.edited(data, _without_annotations)))
    except Exception as error:
        raise Unreadable(str(error)) from error
    lost = []
    for group in range(bare.num_row_groups):
        for column in range(len(bare.schema)):
            bitset = filters.get((group, column))
            if not bitset or bare.schema.column(column).physical_type in {"INT96", "BOOLEAN"}:
                continue
            name = bare.schema.column(column).path
            if columns is not None and name not in columns:
                continue
            try:
                table = bare.reader.read_row_group(group, column_indices=[column], use_threads=False)
                table.validate(full=True)
            except Exception:  # noqa: BLE001  the reader's own, whatever it is: it reads the other columns
                continue
            values = {v for part in table.columns for chunk in part.chunks for v in _leaves(chunk)}
            missing = [v for v in sorted(values)[:VALUES_MAX] if not holds(bitset, v)]
            if missing:
                lost.append(f"row group {group}, {name}: {len(missing)} of {len(values)} values, {missing[0]!r}")
    return lost


def _bitset(data: bytes, offset: int) -> bytes:
    header, end = thrift.parse(data, offset)
    size: int = header[1][1]
    if header != thrift.parse(blooms.header(size))[0] or end + size > len(data):
        raise ValueError("no split-block filter")
    return data[end : end + size]


def _without_annotations(metadata: Fields) -> None:
    metadata.pop(_KEY_VALUE, None)
    for element in metadata[_SCHEMA][1].values:
        for number in _ANNOTATIONS:
            element.pop(number, None)


def _leaves(array: pa.Array) -> Iterator[bytes]:
    """PLAIN bytes of the non-null values of the single leaf below an array."""
    while pa.types.is_nested(array.type):
        array = array.flatten() if pa.types.is_list(array.type) else array.flatten()[0]
    if array.type in _SAME_BITS:
        array = array.view(_SAME_BITS[array.type])
    form = _PACKED.get(array.type)
    for value in array.drop_null().unique().to_pylist():
        yield struct.pack(form, value) if form else bytes(value)


@dataclass(frozen=True, kw_only=True)
class KnownRows:
    """A value that a reader finds in a file."""

    option: str
    """The column, as options take it."""
    text: str
    """The value, as `bloom find` takes it."""
    rows: list[int]
    """The rows that have it, from 0."""


def parquet_rows(path: Path, turn: int) -> KnownRows | None:
    """The rows of a value that Arrow reads in one of the columns of integers or texts, another one each turn;
    None if there is no such column, or if its statistics may be wrong, or if it has a page index. Raises Unreadable.
    """
    try:
        file = pq.ParquetFile(path)
        names = [
            field.name
            for field in file.schema_arrow
            if pa.types.is_signed_integer(field.type) or pa.types.is_string(field.type)
        ]
        name = names[turn % len(names)] if names else None
        if name is None or file.schema_arrow.names.count(name) > 1 or not re.fullmatch(r"\w+", name):
            return None
        table = file.read([name], use_threads=False)
        table.validate(full=True)
        values = table.column(0).to_pylist()
        if not _statistics_fit(file, name, values):
            return None
    except Exception as error:
        raise Unreadable(str(error)) from error
    return _chosen(name, values, turn)


def _chosen(name: str, values: list[Any], turn: int) -> KnownRows | None:
    """One of a column's values, and its rows; None if there is none that a command line takes as it is."""
    chosen = [value for value in values if value is not None]
    if not chosen:
        return None
    value = chosen[turn * 7919 % len(chosen)]
    if isinstance(value, str) and not (value.isascii() and value.isprintable()):
        return None
    return KnownRows(option=name, text=str(value), rows=[at for at, one in enumerate(values) if one == value])


def _statistics_fit(file: pq.ParquetFile, name: str, values: list[Any]) -> bool:
    """Whether a column has no page index, and statistics that fit its values, or none."""
    at = 0
    index = next(i for i in range(len(file.schema)) if file.schema.column(i).path == name)
    for number in range(file.metadata.num_row_groups):
        group = file.metadata.row_group(number)
        chunk, part = group.column(index), values[at : at + group.num_rows]
        at += group.num_rows
        there = [value for value in part if value is not None]
        statistics = chunk.statistics
        if chunk.has_column_index or chunk.has_offset_index:
            return False
        if statistics is None:
            continue
        if statistics.has_null_count and statistics.null_count != len(part) - len(there):
            return False
        if statistics.has_min_max and there and not statistics.min <= min(there) <= max(there) <= statistics.max:
            return False
    return at == len(values)


_ORC_HASHES: Final[tuple[tuple[Callable[[pa.DataType], bool], Callable[[Any], int]], ...]] = (
    (pa.types.is_integer, orcfiles.long_hash),
    (pa.types.is_floating, orcfiles.double_hash),
    (pa.types.is_string, orcfiles.text_hash),
    (pa.types.is_binary, orcfiles.text_hash),
    (pa.types.is_date, lambda v: orcfiles.long_hash((v - dt.date(1970, 1, 1)).days)),
)
"""Types whose hashes are known without the file's writer and zone."""


def orc_lost(path: Path, columns: Container[str] | None = None) -> list[str]:
    """The values that ORC C++ reads and that aren't in their filter; None: all columns. Raises Unreadable."""
    try:
        walked, opened = Orc(path), orc.ORCFile(path)
        schema = opened.schema
    except Exception as error:
        raise Unreadable(str(error)) from error
    lost = []
    for field in schema:
        hashed = next((h for fits, h in _ORC_HASHES if fits(field.type)), None)
        if hashed is None or field.name not in (walked.columns if columns is None else columns):
            continue
        for stripe in range(len(walked.stripes)):
            try:
                bitsets = list(walked.bitsets(stripe, field.name))
                values = pa.table(opened.read_stripe(stripe, columns=[field.name]))[field.name].to_pylist()
            except Exception:  # noqa: BLE001  no filter, or the reader's own error
                continue
            for group, (k, bits) in enumerate(bitsets):
                for value in set(values[group * walked.stride :][: walked.stride]) - {None}:
                    places = orcfiles.places(hashed(value), len(bits) * 8, k)
                    if not all(bits[p >> 3] >> (p & 7) & 1 for p in places):
                        lost.append(f"stripe {stripe}, row group {group}, {field.name}: {value!r}")
                        break
    return lost


_ORC_CHAR: Final = 17
_ROW_INDEX: Final = 6


def orc_rows(path: Path, turn: int) -> KnownRows | None:
    """The rows of a value that ORC C++ reads in one of the columns of integers or texts, another one each turn;
    None if there is no such column, or if the statistics of the file, its stripes or its row groups may be wrong.
    Raises Unreadable.
    """
    try:
        walked, file = Orc(path), orc.ORCFile(path)
        names = [
            field.name
            for field in file.schema
            if (pa.types.is_signed_integer(field.type) or pa.types.is_string(field.type))
            and walked.kind(walked.columns[field.name]) != _ORC_CHAR  # `find` ignores its blanks
        ]
        name = names[turn % len(names)] if names else None
        if name is None or file.schema.names.count(name) > 1 or not re.fullmatch(r"\w+", name):
            return None
        stripes = []
        for number in range(file.nstripes):
            part = file.read_stripe(number, columns=[name])
            part.validate(full=True)
            stripes.append(pa.table(part).column(0).to_pylist())
        if not _orc_statistics_fit(walked, walked.columns[name], stripes):
            return None
    except Exception as error:
        raise Unreadable(str(error)) from error
    return _chosen(name, [value for part in stripes for value in part], turn)


def _orc_statistics_fit(file: Orc, column: int, stripes: list[list[Any]]) -> bool:
    """Whether a column's statistics fit its values, wherever the file has some."""
    pairs = [
        (part, [value for values in stripes for value in values]) for part in file.footer.get(7, [])[column:][:1]
    ]
    metadata = orcwalk.message(orcwalk.decompress(file.metadata, file.codec))
    for part, values in zip(metadata.get(1, []), stripes, strict=False):
        pairs += [(one, values) for one in orcwalk.message(part).get(1, [])[column:][:1]]
    for stripe, values in zip(file.stripes, stripes, strict=True):
        if stripe.rows != len(values):
            return False
        for stream in stripe.streams:
            if (stream.kind, stream.column) == (_ROW_INDEX, column):
                entries = orcwalk.message(orcwalk.decompress(stream.raw, file.codec)).get(1, [])
                for at, entry in enumerate(entries):
                    group = values[at * file.stride :][: file.stride]
                    pairs += [(part, group) for part in orcwalk.message(entry).get(2, [])]
    return all(_orc_bounds_fit(orcwalk.message(part), values) for part, values in pairs)


def _orc_bounds_fit(statistics: orcwalk.Message, values: list[Any]) -> bool:
    """Whether a ColumnStatistics message fits values, which are integers or texts."""
    there = [value for value in values if value is not None]
    if orcwalk.one(statistics, 1, len(there)) != len(there):
        return False
    if not orcwalk.one(statistics, 10, True) and len(there) < len(values):
        return False
    numbers = orcwalk.message(orcwalk.one(statistics, 2, b""))
    texts = orcwalk.message(orcwalk.one(statistics, 4, b""))
    known = [value if isinstance(value, int) else value.encode() for value in there]
    if known and isinstance(known[0], int):
        low, high = ([zigzag >> 1 ^ -(zigzag & 1) for zigzag in numbers.get(f, [])] for f in (1, 2))
    else:
        low, high = ([bound for f in fields for bound in texts.get(f, [])] for fields in ((1, 4), (2, 5)))
    return all(bound <= value for bound in low for value in known) and all(
        value <= bound for bound in high for value in known
    )
