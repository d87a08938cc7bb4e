"""Derives the schema of the JSON documents from the dataclasses of `bloomcli.model`: the keys with their types, and
the docstrings of fields and properties as texts. The manual page bloom-json(7) is made from it."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import textwrap
import types
import typing
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from bloomcli.report import json


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
    properties = json.properties(kind)
    entries = []
    for name in json.keys(kind):
        hint = typing.get_type_hints(properties[name].fget)["return"] if name in properties else hints[name]
        json_type = "string (16 hex digits)" if (kind.__name__, name) in json.HEX_INTEGERS else _json_type(hint)
        entries.append(Key(name=name, type=json_type, text=texts.get(name, "")))
    return ObjectSchema(name=kind.__name__, text=_one_line(kind.__doc__ or ""), keys=tuple(entries))


def _hints(kind: type) -> dict[str, Any]:
    """The types of a dataclass's fields. `model` has the dataclasses that the report's module doesn't import."""
    return typing.get_type_hints(kind)


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
