"""find of millions of values: where a column is read before its filters are asked, the rows are the same."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc
from support import mosaicfiles
from support.object_stores import SCHEME, MemoryObjects
from support.value_lookups import lying, watched_lookups

import bloomcli
from bloomcli.commands import value_lookup
from bloomcli.commands.find_options import FindOptions
from bloomcli.commands.find_values import Values
from bloomcli.commands.value_parts import ValueParts
from bloomcli.concurrency.cancellation import Stop, Stopped
from bloomcli.finding.lake import Search
from bloomcli.formats.mosaic import search as mosaic_search
from bloomcli.formats.orc import search as orc_search
from bloomcli.formats.parquet import search as parquet_search
from bloomcli.storage import registry

ROWS = 3000


@pytest.fixture(autouse=True)
def picks(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Columns are read first. For each file that was searched: whether its column said which values it may have."""
    monkeypatch.setattr(parquet_search, "read_first", lambda *_: True)
    for module in (orc_search, mosaic_search):
        monkeypatch.setattr(module, "SOUGHT_FOR_EACH", 0)
    return watched_lookups(monkeypatch)


def texts(values: Sequence[str]) -> pa.LargeBinaryArray:
    return pa.array([value.encode() for value in values], pa.large_binary())


def parted(values: Sequence[str], size: int = 400) -> ValueParts:
    return ValueParts(texts(values[at : at + size]) for at in range(0, len(values), size))


def found(where: Any, values: Values | ValueParts, column: str = "id", **options: Any) -> tuple[list[Any], Any]:
    search = Search([str(where)], values, FindOptions(column=column, **options), jobs=2, index=INDEX.get(str(where)))
    rows = [
        (row["path"], row["stripe"], row["row_group"], row["row"], row["value"], repr(row["record"]))
        for one in search.files()
        for batch in one.batches
        for row in batch.to_pylist()
    ]
    return rows, search.report


INDEX: dict[str, str] = {}


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of three formats, whose ids have several types, with and without filters and dictionaries."""
    folder = tmp_path_factory.mktemp("lake")
    rng = random.Random(5)
    for at, kind in enumerate((pa.int64(), pa.int32(), pa.int16(), pa.decimal128(12, 2), pa.float64(), pa.string())):
        ids = [rng.randrange(20_000) if n % 17 else None for n in range(ROWS)]
        table = pa.table({"id": pa.array(ids, pa.int32()).cast(kind), "n": range(ROWS)})
        for blooms in (None, {"id": {"ndv": ROWS, "fpp": 0.02}}):
            pq.write_table(
                table,
                folder / f"{at}-{blooms is None}.parquet",
                row_group_size=1100,
                use_dictionary=at % 2 == 0,
                write_page_index=True,
                data_page_size=2000,
                write_batch_size=100,
                bloom_filter_options=blooms,
            )
        more = {"bloom_filter_columns": [1], "dictionary_key_size_threshold": 1.0} if at % 2 else {}
        orc.write_table(table, folder / f"{at}.orc", stripe_size=20_000, row_index_stride=1000, **more)
        mosaicfiles.write(folder / f"{at}.mosaic", table, batch=1000)
    return folder


NUMBERS = [str(n) for n in range(0, 20_000, 7)] + ["7", "14", "7", "32768", "0x07"]


@pytest.mark.parametrize("together", [1, 1 << 18])
def test_all_formats_and_types_give_the_rows_that_filters_first_gives(
    lake: Path, together: int, picks: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(value_lookup, "_BATCH_HASHES", together)
    values = NUMBERS[:-1]  # 0x07 is no decimal
    expected, report = found(lake, Values(texts(values)))
    rows, again = found(lake, parted(values))
    assert rows == expected
    assert len({row[0] for row in rows}) == len(list(lake.iterdir()))
    assert picks == [True] * len(list(lake.iterdir()))
    assert (again.rows, again.files_found, again.row_groups) == (report.rows, report.files_found, report.row_groups)
    assert again.row_groups_read == again.row_groups_possible == again.row_groups
    assert again.errors == report.errors == ()


def test_many_values_of_a_file_are_left_to_its_filters(
    lake: Path, picks: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected, _ = found(lake, Values(texts(NUMBERS[:-1])))
    for name, most in (("_FOUND_MOST", 20), ("_FOUND_BYTES", 200)):
        with monkeypatch.context() as patch:
            patch.setattr(value_lookup, name, most)
            picks.clear()
            assert found(lake, parted(NUMBERS[:-1]))[0] == expected
            assert not any(picks)


def test_a_part_that_takes_another_way_of_conversion_has_the_same_order(lake: Path, picks: list[bool]) -> None:
    """One with 0x07 isn't converted in compiled code, so that its keys are stored in another way than the others'."""
    for file in ("0-True.parquet", "1-False.parquet", "0.orc", "1.mosaic"):
        expected, _ = found(lake / file, Values(texts(NUMBERS)))
        assert len(expected) > 100
        assert found(lake / file, parted(NUMBERS))[0] == expected
    assert picks == [True] * 4


def test_nan_and_both_zeros_are_found(tmp_path: Path, picks: list[bool]) -> None:
    numbers = [1.5, float("nan"), -0.0, 0.0, None, 2.5] * 50
    pq.write_table(pa.table({"id": numbers}), tmp_path / "f.parquet", use_dictionary=False, row_group_size=60)
    orc.write_table(pa.table({"id": numbers}), tmp_path / "f.orc")
    for values in (["0"], ["nan"], ["0", "nan", "2.5"]):
        every = values + [str(n) for n in range(1000, 2000)]
        expected, _ = found(tmp_path, Values(texts(every)))
        assert len(expected) == 100 * {"0": 2, "nan": 1}.get(values[-1], 4)
        rows, _ = found(tmp_path, parted(every))
        assert [row[:4] for row in rows] == [row[:4] for row in expected]
        assert found(tmp_path, parted(every[::-1]))[1].rows == len(expected)
    assert all(picks)


@pytest.mark.parametrize(("blooms", "rows"), [(True, 500), (False, 0)])
@pytest.mark.parametrize("beyond", [[], ["5500"]])
def test_statistics_that_lie_are_believed_or_not_as_ever(
    tmp_path: Path, blooms: bool, rows: int, beyond: list[str], picks: list[bool]
) -> None:
    path = lying(tmp_path / "lies.parquet", blooms=blooms)
    values = [*map(str, range(1500, 2500)), *beyond]
    expected, _ = found(path, Values(texts(values)))
    assert len(expected) == rows
    assert found(path, parted(values))[0] == expected
    assert picks == [True]


def test_row_groups_whose_bounds_exclude_all_parts_are_not_read(tmp_path: Path) -> None:
    for blooms in (True, False):
        path = tmp_path / f"{blooms}.parquet"
        options = {"id": {"ndv": 1000, "fpp": 0.01}} if blooms else None
        table = pa.table({"id": range(10_000), "text": [f"{n:05}" for n in range(10_000)]})
        pq.write_table(table, path, row_group_size=1000, use_dictionary=False, bloom_filter_options=options)
        for column, pattern in (("id", "{}"), ("text", "{:05}")):
            values = [pattern.format(n) for n in (*range(2100, 2600), *range(7200, 7700))]
            rows, report = found(path, parted(values, 500), column=column)
            assert [row[3] for row in rows] == [int(value) for value in values]
            assert report.row_groups_read == report.row_groups_possible == 2


@pytest.mark.parametrize("blooms", [True, False])
@pytest.mark.parametrize("column", ["id", "text", "money", "real", "day"])
@pytest.mark.parametrize("suffix", ["orc", "mosaic"])
def test_stripes_and_row_groups_whose_bounds_exclude_all_parts_are_not_read(
    tmp_path: Path, suffix: str, column: str, blooms: bool
) -> None:
    """Only Parquet's weren't: a file of other days was read as a whole."""
    numbers = pa.array(range(10_000), pa.int64())
    columns = {
        "id": numbers,
        "text": pa.array([f"{n:05}" for n in range(10_000)]),
        "money": numbers.cast(pa.int32()).cast(pa.decimal128(12, 2)),
        "real": numbers.cast(pa.float64()),
        "day": numbers.cast(pa.int32()).cast(pa.date32()),
    }
    path = tmp_path / f"f.{suffix}"
    if suffix == "mosaic":
        mosaicfiles.write(path, pa.table(columns), batch=1000, stats_columns=list(columns))
        if blooms and column != "money":  # the draft has no filters for decimals
            bloomcli.add(path, [column], in_place=True, fpp=0.01, mosaic_draft=True)
    else:
        filters = {"bloom_filter_columns": [list(columns).index(column) + 1]} if blooms else {}
        orc.write_table(
            pa.table(columns), path, stripe_size=30_000, row_index_stride=1000, batch_size=1000, **filters
        )
        assert orc.ORCFile(path).nstripes > 4

    def given(numbers: range) -> list[str]:
        taken = columns[column].take(pa.array(numbers))
        return [f"{value:.2f}" if column == "money" else str(value) for value in taken.to_pylist()]

    rows, report = found(path, parted([*given(range(2100, 2600)), *given(range(7200, 7700))], 500), column=column)
    assert [row[3] for row in rows] == [*range(2100, 2600), *range(7200, 7700)]
    assert report.row_groups_read < report.row_groups // 2
    none = {"text": [f"a{n}" for n in range(900)], "day": [f"21{n // 9:02}-01-0{n % 9 + 1}" for n in range(900)]}.get(
        column, [f"{n}" for n in range(20_000, 20_900)]
    )
    rows, report = found(path, parted(none, 300), column=column)
    assert (rows, report.row_groups_read, report.row_groups_possible) == ([], 0, 0)


def test_bounds_of_orc_that_a_filter_contradicts_exclude_nothing(tmp_path: Path) -> None:
    """Those of ids from 1000 to 1999, which say 5000 to 5999."""
    for blooms, rows in ((True, 500), (False, 0)):
        path = tmp_path / f"{blooms}.orc"
        filters = {"bloom_filter_columns": [1], "bloom_filter_fpp": 0.001} if blooms else {}
        orc.write_table(pa.table({"id": range(1000, 2000)}), path, compression="uncompressed", **filters)
        true, false = b"\x08\xd0\x0f\x10\x9e\x1f", b"\x08\x90\x4e\x10\xde\x5d"
        data = path.read_bytes()
        assert true in data
        path.write_bytes(data.replace(true, false))
        values = [*map(str, range(1500, 2500))]
        expected, _ = found(path, Values(texts(values)))
        assert len(expected) == rows
        assert found(path, parted(values))[0] == expected


def test_an_index_says_which_row_groups_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "lake"
    path.mkdir()
    rng = random.Random(9)
    for at in range(3):
        ids = [rng.randrange(1 << 40) for _ in range(2000)]
        pq.write_table(pa.table({"id": ids}), path / f"{at}.parquet", row_group_size=500)
    index = str(tmp_path / "lake.bloomidx")
    bloomcli.index_build([path], columns=["id"], output=index)
    values = [str(rng.randrange(1 << 40)) for _ in range(900)]
    some = pq.read_table(path / "1.parquet")["id"].to_pylist()
    values += [str(n) for n in (*some[700:705], *some[1400:1404])]
    monkeypatch.setitem(INDEX, str(path), index)
    expected, _ = found(path, Values(texts(values)))
    rows, report = found(path, parted(values))
    assert rows == expected
    assert [row[3] for row in rows] == [*range(700, 705), *range(1400, 1404)]
    assert report.row_groups_read < report.row_groups == 12


def test_orc_files_without_a_row_index_are_read_by_stripes(fixtures: Path, picks: list[bool]) -> None:
    path = fixtures / "orc/java_no_index.orc"
    values = [str(n) for n in range(-2000, 2000, 3)]
    expected, report = found(path, Values(texts(values)))
    assert len({row[1] for row in expected}) == 2
    rows, again = found(path, parted(values))
    assert (rows, again.row_groups_read) == (expected, report.row_groups_read)
    assert picks == [True]


def test_a_store_is_asked_for_the_column_before_its_filters(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryObjects()
    monkeypatch.setitem(registry.BY_SCHEME, SCHEME, store)
    where = f"{SCHEME}://lake/f.parquet"
    store.client.store(where, (lake / "0-False.parquet").read_bytes())
    expected, _ = found(where, Values(texts(NUMBERS)))
    once = len(store.client.requests)
    assert len(expected) > 100
    assert found(where, parted(NUMBERS))[0] == expected
    assert len(store.client.requests) <= 2 * once + 1


def test_limits_give_the_first_rows(lake: Path) -> None:
    path = lake / "0-True.parquet"
    every, _ = found(path, Values(texts(NUMBERS)))
    rows, report = found(path, parted(NUMBERS), limit=9)
    assert (rows, report.limited) == (every[:9], True)
    assert found(path, parted(NUMBERS), files_only=True)[1].files_found == 1


def test_a_damaged_page_is_the_error_that_it_is_without_parts(tmp_path: Path, picks: list[bool]) -> None:
    path = tmp_path / "f.parquet"
    table = pa.table({"id": range(3000)})
    pq.write_table(table, path, use_dictionary=False, write_page_checksum=True, compression="none")
    data = bytearray(path.read_bytes())
    data[12_000] ^= 1
    path.write_bytes(data)
    values = [str(n) for n in range(0, 9000, 5)]
    errors = [found(path, sought)[1].errors for sought in (Values(texts(values)), parted(values))]
    assert errors[0] == errors[1]
    assert "checksum" in str(errors[0][0].error)
    assert picks == [False]


def test_a_search_that_is_stopped_reads_no_further(lake: Path) -> None:
    from bloomcli.commands import find

    stop = Stop()
    stop.requested = True
    for file in ("0-True.parquet", "0.orc", "0.mosaic"):
        with pytest.raises(Stopped):
            find.run(str(lake / file), FindOptions(column="id"), parted(NUMBERS), lambda _: None, stop)
