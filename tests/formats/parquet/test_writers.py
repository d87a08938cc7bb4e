"""Peculiarities of writers: filters on booleans, 128-bit integers, intervals."""

from __future__ import annotations

import struct
from pathlib import Path

import pyarrow as pa
import pytest
from conftest import need
from support import blooms, footers, thrift
from support.tables import write

import bloomcli
from bloomcli.formats.parquet.values import normal_intervals
from bloomcli.model.file import Presence

BYTES = {False: b"\0", True: b"\1"}
"""The hashes of booleans in arrow-rs."""


def flags(path: Path, values: list[bool | None], holds: list[bool], *, statistics: bool = True) -> Path:
    """Write a boolean column with a filter that contains some values."""
    write(path, {"c": pa.array(values)}, write_statistics=statistics)
    bits = blooms.build([BYTES[value] for value in holds], 32)
    path.write_bytes(blooms.planted(path.read_bytes(), 0, 0, blooms.header(32) + bits))
    return path


def found(path: Path, *, deep: bool) -> list[tuple[str, str]]:
    return [(f.id, f.severity.value) for f in bloomcli.validate(path, deep=deep).findings]


@pytest.mark.parametrize("deep", [False, True])
@pytest.mark.parametrize(
    ("values", "holds", "said"),
    [
        ([True, False], [True, False], []),
        ([True, None], [True], []),
        ([True, None], [True, False], []),
        ([True, False], [], [("filter-boolean", "error")]),
        ([None, None], [], []),
        ([True, False], [True], [("value-missing", "error")]),
        ([True, True], [False], [("value-missing", "error")] * 2),
    ],
)
def test_a_boolean_filter_is_an_error_where_it_is_all_zero_over_data_or_misses_a_value(
    tmp_path: Path, values: list[bool | None], holds: list[bool], said: list[tuple[str, str]], deep: bool
) -> None:
    path = flags(tmp_path / "f", values, holds)
    assert found(path, deep=deep) == (said[:1] if deep else said)


def test_a_boolean_filter_without_statistics_is_reported_as_not_checked(tmp_path: Path) -> None:
    path = flags(tmp_path / "f", [True, False], [True], statistics=False)
    assert found(path, deep=False) == []
    assert found(path, deep=True) == [("filter-not-checked", "note")]


def test_datafusions_boolean_filters_are_sound(tmp_path: Path) -> None:
    try:
        import datafusion
    except ImportError:
        need(False, "DataFusion")
    write(tmp_path / "in.parquet", {"c": pa.array([True, False, None] * 50)})
    context = datafusion.SessionContext()
    context.register_parquet("t", str(tmp_path / "in.parquet"))
    options = "'format.bloom_filter_on_write' 'true', 'format.bloom_filter_ndv' '10'"
    context.sql(f"COPY t TO '{tmp_path}/out/' STORED AS PARQUET OPTIONS ({options})").collect()
    (path,) = (tmp_path / "out").iterdir()
    assert [f.column for f in bloomcli.inspect(path).filters] == ["c"]
    assert found(path, deep=True) == found(path, deep=False) == []


@pytest.mark.parametrize("kind", ["UInt128", "Int128"])
def test_polars_bounds_of_128_bit_integers_prove_no_filter_wrong(tmp_path: Path, kind: str) -> None:
    """Polars writes values in little-endian order, and their bounds in big-endian order."""
    try:
        import polars as pl
    except ImportError:
        need(False, "Polars")
    values = [1, 256, 70_000, 2**100]
    frame = pl.DataFrame({"c": pl.Series(values * 50, dtype=getattr(pl, kind)), "i": range(200)})
    frame.write_parquet(tmp_path / "f")
    bloomcli.add(tmp_path / "f", ["c", "i"], in_place=True)
    assert found(tmp_path / "f", deep=False) == []
    # readers that compare the bytes lose rows by them
    known = {("page-index-bounds", "error"), ("statistics-bounds", "error")} if kind == "UInt128" else set()
    assert set(found(tmp_path / "f", deep=True)) == known
    stored = [value.to_bytes(16, "little") for value in values]
    report = bloomcli.probe(tmp_path / "f", [f"0x{value.hex()}" for value in stored], column="c")
    assert [(t.presence, t.stats_skipped_row_groups) for t in report.totals] == [(Presence.MAYBE, 0)] * 4
    for fact in bloomcli.inspect(tmp_path / "f").filters:
        assert fact.untrusted is None
    # bounds of other writers are used as usual: a filter without one of them is wrong
    data = (tmp_path / "f").read_bytes()

    def by_another(metadata: thrift.Fields) -> None:
        metadata[6] = (thrift.BINARY, b"another writer")

    (tmp_path / "other").write_bytes(footers.edited(data, by_another))
    has_bounds = 5 in footers.meta(footers.tree(data), 0, 0).get(footers.STATISTICS, (0, {}))[1]
    assert (found(tmp_path / "other", deep=False) != []) == has_bounds


def normal(months: int, days: int, millis: int) -> bytes:
    """DuckDB's normal form of an interval, in plain Python: a day has 24 hours, a month 30 days."""
    more, millis = divmod(millis, 86_400_000)
    more, days = divmod(days + more, 30)
    months += more
    if months >= 1 << 31:
        days, months = days + (months - ((1 << 31) - 1)) * 30, (1 << 31) - 1
    return struct.pack("<III", months & 0xFFFFFFFF, days, millis)


@pytest.mark.parametrize(
    ("value", "forms"),
    [
        ((0, 0, 0), [(0, 0, 0)]),
        ((0, 40, 0), [(0, 40, 0)]),
        ((1, 29, 86_400_000 * 2 + 5), [(1, 29, 86_400_000 * 2 + 5)]),
        ((0, 0, 0xFFFFFFFF), [(0, 0, 0xFFFFFFFF)]),
        (((1 << 31) - 1, 31, 0), [((1 << 31) - 1, 31, 0)]),
        ((0, 0xFFFFFFFF, 0), [(0, -1, 0), (0, 0xFFFFFFFF, 0)]),
        ((0xFFFFFFFF, 3, 0), [(-1, 3, 0)]),
        (((1 << 31) - 1, 0xFFFFFFFF, 0), [((1 << 31) - 1, -1, 0), ((1 << 31) - 1, 0xFFFFFFFF, 0)]),
        (((1 << 31) - 1, 0xFFFFFFFF, 0xFFFFFFFF), [((1 << 31) - 1, -1, 0xFFFFFFFF)]),
        ((1 << 31, 1 << 31, 0), [(-(1 << 31), 1 << 31, 0)]),
    ],
    ids=str,
)
def test_the_normal_forms_of_an_interval_are_duckdbs(value: tuple[int, ...], forms: list[tuple[int, ...]]) -> None:
    """Intervals beyond DuckDB's months or 32 bits of days have no normal form."""
    found = normal_intervals(struct.pack("<III", *value))
    assert found == b"".join(normal(*form) for form in forms)


def test_the_second_forms_of_intervals_follow_all_first_ones() -> None:
    plain = b"".join(struct.pack("<III", *value) for value in ((0, 0xFFFFFFFF, 7), (0, 40, 0), (1, 0xFFFFFFFE, 0)))
    forms = [(0, -1, 7), (0, 40, 0), (1, -2, 0), (0, 0xFFFFFFFF, 7), (1, 0xFFFFFFFE, 0)]
    assert normal_intervals(plain) == b"".join(normal(*form) for form in forms)
    assert normal_intervals(b"") == b""
