"""Converts dataclasses to Spark's schemas and rows, and the types of files' columns to Spark's types."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Sequence
from enum import Enum
from inspect import signature
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from bloomcli.datasets.record_shape import chosen_leaves
from bloomcli.errors import UnsupportedError
from bloomcli.model.dataset import DatasetReport, FileRow

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructType


_UNSIGNED: Final = {8: pa.int16(), 16: pa.int32(), 32: pa.int64(), 64: pa.decimal128(20, 0)}
"""The types that Spark's Parquet reader uses for unsigned integers, by width in bits."""


def arrow_type(kind: Any) -> pa.DataType:
    """The Arrow type of a Spark type; instants are in UTC. Raises PySparkException if no Arrow type exists."""
    from pyspark.sql.pandas.types import to_arrow_type

    zones = {"timezone": "UTC"} if "timezone" in signature(to_arrow_type).parameters else {}  # from PySpark 4.2 on
    return to_arrow_type(kind, **zones)  # type: ignore[arg-type]


def to_spark_types(schema: pa.Schema, path: str, select: Sequence[str]) -> pa.Schema:
    """Convert a file's schema to the Arrow types that Spark uses.

    Args:
        schema: the file's schema.
        path: the file, for errors.
        select: the selected columns. Other columns are left out if Spark has no type for them.

    Raises:
        UnsupportedError: Spark has no type for a column.
    """
    from pyspark.errors import PySparkException
    from pyspark.sql.pandas.types import from_arrow_type

    fields = []
    for field in schema:
        try:
            kind = arrow_type(from_arrow_type(_plain(field.type)))
        except PySparkException:
            if select and not chosen_leaves([field.name], [name.partition(".")[0] for name in select])[0]:
                continue
            raise UnsupportedError(
                f"Spark has no type for the column {field.name}, {field.type}",
                path=path,
                hint="select names other columns",
            ) from None
        fields.append(pa.field(field.name, kind))
    return pa.schema(fields)


def _plain(kind: Any) -> pa.DataType:
    """The type without variants that Spark doesn't support."""
    types = pa.types
    if types.is_dictionary(kind):
        return _plain(kind.value_type)
    if types.is_string_view(kind) or types.is_binary_view(kind):
        return pa.string() if types.is_string_view(kind) else pa.binary()
    if types.is_unsigned_integer(kind):
        return _UNSIGNED[kind.bit_width]
    if types.is_float16(kind):
        return pa.float32()
    if types.is_time(kind):
        return pa.time64("us")
    if types.is_date(kind):
        return pa.date32()
    if types.is_struct(kind):
        return pa.struct([_field(kind.field(at)) for at in range(kind.num_fields)])
    if types.is_map(kind):
        return pa.map_(_field(kind.key_field), _field(kind.item_field))
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return pa.list_(_field(kind.value_field))
    return kind


def _field(field: pa.Field) -> pa.Field:
    return field.with_type(_plain(field.type))


def frame(session: SparkSession, report: DatasetReport) -> DataFrame:
    """A data frame of a report's rows. They are already computed: using the frame runs no task again."""
    return session.createDataFrame([values(row) for row in report.rows], struct(FileRow))


def struct(kind: type) -> StructType:
    """The schema of a dataclass's fields, in their order."""
    from pyspark.sql.types import StructField, StructType

    hints = typing.get_type_hints(kind)
    fields = []
    for field in dataclasses.fields(kind):
        hint, nullable = _without_none(hints[field.name])
        fields.append(StructField(field.name, _data_type(hint), nullable))
    return StructType(fields)


def _without_none(hint: Any) -> tuple[Any, bool]:
    """The type without None, and whether None is allowed."""
    if typing.get_origin(hint) in {types.UnionType, typing.Union}:
        (inner,) = (a for a in typing.get_args(hint) if a is not type(None))
        return inner, True
    return hint, False


def _data_type(hint: Any) -> DataType:
    from pyspark.sql.types import ArrayType, BinaryType, BooleanType, DoubleType, LongType, StringType

    scalars: dict[Any, DataType] = {
        bool: BooleanType(),
        bytes: BinaryType(),
        float: DoubleType(),
        int: LongType(),
        str: StringType(),
    }
    if hint in scalars:
        return scalars[hint]
    if typing.get_origin(hint) is tuple:
        return ArrayType(_data_type(typing.get_args(hint)[0]), containsNull=False)
    if issubclass(hint, Enum):
        return StringType()
    return struct(hint)


def values(row: Any) -> tuple[Any, ...]:
    """A dataclass's values in the form that Spark accepts."""
    return tuple(_value(getattr(row, field.name)) for field in dataclasses.fields(row))


def text(value: str) -> str:
    """Text in UTF-8: bytes of a file name that aren't UTF-8 become escapes such as ``\\udcff``."""
    return value.encode("utf-8", "backslashreplace").decode()


def _value(value: Any) -> Any:
    if isinstance(value, str):
        return text(value.value if isinstance(value, Enum) else value)
    if isinstance(value, tuple):
        return [_value(v) for v in value]
    if dataclasses.is_dataclass(value):
        return values(value)
    return value
