"""Readers: columns with filters in which a named engine would look its query's values up wrongly, and lose rows.

What each engine does wrongly is in `bloomcli.rules.readers`, with the evidence. One finding a column and rule.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from bloomcli.checks import extent
from bloomcli.formats.base import Answer, FilterFile
from bloomcli.literals import Literal, kind_of, type_name
from bloomcli.mending import adding, removing
from bloomcli.model import Column, FilterFacts, Finding, Severity
from bloomcli.rules.readers import (
    BY_PRECISION,
    DECIMAL_WIDTH,
    FLOAT16,
    MILLIS,
    NEGATIVE_ZERO,
    SINGLE_BLOCK,
    WIDENED,
    Reader,
    decimal_bytes,
    decimal_width,
    reader,
)

if TYPE_CHECKING:
    from bloomcli.rules.table_schema import TableSchema, TableType

_ZEROS: Final = {"FLOAT16": "<e", "FLOAT": "<f", "DOUBLE": "<d"}
"""Types that have a negative zero, and how PLAIN packs them. Source: the Parquet format's Encodings.md."""
_NUMBERS: Final = ("INT32", "INT64", "INTEGER", "FLOAT", "DOUBLE", "DATE")
"""Kinds of columns whose values a table of another width still reads as the same numbers."""
_TODAYS: Final = (None, "parquet")
"""Variants of Parquet filters that today's readers look values up in; the drafts' have a finding of their own."""


class Unit(NamedTuple):
    """The place of one filter: a row group, in ORC of a stripe."""

    row_group: int
    stripe: int | None


_LONG_DIGITS: Final = 18
"""Digits of the longest decimal that an INT64 holds. Source: the Parquet format's LogicalTypes.md."""

Confirm = Callable[[Column, Unit], bool | None]
"""Says of a column and a filter's place whether -0.0 is among the values there; None where that isn't known."""


def readers(
    file: FilterFile,
    facts: Sequence[FilterFacts],
    names: Sequence[str],
    table: TableSchema | None,
    columns: set[int] | None,
    confirm: Confirm | None = None,
) -> Iterator[Finding]:
    """What the named readers would lose.

    Args:
        file: an open file.
        facts: its filters; those of columns that aren't looked at don't matter.
        names: readers, by name or alias. Raises UsageError for an unknown one.
        table: the types that the table has for the file's columns; without it widened columns aren't seen.
        columns: ordinals of the columns to look at; None for all.
        confirm: who has read the values; without it a filter that holds -0.0 alone gives a note only.
    """
    named = _named(names, file.format)
    if not named:
        return
    # by type too: several columns may have one path
    usable: dict[tuple[str, str, str | None], list[FilterFacts]] = {}
    for fact in facts:
        if fact.problem is None and fact.untrusted is None and fact.variant in _TODAYS and fact.values != 0:
            usable.setdefault((fact.column, fact.physical, fact.logical), []).append(fact)
    for column in file.columns:
        found = usable.get((column.path, column.physical, column.logical))
        if found and (columns is None or column.index in columns):
            yield from _of_column(file, column, found, named, table, confirm)


def confirmed_zeros(file: FilterFile, zeros: Sequence[Finding], names: Sequence[str]) -> Iterator[Finding]:
    """What the named readers surely lose, where values that were read show -0.0 in filters without +0.0.

    Args:
        file: an open file.
        zeros: the places, as `DeepCheck.negative_zero` gives them.
        names: readers, by name or alias. Raises UsageError for an unknown one.
    """
    named = _named(names, file.format)
    for column in file.columns:
        places = [Unit(z.row_group or 0, z.stripe) for z in zeros if z.column == column.path]
        wrong = [r for r in named if _zero_type(file, column) in r.zeros]
        if places and wrong:
            yield _lone_zero(file, column, places, wrong)


def _named(names: Sequence[str], format: str) -> list[Reader]:  # noqa: A002  it is the file's format
    """The readers that look into filters of this format, each once, in the order named."""
    found = {who.name: who for who in map(reader, names)}
    return [who for who in found.values() if format in who.probes]


def _of_column(
    file: FilterFile,
    column: Column,
    facts: Sequence[FilterFacts],
    named: Sequence[Reader],
    table: TableSchema | None,
    confirm: Confirm | None,
) -> Iterator[Finding]:
    wrong = [r for r in named if _zero_type(file, column) in r.zeros]
    if wrong:
        yield from _zeros(file, column, facts, wrong, confirm)
    wrong = [r for r in named if SINGLE_BLOCK in r.wrong_about]
    single = [fact for fact in facts if fact.blocks == 1]
    if wrong and single:
        yield Finding(
            id=SINGLE_BLOCK,
            severity=Severity.ERROR,
            message=f"in {_groups(len(single))} the filter has one block: {_titles(wrong)} {_look(wrong)} half of"
            " all values up in a second one, behind it",
            row_group=single[0].row_group,
            column=column.path,
            offset=single[0].offset,
            hint=f"{adding(file.format, column.path, '--replace', '--ndv', '100')} writes a larger one",
            places=_extent(Unit(fact.row_group, fact.stripe) for fact in single),
        )
    places = list(dict.fromkeys(Unit(fact.row_group, fact.stripe) for fact in facts))
    for id_, severity, message, hint in _by_type(file, column, named, table):
        yield Finding(
            id=id_,
            severity=severity,
            message=f"{message}, in {_groups(len(places))} with a filter",
            row_group=places[0].row_group,
            stripe=places[0].stripe,
            column=column.path,
            hint=hint,
            places=_extent(places),
        )


def _zero_type(file: FilterFile, column: Column) -> str:
    """FLOAT, DOUBLE or FLOAT16; else whatever the column is."""
    typed = file.literal_column(column)
    return typed.physical if typed.physical in _ZEROS else kind_of(typed)


def _zeros(
    file: FilterFile,
    column: Column,
    facts: Sequence[FilterFacts],
    wrong: Sequence[Reader],
    confirm: Confirm | None,
) -> Iterator[Finding]:
    """A filter that says maybe of -0.0 and absent of +0.0, where the statistics leave room for a zero."""
    form = _ZEROS[_zero_type(file, column)]
    literals = [Literal(text=str(z), encodings=(struct.pack(form, z),), order_key=0.0) for z in (-0.0, 0.0)]
    rates = {Unit(fact.row_group, fact.stripe): fact.fpp for fact in facts}
    lone = [
        place
        for unit in file.ask(column, literals, explain=False)
        if (place := Unit(unit.row_group, unit.stripe)) in rates and _is_lone(*unit.answers)
    ]
    said = {place: None if confirm is None else confirm(column, place) for place in lone}
    sure = [place for place in lone if said[place]]
    if sure:
        yield _lone_zero(file, column, sure, wrong)
        return
    lone = [place for place in lone if said[place] is None]
    if not lone:
        return
    known = [rate for place in lone if (rate := rates[place]) is not None]
    measured = f", the measured rate is {sum(known) / len(known):.2g}" if known else ""
    yield Finding(
        id=NEGATIVE_ZERO,
        severity=Severity.NOTE,
        message=f"in {len(lone)} of {_groups(len(rates))} the filter may hold -0.0 and doesn't hold +0.0: if -0.0 is"
        f" there, {_titles(wrong)} {_lose(wrong)} its rows for `= 0`; it may be a false positive too{measured}",
        row_group=lone[0].row_group,
        stripe=lone[0].stripe,
        column=column.path,
        hint=f"--deep says for certain; {adding(file.format, column.path, '--replace')} inserts both zeros",
        places=_extent(lone),
    )


def _is_lone(negative: Answer, positive: Answer) -> bool:
    known = negative.presence_known and positive.presence_known and negative.stats_skip is not True
    return known and negative.present and not positive.present


def _lone_zero(file: FilterFile, column: Column, places: Sequence[Unit], wrong: Sequence[Reader]) -> Finding:
    return Finding(
        id=NEGATIVE_ZERO,
        severity=Severity.ERROR,
        message=f"-0.0 is among the values and +0.0 not in the filter, in {_groups(len(places))}:"
        f" {_titles(wrong)} {_lose(wrong)} its rows for `= 0`",
        row_group=places[0].row_group,
        stripe=places[0].stripe,
        column=column.path,
        hint=f"{adding(file.format, column.path, '--replace')} inserts both zeros",
        places=_extent(places),
    )


_Fault = tuple[str, Severity, str, str]
"""Rule, severity, message without the row groups, hint."""


def _by_type(
    file: FilterFile, column: Column, named: Sequence[Reader], table: TableSchema | None
) -> Iterator[_Fault]:
    """What the column's type alone says. Of Parquet: ORC hashes integers, floats and decimals of any width alike."""
    if file.format != "parquet":
        return
    wanted = None if table is None else table.type_of(column.path)
    yield from _millis(column, [r for r in named if MILLIS in r.wrong_about], wanted)
    yield from _decimals(column, [r for r in named if DECIMAL_WIDTH in r.wrong_about], wanted)
    yield from _widened(column, [r for r in named if WIDENED in r.wrong_about], wanted)
    wrong = [r for r in named if FLOAT16 in r.wrong_about]
    if wrong and kind_of(column) == "FLOAT16":
        yield (
            FLOAT16,
            Severity.ERROR,
            f"values are hashed at 2 bytes and {_titles(wrong)} {_look(wrong)} 4 up: every `=` and IN loses its rows",
            _remove(column, "FLOAT"),
        )


def _millis(column: Column, wrong: Sequence[Reader], wanted: TableType | None) -> Iterator[_Fault]:
    if (
        wrong
        and kind_of(column) == "TIMESTAMP"
        and column.unit == "MILLIS"
        and (wanted is None or wanted.name == "TIMESTAMP")
    ):
        yield (
            MILLIS,
            Severity.ERROR,
            f"values are hashed as milliseconds and {_titles(wrong)} {_look(wrong)} microseconds up:"
            " every `=` and IN loses its rows",
            _remove(column, "TIMESTAMP(MICROS)"),
        )


def _decimals(column: Column, named: Sequence[Reader], wanted: TableType | None) -> Iterator[_Fault]:
    if kind_of(column) != "DECIMAL" or (wanted is not None and wanted.name != "DECIMAL"):
        return
    stored = column.type_length
    widths = {r.name: width for r in named if (width := decimal_width(r, column)) is not None and width != stored}
    wrong = [r for r in named if r.name in widths]
    if not wrong:
        return
    asked = " and ".join(map(str, sorted(set(widths.values()))))
    if stored is None:
        # how many bytes a value has is up to the value: those that happen to fill the width are found
        yield (
            DECIMAL_WIDTH,
            Severity.WARNING,
            f"decimals are hashed at the bytes that each has and {_titles(wrong)} {_look(wrong)} {asked} up:"
            f" `=` and IN lose the rows of shorter ones",
            _remove(column, f"FIXED_LEN_BYTE_ARRAY({max(widths.values())})"),
        )
    else:
        yield (
            DECIMAL_WIDTH,
            Severity.ERROR,
            f"decimals are hashed at {stored} bytes and {_titles(wrong)} {_look(wrong)} {asked} up:"
            " every `=` and IN loses its rows",
            _remove(column, _better_decimal(column, wrong)),
        )


def _better_decimal(column: Column, wrong: Sequence[Reader]) -> str | None:
    """How decimals would have to be stored for these readers; None where no form suits them."""
    if column.precision <= _LONG_DIGITS:
        return "INT32 or INT64"
    if all(who.decimal_width == BY_PRECISION for who in wrong):
        return f"FIXED_LEN_BYTE_ARRAY({decimal_bytes(column.precision)})"
    return None


def _widened(column: Column, named: Sequence[Reader], wanted: TableType | None) -> Iterator[_Fault]:
    if wanted is None or kind_of(column) not in _NUMBERS:
        return
    wrong = [r for r in named if r.widths.get(wanted.name, column.physical) != column.physical]
    if wrong:
        yield (
            WIDENED,
            Severity.ERROR,
            f"values are {type_name(column)}, hashed as {column.physical}, and {_titles(wrong)} {_look(wrong)}"
            f" them up as the table's {wanted}: every `=` and IN loses its rows",
            _remove(column, f"the table's type, {wanted}"),
        )


def _remove(column: Column, to: str | None) -> str:
    remedy = removing(column.path)
    return remedy if to is None else f"{remedy} until the column is written again as {to}"


def _extent(units: Iterable[Unit]) -> str:
    return extent.of_places((unit.stripe, unit.row_group) for unit in units)


def _groups(count: int) -> str:
    return "1 row group" if count == 1 else f"{count} row groups"


def _titles(found: Sequence[Reader]) -> str:
    return ", ".join(who.title for who in found)


def _lose(found: Sequence[Reader]) -> str:
    return "loses" if len(found) == 1 else "lose"


def _look(found: Sequence[Reader]) -> str:
    return "looks" if len(found) == 1 else "look"
