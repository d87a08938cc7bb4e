"""The hashes of values in pages are those of the leaves' PLAIN bytes, in every layout."""

from __future__ import annotations

import random
import struct
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support import footers, thrift
from support.sources import CountingSource
from support.tables import CASES, COMPRESSIONS, ENCODINGS, Case, hashes, write

import bloomcli
from bloomcli.formats.parquet.bloom_filter import draft_hash
from bloomcli.formats.parquet.encodings import Slice
from bloomcli.formats.parquet.footer import Footer, read_footer
from bloomcli.formats.parquet.values import draft_hashes, has_zero, hashed_slices, zero_hashes
from bloomcli.model.file import ColumnChunk


def pages_of(path: Path) -> tuple[list[Slice], CountingSource, Footer]:
    """All hashed pages of the file's first column, of all row groups."""
    source = CountingSource(path)
    with source:
        footer = read_footer(source)
        found = [page for key in footer.chunk_keys({0}) for page in hashed_slices(source, footer.chunk(key))]
    return found, source, footer


def listed(pages: list[Slice]) -> list[int]:
    """All hashes, including repeated ones."""
    return [h for page in pages for h in struct.unpack(f"={page.count}Q", page.hashes)]


def column(array: Any) -> dict[str, Any]:
    return {"c": array}


@pytest.mark.parametrize(("dictionary", "page_version"), [(True, 1), (False, 2)], ids=["dictionary", "plain"])
@pytest.mark.parametrize("name", CASES)
def test_hashes_are_those_of_the_distinct_leaves(
    tmp_path: Path, name: str, dictionary: bool, page_version: int
) -> None:
    case = CASES[name]
    path = write(
        tmp_path / "f", column(case.array(3)), dictionary=dictionary, page_version=page_version, compression="snappy"
    )
    pages, _, _ = pages_of(path)
    assert set(listed(pages)) == case.hashes()


@pytest.mark.parametrize(
    ("encoding", "name", "page_version"),
    [(e, n, 1 + at % 2) for e, names in ENCODINGS.items() if e != "PLAIN" for at, n in enumerate(names)],
)
def test_every_encoding_gives_the_same_hashes(tmp_path: Path, encoding: str, name: str, page_version: int) -> None:
    case = CASES[name]
    path = write(
        tmp_path / "f",
        column(case.array(70)),
        encoding=encoding,
        page_version=page_version,
        data_page_size=256,
        write_batch_size=16,
    )
    pages, _, _ = pages_of(path)
    assert set(listed(pages)) == case.hashes()
    runs = (name, encoding) == ("list", "DELTA_BINARY_PACKED")  # equal neighbours, which count once
    assert (len(listed(pages)) == 70 * sum(1 for _ in case_leaves(case))) != runs


def case_leaves(case: Case) -> list[Any]:
    from support.tables import leaves

    return list(leaves(case.values))


@pytest.mark.parametrize("page_version", [1, 2])
@pytest.mark.parametrize("compression", [c for c in COMPRESSIONS if c != "none"])
def test_pages_that_shrank_ten_thousandfold_are_read(tmp_path: Path, compression: str, page_version: int) -> None:
    array = pa.array([bytes(100_000)] * 60)
    options: dict[str, Any] = {"dictionary": False, "data_page_size": 64 << 20, "page_version": page_version}
    path = write(tmp_path / "f", column(array), compression=compression, **options)
    (page,) = pages_of(path)[0]
    assert set(listed([page])) == hashes([bytes(100_000)])


@pytest.mark.parametrize("name", ["float16", "float32", "float64"])
@pytest.mark.parametrize("encoding", ["PLAIN", "BYTE_STREAM_SPLIT", None])
@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_a_zero_of_either_sign_is_reported(tmp_path: Path, name: str, encoding: str | None, zero: float) -> None:
    case = CASES[name]
    path = write(tmp_path / "f", column(pa.array([1.5, None, zero, 2.5], case.type)), encoding=encoding)
    pages, _, footer = pages_of(path)
    assert any(has_zero(page) for page in pages)
    assert set(listed(pages)) == hashes(map(case.plain, [1.5, zero, 2.5]))
    assert set(zero_hashes(footer.columns[0])) == hashes(map(case.plain, [0.0, -0.0]))


@pytest.mark.parametrize("name", ["float16", "float32", "float64", "int64", "string"])
def test_no_zero_is_reported_where_there_is_none(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / "f", column(CASES[name].array()), dictionary=False)
    pages, _, footer = pages_of(path)
    assert not any(has_zero(page) for page in pages)
    assert bool(zero_hashes(footer.columns[0])) == name.startswith("float")


def repeated(length: int, entries: list[str]) -> pa.Array:
    """A dictionary array whose indices are random, so that no page is short."""
    chosen = random.Random(length)
    return pa.DictionaryArray.from_arrays(
        pa.array(chosen.choices(range(len(entries)), k=length), pa.int32()), entries
    )


def without_bodies(data: bytes, chunks: list[ColumnChunk], starts: list[int]) -> bytes:
    """The file with only the headers of the chunks' pages from these positions on."""
    changed = bytearray(data)
    for chunk, at in zip(chunks, starts, strict=True):
        while at < chunk.data_offset + chunk.compressed_bytes:
            header, start = thrift.parse(data, at)
            at = start + header[3][1]
            changed[start:at] = b"\xff" * (at - start)
    return bytes(changed)


@pytest.mark.slow
@pytest.mark.parametrize("page_version", [1, 2])
def test_a_dictionary_encoded_chunk_is_read_until_every_entry_was_seen(tmp_path: Path, page_version: int) -> None:
    entries = [f"{i:030}" for i in range(40)]
    options: dict[str, Any] = {"page_version": page_version, "data_page_size": 100_000, "compression": "zstd"}
    path = write(tmp_path / "f", column(repeated(3_000_000, entries)), rows=2_000_000, **options)
    pages, source, footer = pages_of(path)
    assert set(listed(pages)) == hashes(v.encode() for v in entries)
    assert [page.count for page in pages] == [40, 40]
    chunks = [footer.chunk(key) for key in footer.chunk_keys()]
    assert all(c.only_dictionary_encoded for c in chunks)
    assert all(c.data_offset < p.end < c.data_offset + 200_000 for c, p in zip(chunks, pages, strict=True))
    body = [(offset, length) for offset, length in source.reads if offset < footer.start]
    assert [read for read in body if read[1] > 512] == [
        (c.data_offset, min(c.compressed_bytes, 1 << 20)) for c in chunks
    ]
    assert sum(length for _, length in body) < sum(c.compressed_bytes for c in chunks)
    path.write_bytes(without_bodies(path.read_bytes(), chunks, [page.end for page in pages]))
    assert listed(pages_of(path)[0]) == listed(pages)


def test_with_the_entries_that_no_index_refers_to_only_the_dictionary_is_read(tmp_path: Path) -> None:
    entries = [f"{i:030}" for i in range(40)]
    path = write(tmp_path / "f", column(repeated(20, entries)))
    with CountingSource(path) as source:
        footer = read_footer(source)
        chunk = footer.chunk(next(footer.chunk_keys()))
        source.reads.clear()
        pages = list(hashed_slices(source, chunk, unreferenced=True))
        first, *rest = source.reads
        assert first == (chunk.data_offset, chunk.dictionary_bytes)
        assert all(length <= 512 for _, length in rest), "headers"
    assert listed(pages) == [next(iter(hashes([v.encode()]))) for v in entries]


def test_a_page_with_values_of_its_own_is_read_though_the_metadata_says_that_there_is_none(tmp_path: Path) -> None:
    """Encoding statistics can be wrong, and a filter without those values would lose rows."""

    def lie(metadata: thrift.Fields) -> None:
        for stats in footers.meta(metadata, 0, 0)[13][1].values:
            if stats[2][1] == 0 and stats[1][1] != 2:
                stats[2] = (thrift.I32, 8)

    entries = [f"{i:030}" for i in range(3000)]
    options: dict[str, Any] = {"dictionary_pagesize_limit": 2000, "data_page_size": 1000, "write_batch_size": 10}
    path = write(tmp_path / "f", column(pa.array(entries)), **options)
    path.write_bytes(footers.edited(path.read_bytes(), lie))
    with CountingSource(path) as source:
        footer = read_footer(source)
        chunk = footer.chunk(next(footer.chunk_keys()))
        assert chunk.only_dictionary_encoded
        for unreferenced in (True, False):
            pages = list(hashed_slices(source, chunk, unreferenced=unreferenced))
            assert set(listed(pages)) == hashes(v.encode() for v in entries)


def test_of_a_writer_that_leaves_no_unused_entries_add_reads_the_dictionary_alone(tmp_path: Path) -> None:
    def by_parquet_java(metadata: thrift.Fields) -> None:
        metadata[6] = (thrift.BINARY, b"parquet-mr version 1.17.0 (build 0)")

    entries = [f"{i:030}" for i in range(40)]
    arrow = write(tmp_path / "arrow", column(pa.array(entries * 30)), dictionary=True)
    java = tmp_path / "java"
    java.write_bytes(footers.edited(arrow.read_bytes(), by_parquet_java))
    with CountingSource(arrow) as source:
        footer = read_footer(source)
        chunk = footer.chunk(next(footer.chunk_keys()))
    reports = [bloomcli.add(p, ["c"], output=p.with_suffix(".out")) for p in (arrow, java)]
    assert reports[1].bytes_decoded == chunk.dictionary_bytes
    assert reports[0].bytes_decoded > reports[1].bytes_decoded
    bits = [bloomcli.dump(p.with_suffix(".out")).bitset for p in (arrow, java)]
    assert bits[0] == bits[1]
    assert bloomcli.validate(java.with_suffix(".out"), deep=True).findings == ()


@pytest.mark.parametrize("stats", [True, False], ids=["encoding stats", "no encoding stats"])
@pytest.mark.parametrize("page_version", [1, 2])
@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_entries_that_no_index_refers_to_are_no_values(
    tmp_path: Path, compression: str, page_version: int, stats: bool
) -> None:
    """Arrow writes the whole dictionary of a string array into each row group."""

    def forget(metadata: thrift.Fields) -> None:
        for row_group in range(3):
            del footers.meta(metadata, row_group, 0)[13]

    entries = [f"entry {i}" for i in range(600)]
    indices = [None, 5, 6, 6, 7, *[at % 9 + 1 for at in range(70)], None, 599, 300]
    array = pa.DictionaryArray.from_arrays(pa.array(indices, pa.int32()), pa.array(entries))
    path = write(tmp_path / "f", column(array), rows=26, page_version=page_version, compression=compression,
                 data_page_size=20, write_batch_size=4)  # fmt: skip
    if not stats:
        path.write_bytes(footers.edited(path.read_bytes(), forget))
    pages, _, footer = pages_of(path)
    assert [footer.chunk(key).only_dictionary_encoded for key in footer.chunk_keys()] == [stats] * 3
    assert len(pages) == 3
    for at, page in enumerate(pages):
        own = [entries[i].encode() for i in sorted({i for i in indices[at * 26 : at * 26 + 26] if i is not None})]
        assert page.count < 12
        assert [page.value(i) for i in range(page.count)] == own
        assert listed([page]) == [next(iter(hashes([v]))) for v in own]
        assert draft_hashes(page) == struct.pack(f"<{page.count}Q", *map(draft_hash, own))


@pytest.mark.parametrize("name", ["float16", "float32", "float64"])
@pytest.mark.parametrize("kept", [[0, 1, 1], [1, 0, 1], [0, 0, 0]])
def test_a_zero_that_no_index_refers_to_is_left_out(tmp_path: Path, name: str, kept: list[int]) -> None:
    case = CASES[name]
    entries = [-0.0, 1.5, 2.5]
    (page,), _, _ = pages_of(write(tmp_path / "f", column(pa.array(entries, case.type))))
    page.keep(bytearray(kept))
    own = [case.plain(v) for v, one in zip(entries, kept, strict=True) if one]
    assert (has_zero(page), page.count, list(page.values())) == (bool(kept[0]), sum(kept), own)
    assert listed([page]) == [next(iter(hashes([v]))) for v in own]


@pytest.mark.parametrize("page_version", [1, 2])
def test_an_array_with_another_dictionary_is_written_plain_next_to_unused_entries(
    tmp_path: Path, page_version: int
) -> None:
    first = pa.DictionaryArray.from_arrays(pa.array([3, None, 1, 3], pa.int32()), [f"a{i}" for i in range(50)])
    second = pa.DictionaryArray.from_arrays(pa.array([0, 2, None], pa.int32()), [f"b{i}" for i in range(50)])
    path = write(tmp_path / "f", column(pa.chunked_array([first, second])), page_version=page_version)
    pages, _, footer = pages_of(path)
    assert not footer.chunk(next(footer.chunk_keys())).only_dictionary_encoded
    assert [(page.dictionary, sorted(page.values())) for page in pages] == [
        (False, [b"b0", b"b2"]),
        (True, [b"a1", b"a3"]),
    ]


@pytest.mark.parametrize("page_version", [1, 2])
def test_entries_that_nested_values_refer_to_are_found(tmp_path: Path, page_version: int) -> None:
    lists = [[], None, [1, None, 2], [7, 7], [None], [], [3]] * 40
    inner = pa.array([v for one in lists for v in one or []], pa.int32())
    flat = pa.DictionaryArray.from_arrays(inner, pa.array([f"entry {i}" for i in range(1000)]))
    offsets = [0]
    for one in lists:
        offsets.append(offsets[-1] + len(one or []))
    mask = pa.array([one is None for one in lists])
    array = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), flat, mask=mask)
    path = write(tmp_path / "f", column(array), page_version=page_version, data_page_size=30, write_batch_size=10)
    assert sorted(listed(pages_of(path)[0])) == sorted(hashes(f"entry {i}".encode() for i in (1, 2, 3, 7)))


@pytest.mark.parametrize("stats", [True, False], ids=["encoding stats", "no encoding stats"])
def test_a_dictionary_of_a_chunk_with_only_nulls_holds_no_values(tmp_path: Path, stats: bool) -> None:
    def forget(metadata: thrift.Fields) -> None:
        del footers.meta(metadata, 0, 0)[13]

    array = pa.DictionaryArray.from_arrays(pa.array([None] * 90, pa.int32()), ["a", "b"])
    path = write(tmp_path / "f", column(array))
    if not stats:
        path.write_bytes(footers.edited(path.read_bytes(), forget))
    assert listed(pages_of(path)[0]) == []


@pytest.mark.parametrize("nested", [False, True], ids=["flat", "nested"])
@pytest.mark.parametrize("page_version", [1, 2])
def test_long_runs_of_nulls_shift_nothing(tmp_path: Path, page_version: int, nested: bool) -> None:
    values: list[Any] = [*range(100), *[None] * 3000, *range(100, 130), None, *range(130, 200), *[None] * 7]
    array = pa.array([None if v is None else [v, None] for v in values] if nested else values)
    path = write(tmp_path / "f", column(array), dictionary=False, page_version=page_version, data_page_size=500)
    assert sorted(listed(pages_of(path)[0])) == sorted(hashes(struct.pack("<q", v) for v in range(200)))


@pytest.mark.parametrize("name", ["int64", "string", "list", "float16"])
def test_an_empty_file_has_no_values(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / "f", column(pa.array([], CASES[name].type)))
    assert pages_of(path)[0] == []


def test_an_empty_row_group_is_passed_over(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    table = pa.table({"c": pa.array([1, 2], pa.int64())})
    with pq.ParquetWriter(tmp_path / "f", table.schema) as writer:
        for part in (table, table.slice(0, 0), table.slice(1)):
            writer.write_table(part)
    pages, _, footer = pages_of(tmp_path / "f")
    assert footer.row_group_count == 3
    assert [page.count for page in pages] == [2, 1]


@pytest.mark.parametrize(
    ("name", "encoding"),
    [(n, e) for n in ("string", "int32", "fixed_binary", "float64") for e, names in ENCODINGS.items() if n in names],
)
@pytest.mark.parametrize("dictionary", [True, False])
def test_a_pages_values_are_reported_by_index(tmp_path: Path, name: str, encoding: str, dictionary: bool) -> None:
    case = CASES[name]
    options = {"dictionary": True} if dictionary else {"encoding": encoding}
    path = write(tmp_path / "f", column(case.array()), **options)  # type: ignore[arg-type]
    (page,) = pages_of(path)[0]
    decoded = [page.value(i) for i in range(page.count)]
    assert decoded == [case.plain(v) for v in case.values if v is not None]
    assert [next(iter(hashes([v]))) for v in decoded] == listed([page])
