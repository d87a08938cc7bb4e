"""The shape of the records of a search on Spark: the same columns and types for every file.

A file's columns are found by field ids or names, as the table defines, or by names. A column that a file doesn't
have is null, or has the partition's value. Narrower types are widened, as by Spark's own readers.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any, Final
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc

from bloomcli.errors import UnsupportedError

_FIELD_IDS: Final = (b"PARQUET:field_id", b"iceberg.id")
"""Keys of pyarrow's metadata for the field ids of Parquet files, and of Iceberg's ORC files."""
Constant = str | bytes | None
"""The value of a column in all rows of a file, as text or, of a binary column, as bytes; None for null."""
_INT96: Final = pa.timestamp("ns")
"""The type that pyarrow reads INT96 as. It is an instant, of which Spark reads microseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordField:
    """A field of the records: a column, or a part of one.

    Attributes:
        name: its name in the records.
        type: the Arrow type that Spark uses for it.
        field_id: its field id in files; None if it is found by name.
        names: its names in files without field ids; empty: it is found by id only.
        parts: the fields of a struct, the element of a list, the key and the value of a map.
        constant: the name of the partition column; files without it have the partition's value in all rows.
        default: the value in all rows of a file without the column, as text or bytes; null if None.
        missing_reason: why a file without the column can't be searched for its values, nor read if the value isn't
            known; None if its rows are null.
        uuid: whether files have the 16 bytes of UUIDs, and the records their texts.
    """

    name: str
    type: Any
    field_id: int | None = None
    names: tuple[str, ...] = ()
    parts: tuple[RecordField, ...] = ()
    constant: str | None = None
    default: Constant = None
    missing_reason: str | None = None
    uuid: bool = False


Shape = tuple[RecordField, ...]
"""The columns of a record, in order."""


def shape_by_names(schema: pa.Schema) -> Shape:
    """The shape of a schema that has Spark's types. All files use its column names."""
    return tuple(_field_by_name(field) for field in schema)


def _field_by_name(field: pa.Field, name: str | None = None) -> RecordField:
    return RecordField(name=name or field.name, type=field.type, names=(field.name,), parts=_parts(field.type))


def _parts(kind: Any) -> Shape:
    if pa.types.is_struct(kind):
        return tuple(_field_by_name(kind.field(at)) for at in range(kind.num_fields))
    if pa.types.is_map(kind):
        return _field_by_name(kind.key_field, "key"), _field_by_name(kind.item_field, "value")
    if pa.types.is_list(kind):
        return (_field_by_name(kind.value_field, "element"),)
    return ()


def leaves(shape: Shape, above: str = "") -> list[str]:
    """The paths of the leaf columns: ``user.email``, ``tags.element``, ``props.value``."""
    paths: list[str] = []
    for field in shape:
        path = above + field.name
        paths += leaves(field.parts, f"{path}.") if field.parts else [path]
    return paths


def prune_shape(shape: Shape, chosen: Collection[str], above: str = "") -> Shape:
    """The shape reduced to the chosen leaves."""
    return tuple(pruned for field in shape if (pruned := _prune_field(field, chosen, above + field.name)) is not None)


def _prune_field(field: RecordField, chosen: Collection[str], path: str) -> RecordField | None:
    if not field.parts:
        return field if path in chosen else None
    parts = prune_shape(field.parts, chosen, f"{path}.")
    if len(parts) < len(field.parts) and pa.types.is_map(field.type):  # a map needs both
        parts = field.parts if parts else ()
    return replace(field, parts=parts, type=_with_parts(field.type, parts)) if parts else None


def _with_parts(kind: Any, parts: Shape) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(part.name, part.type, kind.field(part.name).nullable) for part in parts])
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(parts[0].type))
    return kind


def struct_of(shape: Shape) -> pa.DataType:
    """The type of a record."""
    return pa.struct([pa.field(field.name, field.type) for field in shape])


def apply_shape(
    record: pa.StructArray, shape: Shape, path: str, constants: Mapping[str, Constant] | None = None
) -> pa.StructArray:
    """Convert a file's records to a shape.

    Args:
        record: the records, with the file's own columns.
        shape: the columns of the result.
        path: the file, for errors.
        constants: the partition's values, by `RecordField.constant`.

    Raises:
        UnsupportedError: a column's type can't be widened to the shape's, or a column that must exist is missing.
    """
    columns = [_column(record, field, path, constants or {}) for field in shape]
    return pa.StructArray.from_arrays(columns, fields=list(struct_of(shape)))


def _column(record: pa.StructArray, field: RecordField, path: str, constants: Mapping[str, Constant]) -> pa.Array:
    at = _position(record.type, field, _has_ids(record.type))
    if field.constant is not None and field.constant in constants:  # before the file's, as for the table's readers
        try:
            return _repeated(constants[field.constant], field, len(record), path)
        except UnsupportedError:  # such as a time without a zone
            if at is None:
                raise
    if at is not None:
        return _cast(record.field(at), field, path)
    if field.default is not None:
        return _repeated(field.default, field, len(record), path)
    if field.missing_reason is not None:
        raise UnsupportedError(field.missing_reason, path=path, hint="--select names other columns")
    return pa.nulls(len(record), field.type)


def _repeated(value: Constant, field: RecordField, count: int, path: str) -> pa.Array:
    if value is None:
        return pa.nulls(count, field.type)
    try:
        return pa.repeat(pc.cast(pa.scalar(value), field.type), count)
    except pa.ArrowException:
        reason = f"the value {value!r} of {field.name} in the table's metadata can't be read as {field.type}"
        raise UnsupportedError(reason, path=path, hint="--select names other columns") from None


def _has_ids(kind: Any) -> bool:
    """Whether any field of a struct has a field id, at any depth."""
    fields = [kind.field(at) for at in range(kind.num_fields)]
    return any(_id_of(field) is not None or (field.type.num_fields and _has_ids(field.type)) for field in fields)


def _id_of(field: pa.Field) -> int | None:
    metadata = field.metadata or {}
    text = next((metadata[name] for name in _FIELD_IDS if name in metadata), None)
    return None if text is None else int(text)


def _position(kind: Any, field: RecordField, with_ids: bool) -> int | None:
    """The position of a field in a file's struct; None if the struct doesn't have it."""
    fields = [kind.field(at) for at in range(kind.num_fields)]
    if field.field_id is not None and with_ids:
        return next((at for at, child in enumerate(fields) if _id_of(child) == field.field_id), None)
    return next((at for at, child in enumerate(fields) if child.name in field.names), None)


def _cast(array: pa.Array, field: RecordField, path: str) -> pa.Array:
    """Convert a file's array to the field's type."""
    kind = field.type
    if array.type == kind and not field.parts:
        return array
    types = pa.types
    if types.is_struct(kind) and types.is_struct(array.type):
        columns = [_column(array, part, path, {}) for part in field.parts]
        return pa.StructArray.from_arrays(columns, fields=list(kind), mask=array.is_null())
    if types.is_map(kind) and types.is_map(array.type):
        key, value = field.parts
        entries = pa.StructArray.from_arrays(
            [_cast(array.keys, key, path), _cast(array.items, value, path)],
            fields=[kind.key_field, kind.item_field],
        )
        return _nested(array, kind, entries)
    if types.is_list(kind) and _is_list(array.type):
        if not types.is_list(array.type):
            array = array.cast(pa.list_(array.type.value_field))
        return _nested(array, kind, _cast(array.values, field.parts[0], path))
    stored = array.storage if field.uuid and isinstance(array, pa.ExtensionArray) else array
    if not (_is_binary(stored.type) if field.uuid else widens(array.type, kind)):
        raise UnsupportedError(
            f"its column {field.name} is {array.type}, which isn't read as {kind}",
            path=path,
            hint="--select names other columns; or search the files separately",
        )
    try:
        if field.uuid:
            return pa.array([None if value is None else str(UUID(bytes=value)) for value in stored.to_pylist()], kind)
        return pc.cast(array, kind, safe=array.type != _INT96)
    except (pa.ArrowException, ValueError) as error:
        reason = f"its column {field.name} can't be read as {kind}: {' '.join(str(error).split())[:200]}"
        raise UnsupportedError(reason, path=path, hint="--select names other columns") from None


def _nested(array: pa.Array, kind: Any, values: pa.Array) -> pa.Array:
    """A list or a map with the same offsets and other values."""
    return pa.Array.from_buffers(kind, len(array), array.buffers()[:2], -1, array.offset, [values])


def _is_list(kind: Any) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def widens(narrow: Any, wide: Any) -> bool:
    """Whether a type can be read as a wider one without a change of values, as Spark's Parquet reader does."""
    types = pa.types
    if narrow == wide or types.is_null(narrow):
        return True
    if types.is_dictionary(narrow):
        return widens(narrow.value_type, wide)
    if types.is_integer(narrow):
        if types.is_integer(wide):
            signed = types.is_signed_integer(wide)
            same = types.is_signed_integer(narrow) == signed
            return bool(narrow.bit_width <= wide.bit_width if same else signed and narrow.bit_width < wide.bit_width)
        if types.is_decimal(wide):
            return bool(wide.precision - wide.scale >= {8: 3, 16: 5, 32: 10, 64: 20}[narrow.bit_width])
        return bool(types.is_float64(wide)) and narrow.bit_width <= 32
    if types.is_floating(narrow):
        return bool(types.is_floating(wide)) and narrow.bit_width <= wide.bit_width
    if types.is_decimal(narrow) and types.is_decimal(wide):
        return bool(wide.scale >= narrow.scale and wide.precision - wide.scale >= narrow.precision - narrow.scale)
    if types.is_timestamp(narrow) and types.is_timestamp(wide):
        return (narrow.tz is None) == (wide.tz is None) or narrow == _INT96
    if types.is_time(narrow) and types.is_time(wide):
        return True
    if types.is_date(narrow) and types.is_timestamp(wide):
        return wide.tz is None
    texts, binary = (_is_text(narrow), _is_text(wide)), (_is_binary(narrow), _is_binary(wide))
    return all(texts) or all(binary) or (types.is_date(narrow) and bool(types.is_date(wide)))


def _is_text(kind: Any) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_binary(kind: Any) -> bool:
    types = pa.types
    return bool(types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind))


def chosen_leaves(paths: Sequence[str], select: Sequence[str]) -> tuple[list[str], list[str]]:
    """The leaves that names, groups and globs select (all if `select` is empty), and the names that select none."""
    if not select:
        return list(paths), []
    chosen: set[str] = set()
    missing = []
    for name in select:
        matches = {p for p in paths if p == name or p.startswith(f"{name}.")}
        matches = matches or {p for p in paths if fnmatchcase(p, name)}
        chosen |= matches
        if not matches:
            missing.append(name)
    return [path for path in paths if path in chosen], missing
