"""Finds columns in whose filters a named reader looks up wrong hashes, and so loses rows.

`bloomcli.rules.reader_table` contains the faults of each reader, with the evidence. A column has one finding per
rule.

Some faults depend only on a column's type: any sound filter of the column makes the reader lose rows.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from bloomcli.checks.group_ranges import Unit, finding_of
from bloomcli.formats.answer import Answer
from bloomcli.formats.base import FilterFile
from bloomcli.formats.registry import format_named
from bloomcli.hints import Hint, removing
from bloomcli.model.file import Column, FilterFacts, Presence, Severity, decimal_bytes
from bloomcli.model.validate import Finding
from bloomcli.rules.reader_table import (
    BY_PRECISION,
    DECIMAL_WIDTH,
    ENCRYPTED,
    FLOAT16,
    INTERVAL,
    ISSUE,
    MILLIS,
    NEGATIVE_ZERO,
    NULL_STRUCTS,
    SINGLE_BLOCK,
    WIDENED,
    Reader,
)
from bloomcli.rules.readers import decimal_width, evidence_text, reads_double
from bloomcli.rules.readers import named as readers_named
from bloomcli.values.literals import Literal, kind_of, type_name
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

    def __init__(
        self,
        file_format: str,
        named: Sequence[Reader],
        table: TableSchema | None,
        encrypted: Collection[int] = frozenset(),
    ) -> None:
        """`encrypted`: as `FilterFile.encrypted_alike`."""
        self._readers = {
            rule: [who for who in named if rule in who.wrong_about]
            for rule in (MILLIS, DECIMAL_WIDTH, WIDENED, FLOAT16, ENCRYPTED)
            if format_named(file_format).hashed_by_width
        }
        self._table = table
        self._encrypted = encrypted

    def of(self, column: Column) -> Iterator[Fault]:
        """The faults of one column."""
        if not any(self._readers.values()):
            return
        wanted = None if self._table is None else self._table.type_of(column.path)
        yield from _millis(column, self._readers[MILLIS], wanted)
        yield from _decimals(column, self._readers[DECIMAL_WIDTH], wanted)
        yield from _widened(column, self._readers[WIDENED], wanted)
        wrong = self._readers[ENCRYPTED]
        if wrong and column.index in self._encrypted:
            yield Fault(
                ENCRYPTED,
                Severity.ERROR,
                f"the column is encrypted, and {titles(wrong)} can't read such a column with a filter: every query"
                " that reads it ends with an error",
                removing(column.path),
                tuple(wrong),
            )
        wrong = self._readers[FLOAT16]
        if wrong and kind_of(column) == "FLOAT16":
            yield _looked_up(FLOAT16, column, wrong, "values are hashed at 2 bytes", "4 up", "FLOAT")


def _looked_up(
    rule: str,
    column: Column,
    wrong: Sequence[Reader],
    hashed: str,
    up: str,
    better: str | None,
    lost: str = "every `=` and IN loses its rows",
) -> Fault:
    """Readers that look values up unlike they are hashed. `better`: the type with which they don't."""
    message = f"{hashed} and {titles(wrong)} {look(wrong)} {up}: {lost}"
    return Fault(rule, Severity.ERROR, message, _remove(column, better), tuple(wrong))


def _millis(column: Column, wrong: Sequence[Reader], wanted: TableType | None) -> Iterator[Fault]:
    if (
        wrong
        and kind_of(column) == "TIMESTAMP"
        and column.unit == "MILLIS"
        and (wanted is None or wanted.name == "TIMESTAMP")
    ):
        yield _looked_up(
            MILLIS, column, wrong, "values are hashed as milliseconds", "microseconds up", "TIMESTAMP(MICROS)"
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
    as_double = any(reads_double(who, column) for who in wrong)
    if stored is None and not as_double:
        # each value has its own number of bytes, so readers find values that fill the width
        hashed, lost = "decimals are hashed at the bytes that each has", "`=` and IN lose the rows of shorter ones"
        better = f"FIXED_LEN_BYTE_ARRAY({max(widths.values())})"
        fault = _looked_up(DECIMAL_WIDTH, column, wrong, hashed, f"{sizes} up", better, lost)
        yield fault._replace(severity=Severity.WARNING)
        return
    hashed = f"decimals are hashed at {'the bytes that each has' if stored is None else counted(stored, 'byte')}"
    up = f"{sizes} up{', those of a DOUBLE' * as_double}"
    yield _looked_up(DECIMAL_WIDTH, column, wrong, hashed, up, _better_decimal(column, wrong))


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
        hashed = f"values are {type_name(column)}, hashed as {column.physical},"
        up = f"them up as the table's {wanted}"
        yield _looked_up(WIDENED, column, wrong, hashed, up, f"the table's type, {wanted}")


def _remove(column: Column, to: str | None) -> str:
    return removing(column.path, after="" if to is None else f" until the column is written again as {to}")


def titles(wrong: Sequence[Reader]) -> str:
    """The readers' titles, separated by commas."""
    return ", ".join(who.title for who in wrong)


def lose(wrong: Sequence[Reader]) -> str:
    """``loses`` for one reader, ``lose`` for several."""
    return "loses" if len(wrong) == 1 else "lose"


def look(wrong: Sequence[Reader]) -> str:
    """``looks`` for one reader, ``look`` for several."""
    return "looks" if len(wrong) == 1 else "look"


_ZEROS: Final = {"FLOAT16": "<e", "FLOAT": "<f", "DOUBLE": "<d"}
"""Types that have a negative zero, with their PLAIN encoding for `struct`. Source: Parquet's Encodings.md."""


def readers(
    file: FilterFile,
    facts: Sequence[FilterFacts],
    names: Sequence[str],
    table: TableSchema | None,
    columns: set[int] | None,
) -> Iterator[Finding]:
    """Yield findings about rows that the named readers would lose.

    Args:
        file: an open file.
        facts: its filters; filters of other columns are ignored.
        names: readers, by name or alias. Raises UsageError for an unknown one.
        table: the table's types of the file's columns; without it, widened columns aren't found.
        columns: ordinals of the columns to check; None for all with filters.
    """
    named = readers_named(names, file.format)
    if not named:
        return
    # also by type, because several columns may have the same path
    usable: dict[tuple[str, str, str | None], list[FilterFacts]] = {}
    for fact in facts:
        if fact.problem is None and fact.untrusted is None and fact.values != 0:
            usable.setdefault((fact.column, fact.physical, fact.logical), []).append(fact)
    faults = TypeFaults(file.format, named, table, file.encrypted_alike)
    looked_at = False
    for column in file.columns:
        filters = usable.get((column.path, column.physical, column.logical))
        if filters and (columns is None or column.index in columns):
            looked_at = True
            yield from _of_column(file, column, filters, named, faults)
        if column.index in columns if columns is not None else filters:
            yield from _null_structs(file, column, [r for r in named if NULL_STRUCTS in r.wrong_about])
    if looked_at:
        yield from _issues(file.format, named)


def _issues(file_format: str, named: Sequence[Reader]) -> Iterator[Finding]:
    """Yield notes about faults of readers that can't be detected in a file."""
    for who in named:
        for issue in who.issues_of(file_format):
            yield Finding(
                id=ISSUE,
                severity=Severity.NOTE,
                message=f"{who.title} may lose rows of files with filters ({evidence_text(issue)})",
                hint=f"take a release of {who.title} without the fault, or switch its use of filters off",
            )


def broken_promises(file: FilterFile, facts: Sequence[FilterFacts], columns: set[int] | None) -> Iterator[Finding]:
    """Yield findings about rows that DuckDB, named or not, would lose because of a false statement in the footer.

    Args:
        file: an open file.
        facts: its filters; those of other columns are ignored.
        columns: ordinals of the columns to check; None for all.
    """
    wrong = [r for r in readers_named(("duckdb",), file.format) if INTERVAL in r.wrong_about]
    with_filters = {fact.column for fact in facts}
    for column in file.columns:
        if column.path in with_filters and (columns is None or column.index in columns):
            yield from _intervals(file, column, wrong)


def confirmed_zeros(file: FilterFile, zeros: Sequence[Finding], names: Sequence[str]) -> Iterator[Finding]:
    """Yield findings about rows that the named readers certainly lose: -0.0 was read, and the filter has no +0.0.

    Args:
        file: an open file.
        zeros: the findings of `DeepCheck.negative_zero`, one per row group.
        names: readers, by name or alias. Raises UsageError for an unknown one.
    """
    named = readers_named(names, file.format)
    for column in file.columns:
        units = [(z.stripe, z.row_group or 0) for z in zeros if z.column == column.path]
        wrong = [r for r in named if r.loses_zeros(_zero_type(file, column), file.format)]
        if units and wrong:
            yield _lone_zero(file, column, units, wrong)


def _of_column(
    file: FilterFile,
    column: Column,
    facts: Sequence[FilterFacts],
    named: Sequence[Reader],
    faults: TypeFaults,
) -> Iterator[Finding]:
    wrong = [r for r in named if r.loses_zeros(_zero_type(file, column), file.format)]
    if wrong:
        yield from _zeros(file, column, facts, wrong)
    wrong = [r for r in named if SINGLE_BLOCK in r.wrong_about]
    single = [fact for fact in facts if fact.blocks == 1]
    if wrong and single:
        finding = finding_of(
            SINGLE_BLOCK,
            f"in {_groups(len(single))} the filter has one block: {titles(wrong)} {look(wrong)} half of all values up"
            " in a second one, behind it",
            column,
            [(fact.stripe, fact.row_group) for fact in single],
            _adding(file, column, after=" writes a larger one"),
        )
        yield replace(finding, offset=single[0].offset)
    yield from _intervals(file, column, [r for r in named if INTERVAL in r.wrong_about])
    units = list(dict.fromkeys((fact.stripe, fact.row_group) for fact in facts))
    for fault in faults.of(column):
        message = f"{fault.message}, in {_groups(len(units))} with a filter"
        yield finding_of(fault.rule, message, column, units, fault.hint, fault.severity)


def _intervals(file: FilterFile, column: Column, wrong: Sequence[Reader]) -> Iterator[Finding]:
    """Yield findings about filters without the normal form of intervals. Reads the column; few files have such
    columns."""
    lost: list[Unit] = [(None, row_group) for row_group in file.without_normal_forms(column)] if wrong else []
    if lost:
        yield finding_of(
            INTERVAL,
            f"the footer says that filters hold the intervals' normal form, and in {_groups(len(lost))} they don't:"
            f" {titles(wrong)} {lose(wrong)} rows for `=` and IN",
            column,
            lost,
            _adding(file, column, after=" inserts the normal form too"),
        )


def _null_structs(file: FilterFile, column: Column, wrong: Sequence[Reader]) -> Iterator[Finding]:
    """Yield a finding about nulls of structs that a field's statistics don't count."""
    lost = list(file.uncounted_nulls(column)) if wrong else []
    if lost:
        struct_path = column.path.rpartition(".")[0]
        which = f"`{struct_path}`{' or a struct above it' * ('.' in struct_path)}"
        yield finding_of(
            NULL_STRUCTS,
            f"the statistics deny nulls, and {which} is null, in {_groups(len(lost))}: {titles(wrong)} {lose(wrong)}"
            " these rows for IS NULL",
            column,
            lost,
            f"ask for `{struct_path} IS NULL OR {column.path} IS NULL`, or switch filter pushdown off",
        )


def _zero_type(file: FilterFile, column: Column) -> str:
    """FLOAT, DOUBLE or FLOAT16 for columns with a negative zero, else the column's own type."""
    typed = file.literal_column(column)
    return typed.physical if typed.physical in _ZEROS else kind_of(typed)


def _zeros(
    file: FilterFile,
    column: Column,
    facts: Sequence[FilterFacts],
    wrong: Sequence[Reader],
) -> Iterator[Finding]:
    """Yield findings about filters that answer "maybe" for -0.0 and "absent" for +0.0, unless statistics exclude
    zero."""
    form = _ZEROS[_zero_type(file, column)]
    literals = [Literal(text=str(z), encodings=(struct.pack(form, z),), order_key=0.0) for z in (-0.0, 0.0)]
    rates = {(fact.stripe, fact.row_group): fact.fpp for fact in facts}
    lone = [
        unit
        for unit_answers in file.look_up(column, literals, explain=False)
        if (unit := (unit_answers.stripe, unit_answers.row_group)) in rates and _is_lone(*unit_answers.answers)
    ]
    if not lone:
        return
    lone_rates = [rate for unit in lone if (rate := rates[unit]) is not None]
    measured = f", the measured rate is {sum(lone_rates) / len(lone_rates):.2g}" if lone_rates else ""
    yield finding_of(
        NEGATIVE_ZERO,
        f"in {len(lone)} of {_groups(len(rates))} the filter may hold -0.0 and doesn't hold +0.0: if -0.0 is there,"
        f" {titles(wrong)} {lose(wrong)} its rows for `= 0`; it may be a false positive too{measured}",
        column,
        lone,
        _adding(file, column, after=" inserts both zeros").preceded_by("--deep says for certain; "),
        Severity.NOTE,
    )


def _is_lone(negative: Answer, positive: Answer) -> bool:
    possible = negative.presence is Presence.MAYBE and negative.stats_skip is not True
    return possible and positive.presence is Presence.ABSENT


def _lone_zero(file: FilterFile, column: Column, units: Sequence[Unit], wrong: Sequence[Reader]) -> Finding:
    return finding_of(
        NEGATIVE_ZERO,
        f"-0.0 is among the values and +0.0 not in the filter, in {_groups(len(units))}: {titles(wrong)}"
        f" {lose(wrong)} its rows for `= 0`",
        column,
        units,
        _adding(file, column, after=" inserts both zeros"),
    )


def _adding(file: FilterFile, column: Column, after: str = "") -> Hint:
    """The hint with the command that builds a column's filters again."""
    return format_named(file.format).adding(column.path, "--replace", after=after)


def _groups(count: int) -> str:
    return counted(count, "row group")
