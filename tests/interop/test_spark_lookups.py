"""Spark reads what we wrote, as Parquet and as ORC: the same rows with and without pushdown, and fewer rows read with
our filters."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.spark_lookups import COLUMNS, FORMS, GROUP, GROUPED, ROWS, Files, equals, pushdown, scan
from support.sparkfiles import write

import bloomcli

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.interop]

SKIPPED = [(form, column) for form in FORMS for column in COLUMNS if (form, column) != ("orc", "blob")]


@pytest.mark.parametrize(("form", "column"), SKIPPED)
def test_the_same_rows_come_with_pushdown_on_and_off(
    spark: SparkSession, looked_up: Callable[[str], Files], form: str, column: str
) -> None:
    """Each of the rows is in a row group of its own, which is read only if the filter has the row's value."""
    files = looked_up(form)
    condition = equals(column, 0, 1718, ROWS * 2 - 2, 1719, 3)
    pushdown(spark, form, False)
    expected, everything = scan(spark, files.bare, condition)
    unpushed, read = scan(spark, files.ours, condition)
    pushdown(spark, form, True)
    pushed, _ = scan(spark, files.ours, condition)
    assert [found.id for found in expected] == [0, 1718, ROWS * 2 - 2]
    assert (everything, read) == (ROWS, ROWS)
    assert expected == unpushed == pushed


@pytest.mark.parametrize(("form", "column"), [one for one in SKIPPED if one != ("orc", "moment")])
def test_the_scan_reads_fewer_rows_than_without_filters(
    spark: SparkSession, looked_up: Callable[[str], Files], form: str, column: str
) -> None:
    """In ORC, Spark skips nothing by timestamps."""
    files = looked_up(form)
    pushdown(spark, form, True)
    absent, present = equals(column, 1719), equals(column, 1718)
    assert scan(spark, files.bare, absent) == ([], ROWS)
    assert scan(spark, files.ours, absent) == ([], 0)
    assert scan(spark, files.bare, present)[1] == ROWS
    assert scan(spark, files.ours, present)[1] == GROUP


@pytest.mark.parametrize("form", FORMS)
def test_lists_of_values_are_looked_up_and_whole_tables_are_the_same(
    spark: SparkSession, looked_up: Callable[[str], Files], form: str
) -> None:
    files = looked_up(form)
    pushdown(spark, form, True)
    assert scan(spark, files.ours, "id in (1, 3, 5, 1719)") == ([], 0)
    rows, read = scan(spark, files.ours, "name = 'ñame 000002' or id = 2001")
    assert (len(rows), read) == (1, GROUP)
    bare, ours = (spark.read.format(form).load(str(path)) for path in (files.bare, files.ours))
    assert ours.count() == ROWS
    assert ours.exceptAll(bare).count() == bare.exceptAll(ours).count() == 0


@pytest.mark.parametrize("kind", ["float", "double"])
@pytest.mark.parametrize("stored", [0.0, -0.0])
@pytest.mark.parametrize("wanted", ["0.0", "-0.0"])
@pytest.mark.parametrize("form", FORMS)
def test_a_zero_of_either_sign_finds_a_stored_zero_of_either_sign(
    spark: SparkSession, tmp_path: Path, form: str, kind: str, stored: float, wanted: str
) -> None:
    rows = [(stored if i == 1700 else i - 1700.0,) for i in range(3000)]
    bare, ours = tmp_path / f"bare.{form}", tmp_path / f"ours.{form}"
    write(spark.createDataFrame(rows, f"d {kind}"), bare, form, **GROUPED[form])
    bloomcli.add(bare, ["d"], output=ours, fpp=0.0001)
    pushdown(spark, form, True)
    found, read = scan(spark, ours, f"d = cast('{wanted}' as {kind})")
    assert ([r.d for r in found], read) == ([0.0], GROUP)
    assert scan(spark, ours, f"d = cast('0.3' as {kind})") == ([], 0)


@pytest.mark.parametrize("form", FORMS)
def test_a_file_that_spark_wrote_with_a_checksum_file_is_rewritten_in_place(
    spark: SparkSession, tmp_path: Path, form: str
) -> None:
    folder = tmp_path / "table"
    spark.range(3000).coalesce(1).write.format(form).option("orc.row.index.stride", "1000").save(str(folder))
    (part,) = folder.glob(f"part-*.{form}")
    sidecar = part.with_name(f".{part.name}.crc")
    stale = sidecar.read_bytes()
    bloomcli.add(part, ["id"], in_place=True)
    pushdown(spark, form, True)
    assert spark.read.format(form).load(str(folder)).where("id = 77").count() == 1
    assert spark.read.format(form).load(str(folder)).count() == 3000
    assert sidecar.read_bytes() != stale

    broken = tmp_path / "broken"
    shutil.copytree(folder, broken)
    (broken / sidecar.name).write_bytes(stale)
    with pytest.raises(Exception, match=r"(?i)checksum"):
        spark.read.format(form).load(str(broken)).collect()
