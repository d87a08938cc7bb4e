"""Indexes of ORC and Mosaic files: rows found with an index are those of a scan."""

from __future__ import annotations

import math
import shutil
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyorc
import pytest
from conftest import ROOT
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import orc
from support import mosaicfiles, orcfiles
from support.cli import Bloom
from support.indexed_lakes import rows, same_rows

import bloomcli
from bloomcli import kernels
from bloomcli.formats.registry import open_file
from bloomcli.index.reader import Index
from bloomcli.index.tables import ALWAYS, FILTER, NEVER
from bloomcli.storage.registry import open_source

pytestmark = pytest.mark.usefixtures("one_process")

ROWS, STRIPE = 3000, 1000
FIXTURES = [
    path
    for kind in ("orc", "mosaic")
    for path in sorted((ROOT / "fixtures" / kind).glob(f"*.{kind}"))
    if path.name != "java_geometry.orc"  # Arrow doesn't read ORC's geometries
]


def lake_of(
    folder: Path, columns: Sequence[pa.Array], suffixes: Sequence[str] = ("orc", "mosaic", "parquet")
) -> Path:
    """A file of each format for each array, in row groups of STRIPE rows."""
    folder.mkdir(exist_ok=True)
    for at, array in enumerate(columns):
        table = pa.table({"id": array, "text": [f"text {n}" for n in range(len(array))]})
        if "orc" in suffixes:
            orcfiles.write(folder / f"{at}.orc", table, stripe=STRIPE, stride=STRIPE // 4, compression="uncompressed")
        if "mosaic" in suffixes:
            mosaicfiles.write(folder / f"{at}.mosaic", table, batch=STRIPE)
        if "parquet" in suffixes:
            pq.write_table(table, folder / f"{at}.parquet", row_group_size=STRIPE)
    return folder


def built(folder: Path, columns: Sequence[str] = ("id",)) -> str:
    index = str(folder) + ".bloom-index"
    report = bloomcli.index_build(folder, columns, output=index, overwrite=True, jobs=1)
    assert (report.failed, report.skipped, report.written) == (0, 0, True), report
    return index


def states(index: str) -> list[int]:
    with open_source(index) as source:
        opened = Index(source)
        return sorted(state for column in opened.columns for state in opened.units(column).state)


def test_a_lake_of_three_formats_is_looked_up_in_one_column_of_the_index(tmp_path: Path) -> None:
    lake = lake_of(tmp_path / "lake", [pa.array(range(at * ROWS, (at + 1) * ROWS)) for at in range(4)])
    index = built(lake)
    (column,) = bloomcli.index_inspect(index).columns
    assert (column.physical, column.logical, column.row_groups, column.filters) == ("INT64", None, 36, 36)
    report = same_rows(str(lake), [ROWS + 1], index)
    assert (report.rows, report.files_unopened, report.files_not_indexed) == (3, 9, 0)
    nothing = same_rows(str(lake), [-5], index)
    assert (nothing.files_unopened, nothing.exit_code) == (12, 1)


def test_only_the_stripes_that_the_index_leaves_are_looked_at(tmp_path: Path) -> None:
    lake = lake_of(tmp_path / "lake", [pa.array([7 * n % (8 * ROWS) for n in range(8 * ROWS)])], ["orc"])
    index = built(lake)
    for few in ([7 * 2500], [7 * 2500, 7 * 2600], [7 * 2500] * 300):
        found, report = rows(str(lake), few, index=index)
        without, plain = rows(str(lake), few)
        assert found == without
        assert report.row_groups_read <= 4 < plain.row_groups_read
        assert report.row_groups == plain.row_groups == plain.row_groups == 8 * ROWS // (STRIPE // 4)
        assert report.bytes_read < plain.bytes_read


def test_a_changed_or_new_file_of_each_format_is_searched_itself(tmp_path: Path) -> None:
    lake = lake_of(tmp_path / "lake", [pa.array(range(ROWS))])
    index = built(lake)
    lake_of(lake, [pa.array(range(5000, 5000 + ROWS)), pa.array(range(9000, 9000 + ROWS))])
    report = same_rows(str(lake), [5005, 9005], index)
    assert (report.rows, report.files_changed, report.files_not_indexed) == (6, 3, 3)
    updated = bloomcli.index_update(lake, index)
    assert (updated.added, updated.kept, updated.files) == (6, 0, 6)
    report = same_rows(str(lake), [5005, 9005], index)
    assert (report.rows, report.files_changed, report.files_not_indexed) == (6, 0, 0)


def test_a_dry_run_says_what_would_be_read_of_each_format(tmp_path: Path) -> None:
    lake = lake_of(tmp_path / "lake", [pa.array(range(ROWS))])
    dry = bloomcli.index_build(lake, ["id"], dry_run=True)
    report = bloomcli.index_build(lake, ["id"], output=tmp_path / "x.idx")
    assert (dry.row_groups, dry.filters, dry.columns_read) == (9, 0, 9)
    assert (report.row_groups, report.filters, report.columns_read) == (9, 0, 9)
    assert dry.bytes_decoded == report.bytes_decoded > 9 * 1000


def test_filters_of_mosaic_files_are_taken_where_they_hash_as_parquets_do(tmp_path: Path) -> None:
    table = pa.table({"id": pa.array(range(ROWS)), "small": pa.array([n % 100 for n in range(ROWS)], pa.int16())})
    path = mosaicfiles.write(tmp_path / "a.mosaic", table, batch=STRIPE)
    bloomcli.add(path, ["id", "small"], in_place=True, **mosaicfiles.DRAFT)
    dry = bloomcli.index_build(path, ["id", "small"], dry_run=True)
    report = bloomcli.index_build(path, ["id", "small"], output=tmp_path / "x.idx")
    assert (report.filters, report.columns_read) == (dry.filters, dry.columns_read) == (3, 3)
    assert report.bytes_decoded == dry.bytes_decoded
    assert same_rows(str(path), [1, 2999], str(tmp_path / "x.idx")).rows == 2
    for value, count in ((7, 30), (100, 0)):
        found = bloomcli.find(path, value, column="small", index=tmp_path / "x.idx")
        assert sum(batch.num_rows for batch in found) == count


def test_a_mosaic_filter_without_its_row_groups_own_bounds_is_not_taken(tmp_path: Path) -> None:
    path = mosaicfiles.write(tmp_path / "a.mosaic", pa.table({"id": range(ROWS)}), stats_columns=["id"])
    bloomcli.add(path, ["id"], in_place=True, **mosaicfiles.DRAFT)
    facts = bloomcli.inspect(path).filters[0]
    assert facts.offset is not None
    data = bytearray(path.read_bytes())
    start = facts.offset + (facts.header_bytes or 0)
    data[start : start + (facts.bitset_bytes or 0)] = bytes(facts.bitset_bytes or 0)
    path.write_bytes(data)
    report = bloomcli.index_build(path, ["id"], output=tmp_path / "x.idx")
    assert (report.filters, report.columns_read) == (0, 1)
    assert states(str(tmp_path / "x.idx")) == [FILTER]
    with open_source(tmp_path / "x.idx") as source:
        opened = Index(source)
        hashed = kernels.xxh64((5).to_bytes(8, "little")).to_bytes(8, "little")
        assert len(opened.possible(opened.columns[0], hashed)) == 1


@pytest.mark.parametrize("kind", ["char(5)", "varchar(5)", "string"])
def test_blanks_at_the_end_count_in_texts_but_not_in_chars(tmp_path: Path, kind: str) -> None:
    with (tmp_path / "a.orc").open("wb") as opened, pyorc.Writer(opened, f"struct<id:{kind}>") as writer:
        writer.writerows((text,) for text in ("a", "a ", "b", " c", "", None))
    index = built_of(tmp_path / "a.orc")
    found = {}
    for text in ("a", "a ", "a   ", "b ", " c  ", "c", "", "  "):
        report = same_rows(str(tmp_path / "a.orc"), text, index)
        same_rows(str(tmp_path / "a.orc"), [text, "zz"] * 200, index)
        found[text] = report.rows
    assert found["a   "] == (2 if kind == "char(5)" else 0)
    assert found["a"] >= 1


def built_of(path: Path) -> str:
    index = str(path) + ".bloom-index"
    assert bloomcli.index_build(path, ["id"], output=index).written
    return index


def test_nested_columns_of_orc_are_indexed(tmp_path: Path) -> None:
    folder = tmp_path / "lake"
    folder.mkdir()
    path = orcfiles.write(folder / "a.orc", orcfiles.everything(500))
    index = built(folder, orcfiles.NESTED)
    assert set(states(index)) == {FILTER}
    for column, values in {
        "st.x": [1, 7, 9],
        "st.y": ["names", "b", "x"],
        "li._elem": [1, 3, 4],
        "mp._key": ["k", "m", "x"],
        "mp._value": [1, 2, 3],
        "ls._elem.z": ["p", "q"],
    }.items():
        without = list(bloomcli.find(path, values, column=column, select=["int32"]))
        assert list(bloomcli.find(path, values, column=column, select=["int32"], index=index)) == without
        assert without


def test_what_can_not_be_hashed_may_be_anywhere_and_what_has_no_value_nowhere(tmp_path: Path) -> None:
    folder = tmp_path / "lake"
    folder.mkdir()
    orcfiles.write(folder / "a.orc", orcfiles.everything(100))
    orc.write_table(
        pa.table({"flag": pa.array([], pa.bool_()), "all_null": pa.array([], pa.string())}), folder / "b.orc"
    )
    assert states(built(folder, ["flag"])) == [ALWAYS]
    assert states(built(folder, ["all_null"])) == [NEVER]
    for name in ("java_encrypted.orc",):
        shutil.copy(ROOT / "fixtures" / "orc" / name, folder / name)
        assert ALWAYS in states(built(folder, leaves_of(folder / name)))


def leaves_of(path: Path) -> list[str]:
    with open_source(path) as source:
        return [column.path for column in open_file(source).leaves]


def table_of(path: Path, spare: Path) -> pa.Table:
    if path.suffix == ".orc":
        return orc.read_table(path)
    bloomcli.remove(path, output=spare)  # released readers refuse a file with filters
    return mosaicfiles.read(spare)


def found_rows(path: Path, text: str, name: str, **options: Any) -> tuple[Any, Any]:
    found = bloomcli.find(path, text, column=name, select=[name], **options)
    return [row["row"] for batch in found for row in batch.to_pylist()], found.report.errors


@pytest.mark.slow
@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.name)
def test_an_index_of_every_fixture_loses_no_row(path: Path, tmp_path: Path) -> None:
    names = leaves_of(path)
    index = str(tmp_path / "x.idx")
    if not bloomcli.index_build(path, names, output=index).written:
        return
    table = table_of(path, tmp_path / path.name)
    some = pa.array(sorted({table.num_rows * part // 3 for part in range(3)} - {table.num_rows}), pa.int64())
    for name in names:
        if name not in table.column_names or pa.types.is_nested(table.schema.field(name).type):
            continue
        try:
            stored = table[name].take(some).to_pylist()
        except (OverflowError, ValueError):
            continue
        texts = sorted({f"0x{v.hex()}" if isinstance(v, bytes) else str(v) for v in stored if v is not None})
        for text in texts:
            try:
                without = found_rows(path, text, name)
            except bloomcli.BloomError:
                continue
            assert found_rows(path, text, name, index=index) == without, (name, text)


_VALUES: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "int8": (pa.int8(), st.integers(-128, 127)),
    "int16": (pa.int16(), st.integers(-(1 << 15), (1 << 15) - 1)),
    "int32": (pa.int32(), st.integers(-(1 << 31), (1 << 31) - 1)),
    "int64": (pa.int64(), st.integers(-(1 << 63), (1 << 63) - 1)),
    "float32": (pa.float32(), st.floats(width=32) | st.sampled_from([0.0, -0.0, math.nan])),
    "float64": (pa.float64(), st.floats() | st.sampled_from([0.0, -0.0, math.nan])),
    "string": (pa.string(), st.text(st.characters(codec="utf-8"), max_size=12)),
    "binary": (pa.binary(), st.binary(max_size=12)),
    "date": (pa.date32(), st.dates()),
    "decimal": (pa.decimal128(12, 3), st.decimals(-(10**8), 10**8, places=3, allow_nan=False)),
    "decimal38": (pa.decimal128(38, 4), st.decimals(-(10**33), 10**33, places=4, allow_nan=False)),
    "timestamp": (pa.timestamp("us"), st.datetimes()),
}


def typed_text(value: Any) -> str:
    if isinstance(value, bytes):
        return f"0x{value.hex()}"
    if hasattr(value, "isoformat"):
        return str(value.isoformat())
    return f"{value:f}" if type(value).__name__ == "Decimal" else str(value)


def equal(stored: Any, value: Any) -> bool:
    if isinstance(value, float) and math.isnan(value):
        return isinstance(stored, float) and math.isnan(stored)
    return stored is not None and bool(stored == value)


@pytest.mark.slow
@pytest.mark.parametrize("name", _VALUES)
@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_an_index_gives_what_a_scan_finds(name: str, data: st.DataObject, tmp_path: Path) -> None:
    kind, values = _VALUES[name]
    lake = tmp_path / "lake"
    shutil.rmtree(lake, ignore_errors=True)
    lake.mkdir()
    files = data.draw(st.lists(st.lists(st.none() | values, min_size=1, max_size=30), min_size=1, max_size=3))
    scans: dict[str, list[Any]] = {}
    for at, stored in enumerate(files):
        array = pa.array(stored, kind)
        orcfiles.write(lake / f"{at}.orc", {"id": array}, stride=10, dictionary_key_size_threshold=at % 2)
        mosaicfiles.write(lake / f"{at}.mosaic", pa.table({"id": array}), batch=7)
        pq.write_table(pa.table({"id": array}), lake / f"{at}.parquet", row_group_size=7)
        scans |= dict.fromkeys((f"{at}.orc", f"{at}.mosaic", f"{at}.parquet"), array.to_pylist())
    index = built(lake)
    present = sorted({typed_text(v) for stored in scans.values() for v in stored if v is not None})
    wanted = [v for stored in scans.values() for v in stored if v is not None][:5]
    wanted += data.draw(st.lists(values, max_size=3))
    for value in wanted:
        found, report = rows(str(lake), typed_text(value), index=index)
        assert (report.failed, report.files_not_indexed, report.files_changed) == (0, 0, 0)
        expected = {(n, at) for n, stored in scans.items() for at, one in enumerate(stored) if equal(one, value)}
        assert {(path.rpartition("/")[2], row) for path, row, _ in found} == expected
    if present:
        same_rows(str(lake), present * (300 // len(present) + 1), index)


def test_types_that_have_one_logical_type_are_distinguished_by_their_physical_ones(
    bloom: Bloom, tmp_path: Path
) -> None:
    prices = pa.array([Decimal("1.50")] * ROWS, pa.decimal128(9, 2))
    lake = lake_of(tmp_path / "lake", [prices])
    (shared,) = bloomcli.index_inspect(built(lake)).columns
    assert (shared.physical, shared.row_groups) == ("FIXED_LEN_BYTE_ARRAY", 9)
    pq.write_table(pa.table({"id": prices}), lake / "b.parquet", store_decimal_as_integer=True)
    shown = bloom("index", "inspect", built(lake)).out
    assert "DECIMAL(9,2) FIXED_LEN_BYTE_ARRAY" in shown
    assert "DECIMAL(9,2) INT32" in shown
    assert same_rows(str(lake), "1.5", built(lake)).rows == 4 * ROWS
