"""Converts the types of files' columns to Spark's types."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import signature
from typing import Any, Final

import pyarrow as pa

from bloomcli.datasets.record_shape import chosen_leaves
from bloomcli.errors import UnsupportedError

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
