"""Spark in trials: it loses zeros, uses its switch, and counts rows; a missing Java is named."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import orcfiles
from support.engines import java_home
from support.trials import FAST, of, orders, trial, zeros

import bloomcli

pytestmark = pytest.mark.spark


@pytest.fixture(autouse=True)
def java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(java_home(tmp_path, short=True)))
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")


def test_spark_loses_negative_zeros_with_its_filters_on_and_not_by_ours(tmp_path: Path) -> None:
    """Both files in one session: what differs is another writer's."""
    path, ours = zeros(tmp_path / "f.parquet"), zeros(tmp_path / "ours.parquet")
    bloomcli.add(ours, ["c"], in_place=True, replace=True)
    spark = of(bloomcli.trial([path, ours], columns=["c"], readers=["spark"], **FAST), "spark")
    assert (spark.status, spark.comparison, spark.switch) == ("unequal", "switch", "parquet.filter.bloom.enabled")
    (difference,) = spark.differences
    assert (difference.path, difference.value, difference.rule) == (str(path), "0.0", "reader-negative-zero")
    assert (difference.rows_with, difference.rows_without) == (0, 100)
    (_, absent) = spark.lookups
    assert (absent.rows_read_without, absent.rows_read_with) == (2 * 4 * 300, 0)
    assert absent.row_groups_with is None


def test_spark_finds_the_values_of_its_types(fixtures: Path) -> None:
    columns = [
        "tiny",
        "whole",
        "big",
        "real",
        "wide",
        "money",
        "huge",
        "text",
        "blob",
        "day",
        "moment",
        "person.name",
    ]
    report = trial(fixtures / "parquet" / "spark_types.parquet", *columns, readers=["spark"], values=1, runs=0)
    spark = of(report, "spark")
    assert (spark.status, spark.reason) == ("equal", None)
    assert [lookups.column for lookups in spark.lookups if lookups.kind == "present"] == columns
    assert not any(lookups.not_found for lookups in spark.lookups)


def test_spark_looks_fields_of_a_variant_up_and_reads_every_row_group(fixtures: Path) -> None:
    """By `try_variant_get`; the fact that it doesn't skip by their filters is in the table of readers."""
    columns = ["v:$.user.id", "v:$['a.b']"]
    path = fixtures / "parquet" / "spark_variant.parquet"
    spark = of(trial(path, *columns, readers=["spark"], values=1, runs=0), "spark")
    assert (spark.status, spark.reason) == ("equal", None)
    assert [(one.variant_path, one.not_found) for one in spark.lookups] == [
        (name, 0) for name in columns for _ in "ab"
    ]
    assert {(one.rows_read_without, one.rows_read_with) for one in spark.lookups} == {(300, 300)}


def test_spark_compares_orc_files_with_a_copy_without_filters(tmp_path: Path) -> None:
    values = [-5.0, -0.0, 5.0] * 100
    path = orcfiles.write(tmp_path / "f.orc", {"c": values}, blooms=[1])
    spark = of(trial(path, "c", readers=["spark"], values=4), "spark")
    assert (spark.status, spark.comparison) == ("unequal", "removed")
    assert [(d.value, d.rule) for d in spark.differences] == [("0.0", "reader-negative-zero")]


def test_a_missing_java_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nothing"))
    spark = of(trial(orders(tmp_path / "f.parquet", 100), "id", readers=["spark", "pyarrow"]), "spark")
    assert spark.status == "failed"
    assert spark.reason == f"Spark doesn't start: JAVA_HOME ({tmp_path / 'nothing'}) has no bin/java"
    assert spark.hint is not None
    assert "JAVA_HOME" in spark.hint
