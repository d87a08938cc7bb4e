"""Replaces Arrow's view types, which most of PyArrow's functions and many readers don't support."""

from __future__ import annotations

from typing import Any

import pyarrow as pa


def without_views(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Cast columns of view types, at any depth, to the types without views.

    A Parquet file can request views in the Arrow schema in its metadata (arrow-rs and Polars do).
    """
    schema = without_views_in(batch.schema)
    if all(field.type == old.type for field, old in zip(schema, batch.schema, strict=True)):
        return batch
    return batch.cast(schema)


def array_without_views(values: pa.Array) -> pa.Array:
    """Cast an array as `without_views` casts columns."""
    kind = _type(values.type)
    return values if kind == values.type else values.cast(kind)


def without_views_in(schema: pa.Schema) -> pa.Schema:
    """Replace the view types of a schema."""
    return pa.schema([_field(field) for field in schema])


def _field(field: pa.Field) -> pa.Field:
    return field.with_type(_type(field.type))


def _type(kind: Any) -> pa.DataType:
    types = pa.types
    if types.is_string_view(kind):
        return pa.string()
    if types.is_binary_view(kind):
        return pa.binary()
    if types.is_struct(kind):
        return pa.struct([_field(field) for field in kind])
    if types.is_map(kind):
        return pa.map_(_field(kind.key_field), _field(kind.item_field), keys_sorted=kind.keys_sorted)
    if types.is_fixed_size_list(kind):
        return pa.list_(_field(kind.value_field), kind.list_size)
    if types.is_list(kind) or types.is_list_view(kind):
        return pa.list_(_field(kind.value_field))
    if types.is_large_list(kind) or types.is_large_list_view(kind):
        return pa.large_list(_field(kind.value_field))
    return kind
