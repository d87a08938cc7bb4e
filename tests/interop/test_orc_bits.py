"""Filters by orc-core and by us over the same data: the same BLOOM_FILTER_UTF8 streams, byte for byte."""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from conftest import need
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
CASES = [("zstd", 0.01), ("none", 0.05)]


@dataclass(frozen=True)
class Pair:
    """orc-core's file with filters, and the one without that we put them into."""

    java: Orc
    ours: Orc

    def payloads(self, leaf: str, stripe: int = 0) -> list[bytes]:
        """The leaf's streams of both, of which orc-core's has a bit for some value in each filter."""
        assert all(any(bits) for _, bits in self.java.bitsets(stripe, leaf))
        return [file.payload(stripe, leaf) for file in (self.ours, self.java)]

    def superset(self, leaf: str) -> bool:
        """Whether our filter has every bit of theirs."""
        ((k, own),), ((same, java),) = self.ours.bitsets(0, leaf), self.java.bitsets(0, leaf)
        return (k, len(own)) == (same, len(java)) and all(a | b == a for a, b in zip(own, java, strict=True))


@pytest.fixture(scope="module", params=CASES, ids=lambda case: f"{case[0]}-{case[1]}")
def pair(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Pair:
    codec, fpp = request.param
    folder = tmp_path_factory.mktemp(codec)
    frame = types_frame(spark, ROWS)
    java = write(frame, folder / "java.orc", codec, **filters(fpp=fpp), **SMALL)
    bare = write(frame, folder / "bare.orc", codec, **SMALL)
    bloomcli.add(bare, LEAVES, output=folder / "ours.orc", fpp=fpp)
    found = Pair(Orc(java), Orc(folder / "ours.orc"))
    for file in (found.java, found.ours):
        assert [(s.rows, -(-s.rows // file.stride)) for s in file.stripes] == STRIPES
        assert file.codec == codec
    assert set(found.java.hashable) == set(LEAVES)
    return found


@pytest.mark.parametrize("leaf", LEAVES)
def test_a_type_has_the_bits_of_orc_core(pair: Pair, leaf: str) -> None:
    column = pair.java.columns[leaf]
    for stripe, (_, groups) in enumerate(STRIPES):
        ours, theirs = pair.payloads(leaf, stripe)
        assert ours == theirs
        assert len(pair.java.bitsets(stripe, leaf)) == groups
        assert {file.stripes[stripe].bloom_encoding(column) for file in (pair.java, pair.ours)} == {1}


def test_the_streams_lie_in_the_order_of_orc_core(pair: Pair) -> None:
    ours = {(8, pair.java.columns[leaf]) for leaf in LEAVES}
    for java, own in zip(pair.java.stripes, pair.ours.stripes, strict=True):
        theirs = [(s.kind, s.column) for s in java.streams if not s.is_filter or (s.kind, s.column) in ours]
        assert [(s.kind, s.column) for s in own.streams] == theirs


def vectors(
    spark: SparkSession, folder: Path, columns: Mapping[str, tuple[str, Sequence[Any]]], fpp: float = 0.01
) -> Pair:
    """Columns of types and values that orc-core's own writer is given, in one row group; nulls after the values."""
    schema = f"struct<{','.join(f'{name}:{kind}' for name, (kind, _) in columns.items())}>"
    rows = max(len(values) for _, values in columns.values())
    padded = [[*values, *[None] * (rows - len(values))] for _, values in columns.values()]
    wanted = {"orc__bloom__filter__columns": ",".join(columns), "orc__bloom__filter__fpp": fpp}
    java = write_vectors(spark, folder / "java.orc", schema, padded, **wanted)
    bare = write_vectors(spark, folder / "bare.orc", schema, padded)
    bloomcli.add(bare, list(columns), output=folder / "ours.orc", fpp=fpp)
    return Pair(Orc(java), Orc(folder / "ours.orc"))


TEXTS = ["", None, "a", "abcdefgh", "ü", "日本語", "😀😀", "trailing  ", " leading", "abcdefghijklmnop"]


def test_texts_are_hashed_as_they_are_stored_padded_or_cut(spark: SparkSession, tmp_path: Path) -> None:
    values = [None if t is None else t.encode() for t in TEXTS] * 3
    kinds = ("char(8)", "char(1)", "varchar(3)", "varchar(200)", "string", "binary")
    pair = vectors(spark, tmp_path, {f"c{at}": (kind, values) for at, kind in enumerate(kinds)})
    for at, kind in enumerate(kinds):
        ours, theirs = pair.payloads(f"c{at}")
        assert ours == theirs, kind


def test_geometries_have_the_bits_of_orc_core_which_reads_them_beside_our_filters(
    spark: SparkSession, tmp_path: Path
) -> None:
    points = [None if n % 5 == 3 else struct.pack("<BIdd", 1, 1, n / 4, -n) for n in range(90)]
    kinds = ("geometry", "geography")
    pair = vectors(spark, tmp_path, {kind: (kind, points) for kind in kinds})
    for kind in kinds:
        ours, theirs = pair.payloads(kind)
        assert ours == theirs
        assert [read_bytes(spark, tmp_path / name, kind) for name in ("ours.orc", "bare.orc")] == [points, points]


LONGS = {
    "tinyint": [-128, 127, 0, -1, 1, None],
    "smallint": [-(2**15), 2**15 - 1, 0, -1, None],
    "int": [-(2**31), 2**31 - 1, 0, -1, None],
    "bigint": [-(2**63), 2**63 - 1, 0, -1, None, 2**32, -(2**32)],
    "date": [-719162, -1, 0, 1, None, 2932896],
    "float": [math.nan, math.inf, -math.inf, None, 1.5, 3.0e38, 1.0e-40],
    "double": [math.nan, math.inf, -math.inf, None, 1.5, 3.0e38, 1.0e-40],
}


@pytest.mark.parametrize("fpp", [0.5, 0.01, 0.0001])
def test_the_bounds_of_numbers_and_dates_and_any_rate(spark: SparkSession, tmp_path: Path, fpp: float) -> None:
    pair = vectors(spark, tmp_path, {f"c_{kind}": (kind, values) for kind, values in LONGS.items()}, fpp)
    for kind in LONGS:
        ours, theirs = pair.payloads(f"c_{kind}")
        assert ours == theirs, kind


def test_of_a_zero_we_hold_both_signs_and_orc_core_only_the_stored_one(spark: SparkSession, tmp_path: Path) -> None:
    zeros = {
        f"{kind}{at}": (kind, [zero, 1.5]) for kind in ("float", "double") for at, zero in enumerate((0.0, -0.0))
    }
    pair = vectors(spark, tmp_path, zeros)
    plus, minus = orc_hashes.orc_long(0), orc_hashes.orc_long(-(2**63))
    for name, (_, (zero, _)) in zeros.items():
        ((k, theirs),), ((same, ours),) = pair.java.bitsets(0, name), pair.ours.bitsets(0, name)
        assert k == same
        java, own = KirschMitzenmacherFilter(theirs, k), KirschMitzenmacherFilter(ours, k)
        assert (java.check(plus), java.check(minus)) == (math.copysign(1, zero) > 0, math.copysign(1, zero) < 0)
        assert own.check(plus) and own.check(minus)
        both = KirschMitzenmacherFilter(bytearray(theirs), k)
        for value in (plus, minus):
            both.insert_hashes(value.to_bytes(8, "little"), 1)
        assert bytes(both.bitset) == ours


def moment(nanos: int) -> tuple[int, int]:
    """A time since 1970 as java.sql.Timestamp has it: (milliseconds, rounded down; nanoseconds of the second)."""
    return nanos // 10**6, nanos % 10**9


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
def test_timestamps_have_the_bits_of_orc_core_in_every_time_zone(
    spark: SparkSession, tmp_path: Path, zone: str
) -> None:
    """And more where readers are a second apart: near 1970 ORC C++ and orc-core disagree on zones other than UTC."""
    agreed = MOMENTS if zone == "UTC" else [n for n in FAR if n > AGREED.get(zone, Y1900)]
    columns = {"local": ("timestamp", agreed), "instant": (INSTANT, MOMENTS), "near": ("timestamp", NEAR)}
    with java_zone(spark, zone):
        pair = vectors(spark, tmp_path, {n: (kind, [*map(moment, m)]) for n, (kind, m) in columns.items()})
    for name in ("local", "instant"):
        ours, theirs = pair.payloads(name)
        assert ours == theirs, name
    ours, theirs = pair.payloads("near")
    assert pair.superset("near")
    assert (ours == theirs) == (zone == "UTC")
    for file in ("java.orc", "ours.orc"):
        report = bloomcli.validate(tmp_path / file, columns=["near"], deep=True)
        assert (report.values_checked, report.findings) == (len(NEAR), ())


def test_moments_in_the_last_second_before_1970_are_stored_a_second_late_and_both_hold_what_is_stored(
    spark: SparkSession, tmp_path: Path
) -> None:
    columns = {f"c{at}": nanos for at, nanos in enumerate((-1, -1_000_001, -500_000_000, -998_999_999))}
    pair = vectors(spark, tmp_path, {name: ("timestamp", [moment(nanos)]) for name, nanos in columns.items()})
    table = orc.read_table(tmp_path / "bare.orc")
    for name, nanos in columns.items():
        (stored,) = table[name].cast("int64").to_pylist()
        assert stored == nanos + SECOND
        ours, theirs = pair.payloads(name)
        assert ours == theirs
        ((k, bits),) = pair.ours.bitsets(0, name)
        filled = KirschMitzenmacherFilter(bits, k)
        assert filled.check(orc_hashes.orc_long(stored // 10**6))
        assert not filled.check(orc_hashes.orc_long(nanos // 10**6))


def test_the_hashes_that_the_tests_compare_with_are_those_of_orc_core(spark: SparkSession) -> None:
    jvm, seeded = spark._jvm, random.Random(1)
    texts = [*(seeded.randbytes(length) for length in range(40)), "schöner Text, länger".encode()]
    murmur = jvm.org.apache.orc.util.Murmur3
    found = [murmur.hash64(text, 0, len(text), orc_hashes.ORC_SEED) for text in texts]
    assert [orc_hashes.orc_bytes(text) for text in texts] == [value & (1 << 64) - 1 for value in found]
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    kind = jvm.java.lang.Class.forName("org.apache.orc.util.BloomFilter", True, loader)
    methods = [method for method in kind.getDeclaredMethods() if method.getName() == "getLongHash"]
    need(len(methods) == 1, "orc-core's BloomFilter.getLongHash")
    methods[0].setAccessible(True)
    arguments = spark.sparkContext._gateway.new_array(jvm.java.lang.Object, 1)
    for value in (0, 1, -1, 1 << 31, (1 << 63) - 1, *(seeded.getrandbits(64) - (1 << 63) for _ in range(40))):
        arguments[0] = jvm.java.lang.Long.valueOf(value)
        assert orc_hashes.orc_long(value) == methods[0].invoke(None, arguments) & (1 << 64) - 1
