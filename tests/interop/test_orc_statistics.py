"""Readers of ORC files lose rows by statistics and positions that `validate` calls errors, and not by its notes."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyorc
import pytest
from pyorc.predicates import PredicateColumn
from support import clickhouse, orcfiles
from support import orcstatistics as edits
from support.orcfiles import File
from support.orcstatistics import FILE, GROUP, STRIPE, put

import bloomcli
from bloomcli.model.file import Severity

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.interop

ROWS: Final = 4000
STRIDE: Final = 1000
"""Spark's writer allows no fewer."""
EDITED: Final = 1
"""The row group with the fault."""
COLUMNS: Final = ("n", "wide", "text", "cents", "day", "moment", "some")
SCHEMA: Final = "struct<n:bigint,wide:double,text:string,cents:decimal(12,2),day:date,moment:timestamp,some:bigint>"
KINDS: Final = {
    "n": pyorc.TypeKind.LONG,
    "wide": pyorc.TypeKind.DOUBLE,
    "text": pyorc.TypeKind.STRING,
    "cents": pyorc.TypeKind.DECIMAL,
    "day": pyorc.TypeKind.DATE,
    "moment": pyorc.TypeKind.TIMESTAMP,
    "some": pyorc.TypeKind.LONG,
}
DAY: Final = dt.date(2000, 1, 1)
DAYS: Final = (DAY - dt.date(1970, 1, 1)).days
MIDNIGHT: Final = dt.datetime(2000, 1, 1, tzinfo=dt.UTC)


def row(i: int) -> tuple[Any, ...]:
    """A row. Those of the edited row group are 1000 to 1999."""
    moment = MIDNIGHT + dt.timedelta(seconds=i, microseconds=250)
    day = DAY + dt.timedelta(days=i)
    return i, i + 0.5, f"t{i:05}", Decimal(i * 3) / 100, day, moment, None if i % 10 == 0 else i


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The rows, by ORC C++."""
    path = tmp_path_factory.mktemp("orc") / "sound.orc"
    with path.open("wb") as out, pyorc.Writer(out, SCHEMA, row_index_stride=STRIDE) as writer:
        writer.writerows(map(row, range(ROWS)))
    return path


def no_values(has_null: bool) -> Callable[[Any], None]:
    """An edit after which there are no values."""

    def change(statistics: Any) -> None:
        statistics.number_of_values, statistics.has_null = 0, has_null

    return change


class Case(NamedTuple):
    """A fault, a row that it concerns, and who loses the row by it in a row group, a stripe and the file."""

    column: str
    change: Callable[[Any], None]
    row: int
    spark: str = GROUP
    cpp: str = f"{GROUP} {STRIPE} {FILE}"


NOBODY: Final = ""
CASES: Final = {
    "int minimum": Case("n", put("int_statistics.minimum", 1200), 1100),
    "double maximum": Case("wide", put("double_statistics.maximum", 1800.0), 1900),
    "text minimum": Case("text", put("string_statistics.minimum", "t01200"), 1100),
    "decimal maximum": Case("cents", put("decimal_statistics.maximum", "54"), 1900),
    "date minimum": Case("day", put("date_statistics.minimum", DAYS + 1200), 1100),
    "no int minimum": Case("n", put("int_statistics.minimum", None), 1100, cpp=NOBODY),
    "no date maximum": Case("day", put("date_statistics.maximum", None), 1100, cpp=NOBODY),
    "no decimal maximum": Case("cents", put("decimal_statistics.maximum", None), 1100, NOBODY, NOBODY),
    "NaN as a minimum": Case("wide", put("double_statistics.minimum", math.nan), 1100, cpp=NOBODY),
    "NaN as a maximum": Case("wide", put("double_statistics.maximum", math.nan), 1100, NOBODY, NOBODY),
    "no values and no nulls": Case("n", no_values(has_null=False), 1100, cpp=NOBODY),
    "no values": Case("n", no_values(has_null=True), 1100),
    "other number of values": Case("n", put("number_of_values", 17), 1100, NOBODY, NOBODY),
    "no nulls": Case("some", put("has_null", False), 1100),
}
OF_CASES: Final = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())


def patched(sound: Path, target: Path, case: Case, level: str) -> Path:
    """The file with the fault in one place."""
    column = COLUMNS.index(case.column) + 1

    def edit(file: File) -> None:
        edits.edit(file, column, case.change, levels=(level,), group=EDITED)

    return orcfiles.edited(sound, target, edit)


def wanted(case: Case) -> Any:
    """The value of the case's row."""
    return row(case.row)[COLUMNS.index(case.column)]


def found_by_cpp(path: Path, case: Case) -> bool:
    """Whether PyORC finds the row."""
    value = wanted(case)
    places = {"precision": 12, "scale": 2} if case.column == "cents" else {}
    predicate = PredicateColumn(KINDS[case.column], case.column, **places) == value
    with path.open("rb") as opened:
        rows = list(pyorc.Reader(opened, predicate=predicate, column_names=list({"n": 0, case.column: 0})))
    return (case.row,) in rows if case.column == "n" else (case.row, value) in rows


@OF_CASES
def test_orc_cpp_loses_rows_by_statistics(sound: Path, tmp_path: Path, case: Case) -> None:
    for level in (GROUP, STRIPE, FILE):
        path = patched(sound, tmp_path / level, case, level)
        assert found_by_cpp(path, case) == (level not in case.cpp.split()), level


@pytest.mark.spark
@OF_CASES
def test_spark_loses_rows_by_statistics_of_row_groups(
    sound: Path, tmp_path: Path, spark: SparkSession, case: Case
) -> None:
    from pyspark.sql import functions

    if case.column == "moment":
        pytest.skip("Spark skips nothing by timestamps")
    spark.conf.set("spark.sql.orc.filterPushdown", "true")
    value = wanted(case)
    column = functions.col(case.column)
    condition = column.isNull() if value is None else column == functions.lit(value)
    if case.column == "cents":
        condition = column == functions.lit(value).cast("decimal(12,2)")
    for level in (GROUP, STRIPE, FILE):
        path = patched(sound, tmp_path / f"{level}.orc", case, level)
        rows = spark.read.orc(str(path)).where(condition).select("n").collect()
        assert (case.row in [found.n for found in rows]) == (level not in case.spark.split()), level


@OF_CASES
def test_validate_reports_what_a_reader_loses_as_an_error(sound: Path, tmp_path: Path, case: Case) -> None:
    for level in (GROUP, STRIPE, FILE):
        path = patched(sound, tmp_path / level, case, level)
        severities = {f.severity for f in bloomcli.validate(path, columns=[case.column], deep=True).findings}
        assert (Severity.ERROR in severities) == (level in case.cpp.split() + case.spark.split()), level


def test_rows_of_a_row_group_with_another_position_are_others(sound: Path, tmp_path: Path) -> None:
    def later(file: File) -> None:
        index = edits.row_index(file, 1)
        index.entry[EDITED].positions[-1] += 1
        edits.set_row_index(file, 1, index)

    path = orcfiles.edited(sound, tmp_path / "f", later)
    with path.open("rb") as opened:
        predicate = PredicateColumn(pyorc.TypeKind.STRING, "text") == "t01100"
        rows = list(pyorc.Reader(opened, predicate=predicate, column_names=["n", "text"]))
    assert (1101, "t01100") in rows
    (found,) = bloomcli.validate(path, columns=["n"], deep=True).findings
    assert (found.id, found.row_group) == ("row-index-positions", EDITED)


def answered(path: Path) -> dict[str, bool]:
    """Whether PyORC and ClickHouse answer with a condition, and without one."""
    found = {}
    for name, options in (("all", {}), ("some", {"predicate": PredicateColumn(pyorc.TypeKind.LONG, "n") == 1100})):
        with path.open("rb") as opened:
            try:
                found[f"PyORC {name}"] = (1100,) in list(pyorc.Reader(opened, column_names=["n"], **options))
            except (ValueError, RuntimeError, pyorc.ParseError):
                found[f"PyORC {name}"] = False
    for name, condition in (("all", "1"), ("some", "n = 1100")):
        with clickhouse.running() as house:  # an error ends it
            try:
                answer = house.ask(f"SELECT sum(n) > 0 FROM file('{path}', ORC) WHERE {condition}")
                found[f"ClickHouse {name}"] = answer.rows == [[1]]
            except RuntimeError:
                found[f"ClickHouse {name}"] = False
    return found


def test_queries_with_a_condition_fail_by_metadata_that_can_not_be_read(sound: Path, tmp_path: Path) -> None:
    def row_index(file: File) -> None:
        edits.set_row_index(file, 0, b"\xff" * 20)

    def stripes(file: File) -> None:
        file.metadata = b"\xff" * len(file.metadata)

    assert set(answered(sound).values()) == {True}
    for edit in (row_index, stripes):
        path = orcfiles.edited(sound, tmp_path / "f", edit)
        fails = {f"{reader} {rows}": rows == "all" for reader in ("PyORC", "ClickHouse") for rows in ("all", "some")}
        assert answered(path) == fails
        (found,) = bloomcli.validate(path, columns=["n"], deep=True).findings
        assert found.severity is Severity.ERROR


@pytest.fixture(scope="module")
def structs(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Path:
    """By Spark: every fourth struct is null in the first row group of 1000."""
    fields = "'a', id, 't', concat('x', id), 'd', named_struct('c', id), 'l', array(id), 'b', cast(id AS STRING)"
    rows = spark.sql(
        f"SELECT id, IF(id < 1000 AND id % 4 = 0, null, named_struct({fields})) s FROM range(0, 2000, 1, 1)"
    )
    folder = tmp_path_factory.mktemp("structs") / "f"
    rows.coalesce(1).write.option("orc.row.index.stride", 1000).orc(str(folder))
    (path,) = folder.glob("*.orc")
    return path


@pytest.mark.spark
def test_readers_lose_nulls_of_structs_in_files_of_orc_java_where_we_say_so(
    structs: Path, tmp_path: Path, spark: SparkSession
) -> None:
    from pyarrow import orc

    again = tmp_path / "cpp.orc"
    orc.write_table(orc.ORCFile(structs).read(), again, row_index_stride=1000)
    for path, lost in ((structs, True), (again, False)):
        wanted = 0 if lost else 250
        found = bloomcli.validate(path, columns=["*"], readers=["spark", "clickhouse", "pyorc"]).findings
        assert {(f.id, f.severity, f.stripe, f.row_group) for f in found} == (
            {("reader-null-structs", Severity.ERROR, 0, 0)} if lost else set()
        )
        assert [f.column for f in found] == (["s.a", "s.b", "s.d.c", "s.t"] if lost else [])
        for field in ("s.a", "s.d.c", "s.t"):
            for pushed in (True, False):
                spark.conf.set("spark.sql.orc.filterPushdown", str(pushed).lower())
                rows = spark.read.orc(str(path))
                assert rows.where(f"{field} IS NULL").count() == (wanted if pushed else 250)
                assert rows.where(f"s IS NULL OR {field} IS NULL").count() == 250
        with path.open("rb") as opened:
            nulls = PredicateColumn(pyorc.TypeKind.LONG, "a") == None  # noqa: E711  PyORC's IS NULL
            rows_ = list(pyorc.Reader(opened, predicate=nulls))
        assert sum(row[1] is None for row in rows_) == wanted
        with clickhouse.running() as house:
            for pushed in (True, False):
                query = f"SELECT count() FROM file('{path}', ORC) WHERE s.a IS NULL"
                settings = f"SETTINGS input_format_orc_filter_push_down = {int(pushed)}"
                assert house.ask(f"{query} {settings}").rows == [[wanted if pushed else 250]]
