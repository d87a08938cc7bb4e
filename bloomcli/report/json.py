"""Writes reports as JSON documents, ``{"schema": "bloom/<command>/1", ...}``, and derives their schema.

The keys are the fields and the derived properties of the dataclasses of :mod:`bloomcli.model`. Bytes become lowercase
hex, enums their text, tuples arrays. NaN and infinity, which JSON doesn't have, become null. The manual page
bloom-json(7) is made from the schema, with the docstrings of fields and properties as texts.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import json
import math
import textwrap
import types
import typing
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, Final, TextIO

from bloomcli import model

DOCUMENTS: Final[dict[str, type]] = {
    "inspect": model.InspectReport,
    "dump": model.FilterDump,
    "probe": model.ProbeReport,
    "add": model.ChangeReport,
    "remove": model.ChangeReport,
    "repair": model.ChangeReport,
    "fold": model.ChangeReport,
    "validate": model.GateReport,
    "trial": model.TrialReport,
    "dataset": model.DatasetReport,
    "advise": model.AdviseReport,
    "find": model.FindReport,
    "reachable": model.ReachableReport,
    "index": model.IndexReport,
    "index-inspect": model.IndexFacts,
}
"""The dataclass behind each command's JSON document."""

VERSION: Final = 1
"""Incremented when a key is removed or changes its meaning, but not when a key is added."""

HEX_INTEGERS: Final = frozenset({("BitTrail", "hash")})
"""64-bit integers written as 16 hex digits: as JSON numbers they would lose bits in many readers."""


def schema_id(command: str) -> str:
    """Return the value of a document's ``schema`` key: ``bloom/inspect/1``."""
    return f"bloom/{command}/{VERSION}"


@cache
def keys(kind: type) -> tuple[str, ...]:
    """Return the JSON keys of a dataclass: its fields in order, then its properties."""
    names = [f.name for f in dataclasses.fields(kind)]
    return (*names, *_properties(kind))


def _properties(kind: type) -> dict[str, property]:
    """The properties of a dataclass: its own, then those of its base classes."""
    return {name: value for one in kind.__mro__ for name, value in vars(one).items() if isinstance(value, property)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One documented key of a JSON object."""

    name: str
    type: str
    """JSON type as text: ``integer``, ``string or null``, ``array of FilterFacts``, ..."""
    text: str
    """From the docstring; empty if the name needs no explanation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectSchema:
    """One kind of JSON object."""

    name: str
    text: str
    keys: tuple[Key, ...]


def object_schema(kind: type) -> ObjectSchema:
    """Return the documentation of a dataclass and its keys."""
    texts = _docstrings(kind)
    hints = _hints(kind)
    properties = _properties(kind)
    entries = []
    for name in keys(kind):
        hint = typing.get_type_hints(properties[name].fget)["return"] if name in properties else hints[name]
        json_type = "string (16 hex digits)" if (kind.__name__, name) in HEX_INTEGERS else _json_type(hint)
        entries.append(Key(name=name, type=json_type, text=texts.get(name, "")))
    return ObjectSchema(name=kind.__name__, text=_one_line(kind.__doc__ or ""), keys=tuple(entries))


def _hints(kind: type) -> dict[str, Any]:
    """The types of a dataclass's fields. `model` has the dataclasses that the report's module doesn't import."""
    return typing.get_type_hints(kind, localns={name: getattr(model, name) for name in model.__all__})


def reachable(kinds: typing.Iterable[type]) -> Iterator[type]:
    """Yield the dataclasses and every dataclass in their fields, the outermost first, each once."""
    seen: set[type] = set()
    waiting = list(kinds)
    while waiting:
        kind = waiting.pop(0)
        if kind not in seen:
            seen.add(kind)
            yield kind
            waiting += [t for hint in _hints(kind).values() for t in _dataclasses_in(hint)]


def _dataclasses_in(hint: Any) -> Iterator[type]:  # type hints have no common type
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        yield hint
    for argument in typing.get_args(hint):
        yield from _dataclasses_in(argument)


_SCALARS: Final[dict[Any, str]] = {
    int: "integer",
    float: "number",
    bool: "boolean",
    str: "string",
    bytes: "string (hex)",
    type(None): "null",
    Ellipsis: "",
}


def _json_type(hint: Any) -> str:  # type hints have no common type
    if hint in _SCALARS:
        return _SCALARS[hint]
    origin = typing.get_origin(hint)
    if origin in (types.UnionType, typing.Union):
        return " or ".join(_json_type(a) for a in typing.get_args(hint))
    if origin in (tuple, Sequence):
        return f"array of {_json_type(typing.get_args(hint)[0])}"
    if origin is dict:
        return "object"
    if isinstance(hint, type) and issubclass(hint, Enum):
        return "one of " + ", ".join(f'"{member.value}"' for member in hint)
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return hint.__name__
    raise TypeError(f"no JSON type for {hint!r}")


def _docstrings(kind: type) -> dict[str, str]:
    """Return the string literal after each field, and the docstring of each property, also inherited ones."""
    found: dict[str, str] = {}
    for one in reversed(kind.__mro__[:-1]):  # the last one is `object`
        found |= _own_docstrings(one)
    return found


def _own_docstrings(kind: type) -> dict[str, str]:
    tree = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0]
    assert isinstance(tree, ast.ClassDef)  # noqa: S101  # the source of a class has one statement
    found = {}
    for statement, following in zip(tree.body, [*tree.body[1:], None], strict=True):
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            match following:
                case ast.Expr(value=ast.Constant(value=str(text))):
                    found[statement.target.id] = _one_line(text)
        elif isinstance(statement, ast.FunctionDef):
            found[statement.name] = _one_line(ast.get_docstring(statement) or "")
    return found


def _one_line(text: str) -> str:
    return " ".join(text.replace("``", "").split())


Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


def document(command: str, report: object) -> dict[str, Json]:
    """Return the JSON document of a command's report.

    Raises:
        TypeError: the report is that of another command, which is a bug.
    """
    _check(command, report)
    return {"schema": schema_id(command), **_object(report)}


def _check(command: str, report: object) -> None:
    if not isinstance(report, DOCUMENTS[command]):
        raise TypeError(f"{command} reports a {DOCUMENTS[command].__name__}, not a {type(report).__name__}")


def write(command: str, report: object, stream: TextIO) -> None:
    """Write the document for line-based tools: one key per line, and one line per object in an array of objects."""
    _check(command, report)
    stream.writelines(_chunks([("schema", schema_id(command)), *_fields(report)]))


def _chunks(whole: Iterable[tuple[str, object]]) -> Iterator[str]:
    """Yield the text of an object of these keys and values; only the two outer levels are split into lines.

    The objects of an array become JSON one by one: a report may have millions of rows.
    """
    separator = "{\n"
    for key, value in whole:
        yield f"{separator}  {_dumps(key)}: "
        separator = ",\n"
        if isinstance(value, Sequence) and value and is_dataclass(value[0]):
            yield "[\n    "
            for index, item in enumerate(value):
                yield (",\n    " if index else "") + _dumps(_value(item))
            yield "\n  ]"
        else:
            yield _dumps(_value(value))
    yield "\n}\n"


def _dumps(value: Json) -> str:
    # ASCII only: a value that isn't valid text (a lone surrogate from argv) still results in a valid document
    return json.dumps(value, allow_nan=False)


def _object(item: Any) -> dict[str, Json]:
    return {key: _value(value) for key, value in _fields(item)}


def _fields(item: Any) -> Iterator[tuple[str, object]]:
    name = type(item).__name__
    for key in keys(type(item)):  # type: ignore[arg-type]  # a class is hashable
        value = getattr(item, key)
        yield key, f"{value:016x}" if (name, key) in HEX_INTEGERS else value


def _value(value: object) -> Json:
    match value:
        case Enum():
            return str(value.value)
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else None
        case bytes():
            return value.hex()
        case Sequence():
            return [_value(item) for item in value]
        case dict():  # decoded metadata, which is JSON already
            return value
    return _object(value)
