"""The statistics of an entry in the log, from its JSON."""

from __future__ import annotations

import json
import struct
from decimal import Decimal
from typing import Any

import pytest

from bloomcli.model.table_statistics import ColumnStatistics, FileStatistics, Kind
from bloomcli.tables.base import Leaf
from bloomcli.tables.delta.reachable import _text, _value
from bloomcli.tables.delta.statistics import corrected, leaves_of, statistics_of


def field(name: str, kind: Any, **metadata: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "nullable": True, "metadata": metadata}


FIELDS = [
    field("id", "long"),
    field("user", {"type": "struct", "fields": [field("e.mail", "string")]}),
    field("tags", {"type": "array", "elementType": "string", "containsNull": True}),
    field("price", "decimal(9,2)"),
    field("at", "timestamp"),
    field("local", "timestamp_ntz"),
    field("ratio", "float"),
    field("raw", "binary"),
    field("flag", "boolean"),
    field("day", "date"),
    field("small", "byte"),
]


def metadata(fields: list[Any] = FIELDS, mode: str = "none") -> dict[str, Any]:
    return {
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "configuration": {"delta.columnMapping.mode": mode},
        "partitionColumns": [],
    }


LEAVES = leaves_of(metadata())


def read(stats: Any, **entry: Any) -> FileStatistics:
    text = stats if isinstance(stats, str) else json.dumps(stats)
    return statistics_of({"path": "a", "stats": text, **entry}, LEAVES, ())


def one(stats: Any, path: str, **entry: Any) -> ColumnStatistics:
    (found,) = [column for column in read(stats, **entry).columns if column.path == path]
    return found


STATS = {
    "numRecords": 3,
    "minValues": {"id": -5, "user": {"e.mail": "a"}, "price": 1.5, "day": "2026-11-01", "flag": False, "raw": "x"},
    "maxValues": {
        "id": 9007199254740993,
        "at": "2026-11-01T01:00:00.000+01:00",
        "local": "2026-11-01T00:00:00.000000",
    },
    "nullCount": {"id": 0, "user": {"e.mail": 1}, "tags": 2, "raw": 3},
}


def test_counts_and_bounds_belong_to_columns_by_their_physical_names() -> None:
    found = read(STATS)
    assert (found.rows, found.source, found.split_offsets) == (3, "log", ())
    columns = {column.path: column for column in found.columns}
    assert columns.keys() == {"id", "user.e.mail", "price", "at", "local", "raw", "flag", "day"}
    assert (columns["id"].low, columns["id"].high, columns["id"].nulls) == (-5, 9007199254740993, 0)
    assert (columns["user.e.mail"].low, columns["user.e.mail"].nulls) == (b"a", 1)
    assert columns["price"].low == Decimal("1.5")
    assert columns["flag"].low == 0
    assert (columns["raw"].low, columns["raw"].nulls) == (None, 3)
    day = columns["day"].low
    assert columns["local"].high == day
    assert columns["at"].high == day + 999_999, "Delta's readers add a millisecond to a timestamp that has no finer"  # type: ignore[operator]


def test_names_are_physical_with_column_mapping() -> None:
    inner = field("mail", "string", **{"delta.columnMapping.physicalName": "col-2"})
    fields = [field("user", {"type": "struct", "fields": [inner]}, **{"delta.columnMapping.physicalName": "col-1"})]
    assert [leaf.names for leaf in leaves_of(metadata(fields))] == [("user", "mail")]
    assert [(leaf.path, leaf.names) for leaf in leaves_of(metadata(fields, "name"))] == [
        ("user.mail", ("col-1", "col-2"))
    ]


def test_single_precision_is_that_of_the_file() -> None:
    assert one({"minValues": {"ratio": 0.1}}, "ratio").low == struct.unpack("<f", struct.pack("<f", 0.1))[0]


def test_nan_is_above_all_other_values() -> None:
    found = one({"minValues": {"ratio": "NaN"}, "maxValues": {"ratio": "NaN"}}, "ratio")
    assert (found.low, found.high, found.nan_is_greatest) == (float("inf"), None, True)


def test_wide_statistics_are_of_the_whole_file_and_tight_ones_of_the_rows_that_are_not_deleted() -> None:
    vector = {"storageType": "u", "pathOrInlineDv": "x", "sizeInBytes": 1, "cardinality": 1}
    assert one(STATS, "id").tight
    assert not one(STATS | {"tightBounds": False}, "id").tight
    assert not one(STATS | {"tightBounds": False}, "id", deletionVector=vector).tight
    kept = read(STATS, deletionVector=vector)
    assert (kept.rows, kept.columns) == (3, ())


@pytest.mark.parametrize(
    "stats", ["", "{", "[1]", "null", '{"numRecords": "x", "minValues": 5, "nullCount": {"id": -1}}']
)
def test_statistics_that_are_none_say_nothing(stats: str) -> None:
    found = read(stats)
    assert found.rows is None
    assert all((column.low, column.high, column.nulls) == (None, None, None) for column in found.columns)
    assert statistics_of({"path": "a"}, LEAVES, ()).columns == ()


def test_a_bound_that_is_no_value_of_the_type_says_nothing() -> None:
    found = one({"minValues": {"id": "x"}, "maxValues": {"id": None}, "nullCount": {"id": 1}}, "id")
    assert (found.low, found.high, found.nulls) == (None, None, 1)


@pytest.mark.parametrize(
    ("column", "text", "problem", "compared"),
    [
        ("id", "7", False, True),
        ("id", "", False, True),
        ("id", None, False, True),
        ("id", "x", True, False),
        ("id", "1.5", True, True),
        ("small", "128", True, True),
        ("small", "-128", False, True),
        ("price", "1.50", False, True),
        ("ratio", "NaN", False, False),
        ("ratio", "1.0", False, True),
        ("flag", "true", False, True),
        ("flag", "yes", True, False),
        ("day", "2026-11-01", False, True),
        ("day", "2026-1-5", False, True),
        ("day", "2026-13-01", True, False),
        ("at", "2026-11-01 00:00:00", False, False),
        ("at", "2026-11-01T00:00:00.000000Z", False, True),
        ("local", "2026-11-01 00:00:00.5", False, True),
        ("raw", "\u0001", False, False),
    ],
)
def test_partition_values_must_be_of_their_column_s_type(
    column: str, text: str | None, problem: bool, compared: bool
) -> None:
    found = statistics_of({"path": "a", "partitionValues": {column: text}}, LEAVES, [column]).partition
    assert [(value.path, value.problem is not None, value.transform == "identity") for value in found] == [
        (column, problem, compared)
    ]
    assert found[0].kind in Kind


def test_corrections_replace_what_an_entry_has_and_keep_the_digits_of_all_else() -> None:
    said = (
        '{"numRecords":2,"minValues":{"id":1,"price":12345678901234567890.10,"at":"2026-01-01T00:00:00.000Z",'
        '"local":"2026-01-01T00:00:00.000","ratio":1.5E0,"day":"2026-01-01","user":{"e.mail":"x"}},'
        '"maxValues":{"ratio":2.5},"nullCount":{"id":7,"user":{"e.mail":1}},"tightBounds":true}'
    )
    second = 10**9
    columns = (
        ColumnStatistics(path="id", kind=Kind.NUMBER, nulls=0, low=-3, high=9),
        ColumnStatistics(path="at", kind=Kind.INSTANT, low=-second // 2 - 1, high=0),
        ColumnStatistics(path="local", kind=Kind.TIMESTAMP, low=3_661_123 * 10**6 + 999, high=0),
        ColumnStatistics(path="ratio", kind=Kind.NUMBER, low=float("-inf"), high=None),
        ColumnStatistics(path="day", kind=Kind.DATE, low=0, high=0),
        ColumnStatistics(path="user.e.mail", kind=Kind.TEXT, nulls=2, low='\u00e4"'.encode(), high=None),
    )
    text = corrected(said, FileStatistics(source="log", rows=5, columns=columns), LEAVES)
    assert text == (
        '{"numRecords":5,"minValues":{"id":-3,"price":12345678901234567890.10,"at":"1969-12-31T23:59:59.499Z",'
        '"local":"1970-01-01T01:01:01.123","ratio":"-Infinity","day":"1970-01-01","user":{"e.mail":"\u00e4\\""}},'
        '"maxValues":{},"nullCount":{"id":0,"user":{"e.mail":2}},"tightBounds":true}'
    )
    again = {one.path: one for one in statistics_of({"stats": text}, LEAVES, ()).columns}
    assert again["at"].low == -501 * 10**6
    assert again["local"].low == 3_661_123 * 10**6
    assert again["ratio"].low == float("-inf")


@pytest.mark.parametrize(("text", "value"), [("a\u0001", b"a\x01"), ("\ufffd", b"\xef\xbf\xbd"), ("\ud800", b"?")])
def test_a_partition_of_bytes_has_those_that_java_makes_of_its_text(text: str, value: bytes) -> None:
    found = _value(Leaf("raw", "binary", Kind.BYTES, names=("raw",)), text, {})
    assert found is not None
    assert found.value == value


@pytest.mark.parametrize("given", [{"predicate": "who = 'x'"}, ["who = 'x'"], "who = 'x'"])
def test_parameters_of_a_commit_are_searched_in_any_form(given: Any) -> None:
    assert "who = 'x'" in _text({"operationParameters": given})
