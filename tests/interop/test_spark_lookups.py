"""Spark reads what we wrote, as Parquet and as ORC: the same rows with and without pushdown, and fewer rows read with
our filters."""

from __future__ import annotations

import datetime as dt
import shutil
from collections.abc import Callable
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pytest
from support import spark_scan
from support.sparkfiles import NOON, timestamps_as, write

import bloomcli

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.interop]

FORMS: Final = ("parquet", "orc")
ROWS: Final = 4000
GROUP: Final = 1000
"""The rows of a row group of Parquet, and of one of ORC."""
GROUPED: Final[dict[str, dict[str, Any]]] = {
    "parquet": {"parquet__enable__dictionary": False, "parquet__block__row__count__limit": GROUP},
    "orc": {"compression": "zstd", "orc__row__index__stride": GROUP},
}
SCHEMA: Final = (
    "id bigint, small int, name string, user struct<email:string>, price decimal(9,2), huge decimal(30,4), "
    "moment timestamp, day date, d double, f float, blob binary"
)
COLUMNS: Final = ("id", "small", "name", "user.email", "price", "huge", "moment", "day", "d", "f", "blob")
SKIPPED: Final = [(form, column) for form in FORMS for column in COLUMNS if (form, column) != ("orc", "blob")]
"""orc-core has no use for filters of binary columns."""
CASTS: Final = {"small": "int", "price": "decimal(9,2)", "huge": "decimal(30,4)", "f": "float"}


def row(n: int) -> tuple[Any, ...]:
    """The row of an even number. Rows of odd numbers are between existing rows, and absent."""
    text = f"{n:06}"
    money = Decimal((n - 4000) * 3)
    moment = NOON - dt.timedelta(days=20_000) + dt.timedelta(days=n, milliseconds=n)
    return (
        *(n, n, f"ñame {text}", (text,), money / 100, money * 10**12),
        *(moment, moment.date(), n + 0.5, n + 0.1, text.encode()),
    )


def equals(column: str, *numbers: int) -> Any:
    """The condition that a column has the value of one of these rows, each compared in the column's own type."""
    from pyspark.sql import functions

    condition = functions.lit(False)
    for n in numbers:
        value = row(n)[COLUMNS.index(column)]
        literal = functions.lit(value[0] if column == "user.email" else value)
        condition |= functions.col(column) == (literal.cast(CASTS[column]) if column in CASTS else literal)
    return condition


class Files(NamedTuple):
    """The same rows in files without and with filters."""

    bare: Path
    ours: Path


@pytest.fixture(scope="module")
def files(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Files]:
    """The files of a format, written once."""
    folder = tmp_path_factory.mktemp("lookups")

    @cache
    def written(form: str) -> Files:
        timestamps_as(spark, "TIMESTAMP_MICROS")
        found = Files(folder / f"bare.{form}", folder / f"ours.{form}")
        frame = spark.createDataFrame([row(i * 1237 % ROWS * 2) for i in range(ROWS)], SCHEMA)
        write(frame, found.bare, form, **GROUPED[form])
        bloomcli.add(found.bare, [column for of, column in SKIPPED if of == form], output=found.ours, fpp=0.0001)
        return found

    return written


def pushdown(spark: SparkSession, form: str, on: bool) -> None:
    """Whether conditions go down to the reader of a format."""
    spark.conf.set(f"spark.sql.{form}.filterPushdown", str(on).lower())


def scan(spark: SparkSession, path: Path, condition: Any) -> tuple[list[Any], int]:
    """The rows of a file that meet a condition, and how many rows its scan read."""
    return spark_scan.scan(spark.read.format(path.suffix[1:]).load(str(path)), condition)


@pytest.mark.parametrize(("form", "column"), SKIPPED)
def test_the_rows_are_found_and_only_their_row_groups_are_read(
    spark: SparkSession, files: Callable[[str], Files], form: str, column: str
) -> None:
    """Three rows in row groups of their own, each read only if the filter has the row's value. In ORC, Spark skips
    nothing by timestamps."""
    bare, ours = files(form)
    present = equals(column, 0, 1718, ROWS * 2 - 2, 1719, 3)
    skips = (form, column) != ("orc", "moment")
    pushdown(spark, form, True)
    rows, read = scan(spark, ours, present)
    assert [found.id for found in rows] == [0, 1718, ROWS * 2 - 2]
    assert read == (3 * GROUP if skips else ROWS)
    if skips:
        assert scan(spark, bare, equals(column, 1719)) == ([], ROWS)
        assert scan(spark, ours, equals(column, 1719)) == ([], 0)


@pytest.mark.parametrize("form", FORMS)
def test_lists_of_values_are_looked_up_and_whole_tables_are_the_same(
    spark: SparkSession, files: Callable[[str], Files], form: str
) -> None:
    bare, ours = files(form)
    pushdown(spark, form, True)
    assert scan(spark, ours, "id in (1, 3, 5, 1719)") == ([], 0)
    rows, read = scan(spark, ours, "name = 'ñame 000002' or id = 2001")
    assert (len(rows), read) == (1, GROUP)
    pushdown(spark, form, False)
    assert scan(spark, ours, "id >= 0") == scan(spark, bare, "id >= 0")
    assert len(scan(spark, ours, "id >= 0")[0]) == ROWS


@pytest.mark.parametrize("form", FORMS)
def test_probe_says_what_spark_skips(spark: SparkSession, files: Callable[[str], Files], form: str) -> None:
    ours = files(form).ours
    pushdown(spark, form, True)
    said = bloomcli.probe(ours, ["1718", "1719", "7000"], column="id")
    assert [t.skipped_row_groups for t in said.totals] == [3, 4, 3]
    for total in said.totals:
        read = scan(spark, ours, f"id = {total.value}")[1]
        assert read == (total.row_groups - total.skipped_row_groups) * GROUP


@pytest.mark.parametrize("form", FORMS)
def test_a_zero_of_either_sign_finds_a_stored_zero_of_either_sign(
    spark: SparkSession, tmp_path: Path, form: str
) -> None:
    columns = {f"{kind}{at}": (kind, zero) for kind in ("float", "double") for at, zero in enumerate((0.0, -0.0))}
    rows = [[zero if i == 1700 else i - 1700.0 for _, zero in columns.values()] for i in range(3000)]
    bare, ours = tmp_path / f"bare.{form}", tmp_path / f"ours.{form}"
    frame = spark.createDataFrame(rows, ", ".join(f"{name} {kind}" for name, (kind, _) in columns.items()))
    write(frame, bare, form, **GROUPED[form])
    bloomcli.add(bare, ["*"], output=ours, fpp=0.0001)
    pushdown(spark, form, True)
    for name, (kind, _) in columns.items():
        for wanted in ("0.0", "-0.0"):
            found, read = scan(spark, ours, f"{name} = cast('{wanted}' as {kind})")
            assert ([r[name] for r in found], read) == ([0.0], GROUP)
        assert scan(spark, ours, f"{name} = cast('0.3' as {kind})") == ([], 0)


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


def test_lookups_by_the_path_in_a_variant_find_what_variant_get_finds(
    spark: SparkSession, fixtures: Path, tmp_path: Path
) -> None:
    """Of values of other types, which `variant_get` converts, the report says that they aren't searched."""
    file = tmp_path / "variant.parquet"
    bloomcli.add(fixtures / "parquet" / "spark_variant.parquet", ["v:$['a.b']"], output=file)
    pushdown(spark, "parquet", True)
    cases = [
        ("v:$.user.id", "bigint", ["42", "199", "200", "201", "299", "5000"], ["5000"]),
        ("v:$.user.name", "string", ["n0", "n201", "n299", "nobody"], []),
        ("v:$['a.b']", "string", ["q0", "q202", "q299", "a.b"], []),
    ]
    for column, kind, values, converted in cases:
        path = column.partition(":")[2].replace("'", '"')
        for value in values:
            got = spark.read.parquet(str(file)).where(f"try_variant_get(v, '{path}', '{kind}') = '{value}'")
            found = bloomcli.find(str(file), [value], column=column, select=["n"], jobs=1)
            ours = [row["record"]["n"] for batch in found for row in batch.to_pylist()]
            if value in converted:
                assert (ours, found.report.other_types, got.count()) == ([], 1, 1)
            else:
                assert ours == [row.n for row in got.collect()], (column, value)
