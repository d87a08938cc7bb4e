"""Converts dataclasses to Spark's types: fields to a schema, values to rows."""

from __future__ import annotations

import dataclasses
import types
import typing
from enum import Enum
from typing import TYPE_CHECKING, Any

from bloomcli.model.dataset import DatasetReport, FileRow

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructType


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
