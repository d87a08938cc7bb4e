"""Spark's types, rows of them, and single files of a frame."""

from __future__ import annotations

import datetime as dt
import shutil
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NOON: Final = dt.datetime(2024, 2, 29, 12, tzinfo=dt.UTC)
TYPES: Final = {
    "flag": "boolean",
    "tiny": "tinyint",
    "small": "smallint",
    "whole": "int",
    "big": "bigint",
    "real": "float",
    "wide": "double",
    "cents": "decimal(9,2)",
    "money": "decimal(18,4)",
    "huge": "decimal(38,10)",
    "text": "string",
    "label": "string",
    "blob": "binary",
    "day": "date",
    "moment": "timestamp",
    "local": "timestamp_ntz",
    "person": "struct<name:string,age:int>",
    "tags": "array<string>",
    "counts": "map<string,int>",
}
LEAVES: Final = (
    *(name for name in TYPES if name not in {"flag", "person", "tags", "counts"}),
    *("person.name", "person.age", "tags.list.element", "counts.key_value.key", "counts.key_value.value"),
)
"""Paths of all leaves that can have a filter."""


def row(i: int) -> tuple[Any, ...]:
    """Row i, with a value of each type. Every eleventh value is null; no float is zero."""
    if i % 11 == 10:
        return (None,) * len(TYPES)
    sign = -1 if i % 2 else 1
    moment = NOON + dt.timedelta(days=i, microseconds=i * 1001)
    return (
        i % 3 == 0,
        sign * i % 128,
        sign * i * 31,
        sign * i * 1_000_003,
        sign * i * 1_000_000_007_003,
        sign * (i + 0.5),
        sign * (i + 0.1),
        Decimal(sign * i * 101) / 100,
        Decimal(sign * i * 10_000_019) / 10_000,
        Decimal(sign * i * 10**20 + i) / 10**10,
        f"text {i} ü",
        ("red", "green", "blue")[i % 3],
        bytes([i % 256, 0, 255]) * (i % 4),
        moment.date(),
        moment,
        moment.replace(tzinfo=None),
        (f"name {i}", i),
        [f"tag {i}", None, f"tag {i + 1}"] if i % 5 else [],
        {f"key {i}": i, "none": None} if i % 7 else {},
    )


def types_frame(spark: SparkSession, numbers: Iterable[int]) -> DataFrame:
    """A frame with a column of each type and the rows of these numbers."""
    schema = ", ".join(f"{name} {kind}" for name, kind in TYPES.items())
    return spark.createDataFrame([row(i) for i in numbers], schema)


def timestamps_as(spark: SparkSession, kind: str) -> None:
    """Set the timestamp type of files written from now on: TIMESTAMP_MICROS, TIMESTAMP_MILLIS or INT96."""
    spark.conf.set("spark.sql.parquet.outputTimestampType", kind)


def write(frame: DataFrame, target: Path, form: str = "parquet", **options: Any) -> Path:
    """Write a frame as one file, without its checksum file; double underscores in option names mean dots."""
    folder = target.with_suffix(".parts")
    writer = frame.coalesce(1).write.mode("overwrite")
    for name, value in options.items():
        writer = writer.option(name.replace("__", "."), str(value).lower() if isinstance(value, bool) else str(value))
    writer.format(form).save(str(folder))
    (part,) = folder.glob(f"part-*.{form}")
    shutil.copyfile(part, target)
    shutil.rmtree(folder)
    return target


def filters(max_bytes: int, **options: Any) -> dict[str, Any]:
    """Options for parquet-java's filters of this size in bytes in every column; dictionaries would suppress them."""
    return {
        "parquet__bloom__filter__enabled": True,
        "parquet__bloom__filter__max__bytes": max_bytes,
        "parquet__enable__dictionary": False,
        **options,
    }
