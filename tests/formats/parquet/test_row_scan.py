"""If there are as many values to find as a row group has rows, a compiled scan finds the rows without filters: the
same as Arrow. Unusual or damaged files are left to the search with filters."""

from __future__ import annotations

import random
import struct
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from support.pagefiles import data_page, dictionary_page, indices, of_pages

from bloomcli.commands import find
from bloomcli.commands.find_options import FindOptions
from bloomcli.commands.find_values import Values
from bloomcli.formats.filter_answer import FileRows
from bloomcli.storage.registry import open_source

ROWS = 3000
GROUP = 1000
CODECS = ("none", "snappy", "gzip", "zstd", "lz4", "brotli")


def table(seed: int = 1) -> pa.Table:
    chance = random.Random(seed)
    words = ["", "a", "abcabcabc" * 5, "é", *(f"word {k % 7} {'xy' * (k % 40)}" for k in range(60))]
    few = [chance.choice(words) for _ in range(ROWS)]
    n = list(range(ROWS))
    return pa.table(
        {
            "id": pa.array([k * 7919 % 100_003 for k in n], pa.int64()),
            "near": pa.array([10**12 + k for k in n], pa.int64()),
            "small": pa.array([chance.randrange(100) for _ in n], pa.int32()),
            "price": pa.array([round(chance.gauss(0, 1), 2) for _ in n], pa.float64()),
            "ratio": pa.array([chance.random() for _ in n], pa.float32()),
            "text": pa.array([f"{k:05} {word}" for k, word in zip(n, few, strict=True)]),
            "few": pa.array(few),
            "raw": pa.array([chance.randbytes(chance.randrange(30)) for _ in n], pa.binary()),
            "fixed": pa.array([k.to_bytes(5, "little") for k in n], pa.binary(5)),
            "at": pa.array(n, pa.timestamp("us")),
            "day": pa.array([k % 500 for k in n], pa.int32()).cast(pa.date32()),
            "narrow": pa.array([k % 100 - 50 for k in n], pa.int8()),
            "flag": pa.array([k % 3 == 0 for k in n]),
            "late": pa.array([None if k > 2000 and k % 3 else k for k in n], pa.int64()),
            "gaps": pa.array([None if k // 50 % 2 else f"gap {k % 9}" for k in n]),
            "nulls": pa.array([None] * ROWS, pa.int32()),
            "maybe": pa.array([None if k % 5 == 0 else k % 2 == 0 for k in n]),
        }
    )


def some_ids(data: pa.Table) -> list[int]:
    """Some existing values, including the first and last of row groups, and more absent ones."""
    ids = data["id"].to_pylist()
    here = [*ids[::37], ids[0], ids[GROUP - 1], ids[GROUP], ids[-1]]
    return [*here, *range(200_000, 200_000 + GROUP), *range(-5, 0)]


def scanned(
    folder: Path, data: pa.Table, wanted: list[Any], column: str = "id", select: tuple[str, ...] = (), **written: Any
) -> FileRows | None:
    """The result of the scan of a second file, after a first one was searched with its filters."""
    given = {"compression": "snappy", "row_group_size": GROUP, "data_page_size": 2000, **written}
    given.setdefault("bloom_filter_options", {column: {"ndv": GROUP}})
    for name in ("a.parquet", "b.parquet"):
        pq.write_table(data, folder / name, **given)
    return again(folder / "a.parquet", folder / "b.parquet", wanted, column, select)


def again(first: Path, second: Path, wanted: list[Any], column: str = "id", select: tuple[str, ...] = ()) -> Any:
    options = FindOptions(column=column, select=select).checked()
    values = Values(pa.array([str(value).encode() for value in wanted], pa.large_binary()))
    find.run(str(first), options, values, [].append)
    assert values.filter_lookup is not None
    with open_source(str(second)) as source:
        return values.filter_lookup.rows(source)


def joined(found: list[Any]) -> list[list[str]]:
    """The rows of files, with their positions, values and records."""
    each = [
        (one.groups.to_pylist(), one.rows.to_pylist(), one.texts.to_pylist(), stored(one.records), one.files)
        for one in found
    ]
    return [[repr(item) for some in column for item in some] for column in zip(*each, strict=True)]


def stored(records: pa.RecordBatch) -> list[tuple[Any, ...]]:
    """The values of each row, with texts as bytes, because damaged files may not have UTF-8."""
    columns = [c.cast(pa.binary()) if pa.types.is_string(c.type) else c for c in records.columns]
    return list(zip(*(column.to_pylist() for column in columns), strict=True))


def check(found: FileRows | None, path: Path, wanted: list[Any], column: str = "id", select: Any = None) -> None:
    """Check that the rows are those that Arrow reads, with their positions and values."""
    assert found is not None
    data = pq.read_table(path)
    places = pc.indices_nonzero(pc.is_in(data[column], pa.array(wanted, data.schema.field(column).type)))
    expected = data.take(places)
    assert found.rows.to_pylist() == places.to_pylist()
    assert found.groups.to_pylist() == [row // GROUP for row in places.to_pylist()]
    assert [str(wanted[at]) for at in found.texts.to_pylist()] == [str(v) for v in expected[column].to_pylist()]
    found.records.validate(full=True)
    expected = expected.select(select) if select else expected
    assert found.records.schema == expected.schema
    assert pa.Table.from_batches([found.records]).to_pylist() == expected.to_pylist()


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_rows_are_those_that_arrow_reads(tmp_path: Path, codec: str, version: str) -> None:
    data = table().drop(["flag", "maybe"]) if version == "2.0" else table()  # booleans of version 2 have runs
    wanted = some_ids(data)
    found = scanned(tmp_path, data, wanted, compression=codec, data_page_version=version)
    check(found, tmp_path / "b.parquet", wanted)


@pytest.mark.parametrize("dictionary", [True, False])
@pytest.mark.parametrize("page", [300, 1 << 20])
def test_dictionaries_and_pages_of_all_sizes_are_read(tmp_path: Path, dictionary: bool, page: int) -> None:
    data = table(2)
    wanted = some_ids(data)
    written = {
        "use_dictionary": dictionary,
        "data_page_size": page,
        "max_rows_per_page": 20_000,
        "write_batch_size": 50,
    }
    found = scanned(tmp_path, data, wanted, **written)
    check(found, tmp_path / "b.parquet", wanted)


def test_every_row_of_a_row_group_can_be_one(tmp_path: Path) -> None:
    data = table(3)
    wanted = data["id"].to_pylist()
    check(scanned(tmp_path, data, wanted), tmp_path / "b.parquet", wanted)


def test_no_row_is_one_where_no_value_is_there(tmp_path: Path) -> None:
    data = table()
    gaps = sorted(set(range(100_003)) - set(data["id"].to_pylist()))[:5000]
    found = scanned(tmp_path, data, gaps, select=("text", "small"))
    check(found, tmp_path / "b.parquet", gaps, select=["small", "text"])  # in the file's order
    assert found is not None
    assert found.files[0].searched == (0, 1, 2)


@pytest.mark.parametrize("dictionary", [True, False])
@pytest.mark.parametrize("kind", [pa.int64(), pa.int32(), pa.string()])
def test_searched_columns_may_have_nulls_and_other_types(tmp_path: Path, kind: pa.DataType, dictionary: bool) -> None:
    ids = [None if k % 4 == 1 else k % 900 for k in range(ROWS)]
    data = table().set_column(0, "id", pa.array(ids, pa.int32()).cast(kind))
    wanted = [k if kind != pa.string() else str(k) for k in (*range(0, 900, 31), *range(5000, 7000))]
    found = scanned(tmp_path, data, wanted, use_dictionary=dictionary)
    check(found, tmp_path / "b.parquet", wanted)


def test_the_searched_column_need_not_be_selected(tmp_path: Path) -> None:
    wanted = some_ids(table())
    found = scanned(tmp_path, table(), wanted, select=("gaps", "price"))
    check(found, tmp_path / "b.parquet", wanted, select=["price", "gaps"])


def test_files_without_filters_are_read_too(tmp_path: Path) -> None:
    wanted = some_ids(table())
    for name in ("a.parquet", "b.parquet"):
        pq.write_table(table(), tmp_path / name, row_group_size=GROUP)
    check(again(tmp_path / "a.parquet", tmp_path / "b.parquet", wanted), tmp_path / "b.parquet", wanted)


def test_pages_are_compared_with_their_checksums(tmp_path: Path) -> None:
    wanted = some_ids(table())
    found = scanned(tmp_path, table(), wanted, write_page_checksum=True, compression="none", use_dictionary=False)
    check(found, tmp_path / "b.parquet", wanted)
    path = tmp_path / "b.parquet"
    data = bytearray(path.read_bytes())
    at = pq.ParquetFile(path).metadata.row_group(1).column(1).data_page_offset
    data[at + 500] ^= 1  # a value of another column than the searched one
    path.write_bytes(data)
    assert again(tmp_path / "a.parquet", path, wanted) is None


@pytest.mark.parametrize(
    ("why", "change"),
    [
        ("bounds exclude all values of a row group", {"wanted": [*range(20), *range(200_000, 201_000)]}),
        ("row groups have more rows than there are values", {"wanted": [*range(600)]}),
        ("a selected column is nested", {"data": {"list": [[1]] * ROWS}}),
        (
            "a selected column has a type that isn't made",
            {"data": {"dec": pa.array([None] * ROWS, pa.decimal256(50, 2))}},
        ),
        ("an encoding is another one", {"use_dictionary": False, "column_encoding": {"near": "DELTA_BINARY_PACKED"}}),
    ],
)
def test_other_files_are_left_to_the_search_by_filters(tmp_path: Path, why: str, change: dict[str, Any]) -> None:
    data = table()
    if "wanted" in change:  # in the order of ids, so that bounds are narrow
        data = data.sort_by("id")
    for name, column in change.get("data", {}).items():
        data = data.append_column(name, column if isinstance(column, pa.Array) else pa.array(column))
    wanted = change.get("wanted", some_ids(data))
    written = {key: value for key, value in change.items() if key not in {"wanted", "data"}}
    assert scanned(tmp_path, data, wanted, **written) is None, why


def test_files_with_other_metadata_are_left_to_the_search_by_filters(tmp_path: Path) -> None:
    wanted = some_ids(table())
    scanned(tmp_path, table(), wanted)
    other = table().replace_schema_metadata({"more": "than the first one has"})
    pq.write_table(other, tmp_path / "b.parquet", row_group_size=GROUP)
    assert again(tmp_path / "a.parquet", tmp_path / "b.parquet", wanted) is None


@pytest.mark.parametrize("codec", ["none", "snappy", "zstd"])
def test_a_damaged_file_gives_no_other_rows_than_those_that_are_there(tmp_path: Path, codec: str) -> None:
    data = table().select(["id", "near", "price", "text", "few", "late"])
    wanted = some_ids(data)
    scanned(tmp_path, data, wanted, compression=codec)
    whole = (tmp_path / "a.parquet").read_bytes()
    options = FindOptions(column="id").checked()
    values = Values(pa.array([str(value).encode() for value in wanted], pa.large_binary()))
    find.run(str(tmp_path / "a.parquet"), options, values, [].append)
    chance = random.Random(codec)
    reported = 0
    with open_source(str(tmp_path / "a.parquet")) as source:
        first = values.filter_lookup.rows(source) if values.filter_lookup is not None else None
    for _ in range(300 if codec == "none" else 100):  # what is damaged seldom decompresses
        damaged = bytearray(whole)
        for _ in range(chance.randrange(1, 4)):
            damaged[chance.randrange(4, len(damaged))] = chance.randrange(256)
        path = tmp_path / "b.parquet"
        path.write_bytes(damaged)
        assert values.filter_lookup is not None
        values.filter_lookup._scan._misses = 0  # type: ignore[attr-defined]  of files, many are damaged
        with open_source(str(path)) as source:
            found = values.filter_lookup.rows(source)
        others = values.filter_lookup.rows_of(
            [bytes(tmp_path / name) for name in ("a.parquet", "b.parquet")], 10**6, 10**9
        )
        assert joined([first] if found is None else [first, found]) == joined([others])
        if found is not None:
            reported += 1
            ids = found.records.column(0).to_pylist()
            assert set(ids) <= set(wanted)
            assert len(ids) == len(found.rows) == len(found.groups) == len(found.texts)
            assert all(0 <= row < ROWS for row in found.rows.to_pylist())
    assert reported  # some damage is in pages without a matching row


@pytest.mark.parametrize("period", [1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 63, 64, 65, 300])
def test_copies_of_snappy_from_any_distance_are_made(tmp_path: Path, period: int) -> None:
    chance = random.Random(period)
    pattern = chance.randbytes(period)
    texts = [
        (pattern * 200)[: chance.randrange(200)] + chance.randbytes(chance.choice([0, 0, 1, 2, 9, 61, 70, 300]))
        for _ in range(ROWS)
    ]
    numbers = [int.from_bytes((pattern * 9)[k % 5 : k % 5 + 7], "little") + k % 3 for k in range(ROWS)]
    data = table().select(["id"]).append_column("raw", pa.array(texts, pa.binary()))
    data = data.append_column("number", pa.array(numbers, pa.int64()))
    wanted = some_ids(data)
    found = scanned(tmp_path, data, wanted, use_dictionary=False, data_page_size=1 << 20)
    check(found, tmp_path / "b.parquet", wanted)


@pytest.mark.parametrize("bits", [3, 8, 12, 16, 20, 24, 30, 33, 40, 47, 60])
def test_numbers_that_share_their_higher_bytes_with_numbers_before_are_decompressed(
    tmp_path: Path, bits: int
) -> None:
    chance = random.Random(bits)
    high = chance.getrandbits(62) & -(1 << bits)
    near = [high + chance.randrange(-(1 << bits) // 2, (1 << bits) // 2) for _ in range(ROWS)]
    few = [near[chance.randrange(20)] if chance.random() < 0.3 else number for number in near]
    steps = [(high >> 1) + k * (1 << bits) // ROWS for k in range(ROWS)]
    columns = {
        "near": pa.array(near, pa.int64()),
        "few": pa.array(few, pa.int64()),
        "step": pa.array(steps, pa.int64()),
        "price": pa.array([round(chance.gauss(100, bits), 2) for _ in range(ROWS)]),
    }
    data = table().select(["id"])
    for name, column in columns.items():
        data = data.append_column(name, column)
    wanted = some_ids(data)
    found = scanned(tmp_path, data, wanted, use_dictionary=False, data_page_size=1 << 20)
    check(found, tmp_path / "b.parquet", wanted)


def test_a_limit_and_files_only_are_kept(tmp_path: Path) -> None:
    wanted = some_ids(table())
    scanned(tmp_path, table(), wanted)
    values = Values(pa.array([str(value).encode() for value in wanted], pa.large_binary()))
    for options, rows in (({"limit": 3}, 3), ({"files_only": True}, None), ({}, 84)):
        batches: list[pa.RecordBatch] = []
        chosen = FindOptions(column="id", **options).checked()  # type: ignore[arg-type]
        for name in ("a.parquet", "b.parquet"):
            found = find.run(str(tmp_path / name), chosen, values, batches.append)
        assert sum(batch.num_rows for batch in batches) == 2 * (rows or 0)
        assert found.rows


def int64s(numbers: range) -> bytes:
    return struct.pack(f"<{len(numbers)}q", *numbers)


def texts(*values: str) -> bytes:
    return b"".join(len(value).to_bytes(4, "little") + value.encode() for value in values)


MANY = range(5000)
IDS = data_page(int64s(range(8)), 8)
WORDS = data_page(texts(*"abcdefgh"), 8)
HALVES = (data_page(indices(0, 4), 4, "RLE_DICTIONARY"), data_page(indices(1, 4), 4, "RLE_DICTIONARY"))
OTHER_WORDS = texts(
    "abc\1\0\0\0d", "two"
)  # in which a string begins where the second one of the first dictionary does
TWO_OF_WORDS = (dictionary_page(texts("one", "two"), 2), HALVES[0], dictionary_page(OTHER_WORDS, 2), HALVES[1])
MORE_OF_WORDS = (
    dictionary_page(texts("one"), 1),
    HALVES[0],
    dictionary_page(texts(*map(str, MANY)), 5000),
    data_page(indices(4999, 4), 4, "RLE_DICTIONARY"),
)
TWO_OF_IDS = (dictionary_page(int64s(range(2)), 2), HALVES[0], dictionary_page(int64s(range(2, 4)), 2), HALVES[1])


@pytest.mark.parametrize(
    ("why", "ids", "words", "rows", "values"),
    [
        ("a dictionary follows another one", TWO_OF_IDS, [WORDS], 8, 8),
        ("a dictionary of a selected column follows another one", [IDS], TWO_OF_WORDS, 8, 8),
        ("a longer dictionary of a selected column follows another one", [IDS], MORE_OF_WORDS, 8, 8),
        (
            "a dictionary has another encoding",
            [dictionary_page(int64s(range(2)), 2, "DELTA_BINARY_PACKED"), *HALVES],
            [WORDS],
            8,
            8,
        ),
        ("a row group without rows has values", [IDS], [WORDS], 0, 8),
        ("a row group with rows has no values", [IDS], [WORDS], 8, 0),
        ("a row group has fewer rows than values", [IDS], [WORDS], 4, 8),
    ],
)
def test_files_that_contradict_themselves_are_left_to_the_search_by_filters(
    tmp_path: Path, why: str, ids: list[bytes], words: list[bytes], rows: int, values: int
) -> None:
    first = of_pages(tmp_path / "a", {"id": ("INT64", [IDS]), "word": ("BYTE_ARRAY", [WORDS])}, 8)
    second = of_pages(tmp_path / "b", {"id": ("INT64", ids), "word": ("BYTE_ARRAY", words)}, rows, values)
    assert again(first, first, [*range(300)]).rows.to_pylist() == [*range(8)]
    assert again(first, second, [*range(300)]) is None, why


def test_the_rows_of_several_files_are_those_of_each(tmp_path: Path) -> None:
    """Scan up to the first file that differs or is damaged; columns have nulls only in some files."""
    data = table().select(["id", "late", "few", "flag", "text"])
    wanted = some_ids(data)
    values = Values(pa.array([str(value).encode() for value in wanted], pa.large_binary()))
    whole = data.set_column(1, "late", pa.array(range(ROWS), pa.int64()))
    tables = [data, whole, data, whole, whole.replace_schema_metadata({"another": "schema"}), data, whole]
    paths = [tmp_path / f"{number}.parquet" for number in range(len(tables))]
    for path, one in zip(paths, tables, strict=True):
        pq.write_table(
            one,
            path,
            row_group_size=GROUP,
            compression="snappy",
            data_page_size=2000,
            bloom_filter_options={"id": {"ndv": GROUP}},
        )
    find.run(str(paths[0]), FindOptions(column="id").checked(), values, [].append)
    like = values.filter_lookup
    assert like is not None
    each = []
    for path in paths:
        with open_source(str(path)) as source:
            each.append(like.rows(source))
    assert [found is None for found in each] == [at == 4 for at in range(len(paths))]
    names = [bytes(path) for path in paths]
    for at, end in ((0, 4), (1, 4), (5, 7)):
        found = like.rows_of(names[at:], 10**6, 10**9)
        assert found is not None
        assert [one.rows for one in found.files] == [len(one.rows) for one in each[at:end]]
        assert joined([found]) == joined(each[at:end])
    assert like.rows_of(names[4:], 10**6, 10**9) is None
    assert like.rows_of([bytes(tmp_path / "gone"), *names], 10**6, 10**9) is None
    for rows, size in ((1, 10**9), (10**6, 1)):
        assert joined([like.rows_of(names, rows, size)]) == joined(each[:1])
    two = like.rows_of(names, len(each[0].rows) + 1, 10**9)
    assert joined([two]) == joined(each[:2])


def test_files_are_no_longer_scanned_where_most_are_unlike_the_first(tmp_path: Path) -> None:
    wanted = some_ids(table())
    scanned(tmp_path, table(), wanted)
    pq.write_table(table().drop(["text"]), tmp_path / "other.parquet", row_group_size=GROUP)
    values = Values(pa.array([str(value).encode() for value in wanted], pa.large_binary()))
    find.run(str(tmp_path / "a.parquet"), FindOptions(column="id").checked(), values, [].append)
    like = values.filter_lookup
    assert like is not None
    for _ in range(4):
        assert like.scans
        assert like.rows_of([bytes(tmp_path / "other.parquet")], 10, 10) is None
        with open_source(str(tmp_path / "other.parquet")) as source:
            assert like.rows(source) is None
    assert not like.scans
    assert like.rows_of([bytes(tmp_path / "b.parquet")], 10, 10) is None


def test_pages_without_a_value_are_passed_over(tmp_path: Path) -> None:
    empty, first = data_page(b"", 0), of_pages(tmp_path / "a", {"id": ("INT64", [IDS])}, 8)
    for pages in ([empty, IDS], [IDS, empty], [empty, IDS, empty]):
        second = of_pages(tmp_path / "b", {"id": ("INT64", pages)}, 8)
        assert again(first, second, [*range(300)]).rows.to_pylist() == [*range(8)]


def test_rows_of_more_bytes_than_are_held_are_left_to_the_search_that_reads_some_at_a_time(tmp_path: Path) -> None:
    """Each column alone has fewer bytes than the maximum of a column."""
    texts_of_a_mebi = pa.array(["x" * (1 << 20)] * 50)
    data = pa.table({"id": range(50), **{f"c{number}": texts_of_a_mebi for number in range(3)}})
    wanted = [*range(300)]
    assert scanned(tmp_path, data, wanted, compression="zstd") is None
    found = scanned(tmp_path, data, wanted, select=("id", "c1", "c2"), compression="zstd")
    assert found is not None
    assert found.rows.to_pylist() == [*range(50)]
