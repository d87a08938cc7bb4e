"""parquet.thrift as tables of names and types.

thriftpy2 reads the same from it, which a test holds, but loading it takes longer than everything else in `inspect`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

PATH: Final = Path(__file__).with_name("parquet.thrift")
_DEFINITION: Final = re.compile(r"(enum|struct|union) (\w+) \{([^}]*)\}")
_FIELD: Final = re.compile(r"(\d+): (?:required |optional )?([\w<>]+) (\w+)")
_VALUE: Final = re.compile(r"(\w+) = (\d+);")

_DEFINITIONS: Final = _DEFINITION.findall(PATH.read_text("ascii"))

FIELDS: Final[dict[str, dict[str, tuple[int, str]]]] = {
    name: {field: (int(number), kind) for number, kind, field in _FIELD.findall(body)}
    for what, name, body in _DEFINITIONS
    if what != "enum"
}
"""Structures and unions: (id, type) of each field, by name."""

ENUMS: Final[dict[str, dict[str, int]]] = {
    name: {value: int(number) for value, number in _VALUE.findall(body)}
    for what, name, body in _DEFINITIONS
    if what == "enum"
}
"""Enums: the values by name."""
