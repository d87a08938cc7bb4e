"""The filters that a table's properties request from writers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from bloomcli.errors import UsageError
from bloomcli.tables.base import FilterRequest

_ENABLED: Final = "write.parquet.bloom-filter-enabled.column."
_FPP: Final = "write.parquet.bloom-filter-fpp.column."
_MAX_BYTES: Final = "write.parquet.bloom-filter-max-bytes"
_ORC_COLUMNS: Final = "write.orc.bloom.filter.columns"
_ORC_FPP: Final = "write.orc.bloom.filter.fpp"


def filter_requests(properties: Mapping[str, str], table: str) -> tuple[FilterRequest, ...]:
    """The requested filters, those of Parquet files first. Properties may name columns that the table doesn't have.

    Args:
        properties: the table's properties.
        table: its name, for errors.

    Raises:
        UsageError: the value of a property isn't a number.
    """
    size = _number(properties, _MAX_BYTES, table)
    parquet = [
        FilterRequest(
            column=name.removeprefix(_ENABLED),
            format="parquet",
            fpp=_number(properties, _FPP + name.removeprefix(_ENABLED), table),
            max_bytes=None if size is None else int(size),
        )
        for name, value in sorted(properties.items())
        if name.startswith(_ENABLED) and value.strip().lower() == "true"
    ]
    columns = [name.strip() for name in properties.get(_ORC_COLUMNS, "").split(",")]
    fpp = _number(properties, _ORC_FPP, table)
    orc = [FilterRequest(column=name, format="orc", fpp=fpp) for name in columns if name]
    return (*parquet, *orc)


def _number(properties: Mapping[str, str], name: str, table: str) -> float | None:
    text = properties.get(name)
    if text is None:
        return None
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"the table property {name} is not a number: {text!r}", path=table) from None
