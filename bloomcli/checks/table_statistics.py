"""Compares what a table's metadata say about a data file with the file: row count, statistics, partition, splits.

Engines skip whole files by these numbers, and answer COUNT, MIN and MAX by them. They are compared with the values
where `--deep` has read them, otherwise with the file's own metadata. A bound of the file that a writer may have
shortened or rounded only proves what holds for all values that it can stand for.

Sources: Iceberg's specification, "Manifests", "Partition Transforms" and "Appendix B: 32-bit Hash Requirements";
Delta's PROTOCOL.md, "Per-file Statistics" and "Partition Value Serialization".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from operator import gt, lt
from typing import Final, NamedTuple

from bloomcli.formats.base import FilterFile, MeasuredColumn
from bloomcli.formats.column_facts import ColumnFacts
from bloomcli.hints import MENDS, repairing
from bloomcli.model.file import Severity
from bloomcli.model.table_statistics import ColumnStatistics, FileStatistics, Key, Kind, PartitionValue
from bloomcli.model.validate import Finding
from bloomcli.values import calendar
from bloomcli.values.keys import comparable, key_of, kind_of_column, text_of
from bloomcli.values.literals import WIDE
from bloomcli.values.short_bounds import cut_high, cut_low
from bloomcli.words import counted

_MILLI: Final = 999_999
"""ORC rounds bounds of timestamps down and up to milliseconds: how far a value may be from one, in nanoseconds."""
_HOUR: Final = 3600 * 10**9
_ANSWERED: Final = (Kind.NUMBER, Kind.DATE)
"""Spark answers MIN and MAX of timestamps and texts by the values: their bounds may be cut or rounded."""
_TIMES: Final = (Kind.TIMESTAMP, Kind.INSTANT)
_NO_REWRITING: Final = {
    "table-partition": "add the file to the table again, with the right partition. The engine must not rewrite or"
    " compact it before: the rows would get the metadata's value",
    "table-splits": "add the file to the table again. The engine must not rewrite or compact it before: rows that it"
    " doesn't read would be lost",
}
"""The hints of rules whose findings would become permanent if the engine wrote the file again."""

_BEFORE_REWRITING: Final = {
    "table-splits": f"{MENDS}. The engine must not rewrite or compact the file before: rows that it doesn't read"
    " would be lost",
}
_TOO_FEW_ROWS: Final = (
    "add the file to the table again: commits that replace it are refused, because the new file has more rows"
)
_CORRECTED: Final = ("table-counts", "table-bounds", "table-splits")
"""The rules whose findings the commit of a repair corrects."""


class _End(NamedTuple):
    """The least or the greatest value of a column in a file, as far as it is known."""

    key: Key
    exact: bool
    """It is a value. Otherwise it was shortened or rounded: the value is somewhat above the least, or below the
    greatest."""


class _Column(NamedTuple):
    """A column of the file. What is None isn't known."""

    kind: Kind | None
    scale: int
    """Of decimals."""
    values: int | None
    nulls: int | None
    nans: int | None
    low: _End | None
    high: _End | None
    read: bool = False
    """The facts come from the values, otherwise from the footer."""

    @property
    def origin(self) -> str:
        """Where the facts come from, for messages."""
        return "the file" if self.read else "the file's footer"


def check_table(
    file: FilterFile,
    table: FileStatistics,
    columns: set[int] | None,
    measured: Mapping[int, MeasuredColumn],
) -> Iterator[Finding]:
    """Yield the contradictions between a file and its table's metadata.

    Args:
        file: the file, opened with the table's names.
        table: what the metadata say.
        columns: ordinals of the columns to check; None for all.
        measured: columns whose values were read, by ordinal.
    """
    if table.rows is not None and table.rows != file.rows:
        yield Finding(
            id="table-counts",
            severity=Severity.ERROR,
            message=f"the {table.source} says {counted(table.rows, 'row')}, and the file has {file.rows}",
            hint=_hint("table-counts", file, table, mended=not _cannot_grow(file, table)),
        )
    yield from _splits(file, table)
    named = {stats.path for stats in table.columns} | {value.path for value in table.partition}
    wanted = {c.index for c in file.columns if c.path in named and (columns is None or c.index in columns)}
    by_path = {
        facts.column.path: _column(facts, measured.get(facts.column.index), file.rows)
        for facts in (file.column_facts(wanted) if wanted and file.rows else ())
    }
    messages: list[tuple[str, str, str]] = []
    for stats in table.columns:
        if (column := by_path.get(stats.path)) is not None:
            messages += [("table-counts", stats.path, text) for text in _counts(stats, column, table)]
            messages += [("table-bounds", stats.path, text) for text in _bounds(stats, column, table.source)]
            messages += [("table-bounds", stats.path, stats.problem)] if stats.problem is not None else []
            yield from _too_wide(stats, column, file, table)
    for value in table.partition:
        if value.problem is not None and (columns is None or value.path in by_path):
            messages.append(("table-partition", value.path, value.problem))
        elif (column := by_path.get(value.path)) is not None and _is_outside(value, column):
            messages.append(("table-partition", value.path, _partition_message(value, column, table.source)))
    for rule, path, text in messages:
        yield Finding(
            id=rule, severity=Severity.ERROR, message=text, column=path, hint=_hint(rule, file, table, path)
        )


class Correction(NamedTuple):
    """What a table's metadata should say about a file, where they are wrong."""

    right: FileStatistics
    """The columns whose statistics are wrong, the number of rows and the split offsets if they are wrong: as they
    should be."""
    problems: tuple[str, ...]


def correction(file: FilterFile, table: FileStatistics, measured: Mapping[int, MeasuredColumn]) -> Correction | None:
    """What the metadata should say about a file instead of what its values contradict; None if nothing is wrong.

    Partition values aren't corrected: they decide which rows the table has.

    Args:
        file: the file, opened with the table's names.
        table: what the metadata say.
        measured: the columns whose values were read, by ordinal. No other column is corrected.
    """
    read = {
        facts.column.path: column
        for facts in (file.column_facts(set(measured)) if measured and file.rows else ())
        if (column := _column(facts, measured.get(facts.column.index), file.rows)).read
    }
    unchanged = _cannot_grow(file, table)
    findings = [
        f
        for f in check_table(file, table, set(measured), measured)
        if f.id in _CORRECTED and (f.column is None or f.column in read)
        if not (unchanged and f.id == "table-counts" and f.column is None)
    ]
    if not findings:
        return None
    wrong = {f.column for f in findings}
    contradicted = (stats for stats in table.columns if stats.path in wrong)
    right = FileStatistics(
        source=table.source,
        rows=None if unchanged else file.rows,
        columns=tuple(_right(stats, read[stats.path]) for stats in contradicted),
        split_offsets=tuple(sorted(file.unit_starts())) if any(f.id == "table-splits" for f in findings) else (),
    )
    problems = (f.message if f.column is None else f"{f.column}: {f.message}" for f in findings)
    return Correction(right, tuple(problems))


def _right(stats: ColumnStatistics, column: _Column) -> ColumnStatistics:
    """A column's statistics by its values. Without bounds if they don't compare with the table's."""
    ends = (column.low, column.high) if comparable(column.kind, stats.kind) else (None, None)
    low, high = (None if end is None else end.key for end in ends)
    low, high = (cut(end) if isinstance(end, bytes) else end for end, cut in ((low, cut_low), (high, cut_high)))
    if stats.nan_is_greatest and column.nans:
        high = None
    return replace(stats, values=column.values, nulls=column.nulls, nans=column.nans, low=low, high=high)


def _cannot_grow(file: FilterFile, table: FileStatistics) -> bool:
    """Whether the number of rows is too low, and a commit that replaces the file can't raise it."""
    return table.rows is not None and table.rows < file.rows and not table.rows_may_grow


def _hint(
    rule: str, file: FilterFile, table: FileStatistics, column: str | None = None, *, mended: bool = True
) -> str:
    """What mends a finding: the commit of a repair, if it corrects the rule's findings in this file."""
    if not mended:
        return _TOO_FEW_ROWS
    if rule in _CORRECTED and file.unrepairable is None:
        return repairing(*filter(None, [column]), after=_BEFORE_REWRITING.get(rule, MENDS))
    return _NO_REWRITING.get(rule, f"let the engine write the files and their statistics again: {table.rewriting}")


def _splits(file: FilterFile, table: FileStatistics) -> Iterator[Finding]:
    """Yield the split offsets that aren't the start of a row group or stripe.

    Tasks read from the first offset to the next, and from the last to the end of the file: a row group before the
    first offset is in no task.
    """
    starts = sorted(file.unit_starts()) if table.split_offsets else ()
    if not starts:
        return
    first = table.split_offsets[0]
    if first > starts[0] and table.split_offsets == tuple(sorted(set(table.split_offsets))):
        yield Finding(
            id="table-splits",
            severity=Severity.ERROR,
            message=f"the {table.source}'s first split offset is {first}, and the first {_unit(file)} starts at"
            f" {starts[0]}: engines that split the file there don't read the rows before",
            offset=first,
            hint=_hint("table-splits", file, table),
        )
        return
    wrong = sorted(set(table.split_offsets).difference(starts))
    if wrong:
        yield Finding(
            id="table-splits",
            severity=Severity.NOTE,
            message=f"no {_unit(file)} starts at {counted(len(wrong), 'split offset')} of the {table.source}, first"
            f" {wrong[0]}: tasks get uneven parts of the file",
            offset=wrong[0],
            hint=repairing() if file.unrepairable is None else None,
        )


def _unit(file: FilterFile) -> str:
    return "row group" if file.stripes is None else "stripe"


def _column(facts: ColumnFacts, read: MeasuredColumn | None, rows: int) -> _Column:
    """What is known about a column. Its values count more than the footer, if all of them were read."""
    kind, scale = kind_of_column(facts.typed), facts.typed.scale
    if read is not None and read.values == rows:
        low, high = (None if end is None or not read.compared else _End(end, True) for end in (read.low, read.high))
        return _Column(kind, scale, read.values, read.nulls, read.nans, low, high, True)
    bounds = facts.bounds
    low, high = (
        _end(end, exact, facts, kind)
        for end, exact in ((bounds.low, bounds.low_exact), (bounds.high, bounds.high_exact))
    )
    return _Column(kind, scale, facts.values, facts.nulls, None, low, high)


def _end(encoded: bytes | None, exact: bool | None, facts: ColumnFacts, kind: Kind | None) -> _End | None:
    key = None if encoded is None else key_of(encoded, facts.typed)
    if key is None:
        return None
    return _End(key, exact is True or (exact is None and kind not in {Kind.TEXT, Kind.BYTES}))


def _counts(table: ColumnStatistics, column: _Column, file: FileStatistics) -> Iterator[str]:
    """Yield the wrong counts of a column."""
    if table.values is not None and column.values is not None and table.values != column.values:
        yield _number("value", table.values, column.values, column, file.source)
    if table.nulls is not None and column.nulls is not None and column.values is not None:
        all_null = column.nulls == column.values
        if table.tight:
            wrong = table.nulls != column.nulls
        else:
            wrong = (not table.nulls and column.nulls > 0) or (table.nulls == file.rows and not all_null)
        if wrong:
            yield _number("null", table.nulls, column.nulls, column, file.source)
    if table.nans is not None and column.nans is not None and table.nans != column.nans:
        yield _number("NaN", table.nans, column.nans, column, file.source)


def _number(what: str, table_count: int, column_count: int, column: _Column, source: str) -> str:
    return f"the {source} says {counted(table_count, what)}, and {column.origin} has {column_count}"


def _bounds(table: ColumnStatistics, column: _Column, source: str) -> Iterator[str]:
    """Yield the bounds that leave values out."""
    if table.nan_is_greatest and column.nans and table.high is not None:
        high = text_of(table.high, table.kind)
        yield f"the {source} says that no value is above {high}, and {column.origin} has NaN, which engines put above"
    if not comparable(column.kind, table.kind):
        return
    for which, beyond, bound, end in (
        ("below", _is_above, table.low, column.low),
        ("above", _is_below, table.high, column.high),
    ):
        if bound is not None and end is not None and beyond(bound, end, column.kind):
            yield (
                f"the {source} says that no value is {which} {text_of(bound, table.kind)}, and {column.origin} has"
                f" {text_of(end.key, table.kind)}: engines that look for it skip the file"
            )


def _too_wide(stats: ColumnStatistics, column: _Column, file: FilterFile, table: FileStatistics) -> Iterator[Finding]:
    """Yield the bounds of numbers and dates that are no values, from which engines answer MIN and MAX."""
    if not (column.read and stats.tight and stats.kind in _ANSWERED and comparable(column.kind, stats.kind)):
        return
    for which, bound, end, wide in (
        ("MIN", stats.low, column.low, lt),
        ("MAX", stats.high, column.high, gt),
    ):
        if bound is not None and end is not None and wide(bound, end.key):
            yield Finding(
                id="table-bounds",
                severity=Severity.NOTE,
                message=f"engines that answer {which} from the {table.source} return {text_of(bound, stats.kind)},"
                f" and {column.origin} has {text_of(end.key, stats.kind)}: no row is lost",
                column=stats.path,
                hint=_hint("table-bounds", file, table, stats.path),
            )


def _is_above(bound: Key, least: _End, kind: Kind | None) -> bool:
    """Whether a lower bound is above the least value for certain."""
    if least.exact:
        return bool(bound > least.key)  # type: ignore[operator]  # numbers, or bytes
    if isinstance(bound, bytes) and isinstance(least.key, bytes):
        return bound > least.key and not bound.startswith(least.key)
    return kind in _TIMES and bool(bound > least.key + _MILLI)  # type: ignore[operator]


def _is_below(bound: Key, greatest: _End, kind: Kind | None) -> bool:
    """Whether an upper bound is below the greatest value for certain."""
    if greatest.exact:
        return bool(bound < greatest.key)  # type: ignore[operator]  # numbers, or bytes
    if isinstance(bound, bytes) and isinstance(greatest.key, bytes):
        begin = _without_last(greatest.key)
        return bound[: len(begin)] < begin
    return kind in _TIMES and bool(bound < greatest.key - _MILLI)  # type: ignore[operator]


def _without_last(bound: bytes) -> bytes:
    """What the greatest value begins with for certain, if its bound may have been shortened: then the bound's last
    character was incremented."""
    return bound[:-1].rstrip(bytes(range(0x80, 0xC0))) if bound[-1:] > b"\x7f" else bound[:-1]


def _partition_message(value: PartitionValue, column: _Column, source: str) -> str:
    what = "the value" if value.transform == "identity" else f"the {value.transform} of the values"
    ends = [text_of(end.key, column.kind or value.kind) for end in (column.low, column.high) if end is not None]
    contents = "only nulls" if not ends else " to ".join(dict.fromkeys(ends))
    if value.value is not None and ends and column.nulls:
        contents += " and nulls"
    return f"the {source} says that {what} is {value.text} in all rows, and {column.origin} has {contents}"


def _is_outside(value: PartitionValue, column: _Column) -> bool:
    """Whether some row of the file doesn't belong to the partition for certain."""
    if value.value is None:
        return column.nulls is not None and column.values is not None and column.nulls < column.values
    if column.nulls:
        return True
    if not comparable(
        column.kind, value.kind if value.transform in {"identity", "truncate"} else column.kind or value.kind
    ):
        return False
    return any(_is_other(value, end, last, column) for end, last in ((column.low, False), (column.high, True)) if end)


def _is_other(value: PartitionValue, end: _End, last: bool, column: _Column) -> bool:
    """Whether the value at one end of a column isn't in the partition for certain."""
    key, expected = end.key, value.value
    if not end.exact and isinstance(key, bytes):
        begin = _without_last(key) if last else key
        if value.transform not in {"identity", "truncate"} or not isinstance(expected, bytes):
            return False
        size = min(len(begin), len(expected))
        return expected[:size] != begin[:size] or (value.transform == "identity" and len(expected) < len(begin))
    if not end.exact and (column.kind not in _TIMES or value.transform == "bucket"):
        return False
    keys = [key] if end.exact else [key, key + (-_MILLI if last else _MILLI)]  # type: ignore[operator]
    values = [transformed(candidate, value, column.kind, column.scale) for candidate in keys]
    return None not in values and expected not in values


def transformed(key: Key, value: PartitionValue, kind: Kind | None, scale: int) -> Key | None:
    """The partition of a value; None if it can't be computed.

    Args:
        key: the value.
        value: a value of the partition field.
        kind: the kind of the column.
        scale: the scale of a decimal column.
    """
    width = value.width
    match value.transform, key:
        case "identity", _:
            return key
        case "bucket", _:
            hashed = _hashed(key, kind, scale)
            return None if hashed is None or width < 1 else (hashed & 0x7FFF_FFFF) % width
        case "truncate", bytes() if value.kind is Kind.TEXT:
            return key.decode("utf-8", "surrogateescape")[:width].encode("utf-8", "surrogateescape")
        case "truncate", bytes():
            return key[:width]
        case "truncate", Decimal():
            unscaled = int(key.scaleb(scale, context=WIDE))
            return Decimal(unscaled - unscaled % width).scaleb(-scale, context=WIDE)
        case "truncate", int():
            return key - key % width
        case "day", int():
            return key - key % calendar.DAY_NANOS
        case "hour", int():
            return key // _HOUR
        case (("year" | "month"), int()):
            date = calendar.format_date(key // calendar.DAY_NANOS)
            year, month = int(date[:-6]) - 1970, int(date[-5:-3])
            return year if value.transform == "year" else year * 12 + month - 1
    return None


def _hashed(key: Key, kind: Kind | None, scale: int) -> int | None:
    """Iceberg's hash of a value, by which it chooses the bucket; None if it isn't known."""
    import mmh3

    match key, kind:
        case bytes(), _:
            data = key
        case Decimal(), _:
            unscaled = int(key.scaleb(scale, context=WIDE))
            data = unscaled.to_bytes(
                (unscaled if unscaled >= 0 else ~unscaled).bit_length() // 8 + 1, "big", signed=True
            )
        case int(), Kind.DATE:
            data = (key // calendar.DAY_NANOS).to_bytes(8, "little", signed=True)
        case int(), Kind.TIME | Kind.TIMESTAMP | Kind.INSTANT:
            data = (key // 1000).to_bytes(8, "little", signed=True)
        case int(), Kind.NUMBER:
            data = key.to_bytes(8, "little", signed=True)
        case _:
            return None
    return mmh3.hash(data, signed=False)
