"""Reads the statistics of data files from manifests: counts, bounds, partition values and split offsets.

Sources: Iceberg's specification, "Manifests", "Appendix C: JSON serialization" and "Appendix D: Single-value
serialization". A bound may be of the narrower type that its column had when the file was written.
"""

from __future__ import annotations

import json
import math
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from typing import Any, Final

from bloomcli.errors import UnsupportedError
from bloomcli.model.table_statistics import ColumnStatistics, FileStatistics, Key, Kind, PartitionValue
from bloomcli.tables.base import DataFile, Leaf
from bloomcli.tables.iceberg.java import ICEBERG, Java, Methods
from bloomcli.tables.iceberg.scans import FILE, STRING, Tasks
from bloomcli.tables.iceberg.schema import walked
from bloomcli.tables.java import java_errors
from bloomcli.values import calendar
from bloomcli.values.keys import parse_key
from bloomcli.values.literals import WIDE
from bloomcli.words import counted

_PARSER: Final = f"{ICEBERG}.ContentFileParser"
REWRITING: Final = ("rewrite_data_files", "options => map('rewrite-all', 'true')")
"""The call that writes a table's data files anew, and so their statistics."""
_FILES_AT_ONCE: Final = 1000
"""Files whose statistics are read from Java at a time: some kilobytes of JSON each."""
_SIZES: Final = {
    "int": (4, 1),
    "long": (8, 1),
    "date": (4, calendar.DAY_NANOS),
    **dict.fromkeys(("time", "timestamp", "timestamptz"), (8, 1000)),
    **dict.fromkeys(("timestamp_ns", "timestamptz_ns"), (8, 1)),
}
"""Bytes of an integer, and of what part of its key's unit it is the number."""
_MICRO: Final = 999
"""Values in files may be finer than the table's microseconds, to which readers cut them."""
_KINDS: Final = {
    "boolean": Kind.BOOLEAN,
    **dict.fromkeys(("int", "long", "float", "double", "decimal"), Kind.NUMBER),
    "date": Kind.DATE,
    "time": Kind.TIME,
    **dict.fromkeys(("timestamp", "timestamp_ns"), Kind.TIMESTAMP),
    **dict.fromkeys(("timestamptz", "timestamptz_ns"), Kind.INSTANT),
    "string": Kind.TEXT,
    **dict.fromkeys(("uuid", "fixed", "binary"), Kind.BYTES),
}
_FLOATS: Final = {"float": 4, "double": 8}
_WITH_WIDTH: Final = re.compile(r"(bucket|truncate)\[(\d+)\]")
_OF_NUMBER: Final = ("bucket", "year", "month", "hour")
"""Transforms whose results are integers."""
_TRANSFORMS: Final = ("identity", "truncate", "day", *_OF_NUMBER)


def leaves_of(schema: Mapping[str, Any]) -> dict[int, Leaf]:
    """The leaf columns outside of lists and maps, by field id. `schema` is the JSON of SchemaParser."""
    leaves = {}
    for path, number, kind, repeated, default in walked(schema["fields"]):
        if repeated:
            continue
        name, *numbers = re.findall(r"\w+", kind)
        scale = int(numbers[1]) if name == "decimal" else 0
        leaves[number] = Leaf(path, name, _KINDS.get(name), scale, default=default)
    return leaves


def read_statistics(
    java: Java, leaves: Mapping[int, Leaf], files: Sequence[DataFile], name: str
) -> Iterator[FileStatistics]:
    """Yield the statistics of data files, in their order.

    Args:
        java: the session's Java.
        leaves: the leaf columns of the snapshot's schema, by field id.
        files: data files of one scan that read the columns' statistics.
        name: the table's name in SQL.

    Raises:
        UnsupportedError: the session's Iceberg has no public ContentFileParser.
    """
    methods = Methods(java)
    try:
        to_json = methods.static(_PARSER, "toJson", STRING, FILE, f"{ICEBERG}.PartitionSpec")
    except java_errors():
        version = java.iceberg("IcebergBuild").version()
        raise UnsupportedError(
            f"Iceberg {version} gives no access to the entries of manifests as JSON",
            path=name,
            hint="use Iceberg 1.12, such as --conf"
            " spark.jars.packages=org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
        ) from None
    fields: dict[int, list[Any]] = {}
    for start in range(0, len(files), _FILES_AT_ONCE):
        some = files[start : start + _FILES_AT_ONCE]
        entries: dict[int, str] = {}
        for spec in {id(file.record.partition_spec): file.record.partition_spec for file in some}.values():
            own = [at for at, file in enumerate(some) if file.record.partition_spec is spec]
            tasks = Tasks.chosen(java, (some[at].record.task for at in own))
            texts = tasks.of_files(methods.with_arguments(to_json, 1, spec))
            entries |= zip(own, texts, strict=True)
            number = int(spec.specId())
            if number not in fields:
                fields[number] = json.loads(java.iceberg("PartitionSpecParser").toJson(spec))["fields"]
        for at in range(len(some)):
            entry = json.loads(entries.pop(at), parse_float=str)
            yield replace(statistics_of(entry, leaves, fields[entry["spec-id"]]), rewriting=call(name, *REWRITING))


def call(name: str, procedure: str, arguments: str = "") -> str:
    """The call of one of Iceberg's procedures for a table, which `name` names in SQL with its catalog."""
    catalog, _, short = name.partition(".")
    text = short.replace("\\", "\\\\").replace("'", "\\'")
    return f"CALL {catalog}.system.{procedure}(table => '{text}'{arguments and f', {arguments}'})"


def statistics_of(entry: Mapping[str, Any], leaves: Mapping[int, Leaf], fields: Sequence[Any]) -> FileStatistics:
    """A data file's statistics.

    Args:
        entry: the JSON of ContentFileParser; its numbers with a fraction are texts.
        leaves: the table's leaf columns, by field id.
        fields: the fields of the partition spec, in the JSON of PartitionSpecParser.
    """
    maps = {name: _by_id(entry.get(name)) for name in _MAPS}
    columns = (_column(leaf, *(maps[name].get(number) for name in _MAPS)) for number, leaf in leaves.items())
    rows = entry["record-count"]
    return FileStatistics(
        source="manifest",
        rows=rows if rows >= 0 else None,
        rows_may_grow=False,  # RewriteFiles refuses to replace files by those with more rows
        columns=tuple(column for column in columns if column is not None),
        partition=tuple(_partition(entry.get("partition"), leaves, fields)),
        split_offsets=tuple(entry.get("split-offsets") or ()),
    )


_MAPS: Final = ("value-counts", "null-value-counts", "nan-value-counts", "lower-bounds", "upper-bounds")


def _by_id(pairs: Mapping[str, Any] | None) -> dict[int, Any]:
    return {} if pairs is None else dict(zip(pairs["keys"], pairs["values"], strict=True))


def _column(leaf: Leaf, *facts: Any) -> ColumnStatistics | None:
    values, nulls, nans, low, high = facts
    if leaf.kind is None or all(fact is None for fact in facts):
        return None
    ends = [None if end is None else bytes.fromhex(end) for end in (low, high)]
    least, greatest = (None if end is None else decode(end, leaf) for end in ends)
    if leaf.type in {"timestamp", "timestamptz"} and isinstance(greatest, int):
        greatest += _MICRO
    return ColumnStatistics(
        path=leaf.path,
        kind=leaf.kind,
        values=values,
        nulls=nulls,
        nans=nans,
        low=least,
        high=greatest,
        problem=next((why for end in ends if end is not None and (why := _problem(end, leaf)) is not None), None),
    )


def _problem(encoded: bytes, leaf: Leaf) -> str | None:
    """Why bytes aren't a bound of a column; None if they are, or NaN."""
    if decode(encoded, leaf) is not None or (leaf.type in _FLOATS and len(encoded) in {4, 8}):
        return None
    reason = f"the manifest has a bound of {counted(len(encoded), 'byte')}, no value of the type {leaf.type}"
    return f"{reason}: engines that compare it fail or read another value"


def decode(encoded: bytes, leaf: Leaf) -> Key | None:
    """The key of a bound; None for NaN, and for bytes that aren't a value of the column's type."""
    number = int.from_bytes(encoded, "little", signed=True)
    match leaf.type, len(encoded):
        case (("string" | "binary" | "uuid" | "fixed"), _):
            return encoded
        case (("int" | "long"), (4 | 8)):
            return number
        case "boolean", 1:
            return int(number != 0)
        case (("float" | "double"), (4 | 8)):
            (value,) = struct.unpack("<f" if len(encoded) == 4 else "<d", encoded)
            return None if math.isnan(value) else value
        case "decimal", size if size:
            return WIDE.create_decimal(int.from_bytes(encoded, "big", signed=True)).scaleb(-leaf.scale, context=WIDE)
        case (("date" | "timestamp" | "timestamptz" | "timestamp_ns" | "timestamptz_ns"), 4):
            return number * calendar.DAY_NANOS
        case (("timestamp_ns" | "timestamptz_ns"), 8):
            return number
        case (("timestamp" | "timestamptz" | "time"), 8):
            return number * 1000
    return None


def corrected(java: Java, leaves: Mapping[int, Leaf], file: Any, spec: Any, right: FileStatistics) -> Any:
    """An Iceberg DataFile with right statistics. Those that it doesn't have aren't added.

    Args:
        java: the session's Java.
        leaves: the table's leaf columns, by field id.
        file: the data file, an Iceberg DataFile.
        spec: the PartitionSpec that it was written with.
        right: what it has to say, as in `Replacement`.
    """
    parser = java.iceberg("ContentFileParser")
    entry = json.loads(parser.toJson(file, spec))
    text = json.dumps(corrected_entry(entry, right, leaves))
    return parser.fromJson(java.iceberg("util.JsonUtil").mapper().readTree(text), spec)


def corrected_entry(entry: Mapping[str, Any], right: FileStatistics, leaves: Mapping[int, Leaf]) -> dict[str, Any]:
    """The JSON of ContentFileParser with right statistics; the arguments are those of `corrected` and
    `statistics_of`."""
    new = {**entry, "record-count": right.rows if right.rows is not None else entry["record-count"]}
    if right.split_offsets:
        new["split-offsets"] = list(right.split_offsets)
    numbers = {leaf.path: number for number, leaf in leaves.items()}
    maps = {name: _by_id(entry.get(name)) for name in _MAPS if entry.get(name) is not None}
    for stats in right.columns:
        number = numbers[stats.path]
        leaf = leaves[number]
        ends = (None if key is None else encode(key, leaf) for key in (stats.low, stats.high))
        facts = (stats.values, stats.nulls, stats.nans, *(None if end is None else end.hex().upper() for end in ends))
        for name, fact in zip(_MAPS, facts, strict=True):
            if number in maps.get(name, ()):
                maps[name][number] = fact
    for name, values in maps.items():
        rest = {number: fact for number, fact in values.items() if fact is not None}
        new[name] = {"keys": list(rest), "values": list(rest.values())}
    return new


def encode(key: Key, leaf: Leaf) -> bytes | None:
    """The bytes of a bound, as `decode` reads them; None if the type can't have the value. Times are cut to the
    microseconds in which Iceberg's readers compare them."""
    if isinstance(key, bytes):
        return key
    try:
        match leaf.type:
            case "boolean":
                return bytes([int(key)])
            case "float" | "double":
                return struct.pack("<f" if leaf.type == "float" else "<d", key)
            case "decimal":
                unscaled = int(Decimal(key).scaleb(leaf.scale, context=WIDE))
                return unscaled.to_bytes(
                    (unscaled if unscaled >= 0 else ~unscaled).bit_length() // 8 + 1, "big", signed=True
                )
        size, unit = _SIZES[leaf.type]
        return int(key // unit).to_bytes(size, "little", signed=True)
    except (OverflowError, struct.error, ValueError, KeyError):
        return None


def _partition(values: Any, leaves: Mapping[int, Leaf], fields: Sequence[Any]) -> Iterator[PartitionValue]:
    """Yield the partition values of columns that the table has."""
    for position, field in enumerate(fields):
        leaf = leaves.get(field.get("source-id", -1))
        match = _WITH_WIDTH.fullmatch(field["transform"])
        transform, width = (match[1], int(match[2])) if match else (field["transform"], 0)
        if leaf is None or leaf.kind is None or transform not in _TRANSFORMS:
            continue
        value = values[position] if isinstance(values, list) else (values or {}).get(str(field["field-id"]))
        kind = leaf.kind
        if transform != "identity" and transform != "truncate":
            kind = Kind.DATE if transform == "day" else Kind.NUMBER
        text = str(value).lower() if isinstance(value, bool) else str(value)
        size = _FLOATS.get(leaf.type) if kind is leaf.kind else None
        key = None
        with suppress(ValueError, ArithmeticError):
            key = None if value is None else parse_key(_digits(text, leaf), kind, float_bytes=size)
        if value is None or key is not None:
            yield PartitionValue(
                path=leaf.path,
                kind=kind,
                value=key,
                text="null" if value is None else text,
                transform=transform,
                width=width,
            )


def _digits(text: str, leaf: Leaf) -> str:
    return text.replace("-", "") if leaf.type == "uuid" else text
