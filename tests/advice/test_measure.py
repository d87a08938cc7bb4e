"""Measuring many files: every format, existing filters, queries, missing columns, failures, and Spark."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support import footers, patches
from support.thrift import Fields

import bloomcli
from bloomcli.advice.measure import measure
from bloomcli.commands.advise import extents
from bloomcli.commands.advise_options import ExtentOptions
from bloomcli.commands.options import AdviseOptions
from bloomcli.datasets.engine import choose_engine
from bloomcli.errors import UnknownColumn, UnreadableError
from bloomcli.model.advice import AdviseReport, ColumnAdvice, QueriedColumn, QueryLog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow


def run(
    *paths: Path, log: QueryLog | None = None, session: SparkSession | None = None, **options: object
) -> AdviseReport:
    engine = choose_engine(jobs=1) if session is None else choose_engine(session=session)
    chosen, names = AdviseOptions(**options), [str(path) for path in paths]  # type: ignore[arg-type]
    return measure(engine, names, engine.find(names, chosen), chosen, log=log)


def column(report: AdviseReport, name: str) -> ColumnAdvice:
    return next(c for c in report.columns if c.column == name)


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    folder = tmp_path / "lake"
    folder.mkdir()
    chance = np.random.default_rng(3)
    for number in range(6):
        table = pa.table(
            {
                "id": chance.integers(0, 1 << 50, 600),
                "day": np.arange(number * 600, (number + 1) * 600),
                "flag": chance.random(600) < 0.5,
            }
        )
        pq.write_table(table, folder / f"{number}.parquet", row_group_size=200)
    return folder


def test_sorted_columns_need_no_filter_and_random_ones_do(lake: Path) -> None:
    report = run(lake)
    assert (report.files, report.row_groups, report.rows, report.failed) == (6, 18, 3600, ())
    random, ascending, flag = (column(report, name) for name in ("id", "day", "flag"))
    assert random.present is not None
    assert ascending.present is not None
    assert random.overlap.estimate > 0.9
    assert ascending.overlap.high == pytest.approx(1 / 18)
    assert random.present.with_filter.row_groups.estimate < 0.1
    assert random.saved_bytes.low > 0
    assert flag.unfilterable is not None
    assert flag.present is None
    assert [at.fpp for at in random.rates] == [0.1, 0.05, 0.01, 0.001]
    sizes = [at.filter_bytes.estimate for at in random.rates]
    assert sizes == sorted(sizes)


def test_filters_that_are_there_are_part_of_what_a_lookup_reads_today(lake: Path, tmp_path: Path) -> None:
    without = column(run(lake), "id")
    bloomcli.add(lake / "0.parquet", columns=["id"], in_place=True, readers=["duckdb"])
    found = column(run(lake), "id")
    assert (found.existing.filters, found.existing.row_groups_without_filter) == (3, 15)
    assert found.existing.bitset_bytes == sum(
        f.bitset_bytes or 0 for f in bloomcli.inspect(lake / "0.parquet").filters
    )
    assert found.existing.max_fpp <= 0.01
    assert found.present.today.row_groups.estimate < without.present.today.row_groups.estimate - 0.1


def test_literals_of_queries_are_looked_up(lake: Path) -> None:
    there = pq.read_table(lake / "2.parquet")["id"][0].as_py()
    literals = ((str(there), 3), ("77", 1), ("no number", 5))
    log = QueryLog(
        statements=9,
        about_table=9,
        unreadable=0,
        unreadable_examples=(),
        columns=(QueriedColumn(column="id", lookups=9, literals=literals, statements=9),),
        unserved=(),
    )
    report = run(lake, log=log, sample="100%")
    found = column(report, "id")
    assert found.lookups == 9
    assert column(report, "day").lookups == 0
    assert found.queried.values == 2
    assert found.queried.today.row_groups.estimate > 0.5
    assert 0.75 / 18 <= found.queried.with_filter.row_groups.estimate < 2 / 18


def test_columns_that_some_files_lack_are_those_of_the_others(lake: Path) -> None:
    pq.write_table(pa.table({"other": list(range(500))}), lake / "9.parquet", row_group_size=100)
    report = run(lake)
    assert report.row_groups == 23
    assert (column(report, "id").files, column(report, "id").row_groups) == (6, 18)
    assert (column(report, "other").files, column(report, "other").row_groups) == (1, 5)
    assert run(lake, columns=["other"]).failed == ()
    with pytest.raises(UnknownColumn, match="no column 'nothing' in any of the files"):
        run(lake, columns=["id", "nothing"])


def test_files_that_cannot_be_read_are_listed(lake: Path) -> None:
    (lake / "broken.parquet").write_bytes(b"PAR1" + bytes(40) + b"PAR1")
    report = run(lake)
    assert report.files == 6
    ((path, error),) = report.failed
    assert path.endswith("broken.parquet")
    assert error
    for path_of_file in lake.glob("[0-9].parquet"):
        path_of_file.unlink()
    with pytest.raises(UnreadableError, match="broken"):
        run(lake)


def test_a_column_of_several_types_is_looked_up_by_its_values_in_all_files(tmp_path: Path) -> None:
    chance = np.random.default_rng(5)
    numbers = chance.integers(0, 1 << 30, 2000)
    for name, values in (
        ("0", pa.array(numbers, pa.int64())),
        ("1", pa.array([f"no number {n}" for n in numbers])),
        ("2", pa.array(numbers, pa.int32())),
        ("3", pa.array(numbers, pa.float64())),
    ):
        pq.write_table(pa.table({"id": values}), tmp_path / f"{name}.parquet", row_group_size=500)
    report = run(tmp_path)
    assert report.failed == ()
    found = column(report, "id").present
    assert found.values  # those of the numbers' files, which each have the value in one row group
    assert found.with_filter.row_groups.low <= 3 / 16 <= found.with_filter.row_groups.high


def test_nan_is_no_value_that_is_looked_up(tmp_path: Path) -> None:
    values = np.random.default_rng(5).random(3000)
    values[::3] = np.nan
    table = pa.table({"some": values, "all": np.full(3000, np.nan), "half": values.astype("f2")})
    pq.write_table(table, tmp_path / "nan.parquet", row_group_size=300)
    report = run(tmp_path)
    assert report.failed == ()
    some = column(report, "some").present
    assert some.with_filter.row_groups.estimate == pytest.approx(0.1, abs=0.03)
    assert column(report, "all").present is None


def test_few_values_of_a_mebibyte_are_looked_up(tmp_path: Path) -> None:
    chance = np.random.default_rng(5)
    values = [chance.integers(97, 123, 1 << 20, np.uint8).tobytes().decode() for _ in range(12)]
    path = tmp_path / "long.parquet"
    pq.write_table(pa.table({"text": values}), path, row_group_size=3, use_dictionary=False)
    found = column(run(path), "text")
    assert found.present.values == 2 * 4  # two of each row group: 512 would take minutes


@pytest.mark.parametrize(
    "name", ["orc/java_types.orc", "mosaic/released_types.mosaic", "parquet/spark_types.parquet"]
)
def test_every_format_is_measured(fixtures: Path, name: str) -> None:
    if "mosaic" in name:
        pytest.importorskip("mosaic")
    report = run(fixtures / name, columns=[])
    measured = [c for c in report.columns if c.present is not None]
    assert measured
    assert not report.failed
    for one in measured:
        assert one.distinct is not None
        for interval in (one.present.today.bytes, one.present.with_filter.bytes, one.distinct, one.filter_bytes):
            assert 0 <= interval.low <= interval.estimate <= interval.high


def test_values_that_wrong_statistics_deny_are_no_bug(fixtures: Path) -> None:
    pytest.importorskip("mosaic")
    report = run(fixtures / "rules" / "statistics-counts" / "broken.mosaic")
    assert report.failed == ()
    name = column(report, "name")  # both its row groups have values, and one claims to have only nulls
    assert name.sampled_row_groups == 2
    assert name.present is not None


@pytest.mark.parametrize("groups", [[2], [1, 2], [0, 1, 2]])
def test_a_minimum_above_the_maximum_excludes_nothing(tmp_path: Path, groups: list[int]) -> None:
    table = pa.table({"id": [number * 7919 % 100 + number // 100 * 100 for number in range(300)]})
    pq.write_table(table, tmp_path / "f", row_group_size=100)
    data = (tmp_path / "f").read_bytes()

    def edit(metadata: Fields) -> None:
        for group in groups:
            statistics = footers.meta(metadata, group, 0)[footers.STATISTICS][1]
            for low, high in ((patches.MIN, patches.MAX), (patches.MIN_VALUE, patches.MAX_VALUE)):
                statistics[low], statistics[high] = statistics[high], statistics[low]

    (tmp_path / "f").write_bytes(footers.edited(data, edit))
    (column,) = bloomcli.advise(tmp_path / "f").columns
    assert column.column == "id"


def test_bounds_that_cannot_be_cut_are_not_held_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"raw": [b"\xff" * 3000, b"a"], "name": ["ü" * 40, "b" * 900]}), path)
    found = extents(str(path), ExtentOptions()).extents
    raw, name = found.columns
    assert (raw.lows, raw.highs) == ((b"a",), (None,))
    assert (name.lows, name.highs) == ((b"b" * 64,), (("ü" * 31 + "ý").encode(),))


def test_advice_without_queries_needs_no_package_of_an_extra(lake: Path) -> None:
    code = f"""
import sys
for name in ("sqlglot", "jinja2", "pyspark", "duckdb"):
    sys.modules[name] = None
import bloomcli
print(bool(bloomcli.advise([{str(lake)!r}], jobs=1).columns))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"


@pytest.mark.spark
def test_spark_s_executors_give_the_same_figures(lake: Path, spark: SparkSession) -> None:
    def figures(report: AdviseReport) -> list[object]:
        return [(c.column, c.present, c.absent, c.distinct, c.filter_bytes, c.rates) for c in report.columns]

    assert figures(run(lake, sample="5", session=spark)) == figures(run(lake, sample="5"))
