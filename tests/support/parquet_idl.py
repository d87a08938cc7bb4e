"""parquet.thrift, parsed by thriftpy2. `PYTHONPATH=tests python -m support.parquet_idl` writes idl.py from it."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, Final

import thriftpy2
from thriftpy2.thrift import TType

FOLDER: Final = Path(__file__).parents[2] / "bloomcli" / "formats" / "parquet"
_BASE: Final = {
    TType.BOOL: "bool",
    TType.BYTE: "i8",
    TType.I16: "i16",
    TType.I32: "i32",
    TType.I64: "i64",
    TType.DOUBLE: "double",
    TType.BINARY: "binary",
}
_HEAD: Final = '''"""parquet.thrift as tables of names and types, because parsing it takes too long.

thriftpy2 makes them (`PYTHONPATH=tests python -m support.parquet_idl`), and a test holds that they are current.
"""

from __future__ import annotations

from typing import Final

FIELDS: Final[dict[str, dict[str, tuple[int, str]]]] = {
'''
_MIDDLE: Final = '''}
"""Structures and unions: (id, type) of each field, by name."""

ENUMS: Final[dict[str, dict[str, int]]] = {
'''
_TAIL: Final = '''}
"""Enums: the values by name."""
'''


@cache
def module() -> Any:
    """The module that thriftpy2 generates from the IDL: a class for each structure."""
    return thriftpy2.load(str(FOLDER / "parquet.thrift"), module_name="support_parquet_thrift")


def tables() -> str:
    """The text of idl.py."""
    structs, enums = [], []
    for name, found in vars(module()).items():
        if hasattr(found, "thrift_spec"):
            entries = sorted(found.thrift_spec.items())
            structs += _table(name, {e[1]: f'({number}, "{_type(e[0], *e[2:-1])}")' for number, e in entries})
        elif hasattr(found, "_NAMES_TO_VALUES"):
            enums += _table(name, found._NAMES_TO_VALUES)
    return "".join([_HEAD, *structs, _MIDDLE, *enums, _TAIL])


def _table(name: str, entries: dict[str, Any]) -> list[str]:
    if not entries:
        return [f'    "{name}": {{}},\n']
    return [f'    "{name}": {{\n', *(f'        "{key}": {value},\n' for key, value in entries.items()), "    },\n"]


def _type(kind: int, below: Any = None) -> str:
    if kind == TType.LIST:
        return f"list<{_type(*below) if isinstance(below, tuple) else _type(below)}>"
    return below.__name__ if kind == TType.STRUCT else _BASE[kind]


if __name__ == "__main__":
    (FOLDER / "idl.py").write_text(tables())
