"""parquet.thrift, parsed by thriftpy2."""

from __future__ import annotations

from typing import Any, Final

from thriftpy2.thrift import TType

from bloomcli.formats.parquet import spec

_BASE: Final = {
    TType.BOOL: "bool",
    TType.BYTE: "i8",
    TType.I16: "i16",
    TType.I32: "i32",
    TType.I64: "i64",
    TType.DOUBLE: "double",
    TType.BINARY: "binary",
}


def fields() -> dict[str, dict[str, tuple[int, str]]]:
    """The structures and unions, as `spec.FIELDS` has them."""
    return {
        name: {entry[1]: (number, _type(entry[0], *entry[2:-1])) for number, entry in found.thrift_spec.items()}
        for name, found in vars(spec.structures()).items()
        if hasattr(found, "thrift_spec")
    }


def enums() -> dict[str, dict[str, int]]:
    """The enums, as `spec.ENUMS` has them."""
    found = vars(spec.structures()).items()
    return {name: one._NAMES_TO_VALUES for name, one in found if hasattr(one, "_NAMES_TO_VALUES")}


def _type(kind: int, below: Any = None) -> str:
    if kind == TType.LIST:
        return f"list<{_type(*below) if isinstance(below, tuple) else _type(below)}>"
    return _BASE[kind] if below is None else below.__name__
