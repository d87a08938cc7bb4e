"""find reads pages in every encoding and nesting, and compares them with their checksums."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bloomcli

ROWS = 3001
SOUGHT = (16, 1502, 3000)
CODECS = ("none", "snappy", "zstd", "gzip", "brotli", "lz4")
FIXED = ("PLAIN", "BYTE_STREAM_SPLIT")
TYPES: dict[str, tuple[pa.DataType, Any, tuple[str, ...]]] = {
    "int32": (pa.int32(), int, (*FIXED, "DELTA_BINARY_PACKED")),
    "int64": (pa.int64(), int, (*FIXED, "DELTA_BINARY_PACKED")),
    "float": (pa.float32(), float, FIXED),
    "double": (pa.float64(), float, FIXED),
    "string": (pa.string(), lambda n: f"name {n:07}", ("PLAIN", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY")),
    "fixed": (pa.binary(8), lambda n: n.to_bytes(8, "big"), ("PLAIN", "DELTA_BYTE_ARRAY", "BYTE_STREAM_SPLIT")),
}
CASES = [(name, encoding) for name, (_, _, encodings) in TYPES.items() for encoding in (*encodings, "DICTIONARY")]


def text_of(value: object) -> str:
    return f"0x{value.hex()}" if isinstance(value, bytes) else str(value)


def rows_of(found: Iterable[pa.RecordBatch]) -> list[tuple[int, Any]]:
    return [(row["row"], row["record"]["v"]) for batch in found for row in batch.to_pylist()]


def shapes(values: list[Any]) -> dict[str, list[Any]]:
    """The values with and without nulls, in lists, and in structs of lists; one value in each row."""
    nulls = [None if n % 3 == 1 and n not in SOUGHT else value for n, value in enumerate(values)]
    lists = [None if n % 7 == 3 else [] if n % 7 == 5 else [value, None, value] for n, value in enumerate(values)]
    return {
        "flat": values,
        "nulls": nulls,
        "lists": lists,
        "structs": [None if v is None else {"x": v} for v in lists],
    }


@pytest.mark.parametrize(("name", "encoding"), CASES)
def test_every_row_is_found_in_every_encoding_and_nesting(name: str, encoding: str, tmp_path: Path) -> None:
    kind, made, _ = TYPES[name]
    values = [made(n) for n in range(ROWS)]
    leaves = {"flat": "v", "nulls": "v", "lists": "v.list.element", "structs": "v.x.list.element"}
    for number, (shape, rows) in enumerate(shapes(values).items()):
        path = tmp_path / f"{shape}.parquet"
        nested = {"lists": pa.list_(kind), "structs": pa.struct([("x", pa.list_(kind))])}
        options: dict[str, Any] = {"column_encoding": {leaves[shape]: encoding}, "use_dictionary": False}
        if encoding == "DICTIONARY":  # goes over to PLAIN when it is full
            options = {"use_dictionary": True, "dictionary_pagesize_limit": 4500}
        pq.write_table(
            pa.table({"v": pa.array(rows, nested.get(shape, kind))}),
            path,
            compression=CODECS[(number + CASES.index((name, encoding))) % len(CODECS)],
            data_page_version=("1.0", "2.0")[(number // 2 + CASES.index((name, encoding))) % 2],
            data_page_size=1000,
            write_page_index=number % 2 == 1,
            row_group_size=ROWS // 2,
            **options,
        )
        found = bloomcli.find(path, [text_of(values[n]) for n in SOUGHT], column=leaves[shape], jobs=1)
        assert rows_of(found) == [(n, rows[n]) for n in SOUGHT], shape
        assert not found.report.errors
        absent = bloomcli.find(path, text_of(made(ROWS * 2)), column=leaves[shape])
        assert rows_of(absent) == []


def test_a_page_without_the_value_is_compared_with_its_checksum(tmp_path: Path) -> None:
    path = tmp_path / "checked.parquet"
    options: dict[str, Any] = {"use_dictionary": False, "compression": "none", "write_statistics": False}
    pq.write_table(pa.table({"v": pa.array(range(ROWS), pa.int64())}), path, write_page_checksum=True, **options)
    assert rows_of(bloomcli.find(path, -5, column="v")) == []
    data = bytearray(path.read_bytes())
    at = data.index((2000).to_bytes(8, "little"))
    data[at] ^= 1
    path.write_bytes(data)
    found = bloomcli.find(path, -5, column="v")
    assert rows_of(found) == []
    assert [error.exit_code for error in found.report.errors] == [3]


@pytest.mark.parametrize("shape", ["flat", "list"])
@pytest.mark.parametrize("indexed", [True, False])
@pytest.mark.parametrize("sought", [(ROWS // 2,), range(ROWS)], ids=["one row", "every row"])
def test_pages_of_columns_that_are_only_shown_are_compared_with_their_checksums(
    tmp_path: Path, shape: str, indexed: bool, sought: Sequence[int]
) -> None:
    path = tmp_path / "checked.parquet"
    values = [10**9 + n for n in range(ROWS)]
    table = pa.table({"id": range(ROWS), "v": values if shape == "flat" else [[value] for value in values]})
    options: dict[str, Any] = {"use_dictionary": False, "compression": "none", "data_page_size": 4000}
    pq.write_table(table, path, write_page_checksum=True, write_page_index=indexed, **options)
    assert [n for n, _ in rows_of(bloomcli.find(path, sought, column="id"))] == list(sought)
    data = bytearray(path.read_bytes())
    data[data.index((10**9 + ROWS // 2).to_bytes(8, "little"))] ^= 1
    path.write_bytes(data)
    found = bloomcli.find(path, sought, column="id", select="v")
    assert list(found) == []
    assert [(error.exit_code, "page integrity" in str(error.error)) for error in found.report.errors] == [(3, True)]
