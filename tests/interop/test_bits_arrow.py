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
        bloomcli.add(bare, [leaf], output=ours, overwrite=True, ndv=10_000, max_bytes=len(theirs.bitset))
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
    bloomcli.add(bare, ["d"], output=tmp_path / "ours.parquet", ndv=1000, max_bytes=len(theirs))
    plain = [packed(form)(value) for value in values if value is not None]
    other = packed(form)(math.copysign(0.0, -math.copysign(1, zero)))
    assert theirs == blooms.build(plain, len(theirs))
    assert bloomcli.dump(tmp_path / "ours.parquet").bitset == blooms.build([*plain, other], len(theirs))
