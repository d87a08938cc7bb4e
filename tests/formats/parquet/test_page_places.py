"""Where a chunk's pages lie: dictionaries that the metadata don't name, and offset indexes that are wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support import footers, thrift
from support.footers import DATA_PAGE_OFFSET, META_DATA, OFFSET_INDEX_OFFSET
from support.thrift import I32, I64, Fields

import bloomcli
from bloomcli.errors import CorruptFile, NothingToFilter, UnsupportedError
from bloomcli.model.file import Presence

ROWS: Final = 4000
WORDS: Final = [None if i % 7 == 0 else f"word{i % 50:03d}" for i in range(ROWS)]
LISTS: Final = [[i % 40, (i + 1) % 40][: i % 3] for i in range(ROWS)]
IDS: Final = list(range(ROWS))
TABLE: Final = pa.table({"id": pa.array(IDS), "word": pa.array(WORDS), "list": pa.array(LISTS, pa.list_(pa.int32()))})
LEAVES: Final = {"id": 0, "word": 1, "list.list.element": 2}

DICTIONARY_PAGE_OFFSET: Final = 11
UNCOMPRESSED: Final = 6
NULL_COUNT: Final = 3
OFFSET_INDEX_LENGTH: Final = 5


def chunks(metadata: Fields) -> Iterator[Fields]:
    """Every ColumnChunk."""
    for group in metadata[footers.ROW_GROUPS][1].values:
        yield from group[footers.COLUMNS][1].values


def ordered(fields: Fields, **changed: tuple[int, Any] | None) -> None:
    """Set fields of a structure by number (``f11=``), or take them out, and keep the fields in order."""
    for name, value in changed.items():
        number = int(name[1:])
        fields.pop(number, None)
        if value is not None:
            fields[number] = value
    again = dict(sorted(fields.items()))
    fields.clear()
    fields.update(again)


def hidden(to: int | None) -> Callable[[Fields], None]:
    """An edit that names dictionaries as other writers do: `data_page_offset` is the dictionary's, and
    `dictionary_page_offset` isn't there (None), is a number, or -1 for that of the dictionary."""

    def edit(metadata: Fields) -> None:
        for chunk in chunks(metadata):
            meta = chunk[META_DATA][1]
            start = meta.get(DICTIONARY_PAGE_OFFSET, (I64, None))[1]
            if start is not None:
                other = None if to is None else (I64, start if to == -1 else to)
                ordered(meta, f9=(I64, start), f11=other)

    return edit


def written(path: Path, *, index: bool, version: str = "1.0", **options: Any) -> Path:
    """A file of one row group, with many pages for each column."""
    pq.write_table(
        TABLE,
        path,
        data_page_size=1000,
        write_batch_size=200,
        write_page_index=index,
        data_page_version=version,
        **options,
    )
    return path


def rows_of(path: str | Path, values: list[str], column: str) -> list[tuple[int, str]]:
    """The rows that `find` returns, each with its word."""
    search = bloomcli.find(path, values, column=column)
    rows = [(r["row"], r["record"]["word"]) for batch in search for r in batch.to_pylist()]
    assert search.report.errors == ()
    return rows


def expected(values: list[str], column: str) -> list[tuple[int, str | None]]:
    """The rows of the table that have one of the values."""
    name = column.partition(".")[0]
    held = [v if isinstance(v, list) else [v] for v in TABLE[name].to_pylist()]
    return [
        (row, WORDS[row]) for row, found in enumerate(held) if {str(v) for v in found if v is not None} & {*values}
    ]


SEARCHES: Final = [("id", ["17", "3999"]), ("word", ["word003", "word049"]), ("list.list.element", ["39"])]


@pytest.mark.slow
@pytest.mark.parametrize("dictionary_offset", [None, 0, -1], ids=["none", "zero", "the data page's"])
@pytest.mark.parametrize(
    ("index", "version", "typed"),
    [(True, "1.0", True), (False, "2.0", False)],
    ids=["index, encoding stats", "version 2, no encoding stats"],
)
def test_each_reader_finds_the_dictionary_that_the_metadata_do_not_name(
    tmp_path: Path, dictionary_offset: int | None, index: bool, version: str, typed: bool
) -> None:
    """Parquet-mr before 1.12 (PARQUET-1850), Impala 1, Polars before 1.39."""
    path = written(tmp_path / "a.parquet", index=index, version=version)

    def edit(metadata: Fields) -> None:
        hidden(dictionary_offset)(metadata)
        for chunk in chunks(metadata):
            if not typed:
                chunk[META_DATA][1].pop(13, None)

    footers.edit_file(path, path, edit)
    pq.read_table(path).validate(full=True)
    for column, values in SEARCHES:
        assert rows_of(path, values, column) == expected(values, column)
        verdicts = bloomcli.probe(path, [*values, "77" if column != "word" else "word777"], column=column).totals
        assert [t.answer is Presence.ABSENT for t in verdicts][: len(values)] == [False] * len(values)
    out = tmp_path / "out.parquet"
    assert {c.column for c in bloomcli.add(path, list(LEAVES), output=out).changes} == {*LEAVES}
    report = bloomcli.validate(out, deep=True)
    assert report.ok
    assert report.values_checked
    for column, values in SEARCHES:
        assert rows_of(out, values, column) == expected(values, column)
    lake = tmp_path / "lake.bloomindex"
    bloomcli.index_build([path], output=lake, columns=["word", "id"])
    found = bloomcli.find(path, ["word003"], column="word", index=lake)
    assert sum(batch.num_rows for batch in found) == len(expected(["word003"], "word"))
    advised = {c.column: c for c in bloomcli.advise(path).columns}
    assert {*advised} >= {"id", "word"}
    bloomcli.remove(out, output=tmp_path / "back.parquet")
    assert (tmp_path / "back.parquet").read_bytes() == path.read_bytes()


def test_a_dictionary_that_the_metadata_do_not_name_answers_a_probe(tmp_path: Path) -> None:
    path = written(tmp_path / "a.parquet", index=False)
    footers.edit_file(path, path, hidden(None))
    (total,) = bloomcli.probe(path, ["word0035"], column="word").totals
    assert total.answer is Presence.ABSENT


Locations = list[Fields]


def without_headers(locations: Locations, data: bytes) -> None:
    """xitongsys/parquet-go: the lengths leave out the page headers."""
    for location in locations:
        header, end = thrift.parse(data, location[1][1])
        assert end > location[1][1]
        location[2] = (I32, header[3][1])


def outside(locations: Locations, data: bytes) -> None:
    """Offsets beyond the chunk."""
    for location in locations:
        location[1] = (I64, location[1][1] + len(data) // 2)


def from_one(locations: Locations, data: bytes) -> None:
    """First rows that count from 1."""
    del data
    for location in locations:
        location[3] = (I64, location[3][1] + 1)


def of_values(locations: Locations, data: bytes) -> None:
    """First rows that count the values that aren't null."""
    del data
    for location in locations:
        location[3] = (I64, location[3][1] * 6 // 7)


def early(locations: Locations, data: bytes) -> None:
    """The second page begins a row too early."""
    del data
    locations[1][3] = (I64, locations[1][3][1] - 1)


def one_missing(locations: Locations, data: bytes) -> None:
    """An entry is missing."""
    del data, locations[2]


def swapped(locations: Locations, data: bytes) -> None:
    """The places of two pages of other lengths or rows are exchanged."""
    del data
    locations[0][1], locations[1][1] = locations[1][1], locations[0][1]


@pytest.mark.parametrize("wrong", [without_headers, outside, from_one, of_values, early, one_missing, swapped])
@pytest.mark.parametrize("named", [True, False], ids=["dictionary named", "dictionary not named"])
def test_a_chunk_is_read_without_an_offset_index_that_is_wrong(
    tmp_path: Path, wrong: Callable[[Locations, bytes], None], named: bool
) -> None:
    path = written(tmp_path / "a.parquet", index=True)
    if not named:
        footers.edit_file(path, path, hidden(None))
    data = path.read_bytes()
    body, footer = footers.split(data)
    metadata, _ = thrift.parse(footer)
    for chunk in chunks(metadata):
        index, _ = thrift.parse(data, chunk[OFFSET_INDEX_OFFSET][1])
        assert len(index[1][1].values) > 3
        wrong(index[1][1].values, data)
        chunk[OFFSET_INDEX_OFFSET] = (I64, len(body))
        again = thrift.encode(index)
        chunk[OFFSET_INDEX_LENGTH] = (I32, len(again))
        body += again
    path.write_bytes(footers.join(body, thrift.encode(metadata)))
    for column, values in SEARCHES:
        assert rows_of(path, values, column) == expected(values, column)
        assert rows_of(path, values[-1:], column) == expected(values[-1:], column)


def test_a_chunk_is_read_without_an_index_that_lies_outside_the_file(tmp_path: Path) -> None:
    """A tool cut the indexes off, and left their offsets."""
    path = written(tmp_path / "a.parquet", index=True)
    body, footer = footers.split(path.read_bytes())
    metadata, _ = thrift.parse(footer)
    end = min(chunk[footers.COLUMN_INDEX_OFFSET][1] for chunk in chunks(metadata))
    path.write_bytes(footers.join(body[:end], footer))
    assert end + len(footer) < len(body)
    for column, values in SEARCHES:
        assert rows_of(path, values, column) == expected(values, column)
        assert not bloomcli.probe(path, values, column=column).absent_everywhere
    report = bloomcli.inspect(path, columns=["id"], pages=True, indexes=True)
    assert sum(page.values or 0 for page in report.pages if page.kind == "DATA_PAGE") == ROWS
    assert "outside the file's data" in (report.index[0].problem or "")
    with pytest.raises(CorruptFile, match="outside the file's data"):
        bloomcli.add(path, ["id"], output=tmp_path / "out.parquet")  # the offsets would name bytes of the filter


def test_a_glob_leaves_out_a_column_whose_statistics_count_values_that_its_pages_do_not_have(tmp_path: Path) -> None:
    """xitongsys/parquet-go writes such a null count."""
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"id": IDS, "nul": pa.nulls(ROWS, pa.string())}), path, row_group_size=ROWS // 2)

    def edit(metadata: Fields) -> None:
        for group in range(2):
            statistics = footers.meta(metadata, group, 1)[footers.STATISTICS][1]
            statistics[NULL_COUNT] = (I64, ROWS // 2 - 8)

    footers.edit_file(path, path, edit)
    with pytest.raises(CorruptFile, match="hold no value of nul") as caught:
        bloomcli.add(path, ["id", "nul"], output=tmp_path / "b.parquet")
    assert "--exclude" in (caught.value.hint or "")
    report = bloomcli.add(path, ["*"], output=tmp_path / "b.parquet")
    assert [(c.column, c.action) for c in report.changes] == [("id", "add")] * 2 + [("nul", "keep")]
    assert "the statistics count 8" in (report.changes[-1].reason or "")
    assert bloomcli.validate(tmp_path / "b.parquet", deep=True).ok
    with pytest.raises(NothingToFilter):
        bloomcli.add(path, ["n*"], output=tmp_path / "c.parquet")
    assert not (tmp_path / "c.parquet").exists()
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake" / "a.parquet").write_bytes(path.read_bytes())
    for status in ("done", "skipped"):
        (row,) = bloomcli.add(tmp_path / "lake", ["*"], in_place=True).rows
        assert row.status == status
    assert (tmp_path / "lake" / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()


def test_an_empty_file_path_is_no_path(tmp_path: Path) -> None:
    path = written(tmp_path / "a.parquet", index=False)

    def edit(to: bytes) -> Callable[[Fields], None]:
        return lambda metadata: [ordered(chunk, f1=(thrift.BINARY, to)) for chunk in chunks(metadata)] and None

    other = footers.edit_file(path, tmp_path / "other.parquet", edit(b"b.parquet"))
    with pytest.raises(UnsupportedError, match="another file"):
        bloomcli.add(other, ["id"], output=tmp_path / "out.parquet")
    footers.edit_file(path, path, edit(b""))
    assert rows_of(path, ["17"], "id") == expected(["17"], "id")
    bloomcli.add(path, ["id"], output=tmp_path / "out.parquet")
    assert bloomcli.validate(tmp_path / "out.parquet", deep=True).ok


@pytest.mark.parametrize("index", [False, True], ids=["no index", "index"])
def test_pages_of_version_2_that_hide_their_codec_are_read(tmp_path: Path, index: bool) -> None:
    """Arrow before 3.0 compressed such pages and said that they aren't (ARROW-10353)."""
    path = written(tmp_path / "a.parquet", index=index, version="2.0", compression="gzip", use_dictionary=["word"])
    data = bytearray(path.read_bytes())
    changed = 0
    for chunk in chunks(footers.tree(bytes(data))):
        meta = chunk[META_DATA][1]
        at = meta.get(DICTIONARY_PAGE_OFFSET, meta[DATA_PAGE_OFFSET])[1]
        end = at + meta[7][1]
        while at < end:
            header, after = thrift.parse(bytes(data), at)
            if 8 in header:
                assert header[8][1][7] == (thrift.TRUE, True)
                assert header[2][1] != header[3][1]
                header[8][1][7] = (thrift.FALSE, False)
                data[at:after] = thrift.encode(header)
                changed += 1
            at = after + header[3][1]
        assert at == end
    assert changed > 10
    path.write_bytes(
        footers.edited(bytes(data), lambda f: f.update({6: (thrift.BINARY, b"parquet-cpp version 1.5.1-SNAPSHOT")}))
    )
    pq.read_table(path).validate(full=True)
    for column, values in SEARCHES:
        assert rows_of(path, values, column) == expected(values, column)
    bloomcli.add(path, list(LEAVES), output=tmp_path / "out.parquet")
    report = bloomcli.validate(tmp_path / "out.parquet", deep=True)
    assert report.ok
    assert report.values_checked


def test_a_page_of_a_usual_size_may_be_larger_than_the_uncompressed_bytes_of_the_metadata(tmp_path: Path) -> None:
    """Parquetjs writes such totals; BROTLI and ZSTD make a few bytes of a constant column."""
    path = tmp_path / "a.parquet"
    table = pa.table({"n": pa.array([7] * 30_000)})
    pq.write_table(table, path, compression="brotli", use_dictionary=False)

    def edit(metadata: Fields) -> None:
        footers.meta(metadata, 0, 0)[UNCOMPRESSED] = (I64, 100)

    footers.edit_file(path, path, edit)
    assert sum(batch.num_rows for batch in bloomcli.find(path, [7], column="n")) == 30_000
    bloomcli.add(path, ["n"], output=tmp_path / "out.parquet")
    assert bloomcli.validate(tmp_path / "out.parquet", deep=True).ok
