"""Reports as JSON documents: ``{"schema": "bloom/<command>/1", ...}``, keys as the dataclasses name them.

Fields and derived properties alike; bytes as lowercase hex, enums as their text, tuples as arrays. NaN and
infinity have no JSON form and become null. The manual page bloom-json(7) lists every key.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from enum import Enum
from typing import Any, TextIO

from bloomcli.report.schema import DOCUMENTS, HEX_INTEGERS, keys, schema_id

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


def document(command: str, report: object) -> dict[str, Json]:
    """The JSON document of a command's report.

    Raises TypeError for a report that isn't of the command's kind: a bug, not a fault in a file.
    """
    if not isinstance(report, DOCUMENTS[command]):
        raise TypeError(f"{command} reports a {DOCUMENTS[command].__name__}, not a {type(report).__name__}")
    return {"schema": schema_id(command), **_object(report)}


def write(command: str, report: object, stream: TextIO) -> None:
    """Write the document: one key a line, and of an array of objects one object a line, so that it greps."""
    stream.writelines(chunks(document(command, report)))


def chunks(whole: dict[str, Json]) -> Iterator[str]:
    """The document's text in pieces; only the two outer levels are broken into lines."""
    separator = "{\n"
    for key, value in whole.items():
        yield f"{separator}  {_dumps(key)}: "
        separator = ",\n"
        if isinstance(value, list) and value and isinstance(value[0], dict):
            yield "[\n    "
            for index, item in enumerate(value):
                yield (",\n    " if index else "") + _dumps(item)
            yield "\n  ]"
        else:
            yield _dumps(value)
    yield "\n}\n"


def _dumps(value: Json) -> str:
    # ASCII only: a value that isn't valid text (a lone surrogate from argv) still gives a valid document.
    return json.dumps(value, allow_nan=False)


def _object(item: Any) -> dict[str, Json]:
    name = type(item).__name__
    result = {}
    for key in keys(type(item)):  # type: ignore[arg-type]  # a class is hashable
        value = getattr(item, key)
        result[key] = f"{value:016x}" if (name, key) in HEX_INTEGERS else _value(value)
    return result


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
        case tuple():
            return [_value(item) for item in value]
    return _object(value)
