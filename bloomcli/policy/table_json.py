"""Parses a table's schema in JSON: Spark's (`df.schema.json()`), an Iceberg schema, or Iceberg table metadata.

Sources: the Iceberg specification's appendix C (JSON serialization), Spark's DataType.fromJson.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final, NoReturn

from bloomcli import limits
from bloomcli.errors import UsageError
from bloomcli.policy.table_types import AnyType, ListType, MapType, StructType, TableType, canonical, near_types

HINT: Final = "give Spark's `df.schema.json()`, an Iceberg schema or metadata.json, or columns as in CREATE TABLE"
_SCALAR: Final = re.compile(r"\s*(\w+)\s*(?:[(\[]\s*([^)\]]*?)\s*[)\]])?(?:\s+collate\s+\S+)?\s*", re.IGNORECASE)
_DIGITS: Final = re.compile(r"(\d{1,4})\s*,\s*(-?\d{1,4})")
_FIELD_MAX: Final = 80
"""The number of characters in the field path of an error about nesting."""
_INTERVAL: Final = "interval"


def parse(text: str, path: str) -> StructType:
    """Parse the table's columns. Raises UsageError with the field path in the JSON."""
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise UsageError(
            f"line {error.lineno}: not JSON: {error.msg}",
            path=path,
            offset=len(text[: error.pos].encode("utf-8", "surrogatepass")),
            hint=HINT,
        ) from None
    except (ValueError, RecursionError):  # a number with thousands of digits; thousands of nested braces
        raise UsageError("not a table's schema", path=path, hint=HINT) from None
    at = ""
    if isinstance(document, dict) and ("schemas" in document or "schema" in document):
        document, at = _current(document, path)
    if not isinstance(document, dict) or document.get("type") != "struct":
        _fault("not a table's schema", path, at or "type")
    return _struct(document, path, at, 0)


def _fault(reason: str, path: str, at: str, hint: str = HINT) -> NoReturn:
    raise UsageError(reason, path=path, field=at, hint=hint)


def _current(document: dict[str, Any], path: str) -> tuple[Any, str]:
    """Return the current schema of Iceberg table metadata, and its path. Version 1 may have a single schema."""
    schemas, wanted = document.get("schemas"), document.get("current-schema-id")
    if not isinstance(schemas, list) or wanted is None:
        return document.get("schema"), "schema"
    for index, schema in enumerate(schemas):
        if isinstance(schema, dict) and schema.get("schema-id", 0) == wanted:
            return schema, f"schemas[{index}]"
    _fault(f"no schema has the id {wanted!r}", path, "current-schema-id")


def _struct(node: dict[str, Any], path: str, at: str, depth: int) -> StructType:
    fields = node.get("fields")
    inside = f"{at}.fields" if at else "fields"
    if not isinstance(fields, list):
        _fault("a struct without a list of fields", path, inside)
    found: list[tuple[str, AnyType]] = []
    for index, field in enumerate(fields):
        here = f"{inside}[{index}]"
        if not isinstance(field, dict) or not isinstance(field.get("name"), str):
            _fault("a field without a name", path, here)
        found.append((field["name"], _type(field.get("type"), path, f"{here}.type", depth + 1)))
    return StructType(tuple(found))


def _type(node: Any, path: str, at: str, depth: int) -> AnyType:
    if depth > limits.TABLE_SCHEMA_MAX_DEPTH:
        _fault(f"the schema nests deeper than {limits.TABLE_SCHEMA_MAX_DEPTH}", path, at[:_FIELD_MAX] + "...")
    if isinstance(node, str):
        return _scalar(node, path, at)
    kind = node.get("type") if isinstance(node, dict) else None
    if kind == "struct":
        return _struct(node, path, at, depth)
    for name, key in (("array", "elementType"), ("list", "element")):
        if kind == name:
            return ListType(_type(node.get(key), path, f"{at}.{key}", depth + 1))
    if kind == "map":
        one, two = ("keyType", "valueType") if "keyType" in node else ("key", "value")
        return MapType(
            _type(node.get(one), path, f"{at}.{one}", depth + 1),
            _type(node.get(two), path, f"{at}.{two}", depth + 1),
        )
    if kind == "udt":
        return _type(node.get("sqlType"), path, f"{at}.sqlType", depth + 1)
    _fault("not a type", path, at)


def _scalar(text: str, path: str, at: str) -> TableType:
    match = _SCALAR.fullmatch(text)
    if match is None:
        if text.lower().startswith(_INTERVAL):
            return TableType(name="INTERVAL")
        _fault(f"unknown type {text[:40]!r}", path, at, near_types(text[:40]))
    name = canonical(match[1])
    if name is None:
        _fault(f"unknown type {text[:40]!r}", path, at, near_types(match[1]))
    if name != "DECIMAL":
        return TableType(name=name)
    digits = _DIGITS.fullmatch(match[2] or "")
    if digits is None:
        _fault(f"{text[:40]!r} has no precision and scale", path, at, "write it like decimal(9,2)")
    return TableType(name=name, precision=int(digits[1]), scale=int(digits[2]))
