"""Reads the statistics of data files from a Delta table's log: row count, bounds, null counts and partition values.

Source: PROTOCOL.md, "Per-file Statistics" and "Partition Value Serialization". Delta's writers cut texts, and
timestamps to milliseconds; its readers add a millisecond to the greatest timestamp.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from typing import Any, Final

from bloomcli.model.table_statistics import ColumnStatistics, FileStatistics, Key, Kind, PartitionValue
from bloomcli.tables.base import Leaf
from bloomcli.tables.delta import schema
from bloomcli.values import calendar
from bloomcli.values.keys import parse_key

CHAR: Final = "char"
"""The type of texts that Spark pads with spaces. The schema has it in a field's metadata."""
_INTEGERS: Final = {"byte": 8, "short": 16, "integer": 32, "long": 64}
_FLOATS: Final = {"float": 4, "double": 8}
_KINDS: Final = {
    **dict.fromkeys((*_INTEGERS, *_FLOATS, "decimal"), Kind.NUMBER),
    "boolean": Kind.BOOLEAN,
    "date": Kind.DATE,
    "timestamp": Kind.INSTANT,
    "timestamp_ntz": Kind.TIMESTAMP,
    **dict.fromkeys(("string", CHAR), Kind.TEXT),
    "binary": Kind.BYTES,
}
_SCALE: Final = re.compile(r",\s*(\d+)\)$")
_MILLI: Final = 999_999
_MILLI_NANOS: Final = 1_000_000
_MILLI_DIGITS: Final = 3
_FRACTION: Final = re.compile(r"\.(\d+)")
_SHORT: Final = re.compile(r"(?<!\d)(\d)(?!\d)")
"""A month, a day or an hour of one digit, which Spark's casts accept."""
_ZONE: Final = re.compile(r"(Z|UTC|[+-]\d{2}:?\d{2})$")


def leaves_of(metadata: Mapping[str, Any]) -> list[Leaf]:
    """The leaf columns outside of arrays and maps. `metadata` is the log's ``metaData``."""
    leaves = []
    for leaf in schema.leaves_of(metadata):
        name = CHAR if leaf.declared.startswith(f"{CHAR}(") else leaf.type.partition("(")[0]
        if name in _KINDS and leaf.plain:
            scale = _SCALE.search(leaf.type)
            leaves.append(Leaf(leaf.path, name, _KINDS[name], int(scale[1]) if scale else 0, leaf.names))
    return leaves


def statistics_of(entry: Mapping[str, Any], leaves: Sequence[Leaf], partitions: Sequence[str]) -> FileStatistics:
    """A data file's statistics.

    If rows were deleted by a deletion vector, tight statistics are those of the other rows, which the file doesn't
    show: only the row count is then returned. Wide ones are those of the whole file.

    Args:
        entry: the log's ``add``.
        leaves: the table's leaf columns.
        partitions: the names of the partition columns.
    """
    stats = _parsed(entry.get("stats"))
    rows = stats.get("numRecords")
    tight = stats.get("tightBounds") is not False
    columns = (
        () if tight and entry.get("deletionVector") is not None else (_column(leaf, stats, tight) for leaf in leaves)
    )
    values: Mapping[str, str | None] = entry.get("partitionValues") or {}
    of_partition = [leaf for leaf in leaves if leaf.path in partitions]
    return FileStatistics(
        source="log",
        rows=int(rows) if isinstance(rows, str) and rows.isdecimal() else None,
        columns=tuple(column for column in columns if column is not None),
        partition=tuple(_partition(leaf, values.get(leaf.names[0]) or None) for leaf in of_partition),
    )


class _Number(str):
    """A number in JSON, with the digits that it has there."""

    __slots__ = ()


def _parsed(text: str | None) -> dict[str, Any]:
    """The statistics, with numbers as text. Those that aren't JSON are none, as for Delta."""
    with suppress(ValueError, RecursionError):
        stats = json.loads(text or "{}", parse_int=_Number, parse_float=_Number, parse_constant=_Number)
        return stats if isinstance(stats, dict) else {}
    return {}


def _column(leaf: Leaf, stats: Mapping[str, Any], tight: bool) -> ColumnStatistics | None:
    low, high, nulls = (_text_at(stats.get(name), leaf.names) for name in ("minValues", "maxValues", "nullCount"))
    if low is high is nulls is None:
        return None
    is_float = leaf.type in _FLOATS
    least, greatest = _key(low, leaf), _key(high, leaf)
    if is_float and low == "NaN":  # the order of Delta's writers has NaN above all others
        least = float("inf")
    if leaf.kind in {Kind.TIMESTAMP, Kind.INSTANT} and isinstance(greatest, int):
        fraction = _FRACTION.search(high or "")
        greatest += _MILLI if fraction is None or len(fraction[1]) <= _MILLI_DIGITS else 0
    return ColumnStatistics(
        path=leaf.path,
        kind=_KINDS[leaf.type],
        nulls=int(nulls) if nulls is not None and nulls.isdecimal() else None,
        low=least,
        high=greatest,
        tight=tight,
        nan_is_greatest=is_float,
    )


def _text_at(value: Any, names: Sequence[str]) -> str | None:
    """The value of a column, as text."""
    for name in names:
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return str(value).lower() if isinstance(value, bool) else value if isinstance(value, str) else None


def _key(text: str | None, leaf: Leaf) -> Key | None:
    """The key of a bound; None for NaN and for texts that aren't a value of the column's type."""
    if text is None or leaf.type == "binary":
        return None
    try:
        return parse_key(text, _KINDS[leaf.type], float_bytes=_FLOATS.get(leaf.type))
    except (ValueError, ArithmeticError):
        return None


def has_no_zone(leaf: Leaf, text: str) -> bool:
    """Whether a text is a timestamp in a zone that it doesn't name."""
    return leaf.kind is Kind.INSTANT and _ZONE.search(text) is None


def _partition(leaf: Leaf, text: str | None) -> PartitionValue:
    """A partition's value. A timestamp without a zone is in that of its writer, which nothing records."""
    key_text = text if text is None or leaf.kind not in _PADDED else _SHORT.sub(r"0\1", text)
    key = None if key_text is None or leaf.type == "binary" else _key(key_text, leaf)
    is_value = text is None or leaf.type == "binary" or key is not None or text.lower() == "nan"
    problem = None if is_value and _in_range(key, leaf) else (
        f"the log's value of the partition column is {text!r}, which isn't of the type {leaf.type}: engines read null"
        " or fail"
    )  # fmt: skip
    comparable = text is None or (key is not None and not has_no_zone(leaf, text))
    return PartitionValue(
        path=leaf.path,
        kind=_KINDS[leaf.type],
        value=key,
        text="null" if text is None else text,
        transform="identity" if comparable else "unknown",
        problem=problem,
    )


def corrected(text: str | None, right: FileStatistics, leaves: Sequence[Leaf]) -> str:
    """The statistics of an entry with right values. Those that it doesn't have aren't added.

    Args:
        text: the ``stats`` of the log's ``add``.
        right: what they have to say, as in `Replacement`.
        leaves: the table's leaf columns.
    """
    stats = _parsed(text)
    if right.rows is not None and "numRecords" in stats:
        stats["numRecords"] = _Number(right.rows)
    by_path = {leaf.path: leaf for leaf in leaves}
    for column in right.columns:
        leaf = by_path[column.path]
        nulls = None if column.nulls is None else _Number(column.nulls)
        low, high = (None if key is None else _encoded(key, leaf) for key in (column.low, column.high))
        for name, value in (("nullCount", nulls), ("minValues", low), ("maxValues", high)):
            _put(stats.get(name), leaf.names, value)
    return _json(stats)


def _put(values: Any, names: Sequence[str], value: Any) -> None:
    """Set the value of a column that has one, or take it out."""
    for name in names[:-1]:
        values = values.get(name) if isinstance(values, dict) else None
    if isinstance(values, dict) and names[-1] in values:
        if value is None:
            del values[names[-1]]
        else:
            values[names[-1]] = value


def _json(value: Any) -> str:
    """JSON in which numbers keep their digits."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(name)}:{_json(member)}" for name, member in value.items()) + "}"
    return str(value) if isinstance(value, _Number) else json.dumps(value, ensure_ascii=False)


def _encoded(key: Key, leaf: Leaf) -> Any:
    """The value of a bound in JSON, as Delta writes it; None if the type can't have the value."""
    if isinstance(key, bytes):
        try:
            return key.decode()
        except UnicodeDecodeError:
            return None
    match leaf.kind:
        case Kind.BOOLEAN:
            return bool(key)
        case Kind.DATE:
            return calendar.format_date(int(key) // calendar.DAY_NANOS)
        case Kind.TIMESTAMP | Kind.INSTANT:
            day, of_day = divmod(int(key) // _MILLI_NANOS, calendar.DAY_NANOS // _MILLI_NANOS)
            seconds, millis = divmod(of_day, 1000)
            clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{millis:03}"
            return f"{calendar.format_date(day)}T{clock}" + ("Z" if leaf.kind is Kind.INSTANT else "")
    if leaf.type in _FLOATS:
        return _Number(repr(key)) if math.isfinite(key) else "Infinity" if key > 0 else "-Infinity"
    return _Number(format(Decimal(key), "f"))


_PADDED: Final = (Kind.DATE, Kind.TIMESTAMP, Kind.INSTANT)


def _in_range(key: Key | None, leaf: Leaf) -> bool:
    """Whether a number is one of an integer type."""
    bits = _INTEGERS.get(leaf.type)
    if bits is None or key is None or isinstance(key, bytes):
        return True
    return -(1 << bits - 1) <= key < 1 << bits - 1 and key == int(key)  # int(1e999999999) would take all memory
