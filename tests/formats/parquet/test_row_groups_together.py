"""Row groups of a local file that are searched together: the same rows as one by one, with less work."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bloomcli
from bloomcli.formats.parquet import page_decoder, records, search

GROUP = 40
GROUPS = 9
ROWS = GROUP * GROUPS
SOME: Any = {"row_group_size": GROUP, "data_page_size": 64, "write_batch_size": 8}


def table(rows: int = ROWS) -> pa.Table:
    numbers = range(rows)
    names = [None if n % 7 == 0 else f"name {n % 50}" for n in numbers]
    kinds = {
        "id": pa.array(numbers, pa.int64()),
        "name": names,
        "packed": pa.array(names).dictionary_encode().cast(pa.string()),
        "ratio": [None if n % 5 == 0 else math.nan if n % 11 == 0 else n / 4 for n in numbers],
        "tags": [[n, n + 1][: n % 3] for n in numbers],
        "place": [None if n % 13 == 0 else {"city": f"city {n}", "zip": n} for n in numbers],
        "small": pa.array([n % 100 for n in numbers], pa.int8()),
    }
    return pa.table(kinds)


def written(path: Path, **options: Any) -> Path:
    pq.write_table(table(), path, **{**SOME, **options})
    return path


def rows_of(found: Iterable[pa.RecordBatch]) -> list[dict[str, Any]]:
    return [row for batch in found for row in batch.to_pylist()]


def plain(rows: list[dict[str, Any]]) -> str:
    """Rows as text, in which NaN equals NaN."""
    return repr(rows)


@pytest.mark.slow
@pytest.mark.parametrize(("version", "indexed"), [("1.0", True), ("2.0", False)])
@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("id", [3, 4, 41, 170, 171, 359]),
        ("id", list(range(0, ROWS, 2))),
        ("id", pa.array(range(0, 3 * ROWS, 3))),
        ("name", ["name 3", "name 44", "no name"]),
        ("packed", pa.array([f"name {n}" for n in range(10, 400)])),
        ("ratio", ["nan", "1.5", "77"]),
        ("tags.list.element", list(range(0, ROWS, 9))),
        ("place.zip", [0, 1, 200]),
        ("small", [99]),
    ],
)
def test_the_rows_are_those_of_row_groups_that_are_searched_one_by_one(
    tmp_path: Path, column: str, values: Any, version: str, *, indexed: bool
) -> None:
    path = written(tmp_path / "some.parquet", data_page_version=version, write_page_index=indexed)
    together = bloomcli.find(path, values, column=column)
    rows = rows_of(together)
    alone = rows_of(bloomcli.find(path, values, column=column, limit=10**6))  # a limit may need the first ones only
    assert plain(rows) == plain(alone)
    assert [row["row_group"] for row in rows] == [row["row"] // GROUP for row in rows]
    assert plain([row["record"] for row in rows]) == plain([table().to_pylist()[row["row"]] for row in rows])
    assert together.report.rows == len(rows) > 0


@pytest.mark.parametrize("most", [1, 300, 3000])
def test_row_groups_that_do_not_fit_are_decoded_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    path = written(tmp_path / "some.parquet")
    whole = rows_of(bloomcli.find(path, list(range(0, ROWS, 5)), column="id"))
    monkeypatch.setattr(page_decoder, "_TOGETHER_BYTES", most)
    monkeypatch.setattr(search, "_BYTES_TOGETHER", most)
    monkeypatch.setattr(records, "_AT_ONCE", 7)
    monkeypatch.setattr(records, "_BYTES_MOST", most)
    assert plain(rows_of(bloomcli.find(path, list(range(0, ROWS, 5)), column="id"))) == plain(whole)


def test_one_file_in_memory_is_built_for_the_pages_of_all_row_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path / "some.parquet")
    build, groups = page_decoder.file_of, []

    def watched(chunks: Any, typed: Any) -> bytes:
        groups.append(len(chunks))
        return build(chunks, typed)

    monkeypatch.setattr(page_decoder, "file_of", watched)
    rows = rows_of(bloomcli.find(path, list(range(1, ROWS, GROUP)), column="id", select=["id", "name"]))
    assert len(rows) == GROUPS
    assert groups == [GROUPS, GROUPS], "the pages of id, and those of name"


def test_a_value_that_the_filter_of_a_row_group_excludes_is_not_found_in_it(tmp_path: Path) -> None:
    path = tmp_path / "wrong.parquet"
    ids = pa.table({"id": pa.array([*range(100), *range(50, 150)], pa.int64())})
    pq.write_table(ids, path, row_group_size=100, bloom_filter_options={"id": {"ndv": 100, "fpp": 1e-9}})
    metadata = pq.read_metadata(path)
    first, second = (metadata.row_group(n).column(0) for n in range(2))
    data = bytearray(path.read_bytes())
    size = first.bloom_filter_length
    assert size == second.bloom_filter_length
    low, high = first.bloom_filter_offset, second.bloom_filter_offset
    without = tmp_path / "without.parquet"
    pq.write_table(pa.table({"id": pa.array([*range(40), *range(60, 120)], pa.int64())}), without,
                   row_group_size=100, bloom_filter_options={"id": {"ndv": 100, "fpp": 1e-9}})  # fmt: skip
    other = pq.read_metadata(without).row_group(0).column(0)
    filters = without.read_bytes()[other.bloom_filter_offset :][:size]
    data[low : low + size] = filters  # the first row group's filter lacks 40 to 59, but has the bounds 0 and 99
    path.write_bytes(bytes(data))
    assert high != low
    for values in ([55], [55, 10], pa.array(range(45, 400))):
        together = rows_of(bloomcli.find(path, values, column="id"))
        alone = rows_of(bloomcli.find(path, values, column="id", limit=10**6))
        assert together == alone
        assert [row["row"] for row in together if row["record"]["id"] == 55] == [105]
        after_another = rows_of(
            bloomcli.find([without, path], values, column="id")
        )  # its filters are read before it is
        assert [row for row in after_another if row["path"] == str(path)] == alone


def test_row_groups_whose_values_are_small_are_decoded_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path / "some.parquet")
    parts: list[int] = []
    decoded = page_decoder.decoded

    def watched(*given: Any, **named: Any) -> Any:
        for part in decoded(*given, **named):
            parts.append(len(part.ends))
            yield part

    monkeypatch.setattr(page_decoder, "decoded", watched)
    assert len(rows_of(bloomcli.find(path, list(range(1, ROWS, GROUP)), column="id", select=["small"]))) == GROUPS
    assert parts == [GROUPS]


def test_a_column_with_too_few_values_in_a_row_group_gives_no_other_values_to_rows_of_the_next_ones(
    tmp_path: Path,
) -> None:
    path = tmp_path / "short.parquet"
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("other", pa.int64(), nullable=False)])
    numbers = pa.table({"id": range(ROWS), "other": range(ROWS)}, schema=schema)
    pq.write_table(numbers, path, row_group_size=GROUP, use_dictionary=False, compression="none")
    at = pq.read_metadata(path).row_group(2).column(1).data_page_offset
    data = bytearray(path.read_bytes())
    count = data.index(b"\x2c\x15\x50", at, at + 40)  # DataPageHeader.num_values: 40
    data[count + 2] = 0x4E  # 39
    path.write_bytes(bytes(data))
    rows = rows_of(bloomcli.find(path, [1, 90, 130, 300], column="id", select=["other"]))
    assert [row["record"]["other"] for row in rows] == [1, 90, 130, 300]
    found = bloomcli.find(path, [1, 3 * GROUP - 1, 130, 300], column="id", select=["other"])
    assert rows_of(found) == []
    assert "row_groups[2].columns[1]" in str(found.report.errors[0].error)
