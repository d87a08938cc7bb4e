"""Columns of many types, whose values `bloom find` looks up as SQL does."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa

import bloomcli

DAY: Final = dt.date(2024, 1, 1)


class Kind(NamedTuple):
    """A column's type, a value for each number, and the value as bloom takes it and as SQL has it."""

    type: pa.DataType
    value: Callable[[int], Any]
    text: Callable[[Any], str] = str
    sql: str = "$1"


def hexadecimal(value: bytes) -> str:
    """Bytes as bloom takes them."""
    return "0x" + value.hex()


def iso(value: Any) -> str:
    """A date or a time as bloom takes it."""
    return str(value.isoformat())


KINDS: Final[dict[str, Kind]] = {
    **{f"int{bits}": Kind(getattr(pa, f"int{bits}")(), lambda n: n % 100 - 50) for bits in (8, 16, 32, 64)},
    "wide": Kind(pa.int64(), lambda n: n * 10**14 - 10**17),
    "real": Kind(pa.float32(), lambda n: (n % 300) / 4 - 20, repr, "$1::FLOAT"),
    "double": Kind(pa.float64(), lambda n: (0.0, -0.0, float("inf"), n / 7)[n % 4], repr, "$1::DOUBLE"),
    "flag": Kind(pa.bool_(), lambda n: n % 3 == 0, lambda v: str(v).lower()),
    "text": Kind(pa.string(), lambda n: f"käse-{n % 700}"),
    "blank": Kind(pa.string(), lambda n: "" if n % 5 else "a" * (n % 60)),
    "bytes": Kind(pa.binary(), lambda n: n.to_bytes(3, "big"), hexadecimal),
    "cents": Kind(pa.decimal128(9, 2), lambda n: Decimal(n - 1500) / 100, sql="$1::DECIMAL(9,2)"),
    "money": Kind(pa.decimal128(18, 4), lambda n: Decimal(n - 1500) / 10000, sql="$1::DECIMAL(18,4)"),
    "huge": Kind(pa.decimal128(30, 4), lambda n: Decimal(n - 1500) * 10**15, sql="$1::DECIMAL(30,4)"),
    "day": Kind(pa.date32(), lambda n: DAY + dt.timedelta(days=n - 1500), iso),
}
"""The types that Parquet and ORC have."""


def orders(rows: int) -> list[list[int]]:
    """The numbers of the rows in order, and shuffled."""
    return [list(range(rows)), random.Random(7).sample(range(rows), rows)]


def columns(kinds: Mapping[str, Kind], lists: Sequence[str], rows: int, odd: int) -> dict[str, pa.Array]:
    """A column of each kind, some of its values null; those of `lists` also in lists.

    Every second column is in order and the others are shuffled, the even ones or the odd ones: among files of both
    each kind is in both orders, and each file has both.
    """
    numbers = orders(rows)
    made: dict[str, pa.Array] = {}
    for at, (name, kind) in enumerate(kinds.items()):
        values = [None if n % 17 == 3 else kind.value(n) for n in numbers[(at + odd) % 2]]
        made[name] = pa.array(values, kind.type)
    for at, name in enumerate(lists):
        kind, order = kinds[name], numbers[(at + odd) % 2]
        elements = [None if n % 11 == 1 else [kind.value(m) for m in range(n, n + n % 4)] for n in order]
        made[f"{name}s"] = pa.array(elements, pa.list_(kind.type))
    return made


def by_bloom(path: Path, column: str, texts: Sequence[str], **options: Any) -> list[int]:
    """The numbers of the rows that `find` gives, which are in the order of the file."""
    found = bloomcli.find(path, list(texts), column=column, jobs=1, **options)
    rows = [row for batch in found for row in batch.column("row").to_pylist()]
    assert not found.report.errors, found.report.errors
    assert found.report.rows == len(rows)
    return rows
