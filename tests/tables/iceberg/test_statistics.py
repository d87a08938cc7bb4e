"""The statistics of an entry in a manifest, from its JSON."""

from __future__ import annotations

import struct
from decimal import Decimal
from typing import Any

import pytest

from bloomcli.model.table_statistics import ColumnStatistics, FileStatistics, Key, Kind
from bloomcli.tables.base import Leaf
from bloomcli.tables.iceberg.statistics import corrected_entry, decode, encode, leaves_of, statistics_of

DAY = 86_400 * 10**9
SCHEMA = {
    "type": "struct",
    "fields": [
        {"id": 1, "name": "id", "type": "long"},
        {"id": 2, "name": "price", "type": "decimal(9, 2)"},
        {
            "id": 3,
            "name": "user",
            "type": {"type": "struct", "fields": [{"id": 4, "name": "mail", "type": "string"}]},
        },
        {"id": 5, "name": "tags", "type": {"type": "list", "element-id": 6, "element": "string"}},
        {"id": 7, "name": "at", "type": "timestamptz"},
        {"id": 8, "name": "key", "type": "uuid"},
        {"id": 9, "name": "hash", "type": "fixed[4]"},
        {"id": 10, "name": "extra", "type": "variant"},
        {"id": 11, "name": "ratio", "type": "float"},
        {"id": 12, "name": "flag", "type": "boolean"},
    ],
}
LEAVES = leaves_of(SCHEMA)


def leaf_of(kind: str) -> Leaf:
    """The leaf of a column; decimals have two digits after the point."""
    name = "decimal(9, 2)" if kind == "decimal" else kind
    return leaves_of({"fields": [{"id": 1, "name": "c", "type": name}]})[1]


def entry(**more: Any) -> dict[str, Any]:
    return {"spec-id": 0, "record-count": 3, **{name.replace("_", "-"): value for name, value in more.items()}}


def by_id(**values: Any) -> dict[str, Any]:
    return {"keys": [int(key[1:]) for key in values], "values": list(values.values())}


def test_leaves_outside_of_lists_and_maps_have_statistics() -> None:
    assert {leaf.path: leaf.kind for leaf in LEAVES.values()} == {
        "id": Kind.NUMBER,
        "price": Kind.NUMBER,
        "user.mail": Kind.TEXT,
        "at": Kind.INSTANT,
        "key": Kind.BYTES,
        "hash": Kind.BYTES,
        "extra": None,
        "ratio": Kind.NUMBER,
        "flag": Kind.BOOLEAN,
    }
    assert LEAVES[2].scale == 2


def test_counts_and_bounds_belong_to_columns_by_their_field_ids() -> None:
    found = statistics_of(
        entry(
            value_counts=by_id(_1=3, _4=3, _6=9),
            null_value_counts=by_id(_1=0, _4=1),
            nan_value_counts=by_id(_11=2),
            lower_bounds=by_id(_1=struct.pack("<q", -5).hex(), _4=b"a".hex()),
            upper_bounds=by_id(_1=struct.pack("<q", 9).hex(), _7=struct.pack("<q", 1).hex()),
            split_offsets=[4, 100],
        ),
        LEAVES,
        [],
    )
    assert (found.rows, found.split_offsets, found.source) == (3, (4, 100), "manifest")
    assert found.columns == (
        ColumnStatistics(path="id", kind=Kind.NUMBER, values=3, nulls=0, low=-5, high=9),
        ColumnStatistics(path="user.mail", kind=Kind.TEXT, values=3, nulls=1, low=b"a"),
        ColumnStatistics(path="at", kind=Kind.INSTANT, high=1999),
        ColumnStatistics(path="ratio", kind=Kind.NUMBER, nans=2),
    )
    assert statistics_of(entry() | {"record-count": -1}, LEAVES, []).rows is None


@pytest.mark.parametrize(
    ("kind", "encoded", "key"),
    [
        ("long", struct.pack("<i", -7), -7),
        ("double", struct.pack("<f", 0.5), 0.5),
        ("float", struct.pack("<f", float("nan")), None),
        ("decimal", b"\xff\x6a", Decimal("-1.50")),
        ("date", struct.pack("<i", 1), DAY),
        ("timestamp", struct.pack("<i", 1), DAY),
        ("timestamp_ns", struct.pack("<q", 1), 1),
        ("timestamptz", struct.pack("<q", 1), 1000),
        ("time", struct.pack("<q", 1), 1000),
        ("uuid", bytes(16), bytes(16)),
        ("boolean", b"\1", 1),
        ("int", b"\1", None),
        ("decimal", b"", None),
        ("variant", b"\1", None),
    ],
)
def test_a_bound_is_read_in_the_type_that_it_was_written_in(kind: str, encoded: bytes, key: Key | None) -> None:
    assert decode(encoded, leaf_of(kind)) == key


@pytest.mark.parametrize(
    ("kind", "encoded"),
    [("int", b"\1\2\3"), ("date", b""), ("timestamptz", b"\1"), ("double", b"\1\2\3"), ("boolean", b"")],
)
def test_a_bound_that_is_no_value_is_a_problem_and_fails_queries_of_pyiceberg(kind: str, encoded: bytes) -> None:
    from pyiceberg import types
    from pyiceberg.conversions import from_bytes

    class_name = {"int": "Integer", "timestamptz": "Timestamptz"}.get(kind, kind.title())
    with pytest.raises(struct.error):
        from_bytes(getattr(types, f"{class_name}Type")(), encoded)
    leaf = {1: leaf_of(kind)}
    for bounds in ("lower_bounds", "upper_bounds"):
        (found,) = statistics_of(entry(**{bounds: by_id(_1=encoded.hex())}), leaf, []).columns
        size = "0 bytes" if not encoded else "1 byte" if len(encoded) == 1 else "3 bytes"
        assert found.problem == (
            f"the manifest has a bound of {size}, no value of the type {kind}: engines that compare it fail or read"
            " another value"
        )
        assert found.low is found.high is None


def test_partition_values_are_those_of_columns_and_transforms_that_can_be_computed() -> None:
    fields = [
        {"name": "id", "transform": "identity", "source-id": 1, "field-id": 1000},
        {"name": "at_day", "transform": "day", "source-id": 7, "field-id": 1001},
        {"name": "mail_bucket", "transform": "bucket[16]", "source-id": 4, "field-id": 1002},
        {"name": "key", "transform": "identity", "source-id": 8, "field-id": 1003},
        {"name": "price", "transform": "truncate[10]", "source-id": 2, "field-id": 1004},
        {"name": "gone", "transform": "identity", "source-id": 99, "field-id": 1005},
        {"name": "id_new", "transform": "zorder", "source-id": 1, "field-id": 1006},
        {"name": "ratio", "transform": "identity", "source-id": 11, "field-id": 1007},
        {"name": "flag", "transform": "identity", "source-id": 12, "field-id": 1008},
    ]
    key = "00000000-0000-0000-0000-0000000000ff"
    values = [7, "1970-01-02", None, key, "1.50", 1, 1, "0.1", True]
    single = struct.unpack("<f", struct.pack("<f", 0.1))[0]
    expected = [
        ("id", "identity", 7),
        ("at", "day", DAY),
        ("user.mail", "bucket", None),
        ("key", "identity", bytes(15) + b"\xff"),
        ("price", "truncate", Decimal("1.50")),
        ("ratio", "identity", single),
        ("flag", "identity", 1),
    ]
    for form in (values, {str(field["field-id"]): value for field, value in zip(fields, values, strict=True)}):
        found = statistics_of(entry(partition=form), LEAVES, fields).partition
        assert [(one.path, one.transform, one.value) for one in found] == expected
    assert [one.width for one in found if one.transform in {"bucket", "truncate"}] == [16, 10]


@pytest.mark.parametrize(
    ("kind", "key"),
    [
        ("boolean", 1),
        ("int", -7),
        ("long", 1 << 40),
        ("float", 0.5),
        ("double", -1e300),
        ("decimal", Decimal("-1.28")),
        ("decimal", Decimal("12345678901234567890123456789012345.67")),
        ("date", -3 * DAY),
        ("time", 1_234_567_000),
        ("timestamp", -1_234_567_000),
        ("timestamptz_ns", 1_234_567_891),
        ("string", "n\u00e4her".encode()),
        ("uuid", bytes(range(16))),
    ],
)
def test_a_corrected_bound_is_read_as_the_value_that_it_was_made_of(kind: str, key: Key) -> None:
    leaf = leaf_of(kind)
    encoded = encode(key, leaf)
    assert encoded is not None
    assert decode(encoded, leaf) == key


def test_a_value_that_the_column_s_type_cannot_have_is_no_bound() -> None:
    assert encode(1 << 40, leaf_of("int")) is None
    assert encode(1e300, leaf_of("float")) is None


def test_corrections_replace_what_an_entry_has_and_add_nothing() -> None:
    said = entry(
        null_value_counts={"keys": [1, 2], "values": [3, 1]},
        lower_bounds={"keys": [1, 2, 4], "values": ["0100000000000000", "05", "6D"]},
        split_offsets=[7],
    )
    columns = (
        ColumnStatistics(path="id", kind=Kind.NUMBER, values=3, nulls=0, nans=0, low=-1, high=9),
        ColumnStatistics(path="user.mail", kind=Kind.TEXT, values=3, nulls=3, nans=0),
    )
    new = corrected_entry(said, FileStatistics(source="manifest", columns=columns, split_offsets=(4,)), LEAVES)
    assert new["null-value-counts"] == {"keys": [1, 2], "values": [0, 1]}
    assert new["lower-bounds"] == {"keys": [1, 2], "values": ["FFFFFFFFFFFFFFFF", "05"]}
    assert new["split-offsets"] == [4]
    assert new["record-count"] == 3
    assert "upper-bounds" not in new
    assert "value-counts" not in new
