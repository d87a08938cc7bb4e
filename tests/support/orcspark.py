"""ORC files by orc-core: a column of each of Spark's types, and vectors passed directly to its writer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from support import sparkfiles

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

STRIDE: Final = 1000
"""The minimum that orc-core accepts."""

_SIGN = "if(id % 2 = 0, 1, -1)"
_EXPRESSIONS: Final = {
    "flag": "id % 3 = 0",
    "tiny": "cast(id % 256 - 128 as tinyint)",
    "small": "cast(id * 7 - 9000 as smallint)",
    "whole": "cast(id * 700001 - 900000000 as int)",
    "big": f"id * 1000000007003 * {_SIGN}",
    "real": f"cast((id + 0.1) * {_SIGN} as float)",
    "wide": f"cast(id + 1 as double) / 7 * {_SIGN}",
    "cents": f"cast(id * {_SIGN} / 4.0 as decimal(9, 2))",
    "money": f"cast(id * 10000000007 * {_SIGN} / 16.0 as decimal(18, 4))",
    "huge": "cast(concat(if(id % 2 = 0, '', '-'), id, '000000007000000000000000.12345', id) as decimal(38, 10))",
    "count": f"cast(id * 100 * {_SIGN} as decimal(20, 0))",
    "text": "if(id % 50 = 7, '', concat('Text ', id, ' – ünïcödé 😀'))",
    "label": "element_at(array('red', 'green', 'blue'), cast(id % 3 + 1 as int))",
    "blob": "unhex(concat(hex(id), 'ff00', repeat('80', cast(id % 20 as int))))",
    "day": "date_add(date'1969-01-01', cast(id as int) - 500)",
    "moment": "timestamp_micros((id - 700) * 86461123457)",
    "local": "cast(timestamp_micros((id - 700) * 86461123457) as timestamp_ntz)",
    "person": "named_struct('name', concat('name ', id), 'age', if(id % 5 = 0, null, cast(id as int)))",
    "tags": "if(id % 5 = 0, array(), array(concat('tag ', id), null, concat('tag ', id + 1)))",
    "counts": "if(id % 7 = 0, map(), map(concat('key ', id), cast(id as int), 'none', null))",
    "deep": "array(named_struct('x', map(id, array(cast(id as double) + 0.5)), 'y', cast(id as int)), null)",
}
ALL: Final = tuple(_EXPRESSIONS)
LEAVES: Final = (
    *(name for name in ALL if name not in {"flag", "person", "tags", "counts", "deep"}),
    *("person.name", "person.age", "tags._elem", "counts._key", "counts._value"),
    *("deep._elem.x._key", "deep._elem.x._value._elem", "deep._elem.y"),
)
"""Paths of all columns that can have a filter."""


def types_frame(spark: SparkSession, rows: int) -> DataFrame:
    """A column of each type. Every eleventh value is null, in different rows per column; no float is zero."""
    columns = [
        f"if((id + {i}) % 11 = 10, null, {expression}) as {name}"
        for i, (name, expression) in enumerate(_EXPRESSIONS.items())
    ]
    return spark.range(0, rows, numPartitions=1).selectExpr(*columns)


def write(frame: DataFrame, target: Path, compression: str = "zstd", **options: Any) -> Path:
    """Write a frame as one file."""
    return sparkfiles.write(frame, target, "orc", compression=compression, **options)


def filters(columns: Sequence[str] = ALL, fpp: float = 0.01, **options: Any) -> dict[str, Any]:
    """Options for orc-core's filters. Those of a compound column apply to all columns in it."""
    return {"orc__bloom__filter__columns": ",".join(columns), "orc__bloom__filter__fpp": fpp, **options}


def hadoop_path(spark: SparkSession, path: Path) -> Any:
    """Hadoop's Path."""
    return spark._jvm.org.apache.hadoop.fs.Path(path.absolute().as_uri())


def set_vector(vector: Any, values: Sequence[Any]) -> None:
    """Fill an orc-core column vector: integers, floats, bytes, or (milliseconds, nanoseconds); None is a null."""
    from py4j.java_gateway import get_field, set_field

    kind = vector.getClass().getSimpleName()
    nulls = get_field(vector, "isNull")
    for i, value in enumerate(values):
        if value is None:
            set_field(vector, "noNulls", False)
            nulls[i] = True
        elif kind == "BytesColumnVector":
            vector.setVal(i, value)
        elif kind == "TimestampColumnVector":
            get_field(vector, "time")[i], get_field(vector, "nanos")[i] = value
        else:
            get_field(vector, "vector")[i] = value


def _description(kinds: Any, schema: str) -> Any:
    """orc-core's schema. It doesn't parse the names of its geospatial types."""
    if "geo" not in schema:
        return kinds.fromString(schema)
    found = kinds.createStruct()
    for field in schema.removeprefix("struct<").removesuffix(">").split(","):
        name, kind = field.split(":")
        made = {"geometry": kinds.createGeometry, "geography": kinds.createGeography}.get(kind)
        found.addField(name, kinds.fromString(kind) if made is None else made())
    return found


def write_vectors(
    spark: SparkSession,
    target: Path,
    schema: str,
    columns: Sequence[Sequence[Any]],
    encrypted: str | None = None,
    **options: Any,
) -> Path:
    """A file by orc-core's own writer; `encrypted` names a column to encrypt, options are table properties."""
    from py4j.java_gateway import get_field, set_field

    jvm = spark._jvm
    description = _description(jvm.org.apache.orc.TypeDescription, schema)
    properties = jvm.java.util.Properties()
    for name, value in options.items():
        properties.setProperty(name.replace("__", "."), str(value))
    conf = jvm.org.apache.hadoop.conf.Configuration(False)
    writer_options = jvm.org.apache.orc.OrcFile.writerOptions(properties, conf).setSchema(description).overwrite(True)
    if encrypted is not None:
        algorithm = jvm.org.apache.orc.EncryptionAlgorithm.valueOf("AES_CTR_128")
        store = jvm.org.apache.orc.InMemoryKeystore().addKey("pii", algorithm, bytes(range(16)))
        writer_options = (
            writer_options.setKeyProvider(store).encrypt(f"pii:{encrypted}").masks(f"nullify:{encrypted}")
        )
    writer = jvm.org.apache.orc.OrcFile.createWriter(hadoop_path(spark, target), writer_options)
    rows = len(columns[0])
    batch = description.createRowBatch(max(rows, 1))
    for vector, values in zip(get_field(batch, "cols"), columns, strict=True):
        set_vector(vector, values)
    set_field(batch, "size", rows)
    writer.addRowBatch(batch)
    writer.close()
    target.with_name(f".{target.name}.crc").unlink(missing_ok=True)
    return target


def read_bytes(spark: SparkSession, path: Path, column: str) -> list[bytes | None]:
    """The values of a column of bytes, as orc-core's own reader reads them."""
    from py4j.java_gateway import get_field

    jvm = spark._jvm
    options = jvm.org.apache.orc.OrcFile.readerOptions(jvm.org.apache.hadoop.conf.Configuration(False))
    reader = jvm.org.apache.orc.OrcFile.createReader(hadoop_path(spark, path), options)
    at = list(reader.getSchema().getFieldNames()).index(column)
    batch = reader.getSchema().createRowBatch(1024)
    rows = reader.rows()
    found: list[bytes | None] = []
    while rows.nextBatch(batch):
        vector = get_field(batch, "cols")[at]
        nulls, repeats = get_field(vector, "isNull"), get_field(vector, "isRepeating")
        for row in range(get_field(batch, "size")):
            place = 0 if repeats else row
            there = get_field(vector, "noNulls") or not nulls[place]
            start, size = get_field(vector, "start")[place], get_field(vector, "length")[place]
            found.append(bytes(get_field(vector, "vector")[place])[start : start + size] if there else None)
    rows.close()
    return found


@contextmanager
def java_zone(spark: SparkSession, name: str) -> Iterator[None]:
    """Set the JVM's default time zone within the block."""
    zones = spark._jvm.java.util.TimeZone
    before = zones.getDefault()
    zones.setDefault(zones.getTimeZone(name))
    try:
        yield
    finally:
        zones.setDefault(before)
