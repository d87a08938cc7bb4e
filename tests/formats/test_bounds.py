"""Bounds of statistics that a filter must hold, by type, and the answers if it doesn't."""

from __future__ import annotations

import datetime as dt
import math
import struct
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support import footers, orcfiles, thrift
from support.orcfiles import File
from support.thrift import Fields

import bloomcli
from bloomcli.model.file import Presence

MAX, MIN, MAX_EXACT, MIN_EXACT = 5, 6, 7, 8


def missing_bounds(path: Path) -> list[tuple[str, ...]]:
    """The values of missing bounds that a shallow check reports."""
    findings = bloomcli.validate(path).findings
    assert {f.id for f in findings} <= {"value-missing"}
    return [f.missing for f in findings]


def parquet(path: Path, column: pa.Array, edit: Callable[[Fields], None] | None = None) -> Path:
    """One column `c` with a filter, its statistics edited."""
    pq.write_table(pa.table({"c": column}), path.with_name("plain"))
    bloomcli.add(path.with_name("plain"), ["c"], output=path, overwrite=True, readers=["spark"])
    if edit is None:
        return path
    data = footers.edited(path.read_bytes(), lambda m: edit(footers.meta(m, 0, 0)[footers.STATISTICS][1]))
    path.write_bytes(data)
    return path


def lies(low: bytes, high: bytes, exact: bool | None = None) -> Callable[[Fields], None]:
    """Set the statistics to other bounds, and to whether these are values."""

    def edit(statistics: Fields) -> None:
        for field in (MIN_EXACT, MAX_EXACT):
            statistics.pop(field, None)
        statistics[MIN], statistics[MAX] = (thrift.BINARY, low), (thrift.BINARY, high)
        if exact is not None:
            for field in (MAX_EXACT, MIN_EXACT):
                statistics[field] = (thrift.TRUE if exact else thrift.FALSE, exact)
        ordered = dict(sorted(statistics.items()))
        statistics.clear()
        statistics.update(ordered)

    return edit


COLUMNS: dict[str, tuple[pa.Array, bytes, bytes, tuple[str, str]]] = {
    "INT32": (pa.array([5, 6], pa.int32()), struct.pack("<i", -7), struct.pack("<i", 9), ("-7", "9")),
    "INT64": (pa.array([5, 6], pa.int64()), struct.pack("<q", -7), struct.pack("<q", 9), ("-7", "9")),
    "UINT32": (pa.array([5], pa.uint32()), struct.pack("<I", 1), struct.pack("<I", 1 << 31), ("1", "2147483648")),
    "DATE": (
        pa.array([dt.date(2024, 1, 1)]), struct.pack("<i", 0), struct.pack("<i", 19_999),
        ("1970-01-01", "2024-10-03"),
    ),
    "DOUBLE": (pa.array([5.5]), struct.pack("<d", -1.5), struct.pack("<d", 9.25), ("-1.5", "9.25")),
    "FLOAT": (pa.array([5.5], pa.float32()), struct.pack("<f", -1.5), struct.pack("<f", 9.25), ("-1.5", "9.25")),
    "DECIMAL": (
        pa.array([Decimal("5.00")], pa.decimal128(30, 2)), (150).to_bytes(13, "big"), (925).to_bytes(13, "big"),
        ("1.50", "9.25"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", COLUMNS)
def test_bounds_that_are_values_have_to_be_in_the_filter(name: str, tmp_path: Path) -> None:
    column, low, high, shown = COLUMNS[name]
    assert missing_bounds(parquet(tmp_path / "sound", column)) == []
    for exact in (None, True):
        wrong = parquet(tmp_path / "wrong", column, lies(low, high, exact))
        assert missing_bounds(wrong) == [(text,) for text in shown]
        deep = bloomcli.validate(wrong, deep=True)
        # the values decide: the statistics are wrong here, not the filter, and only a bound that is said to be exact
        assert {f.id for f in deep.findings} == ({"statistics-bounds"} if exact else set())
        said = bloomcli.probe(wrong, [str(column[0].as_py())], column="c").verdicts[0]
        assert said.presence is Presence.UNKNOWN
        assert said.reason is not None
        assert "minimum or maximum" in said.reason
    assert missing_bounds(parquet(tmp_path / "wider", column, lies(low, high, exact=False))) == []


def test_bounds_of_byte_arrays_are_values_only_where_the_statistics_say_so(tmp_path: Path) -> None:
    column = pa.array(["berry", "cherry"])
    for exact, found in ((None, []), (False, []), (True, [("app",), ("date",)])):
        assert missing_bounds(parquet(tmp_path / "f", column, lies(b"app", b"date", exact))) == found


@pytest.mark.parametrize(
    ("column", "low", "high"),
    [
        (pa.array([1.5]), struct.pack("<d", -0.0), struct.pack("<d", math.nan)),
        (pa.array([1.5], pa.float32()), struct.pack("<f", 0.0), struct.pack("<f", math.nan)),
        (pa.array([1.5], pa.float16()), struct.pack("<e", 0.0), struct.pack("<e", 2.0)),
        (pa.array([b"0123456789"], pa.binary(10)), b"0123", b"02"),
        (pa.array([7], pa.int64()), b"\0", b"\xff"),
    ],
)
def test_bounds_that_are_widened_shortened_or_no_value_at_all_prove_nothing(
    column: pa.Array, low: bytes, high: bytes, tmp_path: Path
) -> None:
    assert missing_bounds(parquet(tmp_path / "f", column, lies(low, high))) == []


def test_a_statistics_field_of_another_type_is_skipped(tmp_path: Path) -> None:
    def strange(statistics: Fields) -> None:
        lies(b"app", b"date", exact=True)(statistics)
        statistics[MAX_EXACT] = (thrift.I32, 1)

    path = parquet(tmp_path / "f", pa.array(["berry", "cherry"]), strange)
    assert missing_bounds(path) == [("app",)], "whether the maximum is a value isn't known then"


def emptied(path: Path, target: Path, column: int) -> Path:
    """An ORC file whose filters of a column have one bit each."""

    def edit(file: File) -> None:
        index = file.filters(column)
        for item in index.bloom_filter:
            item.utf8bitset = b"\1" + bytes(len(item.utf8bitset) - 1)
        file.set_filters(column, index)

    return orcfiles.edited(path, target, edit)


KINDS = {
    "int8": False, "int16": True, "int32": True, "int64": True, "date": True, "string": True, "varchar": True,
    "char": True, "decimal_9_2": True, "float64": True, "timestamp": False, "binary": False,
}  # fmt: skip


@pytest.mark.parametrize("name", [n for n, proves in KINDS.items() if n in orcfiles.CASES])
def test_orcs_row_index_proves_a_filter_wrong(name: str, tmp_path: Path) -> None:
    """Not timestamps, which are rounded, binaries, which have no bounds, or int8, which ORC C++ gets wrong."""
    table = orcfiles.everything(40)
    bare = orcfiles.write(tmp_path / "bare", table)
    bloomcli.add(bare, [name], output=tmp_path / "sound")
    assert missing_bounds(tmp_path / "sound") == []
    wrong = emptied(tmp_path / "sound", tmp_path / "wrong", list(orcfiles.CASES).index(name) + 1)
    proves = KINDS[name] or name == "int8"
    missing: list[Any] = missing_bounds(wrong)
    assert bool(missing) == proves
    for (text,) in missing:
        (said,) = bloomcli.probe(wrong, [text], column=name).verdicts
        assert said.presence is Presence.UNKNOWN
    assert {f.id for f in bloomcli.validate(wrong, deep=True).findings} == {"value-missing"}
