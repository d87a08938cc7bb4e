"""The requests that `find` sends for files with large row groups that an index names: it has their footers."""

from __future__ import annotations

import functools
import io
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.object_stores import SCHEME, MemoryClient, Request

import bloomcli
from bloomcli.commands.find_values import Values
from bloomcli.commands.options import FindOptions
from bloomcli.errors import CorruptFile
from bloomcli.finding import pruning
from bloomcli.finding.lake import Search
from bloomcli.finding.value_file import texts_of
from bloomcli.index.ends import packed_end, unpacked_end
from bloomcli.index.layout import END_SIZES, ENDS
from bloomcli.index.puffin import MAGIC, footer_bytes, read_footer
from bloomcli.index.reader import END_BYTES, Index
from bloomcli.storage.objects.source import GAP_BYTES, PART_BYTES
from bloomcli.storage.registry import LOCAL

FOLDER: Final = f"{SCHEME}://lake/orders/"
URI: Final = f"{FOLDER}part-0.parquet"
ROWS: Final = 60_000
"""Rows of a row group, which has 3.4 MB."""
GROUPS: Final = 3


@functools.cache
def table(*, ordered: bool = False, first: int = 0, place: int = 0) -> pa.Table:
    rng = np.random.default_rng(first + 1)
    count = GROUPS * ROWS
    ids = first + (np.arange(count) if ordered else rng.permutation(count)) * 7
    columns = {
        "text": pa.array([f"text {n}" for n in range(1000)]).take(pa.array(np.arange(count) % 1000)),
        **{f"c{number}": rng.random(count) for number in range(6)},
    }
    names = list(columns)
    names.insert(place, "id")
    return pa.table({name: ids if name == "id" else columns[name] for name in names})


def encoded(data: pa.Table, group: int = ROWS, **options: Any) -> bytes:
    out = io.BytesIO()
    usual: dict[str, Any] = {"compression": "none", "use_dictionary": ["text"]}
    pq.write_table(data, out, row_group_size=group, **(usual | options))
    return out.getvalue()


def indexed(path: Path, columns: Sequence[str] = ("id",), **options: Any) -> Path:
    """An index of the folder."""
    output = path / "x.bloom-index"
    assert bloomcli.index_build(FOLDER, columns, output=output, overwrite=True, jobs=1, **options).written
    return path / "x.bloom-index"


def without_ends(index: Path) -> None:
    """Make an index what an older version wrote: it has no ends of files."""
    with LOCAL.open(str(index)) as source:
        footer = read_footer(source)
        blobs, data = [], bytearray(MAGIC)
        for blob in footer.blobs:
            if blob.type not in {ENDS, END_SIZES}:
                blobs.append(blob._replace(offset=len(data)))
                data += source.read_at(blob.offset, blob.length)
    assert len(blobs) == len(footer.blobs) - 2
    properties = {name: value for name, value in footer.properties.items() if name != "footer-xxh64"}
    index.write_bytes(data + footer_bytes(blobs, properties))


def gets(client: MemoryClient) -> list[tuple[int, int]]:
    """The ranges of files that were requested."""
    return [(r.offset, r.length) for r in client.requests if r.kind == "GET"]


def found(values: Any, index: Path | None, select: Sequence[str] = (), **options: Any) -> tuple[list[Any], Any]:
    """The rows of a search, and its report."""
    rows = bloomcli.find(FOLDER, values, column=options.pop("column", "id"), select=select, index=index, **options)
    return [row for batch in rows for row in batch.to_pylist()], rows.report


def same(client: MemoryClient, values: Any, index: Path, select: Sequence[str] = (), **options: Any) -> Any:
    """Check that a search with the index gives the rows that it gives without; its report, and the requests."""
    plain, _ = found(values, None, select, **options)
    client.requests.clear()
    rows, report = found(values, index, select, **options)
    assert rows == plain
    assert not report.errors
    return rows, report


@pytest.mark.parametrize(
    ("page_index", "ordered", "place", "codec"),
    [(False, False, 0, "none"), (False, True, 3, "snappy"), (True, False, 3, "none"), (True, True, 0, "snappy")],
)
def test_a_hit_in_a_large_row_group_takes_two_requests(
    client: MemoryClient, tmp_path: Path, page_index: bool, ordered: bool, place: int, codec: str
) -> None:
    data = table(ordered=ordered, place=place)
    file = encoded(data, write_page_index=page_index, data_page_size=16 << 10, compression=codec)
    assert GAP_BYTES < len(file) / GROUPS < PART_BYTES
    client.store(URI, file)
    index = indexed(tmp_path)
    at = ROWS + ROWS // 2
    for select, most in (((), 2), (("id",), 1), (("c1", "text"), 2)):
        (row,), report = same(client, data["id"][at].as_py(), index, select)
        assert row["row"] == at
        assert row["record"] == {
            name: value for name, value in data.slice(at, 1).to_pylist()[0].items() if not select or name in select
        }
        assert 1 <= len(gets(client)) <= most, "the column, and then the record where it has more than 2 MB"
        assert report.bytes_downloaded == sum(length for _, length in gets(client)) < 1.2 * len(file) / GROUPS
        if page_index and ordered:
            assert report.pages_left_out > 0


@pytest.mark.parametrize("page_index", [False, True], ids=["no page index", "page index"])
def test_a_false_positive_takes_a_request_for_the_column_alone(
    client: MemoryClient, tmp_path: Path, page_index: bool
) -> None:
    data = table()
    client.store(URI, encoded(data, write_page_index=page_index))
    index = indexed(tmp_path, fpp=0.5)
    read = 0
    for value in range(1, 7 * 20, 7):  # none is there, and all are between the minimum and the maximum
        client.requests.clear()
        rows, report = found(value, index)
        assert rows == []
        assert len(gets(client)) == report.row_groups_read
        assert all(length < ROWS * 9 for _, length in gets(client))
        read += report.row_groups_read
    assert read > 5


def test_a_value_beyond_the_bounds_of_the_row_group_takes_no_request(client: MemoryClient, tmp_path: Path) -> None:
    client.store(URI, encoded(table(ordered=True)))
    index = indexed(tmp_path, fpp=0.5)
    client.requests.clear()
    opened = 0
    for value in range(10**9, 10**9 + 40):
        rows, report = found(value, index)
        assert rows == []
        opened += report.files_unopened == 0
    assert opened > 10
    assert gets(client) == []


def test_several_values_in_several_row_groups_take_two_requests_for_each_row_group(
    client: MemoryClient, tmp_path: Path
) -> None:
    data = table()
    client.store(URI, encoded(data))
    index = indexed(tmp_path)
    places = [5, 70_001, 70_002, 130_003, 179_999]
    rows, report = same(client, [data["id"][at].as_py() for at in places] + [3], index)
    assert [row["row"] for row in rows] == places
    assert len(gets(client)) <= 2 * report.row_groups_read == 2 * GROUPS


def test_rows_that_are_only_counted_or_limited_take_a_request(client: MemoryClient, tmp_path: Path) -> None:
    data = table()
    client.store(URI, encoded(data))
    index = indexed(tmp_path)
    value = data["id"][7].as_py()
    client.requests.clear()
    search = Search([FOLDER], Values(texts_of(value)), FindOptions(column="id", files_only=True), index=str(index))
    assert [one.found.rows for one in search.files() if one.found.rows] == [1]
    assert len(gets(client)) == 1
    rows, _ = same(client, value, index, limit=1)
    assert len(rows) == 1
    assert len(gets(client)) == 2


@pytest.mark.slow
def test_nested_columns_nulls_and_dictionaries_give_the_same_rows(client: MemoryClient, tmp_path: Path) -> None:
    count = GROUPS * ROWS
    rng = np.random.default_rng(1)
    numbers = rng.permutation(count)
    data = pa.table(
        {
            "deep": [{"id": int(n), "name": f"n{n}"} if n % 5 else None for n in numbers],
            "tags": [[f"t{n}", f"u{n % 10}"] if n % 7 else None for n in numbers],
            "kind": pa.array([f"kind {n % 500}" if n % 3 else None for n in numbers]),
            "pad": rng.random(count),
        }
    )
    for options in ({}, {"write_page_index": True, "data_page_size": 16 << 10, "data_page_version": "2.0"}):
        client.store(URI, encoded(data, use_dictionary=["kind"], **options))
        index = indexed(tmp_path, ("deep.id", "tags.list.element", "kind"))
        at = next(n for n in range(100_000, count) if numbers[n] % 5 and numbers[n] % 7 and numbers[n] % 3)
        for column, value in (("deep.id", int(numbers[at])), ("tags.list.element", f"t{numbers[at]}")):
            rows, _ = same(client, value, index, column=column)
            assert [row["row"] for row in rows] == [at]
            assert len(gets(client)) <= 2
        rows, _ = same(client, f"kind {numbers[at] % 500}", index, column="kind")
        assert len(rows) > 100


def test_a_file_that_changed_before_the_search_is_opened_and_searched_as_without_an_index(
    client: MemoryClient, tmp_path: Path
) -> None:
    old, new = table(), table(first=3)
    client.store(URI, encoded(old))
    index = indexed(tmp_path)
    client.store(URI, encoded(new))
    at = 70_000
    rows, report = same(client, new["id"][at].as_py(), index)
    assert ([row["row"] for row in rows], report.files_changed) == ([at], 1)
    assert found(old["id"][at].as_py(), index)[0] == []


@pytest.mark.parametrize("request_number", [1, 2], ids=["before the column is read", "before the record is read"])
def test_a_file_that_changes_after_it_was_listed_is_never_read_by_the_old_footer(
    client: MemoryClient, tmp_path: Path, request_number: int
) -> None:
    old, new = table(), table(place=2).append_column("more", pa.array(range(GROUPS * ROWS)))
    client.store(URI, encoded(old))
    index = indexed(tmp_path)
    at, changed = 70_000, encoded(new)

    def change(request: Request) -> None:
        if len(gets(client)) == request_number and request.kind == "GET":
            client.on_request = lambda _: None
            client.store(URI, changed)

    client.requests.clear()
    client.on_request = change
    (row,), report = found(old["id"][at].as_py(), index)
    assert row["record"] == new.slice(row["row"], 1).to_pylist()[0]
    assert not report.errors


def test_a_file_that_is_gone_after_it_was_listed_is_an_error(client: MemoryClient, tmp_path: Path) -> None:
    data = table()
    client.store(URI, encoded(data))
    index = indexed(tmp_path)

    def remove(request: Request) -> None:
        if request.kind == "GET":
            client.objects.pop(URI, None)

    client.on_request = remove
    rows, report = found(data["id"][7].as_py(), index)
    assert rows == []
    assert "no such file" in (report.errors[0].error or "")


@pytest.mark.slow
def test_an_index_of_an_older_version_gives_the_same_rows_and_an_update_keeps_what_it_has(
    client: MemoryClient, tmp_path: Path
) -> None:
    old, new = table(), table(first=3)
    client.store(URI, encoded(old))
    index = indexed(tmp_path)
    without_ends(index)
    value = old["id"][70_000].as_py()
    same(client, value, index)
    assert len(gets(client)) == 3, "the tail, the column, the record"
    client.store(f"{FOLDER}part-1.parquet", encoded(new))
    assert bloomcli.index_update(FOLDER, index, jobs=1).kept == 1
    same(client, value, index)
    assert len(gets(client)) == 3
    same(client, new["id"][70_000].as_py(), index)
    assert len(gets(client)) == 2


def test_an_update_keeps_the_ends_of_files_and_forgets_those_of_others(client: MemoryClient, tmp_path: Path) -> None:
    tables = [table(first=first) for first in range(3)]
    for number, data in enumerate(tables[:2]):
        client.store(f"{FOLDER}part-{number}.parquet", encoded(data))
    index = indexed(tmp_path)
    del client.objects[f"{FOLDER}part-0.parquet"]
    client.store(f"{FOLDER}part-2.parquet", encoded(tables[2]))
    assert bloomcli.index_update(FOLDER, index, jobs=1).dropped_gone == 1
    with LOCAL.open(str(index)) as source:
        read = Index(source)
        assert [at for at, _ in read.ends(range(len(read.files)))] == [0, 1]
    for number in (1, 2):
        rows, _ = same(client, tables[number]["id"][70_000].as_py(), index)
        assert [row["row"] for row in rows] == [70_000]
        assert len(gets(client)) == 2


def test_files_of_small_row_groups_and_files_of_this_machine_have_no_ends(
    client: MemoryClient, tmp_path: Path
) -> None:
    client.store(URI, encoded(table(), group=10_000))
    small = indexed(tmp_path)
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake" / "x.parquet").write_bytes(encoded(table()))
    bloomcli.index_build(tmp_path / "lake", ["id"], output=tmp_path / "local.idx")
    for index in (small, tmp_path / "local.idx"):
        assert not {blob.type for blob in bloomcli.index_inspect(index).blobs} & {ENDS, END_SIZES}


def test_a_file_whose_statistics_lie_is_opened_and_its_rows_are_found(client: MemoryClient, tmp_path: Path) -> None:
    data = table(ordered=True)
    file = bytearray(encoded(data))
    least, footer = (ROWS * 7).to_bytes(8, "little"), len(file) - int.from_bytes(file[-8:-4], "little") - 8
    lie = (ROWS * 7 + 701).to_bytes(8, "little")
    assert file.count(least, footer) > 0
    client.store(URI, bytes(file[:footer]) + bytes(file[footer:]).replace(least, lie))
    index = indexed(tmp_path)
    assert ENDS not in {blob.type for blob in bloomcli.index_inspect(index).blobs}
    rows, _ = found(ROWS * 7, index)
    assert [row["row"] for row in rows] == [ROWS]


def test_a_flipped_bit_in_the_ends_is_an_error_that_names_the_index(client: MemoryClient, tmp_path: Path) -> None:
    data = table()
    client.store(URI, encoded(data))
    index = indexed(tmp_path)
    (ends,) = [blob for blob in bloomcli.index_inspect(index).blobs if blob.type == ENDS]
    flipped = bytearray(index.read_bytes())
    flipped[ends.offset + ends.length // 2] ^= 4
    index.write_bytes(flipped)
    with pytest.raises(CorruptFile, match="bytes don't match their checksum") as caught:
        found(data["id"][7].as_py(), index)
    assert caught.value.path == str(index)


@pytest.mark.parametrize(
    "ranges",
    [[], [(5, b"")], [(-1, b"ab")], [(4, b"abc"), (5, b"abcde")], [(2, b"abc")], [(3, b"abcdefghi")]],
    ids=["none", "empty", "negative", "overlapping", "not up to the end", "beyond the end"],
)
def test_ends_that_are_none_of_the_file_are_errors(ranges: list[tuple[int, bytes]]) -> None:
    with pytest.raises(ValueError, match="range"):
        unpacked_end(packed_end(ranges), 10)


def test_an_index_in_a_store_is_opened_once_and_asked_for_the_rows_of_bits(
    client: MemoryClient, tmp_path: Path
) -> None:
    data = table()
    client.store(URI, encoded(data))
    index = f"{SCHEME}://lake/x.bloom-index"
    client.store(index, indexed(tmp_path).read_bytes())
    client.requests.clear()
    rows = bloomcli.find(FOLDER, data["id"][70_000].as_py(), column="id", index=index)
    assert sum(batch.num_rows for batch in rows) == 1
    asked = [request for request in client.requests if request.key == "x.bloom-index"]
    assert [request.kind for request in asked] == ["GET", "GET"]
    assert sum(request.length for request in asked) < END_BYTES + (1 << 20)


def test_files_beyond_the_bytes_that_are_held_are_opened(
    client: MemoryClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = table()
    for number in range(3):
        client.store(f"{FOLDER}part-{number}.parquet", encoded(data))
    index = indexed(tmp_path)
    (ends,) = [blob for blob in bloomcli.index_inspect(index).blobs if blob.type == ENDS]
    monkeypatch.setattr(pruning, "_ENDS_BYTES", ends.length // 2)
    rows, _ = same(client, data["id"][70_000].as_py(), index, jobs=1)
    assert [row["row"] for row in rows] == [70_000] * 3
    asked = Counter(request.key for request in client.requests if request.kind == "GET")
    assert list(asked.values()) == [2, 3, 3]


def test_an_end_is_unpacked_as_it_was_packed() -> None:
    ranges = [(3, b"abc"), (6, b"defg")]
    packed = packed_end(ranges)
    assert unpacked_end(packed, 10) == ranges
    for cut in range(len(packed)):
        with pytest.raises(ValueError, match="checksum"):
            unpacked_end(packed[:cut], 10)
