"""The data source "bloom": a lake's filters in SQL, equal to the output of `inspect` for each file."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support import datasets

import bloomcli
from bloomcli import spark as bloom_spark
from bloomcli.model.file import FilterFacts
from bloomcli.spark import BloomFilters

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files with filters on two columns, without filters, broken ones, and others."""
    root = datasets.mixed(tmp_path_factory.mktemp("source") / "lake")
    for name in (*datasets.GOOD[2:], "done.parquet"):
        bloomcli.add(root / name, ["id", "name"], in_place=True, replace=True)
    return root


@pytest.fixture(scope="module")
def load(spark: SparkSession) -> Any:
    """Load the data source, with options."""
    spark.dataSource.register(BloomFilters)

    def call(*paths: Path, schema: str | None = None, **options: str) -> DataFrame:
        reader = spark.read.format("bloom").options(**options)
        if schema is not None:
            reader = reader.schema(schema)
        return reader.load(str(paths[0]) if len(paths) == 1 else [str(p) for p in paths])

    return call


def files(root: Path, names: tuple[str, ...] = (*datasets.GOOD, *datasets.FILTERED)) -> list[Path]:
    """Files that can be read."""
    return [root / name for name in names]


def test_there_is_one_row_a_filter_with_what_inspect_says(lake: Path, load: Any) -> None:
    frame = load(lake)
    assert frame.columns == ["path", "format", *FilterFacts.__dataclass_fields__]
    expected = Counter(
        (str(path), report.format, *(getattr(facts, name) for name in FilterFacts.__dataclass_fields__))
        for path in files(lake)
        for report in [bloomcli.inspect(path)]
        for facts in report.filters
    )
    assert len(expected) > 10
    assert Counter(tuple(row) for row in frame.where("column is not null").collect()) == expected


def test_files_that_cannot_be_read_are_rows_with_their_problem(lake: Path, load: Any) -> None:
    rows = load(lake).where("column is null").collect()
    assert {row.path for row in rows} == {str(lake / name) for name in datasets.BROKEN}
    assert all(row.path in row.problem and row.format is row.fpp is None for row in rows)
    assert load(lake, mode="dropmalformed").where("column is null").count() == 0
    with pytest.raises(Exception, match=r"cut\.parquet.*was cut off|empty\.orc|noise\.parquet"):
        load(lake, mode="failfast").count()


def test_columns_and_paths_limit_what_is_read(lake: Path, load: Any) -> None:
    everything = load(*files(lake))
    names = everything.where("column = 'name'").count()
    for columns in ("name", "n*", " nowhere , na?e"):
        assert load(*files(lake), columns=columns).count() == names > 0
    assert load(*files(lake), columns="nowhere").count() == 0
    assert load(lake / "year=2024" / "*").select("path").distinct().count() == 3
    assert load(lake / "done.orc").select("format").distinct().collect() == [("orc",)]
    assert load(lake / "missing.parquet").first().problem.endswith("no such file or directory")
    frame = load(lake / "done.parquet", schema="fpp double, path string")
    assert frame.columns == ["fpp", "path"], "the schema that is given"
    assert all(0 < row.fpp <= 0.01 for row in frame.collect())


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"schema": "fpp string"}, "filters have no column 'fpp' of type string"),
        ({"schema": "nowhere long"}, "filters have no column 'nowhere'"),
        ({"mode": "whatever"}, "no mode 'WHATEVER'"),
        ({"partitions": "0"}, "a number of partitions is 1 or more, not 0"),
    ],
)
def test_what_is_invalid_is_reported(lake: Path, load: Any, how: dict[str, str], message: str) -> None:
    with pytest.raises(Exception, match=message):
        load(lake, **how).collect()


def test_files_are_spread_over_tasks(tmp_path: Path, load: Any, spark: SparkSession) -> None:
    with pytest.raises(Exception, match="no path to read filters from"):
        spark.read.format("bloom").load().collect()
    root = datasets.plain(tmp_path, 40, 10)
    assert load(root).rdd.getNumPartitions() == 32
    assert load(root, partitions="3").rdd.getNumPartitions() == 3
    assert load(root / "part=0" / "000.parquet").rdd.getNumPartitions() == 1
    (root / "none").mkdir()
    assert load(root / "none").count() == 0


def test_a_frame_gives_right_answers_when_it_is_used_again(lake: Path, load: Any, spark: SparkSession) -> None:
    """Spark 4.3 mixes up what it pushed to a Python data source, so no filter may be pushed down."""
    key = "spark.sql.python.filterPushdown.enabled"
    spark.conf.set(key, "true")
    try:
        frame = load(*files(lake))
        id_, name = (frame.where(f"column = '{column}'") for column in ("id", "name"))
        counts = id_.count(), name.count(), frame.count()
        assert counts[0] + counts[1] == counts[2]
        assert 0 < counts[1] < counts[0]
        assert id_.union(name).groupBy("column").count().orderBy("column").collect() == [
            ("id", counts[0]),
            ("name", counts[1]),
        ]
    finally:
        spark.conf.unset(key)


@pytest.mark.parametrize("mode", ["permissive", "dropmalformed"])
def test_its_reader_lists_when_it_plans_and_reads_in_its_partitions(lake: Path, tmp_path: Path, mode: str) -> None:
    source = BloomFilters({"path": str(lake), "mode": mode, "columns": "na*", "partitions": "2"})
    reader = source.reader(source.schema())
    parts = reader.partitions()
    assert len(parts) == 2
    rows = [dict(zip(source.schema().names, row, strict=True)) for part in parts for row in reader.read(part)]
    assert {Path(row["path"]).name for row in rows if row["problem"]} == (
        {Path(name).name for name in datasets.BROKEN} if mode == "permissive" else set()
    )
    assert {row["column"] for row in rows if not row["problem"]} == {"name"}
    moved = Path(parts[0].value[0].path)
    hidden = moved.rename(tmp_path / moved.name)
    try:
        reader = BloomFilters({"paths": f'["{moved}"]', "mode": "failfast"}).reader(source.schema())
        (part,) = reader.partitions()
        with pytest.raises(bloomcli.BloomError, match="no such file"):
            list(reader.read(part))
    finally:
        hidden.rename(moved)


def test_names_that_are_not_utf8_are_shown_all_the_same(spark: SparkSession, load: Any, tmp_path: Path) -> None:
    file = datasets.write(tmp_path / "f.parquet")
    file.rename(tmp_path / os.fsdecode(b"f\xff.parquet"))
    (row,) = bloom_spark.add(spark, tmp_path, ["id"], in_place=True).collect()
    assert (row.status, row.path) == ("done", f"{tmp_path}/f\\udcff.parquet")
    assert {r.path for r in load(tmp_path).collect()} == {row.path}
