"""Turns the schema's flat list of elements into leaf columns with dotted paths and types, or with a table's paths.

A VARIANT is a group with the leaves ``metadata`` and ``value``. A shredded one also has ``typed_value``, and pairs of
``value`` and ``typed_value`` at each level below. ``typed_value`` has the values of one type, and ``value`` those of
all other types, encoded. Its leaves have paths such as ``v:$.user.id`` or ``v:$.tags[*]``.

Source: the Apache Parquet format, LogicalTypes.md, VariantEncoding.md and VariantShredding.md. Only the annotation
makes a group a VARIANT. Spark 4.0 writes none (SPARK-54306): there the schema in Spark's own metadata names the
column's type.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeVar

from bloomcli import limits
from bloomcli.errors import CorruptFile
from bloomcli.formats.parquet import spec
from bloomcli.formats.parquet.spec import Location, Struct
from bloomcli.formats.table_names import ELEMENT, KEY, VALUE, FileColumn, find_columns, other_path
from bloomcli.model.file import Column
from bloomcli.model.schema import ColumnNames, SchemaNode
from bloomcli.values import variant_paths

_LOGICAL_OF_CONVERTED: Final = {
    "UTF8": "STRING",
    "ENUM": "ENUM",
    "DATE": "DATE",
    "JSON": "JSON",
    "BSON": "BSON",
    "INTERVAL": "INTERVAL",
}

_PHYSICAL: Final = {
    "DECIMAL": ("INT32", "INT64", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"),
    "DATE": ("INT32",),
    "TIMESTAMP": ("INT64",),
}
_LENGTHS: Final = {"FLOAT16": 2, "UUID": 16, "INTERVAL": 12}

_REPETITIONS: Final = ("REQUIRED", "OPTIONAL", "REPEATED")

T = TypeVar("T")


class Logical(NamedTuple):
    """A logical type's text and parameters, as `Column` has them."""

    text: str | None = None
    scale: int = 0
    precision: int = 0
    bit_width: int = 0
    signed: bool = True
    unit: str | None = None
    utc: bool | None = None


Steps = tuple[str, ...]
"""The names of groups, and of a leaf, from the top."""

SPARK_SCHEMA: Final = "org.apache.spark.sql.parquet.row.metadata"
"""The key of the schema that Spark writes."""
_METADATA: Final = "metadata"
_TYPED: Final = "typed_value"
_UNTYPED: Final = "value"
_ENCODED: Final = "encoded values of a VARIANT, which no query compares"


class Leaf(NamedTuple):
    """A leaf of the schema while the schema is read."""

    column: Column
    steps: Steps
    repeated: tuple[int, ...]
    """The positions of the repeated ones in `steps`."""


class _Node(NamedTuple):
    """An element of the schema, and its levels."""

    path: tuple[str, ...]
    """Empty for the root."""
    definition: int
    repetition: int
    repeated: tuple[int, ...] = ()
    """The positions of repeated elements in `path`."""


_ENUM_AS_TEXT: Final = (("converted_type", 0x08, 0x00), ("logicalType", 0x4C, 0x1C))
"""(field, first byte of an ENUM, first byte of text): the numbers 4 and 0, and the headers of the union's fields."""


class _SchemaCache:
    """The latest schema and its columns: most files of a dataset have the same schema.

    The columns depend only on the schema's bytes, and for groups that may be a VARIANT on Spark's schema, the second
    item; None without such groups. A schema that can't be read is read again, to raise its error.
    """

    last: tuple[bytes, bytes | None, tuple[Column, ...]] = (b"", None, ())


def leaf_columns(top: Struct) -> tuple[Column, ...]:
    """The leaf columns of FileMetaData's schema, in schema order. Paths don't include the root's name."""
    starts = top.list_starts("schema")[:-1]
    raw = top.raw("schema") or b""
    last_raw, spark, columns = _SchemaCache.last  # other threads can replace it
    if not starts or raw != last_raw or (spark is not None and spark != _spark_schema(top)):
        leaves, variants = _read(top)
        candidates, spark = unannotated(leaves, variants), None
        if candidates:
            spark = _spark_schema(top)
            variants |= named_by_spark(candidates, spark)
        columns = with_paths(leaves, variants)
        _SchemaCache.last = (raw, spark, columns) if starts else (b"", None, ())
    return columns


def key_values(top: Struct) -> Iterator[Struct]:
    """The writer's own keys and values in FileMetaData, walked. Raises CorruptFile."""
    location = top.location.at("key_value_metadata")
    starts = top.list_starts("key_value_metadata")[:-1]
    return (Struct("KeyValue", top.data, start, location) for start in starts)


def _spark_schema(top: Struct) -> bytes:
    """The schema in Spark's own metadata, as JSON; empty if Spark didn't write the file."""
    key = SPARK_SCHEMA.encode()
    return next((pair.binary("value") or b"" for pair in key_values(top) if pair.binary("key") == key), b"")


def with_enums_as_text(top: Struct) -> bytes:
    """The bytes of FileMetaData, in which ENUM columns are STRING columns. An ENUM is UTF-8 text, which Arrow would
    return as binary. No offset changes."""
    data = bytearray(top.data)
    for start in top.list_starts("schema")[:-1]:
        element = Struct("SchemaElement", top.data, start, top.location.at("schema"))
        for field, enum, text in _ENUM_AS_TEXT:
            span = element.span(field)
            if span is not None and data[span.start] == enum:
                data[span.start] = text
    return bytes(data)


def _read(top: Struct) -> tuple[list[Leaf], set[Steps]]:
    """The leaves, and the groups that are annotated as VARIANT."""
    variants: set[Steps] = set()
    leaves: list[Leaf] = []
    for element, node, is_leaf in _elements(top):
        if is_leaf:
            leaves.append(Leaf(_leaf(element, node, len(leaves)), node.path, node.repeated))
        elif node.path and _is_variant(element):
            variants.add(node.path)
    return leaves, variants


def _elements(top: Struct) -> Iterator[tuple[Struct, _Node, bool]]:
    """Yield the schema's elements, the root first, and whether each is a leaf. Raises CorruptFile for a list of
    elements that isn't a tree."""
    starts = top.list_starts("schema")[:-1]
    groups: list[tuple[_Node, int]] = []  # with the number of children to come
    for index, start in enumerate(starts):
        element = Struct("SchemaElement", top.data, start, top.location.at(f"schema[{index}]"))
        children = element.integer("num_children") or 0
        node = _Node((), 0, 0)
        if index:
            while groups and groups[-1][1] == 0:
                groups.pop()
            if not groups:
                raise element.location.fault("the schema has more elements than its groups name", start)
            parent, left = groups[-1]
            groups[-1] = parent, left - 1
            node = _node(element, parent)
            if children < 0 or children > len(starts):
                raise element.location.fault(f"num_children is {children}", start, "num_children")
            if not children and element.span("type") is not None:
                yield element, node, True
                continue
            if len(groups) >= limits.SCHEMA_MAX_DEPTH:
                raise element.location.fault(f"the schema nests deeper than {limits.SCHEMA_MAX_DEPTH}", start)
        yield element, node, False
        groups.append((node, children))
    if any(left for _, left in groups):
        raise top.location.fault("the schema ends before its groups are full", top.start, "schema")


def _is_variant(element: Struct) -> bool:
    raw = element.raw("logicalType")
    try:
        return raw is not None and _from_union(raw).text == "VARIANT"
    except CorruptFile:  # of a group, only this annotation matters
        return False


def _node(element: Struct, parent: _Node) -> _Node:
    name = element.text("name")
    if name is None:
        raise element.location.fault("a schema element has no name", element.start, "name")
    number = element.integer("repetition_type") or 0
    repetition = spec.enum_name("FieldRepetitionType", number)
    if repetition not in _REPETITIONS:
        raise element.location.fault(
            f"{name} has the repetition type {number}; the valid ones are 0 to 2", element.start, "repetition_type"
        )
    return _Node(
        (*parent.path, name),
        parent.definition + (repetition != "REQUIRED"),
        parent.repetition + (repetition == "REPEATED"),
        (*parent.repeated, len(parent.path)) if repetition == "REPEATED" else parent.repeated,
    )


def _leaf(element: Struct, node: _Node, index: int) -> Column:
    physical = spec.enum_name("Type", element.required_int("type"))
    length = element.integer("type_length")
    if physical == "FIXED_LEN_BYTE_ARRAY" and (length is None or length <= 0):
        raise element.location.fault(f"a fixed-length column of {length} bytes", element.start, "type_length")
    logical = _logical(element)
    if not _fits(logical, physical, length):
        logical = Logical()  # an annotation that doesn't fit the physical type is ignored
    return Column(
        path=".".join(node.path),
        index=index,
        physical=physical,
        logical=logical.text,
        type_length=length if physical == "FIXED_LEN_BYTE_ARRAY" else None,
        scale=logical.scale,
        precision=logical.precision,
        bit_width=logical.bit_width,
        signed=logical.signed,
        unit=logical.unit,
        utc=logical.utc,
        max_definition_level=node.definition,
        max_repetition_level=node.repetition,
    )


def _fits(logical: Logical, physical: str, length: int | None) -> bool:
    """Whether the format allows the logical type on the physical type. Source: Parquet's LogicalTypes.md."""
    kind = (logical.text or "").partition("(")[0]
    if kind in _PHYSICAL:
        return physical in _PHYSICAL[kind] and 0 <= logical.scale <= (logical.precision or logical.scale)
    if kind in _LENGTHS:
        return physical == "FIXED_LEN_BYTE_ARRAY" and length == _LENGTHS[kind]
    if kind == "INTEGER":
        return logical.bit_width in {8, 16, 32, 64} and physical == ("INT64" if logical.bit_width == 64 else "INT32")
    if kind == "TIME":
        return physical == ("INT32" if logical.unit == "MILLIS" else "INT64")
    return True


def _logical(element: Struct) -> Logical:
    raw = element.raw("logicalType")
    if raw is not None:
        try:
            logical = _from_union(raw)
        except CorruptFile as error:
            raise element.location.fault(error.reason, element.start, "logicalType") from None
        if logical.text is not None:
            return logical
    converted = element.integer("converted_type")
    if converted is None:
        return Logical()
    return _from_converted(
        spec.enum_name("ConvertedType", converted), element.integer("scale") or 0, element.integer("precision") or 0
    )


@lru_cache(maxsize=1024)
def _from_union(raw: bytes) -> Logical:
    union = Struct("LogicalType", raw, 0, Location("", 0, ""))
    name = union.member()
    if name is None:
        return Logical()  # a member that the IDL doesn't have yet: the converted type, if any, applies
    if name == "DECIMAL":
        value = _value(union, name, "DecimalType")
        return _decimal(_required(value, "scale", value.integer), _required(value, "precision", value.integer))
    if name == "INTEGER":
        value = _value(union, name, "IntType")
        return _integer(_required(value, "bitWidth", value.byte), _required(value, "isSigned", value.truth))
    if name in {"TIME", "TIMESTAMP"}:
        value = _value(union, name, "TimeType")
        utc = _required(value, "isAdjustedToUTC", value.truth)
        unit = _value(value, "unit", "TimeUnit").member()
        return Logical() if unit is None else _time(name, unit, utc)
    return Logical(name)


def _value(struct: Struct, field: str, name: str) -> Struct:
    return _required(struct, field, lambda field: struct.struct(field, name))


def _required(struct: Struct, field: str, read: Callable[[str], T | None]) -> T:
    value = read(field)
    if value is None:
        raise struct.location.fault(f"{struct.name} has no required field {field}", struct.start, field)
    return value


def _from_converted(name: str, scale: int, precision: int) -> Logical:
    if name == "DECIMAL":
        return _decimal(scale, precision)
    if name.startswith(("INT_", "UINT_")):
        return _integer(int(name.rpartition("_")[2]), not name.startswith("U"))
    if name.startswith("TIME"):
        kind, _, unit = name.partition("_")
        return _time(kind, unit, True)  # the specification: converted types are UTC-adjusted
    return Logical(_LOGICAL_OF_CONVERTED.get(name))


def _decimal(scale: int, precision: int) -> Logical:
    return Logical(f"DECIMAL({precision},{scale})", scale=scale, precision=precision)


def _integer(width: int, signed: bool) -> Logical:
    kind = "signed" if signed else "unsigned"
    return Logical(f"INTEGER({width},{kind})", bit_width=width, signed=signed)


def _time(kind: str, unit: str, utc: bool) -> Logical:
    return Logical(f"{kind}({unit},{'UTC' if utc else 'local'})", unit=unit, utc=utc)


def schema_tree(top: Struct) -> Iterator[SchemaNode]:
    """Yield every element of the schema of FileMetaData. Raises CorruptFile."""
    leaf_columns(top)  # checks the tree
    leaf = 0
    for element, node, is_leaf in _elements(top):
        yield _schema_node(element, node, leaf if is_leaf else None)
        leaf += is_leaf


def _schema_node(element: Struct, node: _Node, leaf: int | None) -> SchemaNode:
    number = element.integer("repetition_type")
    converted = element.integer("converted_type")
    logical = _logical(element).text  # whether or not it fits the physical type
    if logical is None and converted is not None:
        logical = spec.enum_name("ConvertedType", converted)
    kind = element.integer("type")
    return SchemaNode(
        depth=len(node.path),
        name=element.text("name") or "",
        path=".".join(node.path),
        type="group" if leaf is None or kind is None else spec.enum_name("Type", kind),
        logical=logical,
        repetition=spec.enum_name("FieldRepetitionType", number).lower()
        if number is not None and node.path
        else None,
        id=element.integer("field_id"),
        length=element.integer("type_length") if leaf is not None else None,
        column=leaf,
    )


def unannotated(leaves: Sequence[Leaf], annotated: Collection[Steps]) -> set[Steps]:
    """The groups that have the leaves of a VARIANT without its annotation."""
    binaries = {leaf.steps for leaf in leaves if leaf.column.physical == "BYTE_ARRAY"}
    groups = {steps[:-1] for steps in binaries if steps[-1] == _METADATA}
    return {group for group in groups if group and group not in annotated and (*group, _UNTYPED) in binaries}


def named_by_spark(groups: Collection[Steps], schema: bytes) -> set[Steps]:
    """The groups, of some, that are VARIANTs by Spark's schema."""
    try:
        kind = json.loads(schema)
    except (ValueError, RecursionError):
        return set()
    return {group for group in groups if _spark_type(kind, group) == "variant"}


def _spark_type(kind: Any, steps: Steps) -> Any:
    """The type of a group in Spark's schema; None if the schema doesn't have the group."""
    at = 0
    while at < len(steps) and isinstance(kind, dict):
        if kind.get("type") == "struct":
            fields = kind.get("fields")
            some = fields if isinstance(fields, list) else []
            kind = next((f.get("type") for f in some if isinstance(f, dict) and f.get("name") == steps[at]), None)
            at += 1
        else:  # the repeated group of a list or a map, and its element, key or value
            kind = kind.get("valueType" if steps[at + 1 : at + 2] == ("value",) else "elementType")
            at += 2
    return kind if at == len(steps) else None


def with_paths(leaves: Sequence[Leaf], variants: Collection[Steps]) -> tuple[Column, ...]:
    """The columns, given the groups that are VARIANTs. Those with the values of a path have `Column.variant_path` and
    `untyped`; those with encoded bytes are `unfilterable`."""
    if not variants:
        return tuple(leaf.column for leaf in leaves)
    binaries = {leaf.steps: leaf.column.index for leaf in leaves if leaf.column.physical == "BYTE_ARRAY"}
    return tuple(_with_path(leaf, variants, binaries) for leaf in leaves)


def _with_path(leaf: Leaf, variants: Collection[Steps], binaries: dict[Steps, int]) -> Column:
    *above, name = steps = leaf.steps
    if name in {_METADATA, _UNTYPED} and any(steps[:at] in variants for at in range(1, len(steps))):
        return replace(leaf.column, unfilterable=_ENCODED)
    if name != _TYPED or (path := _path(leaf, variants)) is None:
        return leaf.column
    return replace(leaf.column, variant_path=path, untyped=binaries.get((*above, _UNTYPED)))


def _path(leaf: Leaf, variants: Collection[Steps]) -> str | None:
    """The path in a VARIANT whose values a leaf stores; None for other leaves, and for names that no path has."""
    steps = leaf.steps
    top = next((at for at, name in enumerate(steps) if name == _TYPED and steps[:at] in variants), None)
    if top is None:
        return None
    path, at = ".".join(steps[:top]) + variant_paths.ROOT, top
    while at < len(steps) - 1:  # at a typed_value that is a group
        if at + 1 in leaf.repeated:  # a list: its repeated group, and the group of an element
            step: str | None = variant_paths.ELEMENTS
            at += 3
        else:
            step = variant_paths.step(steps[at + 1])
            at += 2
        if step is None or steps[at : at + 1] != (_TYPED,):
            return None
        path += step
    return path


_MAPS: Final = ("MAP", "MAP_KEY_VALUE")
_REPEATED_FIELD: Final = "repeated"


class _Element(NamedTuple):
    """An element of the schema, with its children."""

    node: SchemaNode
    below: list[_Element]


def columns_of_table(
    top: Struct, columns: Sequence[Column], names: ColumnNames
) -> tuple[tuple[Column, ...], Sequence[str]]:
    """The leaf columns with the table's paths, and the table's columns that the file doesn't have.

    Raises: as `find_columns`.
    """
    root, groups = _tree(top)
    leaves = [
        FileColumn(column, node.path, steps, node.id)
        for child in root.below
        for node, steps in _table_leaves(child, (child.node.name,))
        if (column := node.column) is not None
    ]
    table_columns = find_columns(leaves, names, group_ids=groups, path=top.location.path, offset=top.location.base)
    ids = {leaf.ordinal: leaf.field_id for leaf in leaves}
    renamed_columns = tuple(
        replace(
            column,
            path=table_columns.paths.get(column.index) or other_path(column.path, names),
            field_id=ids.get(column.index),
            not_in_table=column.index not in table_columns.paths,
            wide=table_columns.wide.get(column.index),
        )
        for column in columns
    )
    return renamed_columns, table_columns.missing_columns


def _tree(top: Struct) -> tuple[_Element, set[int]]:
    """The schema's root, and the field ids of the groups below it."""
    above: list[_Element] = []
    groups: set[int] = set()
    for node in schema_tree(top):
        element = _Element(node, [])
        del above[node.depth :]
        if above:
            above[-1].below.append(element)
            if node.column is None and node.id is not None:
                groups.add(node.id)
        above.append(element)
    return above[0], groups


def _table_leaves(element: _Element, steps: tuple[str, ...]) -> Iterator[tuple[SchemaNode, tuple[str, ...]]]:
    """Yield each leaf of an element, whose path as `FileColumn.steps` begins with `steps`. The schema's depth was
    checked before."""
    if element.node.repetition == _REPEATED_FIELD:
        steps = (*steps, ELEMENT)  # a repeated field without a list around it
    if element.node.column is not None:
        yield element.node, steps
        return
    for child, path in _below(element, steps):
        yield from _table_leaves(child, path)


def _below(element: _Element, steps: tuple[str, ...]) -> Iterator[tuple[_Element, tuple[str, ...]]]:
    """Yield the children of a group, without the repeated groups of lists and maps.

    Source: Parquet's LogicalTypes.md, "Lists" and "Maps", with their rules for older writers.
    """
    repeated = element.below[0] if len(element.below) == 1 else None
    if repeated is None or repeated.node.repetition != _REPEATED_FIELD:
        repeated = None
    if repeated is not None and element.node.logical == "LIST":
        if _is_element(element, repeated):
            yield _Element(replace(repeated.node, repetition="required"), repeated.below), (*steps, ELEMENT)
        else:
            yield repeated.below[0], (*steps, ELEMENT)
    elif repeated is not None and element.node.logical in _MAPS and repeated.node.column is None:
        for name, child in zip((KEY, VALUE), repeated.below, strict=False):
            yield child, (*steps, name)
    else:
        for child in element.below:
            yield child, (*steps, child.node.name)


def _is_element(above: _Element, repeated: _Element) -> bool:
    """Whether a list's repeated field is the element itself, not a group around it."""
    node = repeated.node
    return (
        node.column is not None
        or len(repeated.below) != 1
        or repeated.below[0].node.repetition == _REPEATED_FIELD
        or node.name in {"array", f"{above.node.name}_tuple"}
    )
