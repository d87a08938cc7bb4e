"""Rows that Spark writes as Parquet or ORC, without filters and with ours, and lookups of them."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import bloomcli
from support import spark_scan
from support.sparkfiles import NOON, timestamps_as, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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


NUMBERS: Final = tuple(i * 1237 % ROWS * 2 for i in range(ROWS))
"""The numbers of the rows, in the order of the files."""


def cell(column: str, n: int) -> Any:
    """The value of a column in the row of that number."""
    value = row(n)[COLUMNS.index(column)]
    return value[0] if column == "user.email" else value


class Files(NamedTuple):
    """The same rows in files without and with filters."""

    form: str
    bare: Path
    ours: Path


def files(spark: SparkSession, folder: Path, form: str) -> Files:
    """Write the files below a folder. orc-core has no use for filters of binary columns."""
    timestamps_as(spark, "TIMESTAMP_MICROS")
    found = Files(form, folder / f"bare.{form}", folder / f"ours.{form}")
    write(rows(spark), found.bare, form, **GROUPED[form])
    columns = [column for column in COLUMNS if (form, column) != ("orc", "blob")]
    bloomcli.add(found.bare, columns, output=found.ours, fpp=0.0001)
    return found


def rows(spark: SparkSession) -> Any:
    """The rows as a frame."""
    return spark.createDataFrame([row(n) for n in NUMBERS], SCHEMA)


def pushdown(spark: SparkSession, form: str, on: bool) -> None:
    """Whether conditions go down to the reader of a format."""
    spark.conf.set(f"spark.sql.{form}.filterPushdown", str(on).lower())


def scan(spark: SparkSession, path: Path, condition: Any) -> tuple[list[Any], int]:
    """The rows of a file that meet a condition, and how many rows its scan read, by Spark's own metrics."""
    return spark_scan.scan(
        spark.read.format("orc" if path.suffix == ".orc" else "parquet").load(str(path)), condition
    )


def equals(column: str, *numbers: int) -> Any:
    """The condition that a column has the value of one of these rows, each compared in the column's own type."""
    from pyspark.sql import functions

    condition = functions.lit(False)
    for n in numbers:
        literal = functions.lit(cell(column, n))
        condition |= functions.col(column) == (literal.cast(CASTS[column]) if column in CASTS else literal)
    return condition
