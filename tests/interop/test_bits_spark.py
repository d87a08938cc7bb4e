"""Filters by parquet-java (through Spark) and by us, over the same data at the same size: the same bits."""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from support import blooms, sparkfiles
from support.sparkfiles import LEAVES, NOON, filters, timestamps_as, types_frame, write
from support.tables import packed

import bloomcli

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.interop]

ROWS, GROUP, SIZE = 600, 250, 1024
GROUPS = math.ceil(ROWS / GROUP)
NDV = 800  # of which 1 % wants 968 bytes, so 1,024

NESTED = {
    "pairs": "array<struct<left:int,right:array<string>>>",
    "lookup": "map<bigint,struct<x:double,y:decimal(20,3)>>",
    "deep": "struct<a:struct<b:struct<c:date>>>",
}
NESTED_LEAVES = (
    "pairs.list.element.left",
    "pairs.list.element.right.list.element",
    "lookup.key_value.key",
    "lookup.key_value.value.x",
    "lookup.key_value.value.y",
    "deep.a.b.c",
)
SOURCES = {
    "dictionary": {"parquet__enable__dictionary": True},
    "plain": {"parquet__enable__dictionary": False},
    "delta": {"parquet__enable__dictionary": False, "parquet__writer__version": "PARQUET_2_0", "compression": "gzip"},
}
"""How the file that we retrofit is encoded: dictionary pages, PLAIN, DELTA_* with data pages of version 2."""


@dataclass(frozen=True)
class Pair:
    """parquet-java's file with filters, and ours by the layout of the file that they were put into."""

    java: Path
    ours: dict[str, Path]

    def assert_same(self, leaf: str, layout: str) -> None:
        """Every row group's filter is equal bit for bit, and holds something."""
        for group in range(GROUPS):
            theirs = bloomcli.dump(self.java, column=leaf, row_group=group)
            ours = bloomcli.dump(self.ours[layout], column=leaf, row_group=group)
            assert len(theirs.bitset) == SIZE
            assert any(theirs.bitset)
            assert ours.bitset == theirs.bitset
            assert ours.header == theirs.header


def pair(frame: DataFrame, folder: Path, columns: list[str], layouts: dict[str, dict[str, Any]]) -> Pair:
    """Write a frame with filters, and without them in several layouts, which we retrofit."""
    limit = {"parquet__block__row__count__limit": GROUP}
    java = write(frame, folder / "java.parquet", **filters(SIZE), **limit)
    ours = {}
    for layout, options in layouts.items():
        bare = write(frame, folder / f"{layout}.bare.parquet", **options, **limit)
        ours[layout] = folder / f"{layout}.parquet"
        bloomcli.add(bare, columns, output=ours[layout], ndv=NDV)
    return Pair(java, ours)


@pytest.fixture(scope="module")
def types(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    timestamps_as(spark, "TIMESTAMP_MICROS")
    numbers = [i % 120 + i // GROUP * 400 for i in range(ROWS)]  # they repeat, or parquet-java drops dictionaries
    return pair(types_frame(spark, numbers), tmp_path_factory.mktemp("types"), list(LEAVES), SOURCES)


@pytest.fixture(scope="module")
def nested(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    def row(i: int) -> tuple[Any, ...]:
        pairs = [None, {"left": i, "right": None}, {"left": None, "right": [f"r{i}", None, f"s{i % 7}"]}]
        lookup = {i * 2**33: {"x": i + 0.25, "y": Decimal(i) / 8}, -i - 1: None} if i % 3 else {}
        inner = None if i % 4 == 0 else {"b": {"c": None if i % 4 == 1 else NOON.date() + dt.timedelta(days=i)}}
        return (pairs if i % 5 else None, lookup if i % 7 else None, {"a": inner} if i % 9 else None)

    schema = ", ".join(f"{name} {kind}" for name, kind in NESTED.items())
    frame = spark.createDataFrame([row(i) for i in range(ROWS)], schema)
    return pair(frame, tmp_path_factory.mktemp("nested"), list(NESTED_LEAVES), SOURCES)


def test_the_leaves_are_all_that_spark_writes_but_booleans(types: Pair, nested: Pair) -> None:
    for found, leaves in ((types, {"flag", *LEAVES}), (nested, set(NESTED_LEAVES))):
        metadata = pq.read_metadata(found.java)
        assert metadata.num_row_groups == GROUPS
        assert {metadata.row_group(0).column(i).path_in_schema for i in range(metadata.num_columns)} == leaves
    assert set(sparkfiles.TYPES) >= {leaf.partition(".")[0] for leaf in LEAVES}


def test_the_layouts_are_encoded_differently(types: Pair) -> None:
    index = pq.read_schema(types.ours["plain"]).names.index("text")
    encodings = {k: set(pq.read_metadata(p).row_group(0).column(index).encodings) for k, p in types.ours.items()}
    assert "RLE_DICTIONARY" in encodings["dictionary"] or "PLAIN_DICTIONARY" in encodings["dictionary"]
    assert "PLAIN" in encodings["plain"]
    assert "DELTA_BYTE_ARRAY" in encodings["delta"]


@pytest.mark.parametrize("layout", SOURCES)
@pytest.mark.parametrize("leaf", LEAVES)
def test_a_type_has_the_bits_of_parquet_java(types: Pair, leaf: str, layout: str) -> None:
    types.assert_same(leaf, layout)


@pytest.mark.parametrize("layout", SOURCES)
@pytest.mark.parametrize("leaf", NESTED_LEAVES)
def test_a_nested_leaf_has_the_bits_of_parquet_java(nested: Pair, leaf: str, layout: str) -> None:
    nested.assert_same(leaf, layout)


@pytest.mark.parametrize(("kind", "physical"), [("TIMESTAMP_MILLIS", "INT64"), ("INT96", "INT96")])
def test_a_timestamp_has_the_bits_of_parquet_java_in_every_unit(
    spark: SparkSession, tmp_path: Path, kind: str, physical: str
) -> None:
    moments = [
        (None if i % 6 == 5 else NOON + dt.timedelta(hours=i - 300, milliseconds=i - 300),) for i in range(ROWS)
    ]
    timestamps_as(spark, kind)
    layouts = {"plain": SOURCES["plain"], "delta": SOURCES["delta"]}
    found = pair(spark.createDataFrame(moments, "moment timestamp"), tmp_path, ["moment"], layouts)
    timestamps_as(spark, "TIMESTAMP_MICROS")
    assert pq.read_metadata(found.java).row_group(0).column(0).physical_type == physical
    for layout in layouts:
        found.assert_same("moment", layout)
        assert spark.read.parquet(str(found.ours[layout])).where(f"moment = timestamp'{NOON:%F %T}'").count() == 1


def test_of_a_zero_we_hold_both_signs_and_parquet_java_only_the_stored_one(
    spark: SparkSession, tmp_path: Path
) -> None:
    forms = {"float": packed("<f"), "double": packed("<d")}
    zeros = {f"{kind}{at}": (kind, zero) for kind in forms for at, zero in enumerate((0.0, -0.0))}
    rows = [[other or zero for _, zero in zeros.values()] for other in (0, 1.5, -7.25)]
    frame = spark.createDataFrame(rows, ", ".join(f"{name} {kind}" for name, (kind, _) in zeros.items()))
    java = write(frame, tmp_path / "java.parquet", **filters(SIZE))
    bare = write(frame, tmp_path / "bare.parquet")
    bloomcli.add(bare, list(zeros), output=tmp_path / "ours.parquet", ndv=NDV)
    for name, (kind, zero) in zeros.items():
        stored = [forms[kind](value) for value in (zero, 1.5, -7.25)]
        assert bloomcli.dump(java, column=name).bitset == blooms.build(stored, SIZE)
        held = [*stored, forms[kind](-zero)]
        assert bloomcli.dump(tmp_path / "ours.parquet", column=name).bitset == blooms.build(held, SIZE)


def test_the_size_for_a_number_of_values_holds_the_same_bits_as_parquet_javas_choice(
    spark: SparkSession, tmp_path: Path
) -> None:
    frame = spark.range(5000)
    options = {"parquet__bloom__filter__expected__ndv#id": 5000, "parquet__bloom__filter__fpp#id": 0.01}
    java = write(frame, tmp_path / "java.parquet", **filters(1 << 20), **options)
    bare = write(frame, tmp_path / "bare.parquet")
    bloomcli.add(bare, ["id"], output=tmp_path / "ours.parquet", ndv=5000, fpp=0.01)
    assert bloomcli.dump(tmp_path / "ours.parquet").bitset == bloomcli.dump(java).bitset
