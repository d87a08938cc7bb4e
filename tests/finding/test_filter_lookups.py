"""The search of many files, of which filters rule out most: only the others are opened, and nothing else differs."""

from __future__ import annotations

import datetime as dt
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.tables import write

import bloomcli
from bloomcli.commands import find
from bloomcli.commands.find_values import Values
from bloomcli.commands.options import FindOptions
from bloomcli.concurrency.threads import Stop, Stopped, Threads
from bloomcli.finding.filter_lookups import files_to_search, look_up
from bloomcli.finding.lake import Search
from bloomcli.finding.search_files import FileWork, SearchFiles
from bloomcli.formats.filter_lookup import FilterAnswer, FilterLookup
from bloomcli.formats.parquet.bloom_filter import Filters, ProbedFilter
from bloomcli.model.file import ColumnChunk
from bloomcli.storage.base import Source
from bloomcli.storage.listing import expand

FILES = 30
ROWS = 40


def write_file(path: Path, number: int, name: str = "id") -> None:
    """40 rows in 2 row groups; row 7 of each tenth file has the value 7."""
    ids = [number * 1000 + i for i in range(100, 100 + ROWS)]
    if number % 10 == 9:
        ids[7] = 7
    write(path, pa.table({name: pa.array(ids, pa.int64()), "n": ids}), rows=20, store_schema=False)
    bloomcli.add(path, [name], in_place=True)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files with and without the value, damaged ones, and others that have other columns or no filters."""
    folder = tmp_path_factory.mktemp("lake")
    for number in range(FILES):
        write_file(folder / f"{number:03}.parquet", number)
    whole = (folder / "000.parquet").read_bytes()
    (folder / "004-cut.parquet").write_bytes(whole[: len(whole) // 2])
    (folder / "005-empty.parquet").write_bytes(b"")
    (folder / "006-other.txt").write_bytes(b"no Parquet file at all")
    write_file(folder / "007-other.parquet", 9, name="key")
    write(folder / "008-plain.parquet", pa.table({"id": pa.array([7], pa.int64()), "n": [7]}), store_schema=False)
    (folder / "021-folder.parquet").mkdir()
    (folder / "022-link.parquet").symlink_to("nowhere")
    os.mkfifo(folder / "023-pipe.parquet")
    return folder


def searched(lake: Path | list[str], jobs: int, **options: Any) -> tuple[list[Any], Any]:
    """The rows of a search for 7, and its report without what differs from run to run."""
    paths = [str(lake)] if isinstance(lake, Path) else lake
    search = Search(paths, Values(["7"]), FindOptions(column="id", **options), jobs)
    rows = [row for one in search.files() for batch in one.batches for row in batch.to_pylist()]
    return rows, replace(search.report, seconds=0.0)


@pytest.mark.parametrize("jobs", [1, 2, 5])
@pytest.mark.parametrize("options", [{}, {"maybe": True}, {"files_only": True}, {"limit": 2}])
def test_a_search_finds_the_same_as_one_that_opens_every_file(
    lake: Path, jobs: int, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, report = searched(lake, jobs, **options)
    monkeypatch.setattr(find, "_filters_answer", lambda *_: None)  # no filters are read before a file is opened
    monkeypatch.setattr(Values, "filter_lookup", property(lambda _: None, lambda *_: None), raising=False)
    expected_rows, expected = searched(lake, jobs, **options)
    assert rows == expected_rows
    assert report.bytes_read <= 2 * expected.bytes_read
    assert replace(report, bytes_read=0) == replace(expected, bytes_read=0)
    if not options:
        assert [Path(row["path"]).stem for row in rows] == ["008-plain", "009", "019", "029"]
        assert (report.files, report.failed, report.skipped) == (FILES + 1, 5, 1)


def test_files_that_filters_rule_out_are_not_opened_one_by_one(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    open_source = find.open_source
    monkeypatch.setattr(find, "open_source", lambda path: (opened.append(path), open_source(path))[1])
    files = [str(lake / f"{number:03}.parquet") for number in range(FILES)]
    rows, report = searched(files, 1)
    assert len(rows) == 3
    assert report.files == FILES
    assert opened == [files[0], files[9], files[19], files[29]]


def test_filters_that_rule_out_row_groups_are_not_read_again(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    probed: list[int] = []
    load_for = Filters.load_for

    def counted(self: Filters, chunk: ColumnChunk, hashes: int) -> ProbedFilter:
        probed.append(chunk.row_group)
        return load_for(self, chunk, hashes)

    monkeypatch.setattr(Filters, "load_for", counted)
    rows, report = searched([str(lake / "000.parquet"), str(lake / "009.parquet")], 1)
    assert [row["row"] for row in rows] == [7]
    assert (report.row_groups, report.row_groups_possible, report.row_groups_read) == (4, 1, 1)
    # both row groups of the first file; of the other file, the one that may have the value
    assert probed == [0, 1, 0]


def test_a_file_that_is_replaced_after_its_filters_were_read_is_searched_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in (0, 9):
        write_file(tmp_path / f"{number:03}.parquet", number)
    ids = list(range(100, 100 + ROWS))
    ids[27] = 7  # in the other row group
    write(tmp_path / "new", pa.table({"id": pa.array(ids, pa.int64()), "n": ids}), rows=20, store_schema=False)
    bloomcli.add(tmp_path / "new", ["id"], in_place=True)
    open_source = find.open_source

    def replaced_before(path: str) -> Any:
        if path.endswith("009.parquet") and (tmp_path / "new").exists():
            (tmp_path / "new").replace(path)
        return open_source(path)

    monkeypatch.setattr(find, "open_source", replaced_before)
    rows, _ = searched([str(tmp_path / "000.parquet"), str(tmp_path / "009.parquet")], 1)
    assert [row["row"] for row in rows] == [27]


def filter_lookup_of(path: Path, values: Values) -> FilterLookup:
    find.run(str(path), FindOptions(column="id"), values, lambda _: None)
    assert values.filter_lookup is not None
    return values.filter_lookup


def test_answers_come_in_the_order_of_the_files(lake: Path) -> None:
    items = SearchFiles.of(FindOptions(column="id"), expand([str(lake)])).files
    values = Values(["7"])
    lookup = filter_lookup_of(lake / "000.parquet", values)
    found = look_up(items, lookup, Stop())
    assert sum(1 if isinstance(one, FileWork) else one.files for one in found) == len(items)
    left = [one.path for one in found if isinstance(one, FileWork)]
    assert left == [item.path for item in items if Path(item.path).name in {Path(path).name for path in left}]
    others = {path.stem for path in lake.iterdir() if "-" in path.stem and not path.is_dir()}
    assert {Path(path).stem for path in left} == {"009", "019", "029", *others}
    with Threads(3, "test") as threads:
        assert [p for p in files_to_search(items, values, threads, 3, Stop()) if isinstance(p, FileWork)] == [
            one for one in found if isinstance(one, FileWork)
        ]


def test_names_that_no_file_of_this_machine_has_are_left_to_be_opened(lake: Path) -> None:
    lookup = filter_lookup_of(lake / "000.parquet", Values(["7"]))
    paths = ["s3://bucket/a.parquet", f"file:{lake}/001.parquet", "a\0b", "a\ud800", str(lake / "002.parquet")]
    items = list(map(FileWork, paths))
    *left, last = look_up(items, lookup, Stop())
    assert [one.path for one in left if isinstance(one, FileWork)] == paths[:-1]
    assert not isinstance(last, FileWork)


def test_a_search_that_was_stopped_looks_at_no_further_file(lake: Path) -> None:
    lookup = filter_lookup_of(lake / "000.parquet", Values(["7"]))
    stop = Stop()
    stop.requested = True
    with pytest.raises(Stopped):
        list(lookup.look_up_all([b"a"], stop))


NUMBERS = list(range(400))
SHUFFLED = [i * 7 % 400 for i in range(400)]
COLUMNS: dict[str, tuple[list[Any], pa.DataType, dict[str, Any]]] = {
    "numbers": (NUMBERS, pa.int64(), {}),
    "narrow": (NUMBERS, pa.int32(), {"compression": "zstd"}),
    "nulls": ([i if i % 7 else None for i in NUMBERS], pa.int64(), {"page_version": 2}),
    "only nulls": ([None] * 400, pa.int64(), {}),
    "bytes": ([i % 100 for i in NUMBERS], pa.int8(), {}),
    "unsigned": (NUMBERS, pa.uint64(), {}),
    "dictionary": (SHUFFLED, pa.int64(), {"dictionary": True, "compression": "gzip"}),
    "pages": (SHUFFLED, pa.int64(), {"data_page_size": 64, "write_batch_size": 8}),
    "page index": (NUMBERS, pa.int64(), {"data_page_size": 64, "write_batch_size": 8, "write_page_index": True}),
    "one page and its index": (SHUFFLED, pa.int64(), {"write_page_index": True}),
    "delta": (SHUFFLED, pa.int64(), {"encoding": "DELTA_BINARY_PACKED"}),
    "checksums": (SHUFFLED, pa.int64(), {"write_page_checksum": True}),
    "dates": ([dt.date(1970, 1, 1) + dt.timedelta(i) for i in SHUFFLED], pa.date32(), {}),
    "doubles": ([float(i) for i in SHUFFLED], pa.float64(), {}),
    "texts": ([str(i) for i in SHUFFLED], pa.string(), {}),
    "no statistics": (SHUFFLED, pa.int64(), {"write_statistics": False}),
}
TEXTS = {"dates": ["1970-03-19", "1970-09-08", "1999-01-01"]}


@pytest.mark.usefixtures("one_process")
@pytest.mark.parametrize("by", ["pages", "filters", "index"])
@pytest.mark.parametrize("kind", COLUMNS)
def test_files_whose_column_is_decoded_at_once_are_reported_as_if_each_was_opened(
    kind: str, by: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values, physical, options = COLUMNS[kind]
    texts = TEXTS.get(kind, ["77", "250", "5000"])
    for number in range(6):
        ids = [value for value in values if number % 2 or str(value) not in {*texts, "77.0", "250.0"}]
        table = pa.table({"id": pa.array(ids, physical), "n": range(len(ids))})
        write(
            tmp_path / f"{number}.parquet",
            table,
            rows=100,
            store_schema=False,
            **{"dictionary": False, **options},
        )
    if by == "filters":
        bloomcli.add(tmp_path, ["id"], in_place=True, fpp=0.3)
    index = str(tmp_path / "lake.index") if by == "index" else None
    if index is not None:
        bloomcli.index_build([tmp_path], ["id"], output=index, fpp=0.3)
    pages_decoded = 0
    decode = FilterAnswer.decoded

    def decoded(answer: FilterAnswer, source: Source) -> FilterAnswer:
        nonlocal pages_decoded
        after = decode(answer, source)
        pages_decoded += sum(answer.pages) if after.absent else 0
        return after

    monkeypatch.setattr(FilterAnswer, "decoded", decoded)

    def found() -> tuple[list[Any], Any]:
        search = Search([str(tmp_path / "*.parquet")], Values(texts), FindOptions(column="id"), 1, index)
        rows = [row for one in search.files() for batch in one.batches for row in batch.to_pylist()]
        return rows, replace(search.report, seconds=0.0, bytes_read=0)

    rows, report = found()
    if kind in {"pages", "delta", "checksums", "no statistics"} and index is None:
        assert pages_decoded > 0
    monkeypatch.setattr(find, "_filters_answer", lambda *_: None)
    monkeypatch.setattr(Values, "filter_lookup", property(lambda _: None, lambda *_: None), raising=False)
    assert (rows, report) == found()
