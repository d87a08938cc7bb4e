"""Decimals and timestamps at any depth of nesting, sound and damaged."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support import orcfiles, orcruns
from support.orcfiles import CASES, replaced

import bloomcli

DATA, SECONDARY = 1, 5
MONEY = [Decimal("1.50"), None, Decimal("-12.00"), Decimal("9999999.99")]
MOMENTS = [dt.datetime(2024, 2, 29, 13, 45, 30, 250_999), None, dt.datetime(1999, 1, 1)]
HASH: dict[str, Callable[[Any], int]] = {"m": CASES["decimal_9_2"].hash, "t": CASES["timestamp"].hash}
KINDS = {"m": pa.decimal128(9, 2), "t": pa.timestamp("us")}
VALUES: dict[str, list[Any]] = {"m": MONEY, "t": MOMENTS}
ROWS, STRIDE = 50, 20


def nested(name: str) -> tuple[pa.Table, dict[str, list[list[Any]]]]:
    """A kind of value in a struct, in lists, in lists of structs and in maps; and each leaf's values, row by row."""
    one, kind = VALUES[name], KINDS[name]
    rows: dict[str, list[Any]] = {"st": [], "li": [], "ls": [], "mp": []}
    leaves: dict[str, list[list[Any]]] = {k: [] for k in ("st.x", "li._elem", "ls._elem.x", "mp._value")}
    for i in range(ROWS):
        value, other, some = one[i % len(one)], one[i % 2], i % 5 != 0
        rows["st"].append({"x": value} if some else None)
        rows["li"].append([value, other] if some else ([] if i % 2 else None))
        rows["ls"].append([{"x": value}, None, {"x": other}] if some else None)
        rows["mp"].append([(f"{i}", value)] if some else None)
        leaves["st.x"].append([value] if some else [])
        leaves["li._elem"].append([value, other] if some else [])
        leaves["ls._elem.x"].append([value, other] if some else [])
        leaves["mp._value"].append([value] if some else [])
    struct = pa.struct([("x", kind)])
    types = {"st": struct, "li": pa.list_(kind), "ls": pa.list_(struct), "mp": pa.map_(pa.string(), kind)}
    return pa.table({n: pa.array(v, types[n]) for n, v in rows.items()}), leaves


@pytest.mark.parametrize("name", ["m", "t"])
def test_nested_moments_and_decimals_are_hashed_row_group_by_row_group(tmp_path: Path, name: str) -> None:
    table, leaves = nested(name)
    path = orcfiles.write(tmp_path / "f", table, stride=STRIDE)
    bloomcli.add(path, list(leaves), in_place=True)
    for column, rows in leaves.items():
        for group in range(3):
            dumped = bloomcli.dump(path, column=column, row_group=group)
            values = [v for row in rows[group * STRIDE :][:STRIDE] for v in row if v is not None]
            size = len(dumped.bitset) * 8, dumped.facts.hash_functions or 0
            assert dumped.bitset == orcfiles.bits_of(map(HASH[name], values), *size), (column, group)
    assert bloomcli.validate(path, deep=True).findings == ()


def test_trailing_zeros_may_be_cut_off_in_the_file_as_orc_core_does(tmp_path: Path) -> None:
    """Each value has its own scale. ORC C++ writes the column's scale for all."""
    path = orcfiles.write(tmp_path / "f", {"m": pa.array([Decimal("1.23")] * 9, KINDS["m"])})
    other = orcfiles.edited(path, tmp_path / "other", replaced(DATA, 1, orcruns.varint(24) * 9))
    scales = orcruns.direct([0, 1, 2, -1, 0, 0, 0, 0, 1], signed=True)
    orcfiles.edited(other, other, replaced(SECONDARY, 1, scales))
    assert orcfiles.read(other)["m"].to_pylist()[:4] == [Decimal("12.00"), Decimal("1.20"), Decimal("0.12"), 120]
    bloomcli.add(other, ["m"], in_place=True)
    dumped = bloomcli.dump(other, column="m")
    wanted = [orcfiles.text_hash(t) for t in ("12", "1.2", "0.12", "120")]
    assert dumped.bitset == orcfiles.bits_of(wanted, len(dumped.bitset) * 8, dumped.facts.hash_functions or 0)


def test_filters_are_added_and_proven_without_pyarrow(tmp_path: Path) -> None:
    """Importing it takes longer than filtering a column of a small file."""
    kinds = ("int64", "string", "float32", "date", "decimal_9_2", "decimal_38_10")
    paths = [orcfiles.write(tmp_path / kind, {"c": CASES[kind].array(100)}, compression="zstd") for kind in kinds]
    program = (
        "import sys, bloomcli\n"
        "for path in sys.argv[1:]:\n"
        "    bloomcli.add(path, ['c'], in_place=True)\n"
        "    assert bloomcli.validate(path, deep=True).ok, path\n"
        "    assert not {'pyarrow', 'numpy'} & set(sys.modules), path\n"
    )
    subprocess.run([sys.executable, "-c", program, *paths], check=True)
