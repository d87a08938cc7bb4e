"""A deep check reports every change to a Parquet file's filters or to the values below them, for files of all
writers."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support import blooms, footers
from support.golden import FIXTURES
from support.mutants import EXAMPLES, OriginalFile, flipped, is_set, mutation, put
from support.tables import packed, write
from support.thrift import Fields

import bloomcli
from bloomcli.model.file import FilterFacts, Severity

pytestmark = pytest.mark.slow

ROWS: Final = 60


def small(path: Path) -> Path:
    """Two row groups of 30 rows, two columns with filters of 32 and 64 bytes by us; plain pages, not compressed."""
    table = {"id": pa.array(range(ROWS), pa.int64()), "text": [f"text {i:02}" for i in range(ROWS)]}
    bare = write(path.with_name("bare"), table, rows=ROWS // 2, dictionary=["text"], store_schema=False)
    bloomcli.add(bare, ["id"], output=path.with_name("half"), max_bytes=32)
    bloomcli.add(path.with_name("half"), ["text"], output=path, fpp=0.001)
    return path


def retrofitted(path: Path) -> Path:
    """parquet-java's file without filters, with ours."""
    bloomcli.add(FIXTURES / "orders.parquet", ["*"], output=path)
    return path


def arrows(path: Path) -> Path:
    """Arrow C++'s, small."""
    table = {"n": pa.array([i * 3 for i in range(ROWS)], pa.int32()), "f": [i / 8 + 1 for i in range(ROWS)]}
    return write(path, table, rows=ROWS // 2, page_version=2, blooms={c: {"ndv": 30, "fpp": 0.05} for c in table})


def ducks(path: Path) -> Path:
    """DuckDB's, small: filters of dictionary-encoded columns."""
    import duckdb

    query = "SELECT 'text ' || (i % 20) AS s, (i % 20)::DECIMAL(9, 2) / 8 AS d FROM range(2500) t(i)"
    with duckdb.connect(":memory:", config={"threads": 1}) as connection:
        connection.execute(f"COPY ({query}) TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE 2048)")
    return path


def fixture(name: str) -> Callable[[Path], Path]:
    """A fixture with many types."""
    return lambda _: FIXTURES / f"{name}.parquet"


WRITERS: Final[dict[str, Callable[[Path], Path]]] = {
    "bloom add, small": small,
    "Arrow C++, small": arrows,
    "DuckDB, small": ducks,
    "parquet-java, INT96": fixture("spark_int96"),
    "parquet-java": fixture("spark_types"),
    "Arrow C++": fixture("pyarrow_types"),
    "DuckDB": fixture("duckdb_types"),
    "arrow-rs": fixture("arrow_rs_between"),
    "bloom add": retrofitted,
}


@pytest.fixture(scope="module", params=WRITERS)
def whole(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> OriginalFile:
    """A file of each writer."""
    folder = tmp_path_factory.mktemp("mutants")
    return OriginalFile.of(WRITERS[request.param](folder / "f.parquet"), folder)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> OriginalFile:
    """One filter of 32 bytes over eight numbers."""
    folder = tmp_path_factory.mktemp("tiny")
    bare = write(folder / "bare", {"c": pa.array([*range(8)], pa.int32())}, store_schema=False)
    bloomcli.add(bare, ["c"], output=folder / "f", readers="spark")
    return OriginalFile.of(folder / "f", folder)


@pytest.fixture(scope="module")
def little(tmp_path_factory: pytest.TempPathFactory) -> OriginalFile:
    """A small file, checked in a millisecond or two."""
    folder = tmp_path_factory.mktemp("little")
    return OriginalFile.of(small(folder / "f.parquet"), folder)


def chunk_of(whole: OriginalFile, fact: FilterFacts) -> tuple[int, int]:
    """The row group and the column's ordinal."""
    ((group, column),) = [(g, c) for g, c, at, _ in footers.claims(whole.data) if at == fact.offset]
    assert group == fact.row_group
    return group, column


def claimed(whole: OriginalFile, fact: FilterFacts, offset: int | None, length: int | None) -> bytes:
    """The file whose footer says otherwise of a filter."""
    return footers.edited(whole.data, footers.set_filter(*chunk_of(whole, fact), offset, length))


def test_untouched_filters_are_what_the_mutations_start_from(whole: OriginalFile) -> None:
    assert whole.check(whole.data) == []
    assert len(whole.sound) >= 2
    wrong = {name for name, _ in whole.known}
    assert wrong <= {"filter-boolean"}


def test_a_bit_of_every_filter_is_reported_and_of_which(whole: OriginalFile) -> None:
    whole.flip_a_bit_of_each()


def test_every_bit_of_a_small_filter_is_reported(tiny: OriginalFile) -> None:
    (fact,) = tiny.sound
    span = tiny.bits(fact)
    assert len(span) == 32
    directions = set()
    for bit in range(span.start * 8, span.stop * 8):
        cleared = is_set(tiny.data, bit)
        with mutation(f"bit {bit - span.start * 8}"):
            tiny.flipped_bit(fact, flipped(tiny.data, bit), cleared=cleared)
        directions.add(cleared)
    assert directions == {True, False}


FORMS: Final = {pa.float16(): "<e", pa.float32(): "<f", pa.float64(): "<d"}


@pytest.mark.parametrize(
    ("kind", "zero", "retrofit"),
    [(pa.float64(), 0.0, True), (pa.float32(), -0.0, True), (pa.float16(), 0.0, False), (pa.float64(), -0.0, False)],
)
def test_every_bit_of_a_filter_over_a_zero_is_reported_but_the_one_that_makes_a_sound_filter(
    kind: pa.DataType, zero: float, retrofit: bool, tmp_path: Path
) -> None:
    """A sound filter holds the other zero or doesn't: a bit that leads from one to the other is left out."""
    values = [zero, 1.5, -2.25, 8.0]
    table = {"c": pa.array(values, kind)}
    path = tmp_path / "f.parquet"
    if retrofit:
        bloomcli.add(write(tmp_path / "bare", table), ["c"], output=path, max_bytes=32, readers="spark")
    else:
        write(path, table, blooms={"c": {"ndv": 3, "fpp": 0.1}})
    whole = OriginalFile.of(path, tmp_path)
    (fact,) = whole.filters
    plain = packed(FORMS[kind])
    sound = [blooms.build(map(plain, (*values, *more)), 32) for more in ((), (0.0, -0.0))]
    span = whole.bits(fact)
    assert whole.data[span.start : span.stop] in sound
    caught = 0
    for bit in range(span.start * 8, span.stop * 8):
        data = flipped(whole.data, bit)
        if data[span.start : span.stop] in sound:
            assert whole.findings(data) == []
            continue
        with mutation(f"bit {bit - span.start * 8}"):
            (finding,) = whole.findings(data)
            assert finding.id in {"value-missing", "filter-stray-bits"}
        caught += 1
    assert caught >= 32 * 8 - 1


@pytest.mark.parametrize("length", [True, False], ids=["length", "no_length"])
def test_other_bytes_in_a_header_are_reported(tiny: OriginalFile, length: bool, pytestconfig: pytest.Config) -> None:
    """At each place those with one other bit, and some more, with another seed others, and all with --full."""
    (fact,) = tiny.sound
    data = tiny.data if length else claimed(tiny, fact, fact.offset, None)
    assert tiny.check(data) == []
    random_ = random.Random(f"bytes {pytestconfig.getoption('seed')}")
    count = 256 if pytestconfig.getoption("full") else 16 if length else 0
    for at in tiny.header(fact):
        others = {data[at] ^ 1 << bit for bit in range(8)} | set(random_.sample(range(256), count))
        for byte in others - {data[at]}:
            with mutation(f"byte {at - fact.offset} of the header is {byte}"):
                assert tiny.check(put(data, at, bytes([byte])))


def test_every_offset_is_reported(tiny: OriginalFile) -> None:
    """Of 0 or below too, by which readers understand that there is no filter: the length is still there."""
    (fact,) = tiny.sound
    for to in (*range(-3, len(tiny.data) + 40), 1 << 40, -(1 << 40)):
        if to == fact.offset:
            continue
        with mutation(f"the filter of {fact.offset} is at {to}"):
            assert tiny.catches(claimed(tiny, fact, to, fact.length))


def test_every_length_is_reported(tiny: OriginalFile) -> None:
    """Except a missing length: the header also has it, and a note reports that."""
    (fact,) = tiny.sound
    assert fact.length is not None
    for to in (*range(-2, 2 * fact.length + 40), 5000, (1 << 31) - 1, -(1 << 31)):
        if to != fact.length:
            with mutation(f"the filter of {fact.length} bytes has {to}"):
                assert tiny.catches(claimed(tiny, fact, fact.offset, to))
    assert tiny.check(claimed(tiny, fact, fact.offset, None)) == []
    noted = [f for f in bloomcli.validate(tiny.work, deep=True).findings if f.severity is Severity.NOTE]
    assert [(f.id, f.column, f.row_group) for f in noted] == [("filter-no-length", "c", 0)]


def blob(whole: OriginalFile, fact: FilterFacts) -> bytes:
    """Header and bitset."""
    return whole.data[fact.offset : whole.bits(fact).stop]


def swap_claims(whole: OriginalFile, one: FilterFacts, other: FilterFacts) -> bytes:
    """The file whose footer has each filter's offset and length for the other."""

    def edit(metadata: Fields) -> None:
        first, second = (footers.meta(metadata, *chunk_of(whole, f)) for f in (one, other))
        for number in (footers.BLOOM_FILTER_OFFSET, footers.BLOOM_FILTER_LENGTH):
            first[number], second[number] = second[number], first[number]

    return footers.edited(whole.data, edit)


def check_swap(whole: OriginalFile, one: FilterFacts, other: FilterFacts) -> bool:
    """Swap two filters' claims, and their bytes where they have the same size. Equal filters may be swapped."""
    if blob(whole, one) == blob(whole, other):
        assert whole.check(swap_claims(whole, one, other)) == []
        return False
    changed = [swap_claims(whole, one, other)]
    if one.length == other.length:
        swapped = put(whole.data, one.offset, blob(whole, other))
        changed.append(put(swapped, other.offset, blob(whole, one)))
    for data in changed:
        with mutation(f"{one.column} in {one.row_group} for {other.column} in {other.row_group}"):
            found = whole.findings(data)
            assert {(f.row_group, f.column) for f in found} <= {(f.row_group, f.column) for f in (one, other)}
            assert {f.id for f in found} <= {"value-missing", "filter-stray-bits"}
            assert found
    return True


def test_every_swap_in_a_small_file_is_reported(little: OriginalFile) -> None:
    filters = little.sound
    reported = [check_swap(little, a, b) for i, a in enumerate(filters) for b in filters[i + 1 :]]
    assert all(reported)
    assert len(reported) == 6


IN_GROUP: Final = ROWS // 2
groups, rows = st.integers(0, 1), st.integers(0, IN_GROUP - 1)


@given(group=groups, row=rows, number=st.integers(-(2**63), 2**63 - 1))
@example(group=0, row=1, number=2)
@EXAMPLES
def test_a_changed_number_is_reported(little: OriginalFile, group: int, row: int, number: int) -> None:
    """The page is plain, and its values come last."""
    chunk = chunk_metadata(little, "id", group)
    at = chunk.data_page_offset + chunk.total_compressed_size - (IN_GROUP - row) * 8
    changed(little, put(little.data, at, number.to_bytes(8, "little", signed=True)), "id", group, packed("<q"))


@given(group=groups, row=rows, text=st.text("abcxyz 0189", min_size=7, max_size=7))
@EXAMPLES
def test_a_changed_text_in_a_dictionary_is_reported(little: OriginalFile, group: int, row: int, text: str) -> None:
    """The dictionary's values lie directly before the data page, each with four bytes of length."""
    chunk = chunk_metadata(little, "text", group)
    at = chunk.data_page_offset - (IN_GROUP - row) * 11 + 4
    changed(little, put(little.data, at, text.encode()), "text", group, str.encode)


def chunk_metadata(whole: OriginalFile, column: str, group: int) -> Any:
    """Arrow's metadata of a column chunk."""
    metadata = pq.read_metadata(pa.BufferReader(whole.data))
    names = [metadata.schema.column(i).path for i in range(metadata.num_columns)]
    return metadata.row_group(group).column(names.index(column))


def changed(whole: OriginalFile, data: bytes, column: str, group: int, plain: Callable[..., bytes]) -> None:
    """The change is reported, unless the filter over the values that Arrow then reads is the same, bit for bit."""
    if data == whole.data:
        return
    (fact,) = [f for f in whole.filters if (f.column, f.row_group) == (column, group)]
    span = whole.bits(fact)
    values = pq.ParquetFile(pa.BufferReader(data)).read_row_group(group)[column].to_pylist()
    before = pq.ParquetFile(pa.BufferReader(whole.data)).read_row_group(group)[column].to_pylist()
    assert sum(a != b for a, b in zip(values, before, strict=True)) == 1
    found = [f for f in whole.findings(data) if not f.id.startswith(("statistics-", "page-index-", "size-"))]
    if blooms.build(map(plain, values), len(span)) == whole.data[span.start : span.stop]:
        assert found == []
    else:
        (finding,) = found
        assert (finding.column, finding.row_group) == (column, group)
        assert finding.id in {"value-missing", "filter-stray-bits"}
