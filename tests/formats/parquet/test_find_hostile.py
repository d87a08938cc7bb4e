"""find in hostile Parquet files: bounded memory, no traceback, and no lost row if the offset index is wrong."""

from __future__ import annotations

import random
import struct
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support import footers, measured_command, thrift
from support.object_stores import SCHEME, MemoryObjects
from support.pagefiles import (
    MEBI,
    data_page,
    dictionary_page,
    indices,
    of_pages,
    one_page,
    one_string,
    prefixes,
    squeezed,
    steps,
)
from support.thrift import Items

import bloomcli
from bloomcli.commands import find
from bloomcli.commands.find_values import Values
from bloomcli.commands.options import FindOptions
from bloomcli.errors import BloomError, CorruptFile
from bloomcli.formats.parquet.file import ParquetFile
from bloomcli.formats.parquet.footer import OFFSET_INDEX
from bloomcli.model.find import FileFound
from bloomcli.storage import registry
from bloomcli.storage.registry import open_source

MEMORY_MAX_BYTES: Final = 1 << 30
"""The limit of address space in addition to what libraries take."""


def long_entry(path: Path) -> Path:
    """A dictionary entry of 1 MiB, 4096 times: 4 GiB of values."""
    entry = MEBI.to_bytes(4, "little") + random.Random(1).randbytes(MEBI)
    body, size = squeezed([b"\1", b"\x02\0" * 4096])
    return one_page(path, body, "BYTE_ARRAY", "RLE_DICTIONARY", 4096, size=size, dictionary=entry, entries=1)


PREFIXES: Final = partial(prefixes, blocks=11)
"""4 GB of values."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "command"),
    [
        *((make, "--select=c") for make in (PREFIXES, long_entry, steps, one_string)),
        (PREFIXES, "--files-only"),  # decodes the same pages, and no records
    ],
)
def test_memory_is_bounded(tmp_path: Path, make: Callable[[Path], Path], command: str) -> None:
    path = make(tmp_path / "f.parquet")
    values = tmp_path / "values.txt"
    values.write_text("\n".join(map(str, range(300))))  # too many for dictionaries to rule them out
    words = ["find", "--values-from", values, path, "-c", "c", command, "-f", "jsonl"]
    done = measured_command.run(*words, memory=MEMORY_MAX_BYTES)
    assert "Traceback" not in done.errors
    assert done.code in {1, 3, 4}, done.errors
    assert done.output == ""
    if make in {PREFIXES, long_entry}:
        assert done.code == 1, f"all of it is read: {done.errors}"


@pytest.mark.slow
def test_values_that_share_bytes_are_refused_where_they_would_take_minutes(tmp_path: Path) -> None:
    path = prefixes(tmp_path / "f.parquet", blocks=128)  # 550 GB in a page of 1 MB
    found = bloomcli.find(path, "no", column="c", limit=1)
    assert list(found) == []
    (failed,) = found.report.errors
    assert "at most 34359738368 are decoded" in str(failed.error)
    assert (failed.exit_code, found.report.exit_code) == (4, 4)


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("indexed") / "f.parquet"
    numbers = random.Random(1).sample(range(1000), 600)
    table = pa.table({"id": numbers, "text": [f"t{n}" for n in numbers], "list": [[n, n + 1] for n in numbers]})
    options: dict[str, Any] = {"write_page_index": True, "data_page_size": 100, "write_batch_size": 20}
    pq.write_table(table, path, row_group_size=200, compression="none", use_dictionary=["text"], **options)
    return path


def rows_of(path: Path, column: str, values: list[Any]) -> tuple[list[tuple[int, str]], Any]:
    found = bloomcli.find(path, values, column=column)
    return [(row["row"], str(row["record"])) for batch in found for row in batch.to_pylist()], found.report


CASES: Final[dict[str, list[Any]]] = {
    "id": [3, 500, 77, 990, 12],
    "text": ["t3", "t500", "t77", "t12"],
    "list.list.element": [3, 501],
}


def seeds(count: int) -> list[Any]:
    """Seeds of changes; the quick run tries only the first ones."""
    return [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, count))]


@pytest.mark.slow
@pytest.mark.parametrize("column", CASES)
@pytest.mark.parametrize("seed", seeds(3))
def test_a_wrong_offset_index_gives_the_right_rows_or_an_error(
    indexed: Path, tmp_path: Path, column: str, seed: int
) -> None:
    """The bounds of the column index are trusted, as by readers; the locations of pages aren't."""
    rng = random.Random(f"{seed} {column}")
    expected, _ = rows_of(indexed, column, CASES[column])
    assert expected
    data = indexed.read_bytes()
    offsets = offset_indexes(indexed)
    path = tmp_path / "f.parquet"
    right = refused = 0
    for _ in range(60):
        changed = bytearray(data)
        for _ in range(rng.choice((1, 1, 2, 4))):
            changed[rng.choice(offsets)] = rng.choice((0, 1, 2, 0x7F, 0x80, 0xFF, rng.randrange(256)))
        path.write_bytes(changed)
        rows, report = rows_of(path, column, CASES[column])
        if report.errors:
            refused += 1
            assert set(rows) <= set(expected), "no wrong row next to an error"
        else:
            right += 1
            assert rows == expected
    assert right


def offset_indexes(path: Path) -> list[int]:
    """The positions of the bytes of offset indexes."""
    with open_source(path) as source:
        footer = ParquetFile(source).footer
        return [
            at
            for key in footer.chunk_keys()
            for kind, offset, length in footer.index_extents(key, footer.metadata(key))
            if kind == OFFSET_INDEX
            for at in range(offset, offset + length)
        ]


@pytest.mark.slow
@pytest.mark.parametrize("column", CASES)
@pytest.mark.parametrize("seed", seeds(2))
def test_any_change_of_a_file_gives_rows_or_an_error_and_no_other_exception(
    indexed: Path, tmp_path: Path, column: str, seed: int
) -> None:
    rng = random.Random(f"any {seed} {column}")
    data, path = indexed.read_bytes(), tmp_path / "f.parquet"
    failed = 0
    for _ in range(60):
        changed = bytearray(data)
        for _ in range(rng.choice((1, 1, 2, 3))):
            at = rng.randrange(4, len(changed) - 8)
            changed[at] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
        path.write_bytes(changed)
        try:
            _, report = rows_of(path, column, CASES[column])
        except BloomError:
            failed += 1
        else:
            failed += bool(report.errors)
    assert failed


def numbers(values: range) -> bytes:
    return struct.pack(f"<{len(values)}q", *values)


def of_two_dictionaries(first: bytes, second: bytes) -> list[bytes]:
    """800 rows in 8 pages: each row has the first entry of the preceding dictionary."""
    pages = [data_page(indices(0, 100), 100, "RLE_DICTIONARY")] * 4
    return [dictionary_page(first, 1), *pages, dictionary_page(second, 1), *pages]


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("value", [1, 7])
def test_a_column_with_two_dictionaries_is_refused(tmp_path: Path, value: int, many: bool) -> None:
    """Readers disagree about the dictionary of later values; the specification allows one dictionary."""
    pages = of_two_dictionaries(numbers(range(1, 2)), numbers(range(7, 8)))
    path = of_pages(tmp_path / "f.parquet", {"c": ("INT64", pages)}, 800)
    rows, report = rows_of(path, "c", [value, *(range(100, 500) if many else ())])
    assert "a second dictionary" in str(report.errors[0].error)
    assert {row for row, _ in rows} <= set(range(400)), "those before the second one"


def test_a_row_of_a_selected_column_with_two_dictionaries_is_refused(tmp_path: Path) -> None:
    ids = data_page(numbers(range(1000, 1800)), 800)
    words = of_two_dictionaries(b"\3\0\0\0one", b"\3\0\0\0uno")
    path = of_pages(tmp_path / "f.parquet", {"c": ("INT64", [ids]), "word": ("BYTE_ARRAY", words)}, 800)
    rows, report = rows_of(path, "c", [1700])
    assert rows == []
    assert "a second dictionary" in str(report.errors[0].error)


@pytest.mark.parametrize("encoding", ["DELTA_BINARY_PACKED", "RLE_DICTIONARY"])
@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("searched", ["c", "n"])
def test_a_dictionary_in_another_encoding_is_refused(
    tmp_path: Path, encoding: str, many: bool, searched: str
) -> None:
    """Arrow refuses it. When its bytes were read as PLAIN, wrong rows were found, or rows were lost."""
    body, page = numbers(range(1, 2)), data_page(indices(0, 100), 100, "RLE_DICTIONARY")
    ids = [data_page(numbers(range(100)), 100)]
    columns = {"c": ("INT64", [dictionary_page(body, 1, encoding), page]), "n": ("INT64", ids)}
    path = of_pages(tmp_path / "f.parquet", columns, 100)
    rows, report = rows_of(path, searched, [1, *(range(100, 500) if many else ())])
    (failed,) = report.errors
    assert rows == []
    said = f"{path}: a dictionary in the encoding {encoding} (at row_groups[0].columns[0], byte 4)"
    assert str(failed.error) == said


def searched(path: Path, values: Values, *, files_only: bool) -> FileFound:
    return find.run(str(path), FindOptions(column="c", files_only=files_only).checked(), values, [].append)


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("files_only", [False, True])
def test_rows_of_a_column_that_has_no_values_by_the_footer_are_not_absent(
    tmp_path: Path, files_only: bool, many: bool
) -> None:
    pages = {"c": ("INT64", [data_page(numbers(range(8)), 8)])}
    whole, path = of_pages(tmp_path / "whole", pages, 8), of_pages(tmp_path / "other", pages, 8, 0)
    values = Values([str(value) for value in (3, *(range(100, 500) if many else ()))])
    for _ in range(2):
        with pytest.raises(CorruptFile, match="the column has no values, and the row group 8 rows"):
            searched(path, values, files_only=files_only)
        assert searched(whole, values, files_only=files_only).rows == 1  # other files are compared with it


def deep(path: Path, groups: int) -> Path:
    """A column of numbers, and an optional one within `groups` groups."""
    of_pages(path, {"c": ("INT64", [data_page(numbers(range(8)), 8)]), "leaf": ("INT64", [data_page(b"", 8)])}, 8)
    data, footer = footers.split(path.read_bytes())
    tree, _ = thrift.parse(footer)
    root, flat, leaf = tree[2][1].values
    names = [b"g%d" % at for at in range(groups)]
    above = [{3: (thrift.I32, 1), 4: (thrift.BINARY, name), 5: (thrift.I32, 1)} for name in names]
    leaf[3] = (thrift.I32, 1)
    tree[2] = (thrift.LIST, Items(thrift.STRUCT, [root, flat, *above, leaf]))
    meta = tree[4][1].values[0][1][1].values[1][3][1]
    meta[3] = (thrift.LIST, Items(thrift.BINARY, [*names, b"leaf"]))
    path.write_bytes(footers.join(data, thrift.encode(tree)))
    return path


def test_deeply_nested_columns_do_not_affect_the_search_of_another(tmp_path: Path) -> None:
    values = Values(["5"])
    for number in range(3):
        path = deep(tmp_path / f"{number}.parquet", 255)
        bloomcli.add(path, ["c"], in_place=True)
        assert searched(path, values, files_only=True).rows == 1


def test_files_that_arrow_cannot_read_have_no_error_where_they_have_no_row(tmp_path: Path) -> None:
    """Others are compared with the first file, which takes Arrow's schema, and not every file has one."""
    paths = [deep(tmp_path / f"{number}.parquet", 150) for number in range(2)]
    found = bloomcli.find(paths, range(100, 500), column="c", select=["c"])
    assert list(found) == []
    assert found.report.errors == ()
    found = bloomcli.find(paths, range(400), column="c", select=["c"])
    assert list(found) == []
    assert "can't be read: Parquet schema too deeply nested" in str(found.report.errors[0].error)


def with_schema(path: Path, schema: bytes) -> bytes:
    """The bytes of a file with another Arrow schema."""
    data, footer = footers.split(path.read_bytes())
    tree, _ = thrift.parse(footer)
    (pair,) = tree[5][1].values
    assert pair[1][1] == b"ARROW:schema"
    pair[2] = (thrift.BINARY, schema)
    return footers.join(data, thrift.encode(tree))


@pytest.mark.parametrize("schema", [b"!!!!", b"AAAA"], ids=["no base 64", "no message"])
@pytest.mark.parametrize("many", [False, True])
def test_a_file_whose_schema_arrow_cannot_read_does_not_end_the_search_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, schema: bytes, many: bool
) -> None:
    """The file is in a store, where the reads of a file are announced according to its schema."""
    store = MemoryObjects()
    monkeypatch.setitem(registry.known_stores(), SCHEME, store)
    path, folder = tmp_path / "f.parquet", f"{SCHEME}://lake/t/"
    pq.write_table(pa.table({"c": range(0, 1000, 2), "text": ["x"] * 500}), path)
    store.client.store(f"{folder}a.parquet", with_schema(path, schema))
    store.client.store(f"{folder}b.parquet", path.read_bytes())
    more = range(2001, 2401) if many else ()
    found = bloomcli.find(folder, [500, *more], column="c")
    assert [row["path"] for batch in found for row in batch.to_pylist()] == [f"{folder}b.parquet"]
    (failed,) = found.report.errors
    assert "a.parquet: the rows of row group 0 can't be read" in str(failed.error)
    found = bloomcli.find(folder, [501, *more], column="c")
    assert list(found) == []
    assert found.report.errors == ()


@pytest.mark.parametrize("page_index", [False, True], ids=["no page index", "page index"])
@pytest.mark.parametrize("rows", [1 << 40, (1 << 63) - 1])
def test_lists_of_more_rows_than_values_are_refused_before_memory_is_taken_for_them(
    tmp_path: Path, rows: int, page_index: bool
) -> None:
    path = tmp_path / "f.parquet"
    pq.write_table(pa.table({"list": [[n, n + 1] for n in range(300)]}), path, write_page_index=page_index)
    data, footer = footers.split(path.read_bytes())
    tree, _ = thrift.parse(footer)
    tree[4][1].values[0][3] = (thrift.I64, rows)
    path.write_bytes(footers.join(data, thrift.encode(tree)))
    found, report = rows_of(path, "list.list.element", [5])
    assert found == []
    assert f"the column's pages have 600 values, too few for {rows} rows" in str(report.errors[0].error)


def calls(work: Callable[[], object]) -> int:
    """The number of calls of Python functions, steps of generators included."""
    count = 0

    def seen(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(seen)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize("indexed", [False, True])
def test_each_page_of_a_column_takes_the_same_work_however_many_pages_there_are(
    tmp_path: Path, *, indexed: bool
) -> None:
    def searched(pages: int) -> int:
        path = tmp_path / f"{pages}.parquet"
        pq.write_table(
            pa.table({"id": range(pages)}),
            path,
            data_page_size=1,
            write_batch_size=1,
            use_dictionary=False,
            write_statistics=not indexed,
            write_page_index=indexed,
        )
        options, wanted = FindOptions(column="id", files_only=True), Values([str(pages - 1)])
        rows: list[FileFound] = []
        count = calls(lambda: rows.append(find.run(str(path), options, wanted, lambda _: None)))
        assert rows[0].pages_read >= pages
        return count

    searched(2)  # imports
    assert searched(800) < 3 * searched(400)


@pytest.mark.slow
def test_each_row_group_with_matches_takes_the_same_work_however_many_there_are(tmp_path: Path) -> None:
    def searched(row_groups: int) -> int:
        path = tmp_path / f"{row_groups}.parquet"
        pq.write_table(pa.table({"id": [7] * row_groups, "other": range(row_groups)}), path, row_group_size=1)
        rows: list[FileFound] = []
        count = calls(
            lambda: rows.append(find.run(str(path), FindOptions(column="id"), Values(["7"]), lambda _: None))
        )
        assert rows[0].rows == row_groups
        return count

    searched(2)  # imports
    assert searched(600) < 3 * searched(300)
