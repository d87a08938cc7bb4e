"""A page index that can't be read ends in one error with its place, and no command reads more of it than it may."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support import footers, thrift
from support.thrift import I32, I64, LIST, STRUCT, Items

import bloomcli
from bloomcli.errors import CorruptFile, UnsupportedError
from bloomcli.formats.parquet import limits, page_index
from bloomcli.formats.parquet.footer import Footer, read_footer
from bloomcli.kernels import ColumnIndex, OffsetIndex
from bloomcli.model.file import ChunkKey
from bloomcli.storage.base import Source
from bloomcli.storage.registry import open_source

ROWS: Final = 400
READ: Final[dict[str, Callable[[Source, Footer, ChunkKey], ColumnIndex | OffsetIndex | None]]] = {
    "column_index": page_index.column_index,
    "offset_index": page_index.offset_index,
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file of one row group, with four pages for each column, and page indexes."""
    table = pa.table({"id": range(ROWS), "word": [f"word{i:04}" for i in range(ROWS)]})
    options: dict[str, Any] = {"use_dictionary": False, "data_page_size": 1, "write_batch_size": 100}
    pq.write_table(table, tmp_path / "f", write_page_index=True, compression="none", **options)
    return tmp_path / "f"


def extent(path: Path, name: str) -> tuple[int, int]:
    """The offset and length of an index of the column `word`."""
    footer = bloomcli.inspect(path, footer=True).footer
    assert footer is not None
    chunk = footer["FileMetaData"]["row_groups"][0]["columns"][1]
    return chunk[f"{name}_offset"], chunk[f"{name}_length"]


def with_bytes(path: Path, name: str, changed: Callable[[bytes], bytes]) -> None:
    """Change an index in the file to bytes that aren't longer."""
    at, length = extent(path, name)
    data = path.read_bytes()
    new = changed(data[at : at + length])
    assert len(new) <= length
    path.write_bytes(data[:at] + new.ljust(length, b"\0") + data[at + length :])


def read(path: Path, name: str) -> ColumnIndex | OffsetIndex | None:
    """The decoded index of the column `word`."""
    with open_source(path) as source:
        footer = read_footer(source)
        (key,) = footer.chunk_keys({1})
        return READ[name](source, footer, key)


def found(path: Path) -> tuple[int, int]:
    """The number of rows that `find` finds, and of pages that it leaves out."""
    rows = bloomcli.find(path, ["word0123"], column="word")
    return sum(batch.num_rows for batch in rows), rows.report.pages_left_out


def edited(number: int, kind: int, values: list[Any]) -> Callable[[bytes], bytes]:
    """An edit that sets a field of an index to a list."""

    def change(data: bytes) -> bytes:
        tree, _ = thrift.parse(data)
        tree[number] = (LIST, Items(kind, values))
        return thrift.encode(tree)

    return change


DAMAGED: Final[dict[str, tuple[str, Callable[[bytes], bytes], str, str]]] = {
    # the index, the edit, the reason, the field after the index's
    "no structure": ("column_index", lambda data: b"\xff" * len(data), "", ""),
    "cut off": ("offset_index", lambda data: data[:1] + b"\xfc" + data[2:], "runs past its end", ""),
    "a list too long": ("column_index", lambda _: b"\x19\xf1\xff\xff\xff\xff\x07\x01", "larger than the bytes", ""),
    "no null pages": ("column_index", lambda _: b"", "it has no null_pages", ".null_pages"),
    "no pages": ("offset_index", lambda _: b"", "it has no page_locations", ".page_locations"),
    "numbers as bounds": (
        "column_index",
        edited(2, I32, [7] * 4),
        "min_values has elements of another type",
        ".min_values",
    ),
    "a page without a row": (
        "offset_index",
        edited(1, STRUCT, [{1: (I64, 4), 2: (I32, 9)}]),
        "a page has no first_row_index",
        ".page_locations[0]",
    ),
}


@pytest.mark.parametrize("what", DAMAGED)
def test_a_damaged_index_is_an_error_with_its_place_and_find_does_without_it(path: Path, what: str) -> None:
    name, edit, reason, field = DAMAGED[what]
    assert found(path) == (1, 3)
    with_bytes(path, name, edit)
    with pytest.raises(CorruptFile) as fault:
        read(path, name)
    words = name.replace("_", " ")
    assert fault.value.reason.startswith(f"the {words} can't be read: ")
    assert reason in fault.value.reason
    start, length = extent(path, name)
    assert fault.value.path == str(path)
    assert start <= (fault.value.offset or 0) <= start + length
    assert fault.value.field == f"row_groups[0].columns[1].{name}{field}"
    entries = bloomcli.inspect(path, columns=["word"], indexes=True).index
    assert [entry.problem for entry in entries if entry.problem is not None] == [fault.value.reason]
    assert found(path) == (1, 0)


@pytest.mark.parametrize("name", READ)
def test_an_index_with_more_bytes_or_elements_than_are_read_is_not_read(
    path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = name.replace("_", " ")
    monkeypatch.setattr(limits, "INDEX_MAX_ELEMENTS", 3)
    with pytest.raises(UnsupportedError, match=f"the {words} has more than 3 elements; at most 3 are read") as fault:
        read(path, name)
    assert fault.value.offset == extent(path, name)[0]
    monkeypatch.setattr(limits, "INDEX_MAX_BYTES", 10)
    with pytest.raises(UnsupportedError, match=rf"the {words} has \d+ bytes; at most 10 are read") as fault:
        read(path, name)
    assert fault.value.field == f"row_groups[0].columns[1].{name}"
    problems = [entry.problem for entry in bloomcli.inspect(path, columns=["word"], indexes=True).index]
    assert fault.value.reason in problems
    assert found(path)[0] == 1


def test_indexes_without_pages_are_listed_and_not_used(path: Path) -> None:
    for number in (1, 2, 3, 5):
        with_bytes(path, "column_index", edited(number, {1: 1, 2: 8, 3: 8, 5: I64}[number], []))
    with_bytes(path, "offset_index", edited(1, STRUCT, []))
    assert [entry.problem for entry in bloomcli.inspect(path, columns=["word"], indexes=True).index] == []
    assert found(path)[0] == 1


def test_chunks_without_indexes_and_encrypted_chunks_have_none(tmp_path: Path, path: Path) -> None:
    pq.write_table(pa.table({"id": [1], "word": ["a"]}), tmp_path / "g", write_page_index=False)
    assert [read(tmp_path / "g", name) for name in READ] == [None, None]
    (tmp_path / "h").write_bytes(footers.with_encrypted(path.read_bytes(), (0, 1)))
    assert [read(tmp_path / "h", name) for name in READ] == [None, None]
