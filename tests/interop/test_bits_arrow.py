"""Filters by Arrow C++ (`bloom_filter_options`) and by us, over the same data at the same size: the same bits."""

from __future__ import annotations

import math
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support import blooms
from support.tables import CASES, MAP, packed, write

import bloomcli
from bloomcli.filters.split_block import SplitBlockFilter

pytestmark = pytest.mark.interop

COLUMNS = {**{name: case.array(3) for name, case in CASES.items()}, "map": pa.concat_arrays([MAP] * 3)}
LAYOUTS = {
    "dictionary": {},
    "plain": {"dictionary": False, "page_version": 2, "compression": "zstd"},
}


def leaves(path: Path) -> list[str]:
    """The file's leaf paths."""
    metadata = pq.read_metadata(path)
    return [metadata.schema.column(i).path for i in range(metadata.num_columns)]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", COLUMNS)
def test_a_type_has_the_bits_of_arrow(name: str, layout: str, tmp_path: Path) -> None:
    bare = write(tmp_path / "bare.parquet", {"c": COLUMNS[name]}, **LAYOUTS[layout])
    columns = leaves(bare)
    asked = {leaf: {"ndv": 40, "fpp": 0.01} for leaf in columns}
    arrow = write(tmp_path / "arrow.parquet", {"c": COLUMNS[name]}, blooms=asked, **LAYOUTS[layout])
    for leaf in columns:
        theirs = bloomcli.dump(arrow, column=leaf)
        ours = tmp_path / "ours.parquet"
        bloomcli.add(
            bare, [leaf], output=ours, overwrite=True, ndv=10_000, max_bytes=len(theirs.bitset), readers="spark"
        )
        assert any(theirs.bitset) == (CASES[name].hashes() != set() if name in CASES else True)
        assert bloomcli.dump(ours).bitset == theirs.bitset
        assert bloomcli.dump(ours).header == theirs.header


def test_without_a_cap_a_full_filter_has_the_size_and_bits_of_arrows(tmp_path: Path) -> None:
    table = {"n": pa.array(range(20_000)), "s": pa.array([f"text {i}" for i in range(20_000)])}
    options = {"ndv": 5000, "fpp": 0.02}
    write(tmp_path / "arrow.parquet", table, rows=5000, blooms={"n": options, "s": options})
    bare = write(tmp_path / "bare.parquet", table, rows=5000)
    bloomcli.add(bare, ["n", "s"], output=tmp_path / "ours.parquet", ndv=5000, fpp=0.02)
    for column in table:
        for group in range(4):
            ours, theirs = (
                bloomcli.dump(tmp_path / f"{who}.parquet", column=column, row_group=group)
                for who in ("ours", "arrow")
            )
            assert ours.bitset == theirs.bitset


@pytest.mark.parametrize(("kind", "form"), [(pa.float16(), "<e"), (pa.float32(), "<f"), (pa.float64(), "<d")])
@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_of_a_zero_we_hold_both_signs_and_arrow_only_the_stored_one(
    kind: pa.DataType, form: str, zero: float, tmp_path: Path
) -> None:
    values = [zero, 1.5, None, -7.25]
    table = {"d": pa.array(values, kind)}
    arrow = write(tmp_path / "arrow.parquet", table, blooms={"d": {"ndv": 40, "fpp": 0.01}})
    theirs = bloomcli.dump(arrow).bitset
    bare = write(tmp_path / "bare.parquet", table)
    bloomcli.add(bare, ["d"], output=tmp_path / "ours.parquet", ndv=1000, max_bytes=len(theirs), readers="spark")
    plain = [packed(form)(value) for value in values if value is not None]
    other = packed(form)(math.copysign(0.0, -math.copysign(1, zero)))
    assert theirs == blooms.build(plain, len(theirs))
    assert bloomcli.dump(tmp_path / "ours.parquet").bitset == blooms.build([*plain, other], len(theirs))


def categories(values: pa.Array) -> list[pa.Array]:
    """Indices into an array's entries, of which the last 900 are never used: flat with nulls, and in lists."""
    indices = [None if at % 5 == 0 else (at * at) % (3 + at // 10) for at in range(300)]
    flat = pa.DictionaryArray.from_arrays(pa.array(indices, pa.int16()), values)
    offsets = pa.array([0, 0, 5, *range(6, 300, 7), 300], pa.int32())
    mask = pa.array([at % 4 == 0 for at in range(len(offsets) - 1)])
    return [flat, pa.ListArray.from_arrays(offsets, flat), pa.ListArray.from_arrays(offsets, flat, mask=mask)]


CATEGORIES = {
    "string": pa.array([f"entry {i}" for i in range(1000)]),
    "binary": pa.array([bytes([i % 256, i // 256]) for i in range(1000)]),
    "int64": pa.array([i * 7919 for i in range(1000)]),
    "float64": pa.array([i / 3 + 1 for i in range(1000)]),
}


@pytest.mark.parametrize(("page_version", "compression"), [(1, "snappy"), (2, "zstd")])
@pytest.mark.parametrize("name", CATEGORIES)
def test_a_dictionary_arrays_unused_entries_are_in_neither_filter(
    name: str, compression: str, page_version: int, tmp_path: Path
) -> None:
    for array in categories(CATEGORIES[name]):
        layout = {"rows": 17, "page_version": page_version, "compression": compression, "data_page_size": 40}
        bare = write(tmp_path / "bare.parquet", {"c": array}, write_batch_size=8, **layout)
        (leaf,) = leaves(bare)
        arrow = write(tmp_path / "arrow.parquet", {"c": array}, blooms={leaf: {"ndv": 90, "fpp": 0.001}}, **layout)
        bloomcli.add(bare, [leaf], output=tmp_path / "ours.parquet", overwrite=True, ndv=10_000)
        groups = pq.read_metadata(bare).num_row_groups
        assert groups > 2
        seen = set()
        for group in range(groups):
            ours, theirs = (bloomcli.dump(tmp_path / f"{who}.parquet", row_group=group) for who in ("ours", "arrow"))
            bits = SplitBlockFilter(ours.bitset)
            while bits.nbytes > len(theirs.bitset):
                bits = bits.fold()
            assert bits.bitset == theirs.bitset
            seen.add(theirs.bitset)
        assert len(seen) > 2
        for path in (arrow, tmp_path / "ours.parquet"):
            report = bloomcli.validate(path, deep=True)
            assert (report.ok, report.findings) == (True, ())
