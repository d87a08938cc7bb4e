"""Filters by orc-core and by us over the same data: the same BLOOM_FILTER_UTF8 streams, byte for byte."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyarrow import orc
from support import orc_hashes
from support.orcspark import (
    LEAVES,
    STRIDE,
    filters,
    java_zone,
    read_bytes,
    types_frame,
    write,
    write_vectors,
)
from support.orcwalk import Orc

import bloomcli
from bloomcli.filters.kirsch_mitzenmacher import KirschMitzenmacherFilter

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.interop]

ROWS = 2500
STRIPES = [(2048, 3), (452, 1)]
"""Rows and row groups: orc-core starts a stripe after a batch of 1,024 that fills it."""
SMALL = {"orc__row__index__stride": STRIDE, "orc__stripe__row__count": 1500}
CASES = [*((codec, 0.01) for codec in ("zstd", "zlib", "snappy", "lz4", "none")), ("zstd", 0.05)]


@dataclass(frozen=True)
class Pair:
    """orc-core's file with filters, and the one without that we put them into."""

    java: Orc
    ours: Orc

    def assert_same(self, leaf: str) -> None:
        """Every stripe's stream is equal, and its filters hold something."""
        column = self.java.columns[leaf]
        for stripe, (_, groups) in enumerate(STRIPES):
            bitsets = self.java.bitsets(stripe, leaf)
            assert len(bitsets) == groups
            assert all(any(bits) for _, bits in bitsets)
            assert self.ours.payload(stripe, leaf) == self.java.payload(stripe, leaf)
            encodings = {file.stripes[stripe].bloom_encoding(column) for file in (self.java, self.ours)}
            assert encodings == {1}


@pytest.fixture(scope="module", params=CASES, ids=lambda case: f"{case[0]}-{case[1]}")
def pair(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Pair:
    codec, fpp = request.param
    folder = tmp_path_factory.mktemp(codec)
    frame = types_frame(spark, ROWS)
    java = write(frame, folder / "java.orc", codec, **filters(fpp=fpp), **SMALL)
    bare = write(frame, folder / "bare.orc", codec, **SMALL)
    bloomcli.add(bare, LEAVES, output=folder / "ours.orc", fpp=fpp)
    return Pair(Orc(java), Orc(folder / "ours.orc"))


def test_the_files_have_several_stripes_and_row_groups_and_their_codec(
    pair: Pair, request: pytest.FixtureRequest
) -> None:
    for file in (pair.java, pair.ours):
        assert [(s.rows, -(-s.rows // file.stride)) for s in file.stripes] == STRIPES
        assert file.codec == request.node.callspec.params["pair"][0]
    assert set(pair.java.hashable) == set(LEAVES)


@pytest.mark.parametrize("leaf", LEAVES)
def test_a_type_has_the_bits_of_orc_core(pair: Pair, leaf: str) -> None:
    pair.assert_same(leaf)


def test_the_streams_lie_in_the_order_of_orc_core(pair: Pair) -> None:
    ours = {(8, pair.java.columns[leaf]) for leaf in LEAVES}
    for java, own in zip(pair.java.stripes, pair.ours.stripes, strict=True):
        theirs = [(s.kind, s.column) for s in java.streams if not s.is_filter or (s.kind, s.column) in ours]
        assert [(s.kind, s.column) for s in own.streams] == theirs


def vectors(
    spark: SparkSession, folder: Path, kind: str, values: Sequence[Any], fpp: float = 0.01, **options: Any
) -> Pair:
    """One column `c` of a type that orc-core's own writer is given, in one row group."""
    schema = f"struct<c:{kind}>"
    wanted = {"orc__bloom__filter__columns": "c", "orc__bloom__filter__fpp": fpp}
    java = write_vectors(spark, folder / "java.orc", schema, [values], **wanted, **options)
    bare = write_vectors(spark, folder / "bare.orc", schema, [values], **options)
    bloomcli.add(bare, ["c"], output=folder / "ours.orc", fpp=fpp)
    return Pair(Orc(java), Orc(folder / "ours.orc"))


TEXTS = ["", None, "a", "abcdefgh", "ü", "日本語", "😀😀", "trailing  ", " leading", "abcdefghijklmnop"]


@pytest.mark.parametrize("kind", ["char(8)", "char(1)", "varchar(3)", "varchar(200)", "string", "binary"])
def test_texts_are_hashed_as_they_are_stored_padded_or_cut(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    values = [None if t is None else t.encode() for t in TEXTS] * 3
    pair = vectors(spark, tmp_path, kind, values)
    assert any(pair.java.bitsets(0, "c")[0][1])
    assert pair.ours.payload(0, "c") == pair.java.payload(0, "c")


@pytest.mark.parametrize("kind", ["geometry", "geography"])
def test_geometries_have_the_bits_of_orc_core_which_reads_them_beside_our_filters(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    points = [None if n % 5 == 3 else struct.pack("<BIdd", 1, 1, n / 4, -n) for n in range(90)]
    pair = vectors(spark, tmp_path, kind, points)
    pair_payloads = [file.payload(0, "c") for file in (pair.ours, pair.java)]
    assert any(pair.java.bitsets(0, "c")[0][1])
    assert pair_payloads[0] == pair_payloads[1]
    found = [read_bytes(spark, tmp_path / name, "c") for name in ("ours.orc", "bare.orc")]
    assert found == [points, points]


LONGS = {
    "tinyint": [-128, 127, 0, -1, 1, None],
    "smallint": [-(2**15), 2**15 - 1, 0, -1, None],
    "int": [-(2**31), 2**31 - 1, 0, -1, None],
    "bigint": [-(2**63), 2**63 - 1, 0, -1, None, 2**32, -(2**32)],
    "date": [-719162, -1, 0, 1, None, 2932896],
}


@pytest.mark.parametrize("kind", LONGS)
@pytest.mark.parametrize("fpp", [0.5, 0.01, 0.0001])
def test_the_bounds_of_integers_and_dates_and_any_rate(
    spark: SparkSession, tmp_path: Path, kind: str, fpp: float
) -> None:
    pair = vectors(spark, tmp_path, kind, LONGS[kind], fpp)
    assert any(pair.java.bitsets(0, "c")[0][1])
    assert pair.ours.payload(0, "c") == pair.java.payload(0, "c")


@pytest.mark.parametrize("kind", ["float", "double"])
def test_infinities_and_nans_have_the_bits_of_orc_core(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    values = [math.nan, math.inf, -math.inf, None, 1.5, 3.0e38, 1.0e-40]
    pair = vectors(spark, tmp_path, kind, values)
    assert pair.ours.payload(0, "c") == pair.java.payload(0, "c")


@pytest.mark.parametrize("kind", ["float", "double"])
@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_of_a_zero_we_hold_both_signs_and_orc_core_only_the_stored_one(
    spark: SparkSession, tmp_path: Path, kind: str, zero: float
) -> None:
    pair = vectors(spark, tmp_path, kind, [zero, 1.5, None])
    ((k, theirs),), ((same, ours),) = pair.java.bitsets(0, "c"), pair.ours.bitsets(0, "c")
    assert k == same
    java, own = KirschMitzenmacherFilter(theirs, k), KirschMitzenmacherFilter(ours, k)
    plus, minus = orc_hashes.orc_long(0), orc_hashes.orc_long(-(2**63))
    assert (java.check(plus), java.check(minus)) == (math.copysign(1, zero) > 0, math.copysign(1, zero) < 0)
    assert own.check(plus)
    assert own.check(minus)
    both = KirschMitzenmacherFilter(bytearray(theirs), k)
    for value in (plus, minus):
        both.insert_hashes(value.to_bytes(8, "little"), 1)
    assert bytes(both.bitset) == ours


def moment(nanos: int) -> tuple[int, int]:
    """A time since 1970 as java.sql.Timestamp has it: (milliseconds, rounded down; nanoseconds of the second)."""
    return nanos // 10**6, nanos % 10**9


def superset(ours: Orc, theirs: Orc) -> bool:
    """Whether our filter has every bit of theirs."""
    ((k, own),), ((same, java),) = ours.bitsets(0, "c"), theirs.bitsets(0, "c")
    return (k, len(own)) == (same, len(java)) and all(a | b == a for a, b in zip(own, java, strict=True))


SECOND = 10**9
HOUR = 3600 * SECOND
MOMENTS = [
    *(0, 1, 999_999, 10**6, SECOND - 1, SECOND, 1_709_212_530_250_000_000, 4 * 10**18),
    *(-SECOND, -SECOND - 1, -SECOND - 999_999, -SECOND - 10**6, -2 * SECOND + 1, -2 * SECOND, -24 * HOUR * 9000),
    *(-24 * HOUR * 9000 - 123_456_789, -15 * 10**17 - 5, 1_711_846_800_000_000_000),
    *(-22 * 10**17 - 5, -(10**19) - 10**6, 253_402_300_799_999_999_999),  # 1900, 1653, 9999
]
FAR = [nanos for nanos in MOMENTS if abs(nanos) > 24 * HOUR]
NEAR = [n * HOUR + at for n in range(-15, 16) for at in (0, 1, 999_999, 10**6, 500_250_000, SECOND - 1)]
ZONES = [
    *("UTC", "Asia/Kolkata", "America/Los_Angeles", "Europe/Berlin", "Pacific/Apia", "Africa/Monrovia"),
    *("America/New_York", "Australia/Sydney", "Asia/Tokyo", "GMT+05:30", "CST"),
]
Y1900 = -2_208_988_800 * SECOND
AGREED = {"Asia/Kolkata": -(10**18)}
"""Before that, or else before 1900, readers disagree: there we hold more (see test_orc_zones.py)."""
INSTANT = "timestamp with local time zone"


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("kind", ["timestamp", INSTANT])
def test_timestamps_have_the_bits_of_orc_core_in_every_time_zone(
    spark: SparkSession, tmp_path: Path, kind: str, zone: str
) -> None:
    moments = MOMENTS if zone == "UTC" or kind == INSTANT else [n for n in FAR if n > AGREED.get(zone, Y1900)]
    with java_zone(spark, zone):
        pair = vectors(spark, tmp_path, kind, [*map(moment, moments), None])
    assert pair.ours.payload(0, "c") == pair.java.payload(0, "c")


@pytest.mark.parametrize("zone", ZONES[1:])
def test_where_readers_are_a_second_apart_we_hold_what_orc_core_holds_and_more(
    spark: SparkSession, tmp_path: Path, zone: str
) -> None:
    """Near 1970 ORC C++ and orc-core disagree on files of other zones than UTC."""
    with java_zone(spark, zone):
        pair = vectors(spark, tmp_path, "timestamp", [*map(moment, NEAR), None])
    assert superset(pair.ours, pair.java)
    assert not superset(pair.java, pair.ours)
    for file in ("java.orc", "ours.orc"):
        report = bloomcli.validate(tmp_path / file, deep=True)
        assert (report.values_checked, report.findings) == (len(NEAR), ())


@pytest.mark.parametrize("nanos", [-1, -1_000_001, -500_000_000, -998_999_999])
def test_a_moment_in_the_last_second_before_1970_is_stored_a_second_late_and_both_hold_what_is_stored(
    spark: SparkSession, tmp_path: Path, nanos: int
) -> None:
    pair = vectors(spark, tmp_path, "timestamp", [moment(nanos)])
    stored = orc.read_table(tmp_path / "bare.orc")["c"].cast("int64").to_pylist()
    assert stored == [nanos + SECOND]
    assert pair.ours.payload(0, "c") == pair.java.payload(0, "c")
    ((k, bits),) = pair.ours.bitsets(0, "c")
    filled = KirschMitzenmacherFilter(bits, k)
    assert filled.check(orc_hashes.orc_long(stored[0] // 10**6))
    assert not filled.check(orc_hashes.orc_long(nanos // 10**6))
