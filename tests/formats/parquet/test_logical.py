"""Logical types of a Parquet schema apply only to the physical types that the format allows."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support import footers
from support.thrift import BYTE, I32, LIST, STRUCT, TRUE, Fields, Items

import bloomcli
from bloomcli.formats.parquet.footer import read_footer
from bloomcli.model.file import Column
from bloomcli.storage.local.source import LocalSource

BOOLEAN, INT32, INT64, INT96, FLOAT, DOUBLE, BYTE_ARRAY, FIXED = range(8)
PHYSICAL = ["BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"]


def decimal(scale: int, precision: int) -> Fields:
    """LogicalType DECIMAL, as parquet.thrift numbers it."""
    return {5: (STRUCT, {1: (I32, scale), 2: (I32, precision)})}


def moment(kind: int, unit: int) -> Fields:
    """LogicalType TIME (7) or TIMESTAMP (8) in MILLIS (1), MICROS (2) or NANOS (3), UTC."""
    return {kind: (STRUCT, {1: (TRUE, True), 2: (STRUCT, {unit: (STRUCT, {})})})}


def integer(bits: int) -> Fields:
    """LogicalType INTEGER, signed."""
    return {10: (STRUCT, {1: (BYTE, bits), 2: (TRUE, True)})}


def column_of(
    folder: Path, physical: int, length: int | None, logical: Fields | None, converted: int | None
) -> Column:
    """The only column of a file with this schema."""
    path = folder / "f.parquet"
    pq.write_table(pa.table({"c": pa.array([1], pa.int32())}), path, store_schema=False)

    def edit(metadata: Fields) -> None:
        element = metadata[2][1].values[1]
        element[1] = (I32, physical)
        for number, value in ((2, length), (6, converted)):
            if value is not None:
                element[number] = (I32, value)
        if logical is not None:
            element[10] = (STRUCT, logical)
        metadata[2][1].values[1] = dict(sorted(element.items()))

    path.write_bytes(footers.edited(path.read_bytes(), edit))
    with LocalSource(str(path), path) as source:
        return read_footer(source).columns[0]


@pytest.mark.parametrize("physical", range(8))
@pytest.mark.parametrize(
    ("logical", "text", "fits"),
    [
        (decimal(2, 9), "DECIMAL(9,2)", {INT32, INT64, BYTE_ARRAY, FIXED}),
        (decimal(-1, 9), None, set()),
        (decimal(10, 9), None, set()),
        (decimal((1 << 31) - 1, 9), None, set()),
        ({6: (STRUCT, {})}, "DATE", {INT32}),
        (moment(7, 1), "TIME(MILLIS,UTC)", {INT32}),
        (moment(7, 2), "TIME(MICROS,UTC)", {INT64}),
        (moment(7, 3), "TIME(NANOS,UTC)", {INT64}),
        (moment(8, 1), "TIMESTAMP(MILLIS,UTC)", {INT64}),
        (integer(8), "INTEGER(8,signed)", {INT32}),
        (integer(32), "INTEGER(32,signed)", {INT32}),
        (integer(64), "INTEGER(64,signed)", {INT64}),
        (integer(0), None, set()),
        (integer(7), None, set()),
        (integer(0xFB), None, set()),
        ({14: (STRUCT, {})}, "UUID", {FIXED}),
        ({15: (STRUCT, {})}, None, set()),  # FLOAT16 takes 2 bytes, this column has 16
    ],
)
def test_a_logical_type_applies_to_the_physical_types_that_the_format_allows(
    tmp_path: Path, physical: int, logical: Fields, text: str | None, fits: set[int]
) -> None:
    found = column_of(tmp_path, physical, 16 if physical == FIXED else None, logical, None)
    assert found.physical == PHYSICAL[physical]
    assert found.logical == (text if physical in fits else None)
    if physical not in fits:
        assert (found.scale, found.precision, found.bit_width, found.unit, found.utc) == (0, 0, 0, None, None)


@pytest.mark.parametrize(
    ("converted", "physical", "text"),
    [
        (0, BYTE_ARRAY, "STRING"),
        (6, INT32, "DATE"),
        (6, INT64, None),
        (9, INT64, "TIMESTAMP(MILLIS,UTC)"),
        (9, INT96, None),
        (15, INT32, "INTEGER(8,signed)"),
        (14, INT32, None),
        (14, INT64, "INTEGER(64,unsigned)"),
        (21, FIXED, "INTERVAL"),
        (21, BYTE_ARRAY, None),
    ],
)
def test_a_converted_type_applies_to_the_physical_types_that_the_format_allows(
    tmp_path: Path, converted: int, physical: int, text: str | None
) -> None:
    found = column_of(tmp_path, physical, 12 if physical == FIXED else None, None, converted)
    assert found.logical == text


def test_the_schema_shows_files_and_the_orders_of_bounds(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    group = pa.struct([("uri", pa.string()), ("size", pa.int64())])
    pq.write_table(pa.table({"f": pa.array([None], group), "x": [1.5], "t": [7]}), path, store_schema=False)

    def edit(metadata: Fields) -> None:
        metadata[2][1].values[1][10] = (STRUCT, {19: (STRUCT, {})})
        metadata[7] = (LIST, Items(STRUCT, [{n: (STRUCT, {})} for n in (1, 1, 2, 3)]))

    footers.edit_file(path, path, edit)
    report = bloomcli.inspect(path, schema=True)
    shown = {node.path: (node.logical, dict(node.attributes)) for node in report.schema_tree}
    assert shown["f"] == ("FILE", {})
    assert shown["f.uri"] == ("STRING", {})
    assert shown["x"] == (None, {"order": "IEEE_754_TOTAL_ORDER"})
    assert shown["t"] == (None, {"order": "INT96_TIMESTAMP_ORDER"})
