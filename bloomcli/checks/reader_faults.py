"""Faults of readers that depend only on a column's type: any sound filter of the column makes them lose rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from bloomcli.formats.records import format_named
from bloomcli.hints import removing
from bloomcli.model.file import Column, Severity
from bloomcli.rules.reader_table import BY_PRECISION, DECIMAL_WIDTH, FLOAT16, MILLIS, WIDENED, Reader
from bloomcli.rules.readers import decimal_bytes, decimal_width, reads_double
from bloomcli.values.literals import kind_of, type_name
from bloomcli.words import counted

if TYPE_CHECKING:
    from bloomcli.policy.table_schema import TableSchema, TableType

_NUMBERS: Final = ("INT32", "INT64", "INTEGER", "FLOAT", "DOUBLE", "DATE")
"""Types that a table can read at another width without changing the numbers."""
_LONG_DIGITS: Final = 18
"""Digits that fit an INT64. Source: the Parquet format's LogicalTypes.md."""
_MOST_DIGITS: Final = 38
"""Digits of the widest decimals of most engines, 128 bits."""


class Fault(NamedTuple):
    """A way in which readers lose a column's rows."""

    rule: str
    severity: Severity
    message: str
    """The fault, without the row groups."""
    hint: str
    """The hint for an existing filter."""
    wrong: tuple[Reader, ...]
    """The readers that have the fault."""


class TypeFaults:
    """The faults of some readers by column type, in formats whose hashes depend on the width of a number."""

    def __init__(self, file_format: str, named: Sequence[Reader], table: TableSchema | None) -> None:
        self._readers = {
            rule: [who for who in named if rule in who.wrong_about]
            for rule in (MILLIS, DECIMAL_WIDTH, WIDENED, FLOAT16)
            if format_named(file_format).hashed_by_width
        }
        self._table = table

    def of(self, column: Column) -> Iterator[Fault]:
        """The faults of one column."""
        if not any(self._readers.values()):
            return
        wanted = None if self._table is None else self._table.type_of(column.path)
        yield from _millis(column, self._readers[MILLIS], wanted)
        yield from _decimals(column, self._readers[DECIMAL_WIDTH], wanted)
        yield from _widened(column, self._readers[WIDENED], wanted)
        wrong = self._readers[FLOAT16]
        if wrong and kind_of(column) == "FLOAT16":
            yield Fault(
                FLOAT16,
                Severity.ERROR,
                f"values are hashed at 2 bytes and {titles(wrong)} {look(wrong)} 4 up: every `=` and IN loses its"
                " rows",
                _remove(column, "FLOAT"),
                tuple(wrong),
            )


def _millis(column: Column, wrong: Sequence[Reader], wanted: TableType | None) -> Iterator[Fault]:
    if (
        wrong
        and kind_of(column) == "TIMESTAMP"
        and column.unit == "MILLIS"
        and (wanted is None or wanted.name == "TIMESTAMP")
    ):
        yield Fault(
            MILLIS,
            Severity.ERROR,
            f"values are hashed as milliseconds and {titles(wrong)} {look(wrong)} microseconds up:"
            " every `=` and IN loses its rows",
            _remove(column, "TIMESTAMP(MICROS)"),
            tuple(wrong),
        )


def _decimals(column: Column, named: Sequence[Reader], wanted: TableType | None) -> Iterator[Fault]:
    if not named or kind_of(column) != "DECIMAL" or (wanted is not None and wanted.name != "DECIMAL"):
        return
    stored = column.type_length
    widths = {r.name: width for r in named if (width := decimal_width(r, column)) is not None and width != stored}
    wrong = tuple(r for r in named if r.name in widths)
    if not wrong:
        return
    sizes = " and ".join(map(str, sorted(set(widths.values()))))
    as_double = ""
    if any(reads_double(who, column) for who in wrong):
        as_double = ", those of a DOUBLE"
    elif stored is None:
        # each value has its own number of bytes, so readers find values that fill the width
        yield Fault(
            DECIMAL_WIDTH,
            Severity.WARNING,
            f"decimals are hashed at the bytes that each has and {titles(wrong)} {look(wrong)} {sizes} up:"
            f" `=` and IN lose the rows of shorter ones",
            _remove(column, f"FIXED_LEN_BYTE_ARRAY({max(widths.values())})"),
            wrong,
        )
        return
    at = "the bytes that each has" if stored is None else counted(stored, "byte")
    yield Fault(
        DECIMAL_WIDTH,
        Severity.ERROR,
        f"decimals are hashed at {at} and {titles(wrong)} {look(wrong)} {sizes} up{as_double}: every `=` and IN"
        " loses its rows",
        _remove(column, _better_decimal(column, wrong)),
        wrong,
    )


def _better_decimal(column: Column, wrong: Sequence[Reader]) -> str | None:
    """The storage type of decimals that these readers look up correctly; None if there is none."""
    if column.precision <= _LONG_DIGITS:
        return "INT32 or INT64"
    if any(reads_double(who, column) for who in wrong):
        return f"DECIMAL of at most {_MOST_DIGITS} digits"
    if all(who.decimal_width == BY_PRECISION for who in wrong):
        return f"FIXED_LEN_BYTE_ARRAY({decimal_bytes(column.precision)})"
    return None


def _widened(column: Column, named: Sequence[Reader], wanted: TableType | None) -> Iterator[Fault]:
    if wanted is None or kind_of(column) not in _NUMBERS:
        return
    wrong = tuple(r for r in named if r.widths.get(wanted.name, column.physical) != column.physical)
    if wrong:
        yield Fault(
            WIDENED,
            Severity.ERROR,
            f"values are {type_name(column)}, hashed as {column.physical}, and {titles(wrong)} {look(wrong)}"
            f" them up as the table's {wanted}: every `=` and IN loses its rows",
            _remove(column, f"the table's type, {wanted}"),
            wrong,
        )


def _remove(column: Column, to: str | None) -> str:
    remedy = removing(column.path)
    return remedy if to is None else f"{remedy} until the column is written again as {to}"


def titles(found: Sequence[Reader]) -> str:
    """The readers' titles, separated by commas."""
    return ", ".join(who.title for who in found)


def lose(found: Sequence[Reader]) -> str:
    """``loses`` for one reader, ``lose`` for several."""
    return "loses" if len(found) == 1 else "lose"


def look(found: Sequence[Reader]) -> str:
    """``looks`` for one reader, ``look`` for several."""
    return "looks" if len(found) == 1 else "look"
