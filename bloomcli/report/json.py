"""Writes reports as JSON documents, ``{"schema": "bloom/<command>/1", ...}``.

The keys are the fields and the derived properties of the dataclasses of :mod:`bloomcli.model`. Bytes become lowercase
hex, enums their text, tuples arrays. NaN and infinity, which JSON doesn't have, become null. `tools/json_schema.py`
derives the schema.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import is_dataclass
from enum import Enum
from functools import cache
from typing import Any, Final, TextIO

from bloomcli.model.advice import AdviseReport
from bloomcli.model.change import ChangeReport
from bloomcli.model.dataset import DatasetReport
from bloomcli.model.find import FindReport, ReachableReport
from bloomcli.model.gate import GateReport
from bloomcli.model.index import IndexFacts, IndexReport
from bloomcli.model.inspect import FilterDump, InspectReport
from bloomcli.model.probe import ProbeReport
from bloomcli.model.trial import TrialReport

DOCUMENTS: Final[dict[str, type]] = {
    "inspect": InspectReport,
    "dump": FilterDump,
    "probe": ProbeReport,
    "add": ChangeReport,
    "remove": ChangeReport,
    "repair": ChangeReport,
    "fold": ChangeReport,
    "validate": GateReport,
    "trial": TrialReport,
    "dataset": DatasetReport,
    "advise": AdviseReport,
    "find": FindReport,
    "reachable": ReachableReport,
    "index": IndexReport,
    "index-inspect": IndexFacts,
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
    return (*names, *properties(kind))


def properties(kind: type) -> dict[str, property]:
    """The properties of a dataclass: its own, then those of its base classes."""
    return {name: value for base in kind.__mro__ for name, value in vars(base).items() if isinstance(value, property)}


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
