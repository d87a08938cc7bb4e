"""Proves what readers of ORC files skip rows by, besides filters: statistics of row groups, stripes and the file, and
the positions of the row index.

`by_metadata` compares them with each other. `ColumnProof` compares them with the values of a column in a stripe, in
the same pass in which these are hashed: it measures each row group, and looks where a reader of all rows is when a
row group begins. A bound that is too wide loses no row and isn't reported.

Sources: the Apache ORC specification, Column Statistics; orc-core's RecordReaderImpl (getValueRange) and
ColumnStatisticsImpl; ORC C++'s PredicateLeaf.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from functools import partial, reduce
from typing import Any, Final

from bloomcli.errors import CorruptFile
from bloomcli.formats.base import MeasuredColumn
from bloomcli.formats.geospatial import BOX, Claims
from bloomcli.formats.orc import spec, statistics, zones
from bloomcli.formats.orc.bloom_filter import Filters
from bloomcli.formats.orc.footer import Footer, StripeFooter
from bloomcli.formats.orc.measured import Measuring
from bloomcli.formats.orc.row_index import RowIndex
from bloomcli.formats.orc.schema import OrcType, literal_column
from bloomcli.formats.orc.values import (
    FLOATS,
    GEOSPATIAL,
    INTEGERS,
    REPEATED,
    SHOWN_BYTES,
    STRINGS,
    TEXTS,
    TIMESTAMPS,
    Counted,
    SeekableStream,
    ValueReader,
    Values,
    why_zone_unknown,
)
from bloomcli.model.file import Severity
from bloomcli.model.table_statistics import Kind
from bloomcli.model.validate import Finding
from bloomcli.values import keys
from bloomcli.values.calendar import DAY_NANOS
from bloomcli.words import counted

BOUNDS: Final = "statistics-bounds"
COUNTS: Final = "statistics-counts"
POSITIONS: Final = "row-index-positions"
GROUP, STRIPE, FILE = "the row group's", "the stripe's", "the file's"
HINT: Final = "write the file again, or let readers ignore statistics; report the fault to the project of its writer"

_READABLE: Final = frozenset((*INTEGERS, *FLOATS, *STRINGS, *REPEATED, *TIMESTAMPS, "BYTE", "BOOLEAN", "DECIMAL"))
_NANOS: Final = 1_000_000
"""In a millisecond."""
_ZONE_MARGIN: Final = 86_400
"""Seconds around an instant in which a zone's offset may change."""


_OTHER_MINIMA: Final = {
    **dict.fromkeys(TEXTS, "lower_bound"),
    **dict.fromkeys(TIMESTAMPS, "minimum_utc"),
}
"""The other field that a minimum can be in. Of these kinds, and of decimals, orc-core reads row groups without a
maximum."""
Bounds = tuple[Any, Any]
"""The least and the greatest value as a `Key`; None for one that is unknown."""
Offsets = Callable[[int], Sequence[int]]
"""Returns the offsets from UTC around a second since 1970."""


def _fault(
    id: str,  # noqa: A002  it is the rule's id
    severity: Severity,
    message: str,
) -> Finding:
    """What is wrong with a column's statistics, without its place."""
    return Finding(id=id, severity=severity, message=message, hint=HINT)


def why_unproven(footer: Footer, streams: StripeFooter, orc: OrcType) -> str | None:
    """Why a column's values in a stripe aren't compared with its statistics; None if they are."""
    if (why := why_zone_unknown(streams, orc)) is not None:
        return why
    if orc.id in footer.encrypted_columns:
        return "the column is encrypted"
    if any(t.kind == "UNION" for t in footer.ancestors(orc)):
        return "it lies within a union"
    return orc.fault if orc.kind in _READABLE else f"values of {orc.name} aren't read here"


def not_checked(orc: OrcType, why: str, stripe: int) -> Finding:
    """The note about values in a stripe that can't be compared with their statistics."""
    return Finding(
        id=BOUNDS,
        severity=Severity.NOTE,
        message=f"the statistics' bounds aren't compared with the values: {why}",
        stripe=stripe,
        column=orc.label,
    )


def _typed(stats: Any, orc: OrcType) -> Any | None:
    """The part of statistics that has a column's bounds; None if there is none, or readers don't use it."""
    part = None if orc.fault is not None else statistics.part_of(stats, orc)
    # readers don't use bounds beside a sum that isn't a number, because some value isn't
    return None if part is None or (orc.kind in FLOATS and math.isnan(part.sum)) else part


def lacks(stats: Any, orc: OrcType) -> str | None:
    """The name of a bound without which orc-core skips a row group that has values; None if it has what it needs."""
    part = _typed(stats, orc)
    if part is None or orc.kind == "BOOLEAN":
        return None
    has = part.HasField
    if not has("minimum"):
        other = _OTHER_MINIMA.get(orc.kind)
        if other is None or not has(other):
            return "minimum"
    return "maximum" if orc.kind not in _OTHER_MINIMA and orc.kind != "DECIMAL" and not has("maximum") else None


def stored_bounds(stats: Any, orc: OrcType, offsets: Offsets | None, *, group: bool) -> Bounds:
    """The bounds by which readers skip; None for one that is absent or that readers don't use.

    Args:
        stats: the statistics.
        orc: the column.
        offsets: returns the offsets from UTC that a writer may have had at an instant; None if that is unknown.
        group: whether they are of a row group.

    Raises:
        ValueError: a bound isn't a value of the column's type.
    """
    kind, part = orc.kind, _typed(stats, orc)
    if part is None:
        return None, None
    if kind == "BOOLEAN":
        if not part.count:
            return None, None
        return int(part.count[0] >= stats.number_of_values), int(part.count[0] > 0)
    if kind in TIMESTAMPS:
        return _moments(part, offsets)
    if kind in TEXTS:
        bounds = statistics.bounds(stats, orc)
        return statistics.unpadded(*bounds) if kind == "CHAR" else bounds
    low, high = (getattr(part, name) if part.HasField(name) else None for name in ("minimum", "maximum"))
    if kind in FLOATS:  # a minimum that is NaN excludes a row group for orc-core; a maximum, nothing for anyone
        nan = low is not None and math.isnan(low)
        return None if nan and not group else low, None if high is None or math.isnan(high) else high
    if kind in {"DECIMAL", "DATE"}:
        low, high = (b if b is None else _decimal(b) if kind == "DECIMAL" else b * DAY_NANOS for b in (low, high))
    return low, high


def _decimal(text: str | bytes) -> Decimal:
    try:
        number = Decimal(spec.text(text))
    except InvalidOperation:
        number = Decimal("NaN")
    if (
        not number.is_finite()
        or len(number.as_tuple().digits) > statistics.EXACT.prec
        or abs(number.adjusted()) > 1000
    ):
        raise ValueError(f"{spec.text(text)!r} isn't a decimal")
    return number


def _moments(part: Any, offsets: Offsets | None) -> Bounds:
    """Nanoseconds below a millisecond are stored plus 1. Without them, a bound is the whole millisecond; with
    negative ones, which Arrow writes before 1970, readers compare the milliseconds first. Bounds of writers before
    ORC-135 are instants."""
    low = part.minimum_utc * _NANOS if part.HasField("minimum_utc") else None
    high = part.maximum_utc * _NANOS if part.HasField("maximum_utc") else None
    if low is None and part.HasField("minimum") and offsets is not None:
        low = (part.minimum + 1000 * min(offsets(part.minimum // 1000))) * _NANOS
    if high is None and part.HasField("maximum") and offsets is not None:
        high = (part.maximum + 1000 * max(offsets(part.maximum // 1000))) * _NANOS
    if low is not None and part.minimum_nanos > 0:
        low += part.minimum_nanos - 1
    if high is not None:
        high += part.maximum_nanos - 1 if part.maximum_nanos > 0 else _NANOS - 1
    return low, high


def offsets_of(streams: Sequence[StripeFooter], orc: OrcType) -> Offsets | None:
    """The function that returns the offsets of the zones of stripes' writers around an instant; None if one zone is
    unknown."""
    if orc.kind not in TIMESTAMPS:
        return None
    names = {"UTC" if orc.kind == "TIMESTAMP_INSTANT" else spec.text(s.message.writer_timezone) for s in streams}
    of_names = [zones.intervals(name) if name else None for name in names]
    of_zones = [intervals for intervals in of_names if intervals is not None]
    if not of_zones or len(of_zones) < len(of_names):
        return None

    def offsets(second: int) -> Sequence[int]:
        all_: list[int] = []
        for intervals in of_zones:
            first = bisect_right(intervals, second - _ZONE_MARGIN, key=lambda i: i[0]) - 1
            last = bisect_right(intervals, second + _ZONE_MARGIN, key=lambda i: i[0])
            for _, offset, others in intervals[max(first, 0) : last]:
                all_ += (offset, *others)
        return all_

    return offsets


def text_of(key: Any, orc: OrcType) -> str:
    """A bound or a value, as text."""
    key = key[:SHOWN_BYTES] if isinstance(key, bytes) else key
    return keys.text_of(key, Kind.TEXT if orc.kind in STRINGS else keys.kind_of_column(literal_column(orc)))


def faults(
    measured: MeasuredColumn, stats: Any, orc: OrcType, whose: str, offsets: Offsets | None
) -> Iterator[Finding]:
    """Compare statistics with the values that they are about. `whose`: `GROUP`, `STRIPE` or `FILE`."""
    claimed, group = stats.number_of_values, whose == GROUP
    count = measured.values - measured.nulls
    if not claimed and count:
        message = f"{whose} statistics count no value, and there are {count:,}"
        if group or stats.has_null:
            yield _fault(COUNTS, Severity.ERROR, f"{message}: readers take all for nulls")
        else:  # no reader takes it for more than a value that is absent
            yield _fault(COUNTS, Severity.NOTE, message)
        return
    if claimed != count:
        message = f"{whose} statistics count {counted(claimed, 'value')}, and there are {count:,}"
        yield _fault(COUNTS, Severity.NOTE, message)
    if measured.nulls and stats.HasField("has_null") and not stats.has_null:
        message = f"{whose} statistics say that there is no null, and there are {measured.nulls:,}"
        yield _fault(COUNTS, Severity.ERROR, message)
    yield from _shape_faults(measured, stats, orc, whose)
    if group and count and (absent := lacks(stats, orc)) is not None:
        yield _lacking(absent, whose)
        return
    try:
        low, high = stored_bounds(stats, orc, offsets, group=group)
    except ValueError as error:
        yield _fault(BOUNDS, Severity.ERROR, f"a bound of {whose} statistics can't be read: {error}")
        return
    if measured.nans and (low is not None or high is not None):
        message = f"the sum of {whose} statistics isn't NaN, and {counted(measured.nans, 'value')} are: readers trust"
        yield _fault(BOUNDS, Severity.ERROR, f"{message} bounds that leave NaN out")
    least: Any = measured.low
    greatest: Any = measured.high
    if least is None:
        return
    if orc.kind == "CHAR":
        least, greatest = least.rstrip(b" "), greatest.rstrip(b" ")
    if low is not None and not least >= low and not _cut(least, low):
        yield _outside("minimum", "above", low, least, orc, whose)
    if high is not None and not greatest <= high:
        yield _outside("maximum", "below", high, greatest, orc, whose)


def claims(stats: Any | None, orc: OrcType) -> Claims | None:
    """What statistics state about geometries; None if they state nothing."""
    if stats is None or orc.kind not in GEOSPATIAL or not stats.HasField("geospatial_statistics"):
        return None
    part = stats.geospatial_statistics
    box = [getattr(part.bbox, end) if part.bbox.HasField(end) else None for end in BOX]
    return Claims(box, part.geospatial_types, geographic=orc.kind == "GEOGRAPHY")


def _shape_faults(measured: MeasuredColumn, stats: Any, orc: OrcType, whose: str) -> Iterator[Finding]:
    """Faults of boxes and types of geometries, by which no reader skips."""
    claimed, shapes = claims(stats, orc), measured.shapes
    if claimed is None or shapes is None:
        return
    for wrong in (claimed.wrong_in_box(shapes), claimed.wrong_in_types(shapes)):
        if wrong:
            yield _fault(BOUNDS, Severity.WARNING, f"{whose} geospatial statistics are wrong: {'; '.join(wrong)}")
    if shapes.unread and whose == FILE:
        message = f"{counted(shapes.unread, 'value')} can't be compared with the geospatial statistics"
        yield _fault(BOUNDS, Severity.NOTE, f"{message}: not ISO WKB of a type up to 7")


def _lacking(which: str, whose: str) -> Finding:
    return _fault(BOUNDS, Severity.ERROR, f"{whose} statistics have no {which}: orc-core skips its rows")


def _cut(value: Any, bound: Any) -> bool:
    """Whether a value may be only the start of a long text that isn't below a bound."""
    return isinstance(value, bytes) and len(value) >= SHOWN_BYTES and bool(bound.startswith(value))


def _outside(which: str, where: str, bound: Any, value: Any, orc: OrcType, whose: str) -> Finding:
    message = f"the {which} of {whose} statistics, {text_of(bound, orc)}, is {where} the value {text_of(value, orc)}"
    return _fault(BOUNDS, Severity.ERROR, f"{message}: readers skip its rows")


def _located(fault: Finding, footer: Footer, orc: OrcType, stripe: int | None = None) -> Finding:
    """The finding about a fault of statistics of the file or of a stripe."""
    offset = footer.footer_at if stripe is None else footer.metadata_at
    return replace(fault, column=orc.label, offset=offset, stripe=stripe)


def _of_index(index: RowIndex, fault: Finding, row_group: int | None = None) -> Finding:
    """The finding about a fault of a row index."""
    offset = None if index.stream is None else index.stream.offset
    stripe = index.streams.stripe.ordinal
    return replace(fault, column=index.orc.label, offset=offset, stripe=stripe, row_group=row_group)


def _unusable(index: RowIndex) -> Iterator[Finding]:
    """The finding about a row index that readers can't use."""
    if index.problem is not None:
        yield _of_index(index, _fault(POSITIONS, Severity.ERROR, index.problem))


def _misplaced(index: RowIndex, group: int, parts: Mapping[str, SeekableStream] | None) -> Iterator[Finding]:
    """The findings about a row group's positions.

    Args:
        index: the row index of the column.
        group: the row group.
        parts: the column's streams, whose readers have read the row groups before; if None, the positions must only
            lie within the streams.
    """
    wanted = index.numbers
    if group >= len(index.entries) or wanted is None:
        return
    count = len(index.entries[group].positions)
    if not group and not count:  # orc-core's for texts that weren't put into a dictionary; no reader goes there
        return
    fault = partial(_fault, POSITIONS, Severity.ERROR)
    if count < wanted:
        message = f"the row index has {counted(count, 'number')} for the row group's place in the streams"
        yield _of_index(index, fault(f"{message}, which take {wanted}"), group)
        return
    positions = index.positions(group)
    for kind, position in (positions or {}).items():
        part = None if parts is None else parts.get(kind)
        stream = index.streams.find(kind, index.orc.id)
        if position.chunk > (0 if stream is None else stream.length):
            yield _of_index(index, fault(f"the row group's position in {kind} lies behind the stream's end"), group)
        elif part is not None and not part.lands(position):
            message = f"the row group's position in {kind} isn't where its values begin: readers that skip to it"
            yield _of_index(index, fault(f"{message} read others or fail"), group)
    if positions is None:
        yield _of_index(index, fault("the row group's position has more than 7 bits in a byte"), group)


def by_metadata(filters: Filters, columns: set[int], units: Container[int] | None = None) -> Iterator[Finding]:
    """Compare statistics and row indexes of these columns with each other, in these stripes (all if None)."""
    footer = filters.footer
    for column in sorted(columns):
        orc = footer.types[column]
        if column in footer.encrypted_columns:
            continue
        whole = footer.statistics(column)
        for stripe in footer.stripes:
            if not stripe.rows or (units is not None and stripe.ordinal not in units):
                continue
            streams = footer.stripe_footer(stripe)
            offsets = offsets_of([streams], orc)
            of_stripe = footer.stripe_statistics(stripe, column)
            index = RowIndex(footer, streams, orc)
            yield from _unusable(index)
            groups = [index.statistics(group) for group in range(len(index.entries))]
            for group, stats in enumerate(groups):
                yield from _misplaced(index, group, None)
                for fault in _contradictions(stats, of_stripe, orc, (GROUP, STRIPE), offsets):
                    yield _of_index(index, fault, group)
            for fault in _contradictions(of_stripe, whole, orc, (STRIPE, FILE), offsets):
                yield _located(fault, footer, orc, stripe.ordinal)
            for fault in _sums(groups, of_stripe, ("the row groups'", "the stripe's")):
                yield _located(fault, footer, orc, stripe.ordinal)
        of_stripes = [footer.stripe_statistics(stripe, column) for stripe in footer.stripes]
        if units is None or all(stripe.ordinal in units for stripe in footer.stripes):
            file_offsets = offsets_of([footer.stripe_footer(s) for s in footer.stripes], orc)
            for fault in (
                *_contradictions(whole, None, orc, (FILE, ""), file_offsets),
                *_sums(of_stripes, whole, ("the stripes'", "the file's")),
            ):
                yield _located(fault, footer, orc)


def above(footer: Footer, columns: set[int]) -> Sequence[OrcType]:
    """The structs, lists and maps that these columns lie in, and that aren't among them."""
    columns = columns - footer.encrypted_columns
    types = {each.id: each for column in columns for each in footer.ancestors(footer.types[column])}
    return [types[column] for column in sorted(types.keys() - columns)]


def of_indexes_above(filters: Filters, streams: StripeFooter, columns: set[int]) -> Iterator[Finding]:
    """Findings about row indexes above these columns in a stripe that can't be used: readers that skip rows by the
    columns need them, too, that of the file's root included."""
    for orc in above(filters.footer, columns) if streams.stripe.rows else ():
        yield from _unusable(RowIndex(filters.footer, streams, orc))


def of_section(footer: Footer, columns: set[int]) -> Iterator[Finding]:
    """The finding that the stripes' statistics of these columns can't be read: they aren't compared with anything.

    Readers that skip stripes by them fail then. A section that is only larger than what is read here is a note.
    """
    if not footer.stripes or columns <= footer.encrypted_columns or (error := footer.of_stripes[1]) is None:
        return
    severity = Severity.ERROR if isinstance(error, CorruptFile) else Severity.NOTE
    field = error.field or "metadata"
    fault = _fault(BOUNDS, severity, f"the stripes' statistics ({field}) can't be read: {error.reason}")
    yield replace(fault, offset=error.offset or footer.metadata_at)


def _contradictions(
    inner: Any | None,
    outer: Any | None,
    orc: OrcType,
    whose: tuple[str, str],
    offsets: Offsets | None,
) -> Iterator[Finding]:
    """Faults of statistics that show without values: in themselves, and beside those of more rows."""
    if inner is None:
        return
    group = whose[0] == GROUP
    absent = lacks(inner, orc)
    if not inner.number_of_values:
        if group and absent is None and _typed(inner, orc) is not None:
            message = f"{whose[0]} statistics count no value, and have bounds: readers take all for nulls"
            yield _fault(COUNTS, Severity.ERROR, message)
        return
    if group and absent is not None:
        yield _lacking(absent, whose[0])
        return
    claimed = claims(inner, orc)
    for impossible in () if claimed is None else claimed.contradictions():
        yield _fault(BOUNDS, Severity.WARNING, f"{whose[0]} geospatial statistics are impossible: {impossible}")
    try:
        low, high = stored_bounds(inner, orc, offsets, group=group)
    except ValueError as error:
        yield _fault(BOUNDS, Severity.ERROR, f"a bound of {whose[0]} statistics can't be read: {error}")
        return
    if low is not None and high is not None and not low <= high:
        message = f"the minimum of {whose[0]} statistics, {text_of(low, orc)}, is above the maximum,"
        yield _fault(BOUNDS, Severity.ERROR, f"{message} {text_of(high, orc)}: readers skip all rows")
        return
    if outer is None or not outer.number_of_values:
        return
    try:
        lowest, highest = stored_bounds(outer, orc, offsets, group=False)
    except ValueError:  # reported where the rows are those of `outer`
        return
    contradicts = f"those of {whose[1]} statistics don't contain {whose[0]}, and one of them is wrong"
    if low is not None and lowest is not None and not low >= lowest:
        message = f"the bounds contradict each other: {text_of(lowest, orc)} as a minimum, and {text_of(low, orc)};"
        yield _fault(BOUNDS, Severity.WARNING, f"{message} {contradicts}")
    if high is not None and highest is not None and not high <= highest:
        message = f"the bounds contradict each other: {text_of(highest, orc)} as a maximum, and {text_of(high, orc)};"
        yield _fault(BOUNDS, Severity.WARNING, f"{message} {contradicts}")


def _sums(parts: Sequence[Any | None], whole: Any | None, whose: tuple[str, str]) -> Iterator[Finding]:
    """Faults of the counts of parts beside those of the whole."""
    if whole is None or not parts or any(part is None for part in parts):
        return
    if any(part is not None and not part.number_of_values and not part.has_null for part in parts):
        return  # not counted
    stats = [part for part in parts if part is not None]
    total = sum(part.number_of_values for part in stats)
    if total != whole.number_of_values:
        message = (
            f"{whose[0]} statistics count {counted(total, 'value')} together, {whose[1]} {whole.number_of_values:,}"
        )
        severity = Severity.NOTE if total and whole.number_of_values else Severity.WARNING
        yield _fault(COUNTS, severity, f"{message}: one of them is wrong")
    nulls = any(part.HasField("has_null") and part.has_null for part in stats)
    if nulls and whole.HasField("has_null") and not whole.has_null:
        message = f"{whose[1]} statistics say that there is no null, and some of {whose[0]} say that there are"
        yield _fault(COUNTS, Severity.WARNING, f"{message}: one of them is wrong")


def uncounted_nulls(filters: Filters, column: int) -> Iterator[tuple[int, int]]:
    """Yield (stripe, row group) where a field's statistics deny nulls, and a struct that it lies in is null.

    ORC Java counts a null struct as a null of no field; ORC C++, of each. Columns in lists, maps and unions, and
    BINARY, aren't asked for by IS NULL of any reader that skips by these statistics.
    """
    footer = filters.footer
    orc = footer.types[column]
    above = footer.ancestors(orc)
    if (
        orc.id in footer.encrypted_columns
        or orc.kind not in statistics.PARTS
        or any(each.kind != "STRUCT" for each in above)
    ):
        return
    above = [each for each in above if (stats := footer.statistics(each.id)) is None or stats.has_null]
    for stripe in footer.stripes if above else ():
        streams = footer.stripe_footer(stripe)
        structs = [RowIndex(footer, streams, each) for each in above]
        index = RowIndex(footer, streams, orc)
        for group in range(len(index.entries)):
            stats = index.statistics(group)
            if stats is None or not stats.number_of_values or not stats.HasField("has_null") or stats.has_null:
                continue
            if any((of := each.statistics(group)) is not None and of.has_null for each in structs):
                yield stripe.ordinal, group


class ColumnProof:
    """Compares a column's statistics and positions in a stripe with its values, row group by row group.

    Args:
        filters: the file's filters, with its footer.
        streams: the stripe's footer.
        orc: the column.
        reader: reads the column's values, from the first.
    """

    def __init__(
        self,
        filters: Filters,
        streams: StripeFooter,
        orc: OrcType,
        reader: ValueReader[Counted],
    ) -> None:
        self._footer, self._streams, self._orc = filters.footer, streams, orc
        self._reader = reader
        self._rows_read = 0
        claimed = claims(filters.footer.statistics(orc.id), orc) if orc.kind in GEOSPATIAL else None
        self._measuring = Measuring(reader.leaf, claimed)
        self._offsets = offsets_of([streams], orc)
        types = [*filters.footer.ancestors(orc), orc]
        self._levels = [
            (RowIndex(filters.footer, streams, each), own)
            for each, own in zip(types, reader.parts, strict=True)
            if own or each is orc
        ]
        shapes = None if claimed is None else claimed.shapes()
        self.measured = MeasuredColumn(orc.id, 0, 0, 0, None, None, shapes=shapes)
        """The row groups so far."""

    def entries(self) -> Iterator[Values] | None:
        """The entries of the column's dictionary. Consume all of them before its values. None without one."""
        entries = self._measuring.entries
        return None if entries is None else entries.take(self._reader.leaf.dictionary())

    def begin(self, group: int) -> Iterator[Finding]:
        """Findings about the positions of the next row group, before it is read."""
        for index, parts in self._levels:
            yield from _misplaced(index, group, parts)

    def take(self, values: Values) -> None:
        """Measure the next values."""
        self._measuring.take(values)

    def end(self, group: int) -> Iterator[Finding]:
        """Findings about the statistics of a row group that was read."""
        measured = self._measuring.finish(self._reader.rows_read - self._rows_read)
        self._rows_read = self._reader.rows_read
        index = self._levels[-1][0]
        stats = index.statistics(group)
        if stats is not None:
            for fault in faults(measured, stats, self._orc, GROUP, self._offsets):
                yield _of_index(index, fault, group)
        self.measured = self.measured.plus(measured)

    def of_stripe(self) -> Iterator[Finding]:
        """Findings about the row index as a whole, and about the stripe's statistics."""
        index = self._levels[-1][0]
        yield from _unusable(index)
        stripe = self._streams.stripe
        if not self.measured.compared:
            message = "the statistics' bounds aren't compared with the values: the dictionary is too large"
            yield _of_index(index, _fault(BOUNDS, Severity.NOTE, message))
        if self._measuring.differ:
            yield not_checked(self._orc, "readers read some of the timestamps differently", stripe.ordinal)
        stats = self._footer.stripe_statistics(stripe, self._orc.id)
        if stats is not None:
            for fault in faults(self.measured, stats, self._orc, STRIPE, self._offsets):
                yield _located(fault, self._footer, self._orc, stripe.ordinal)


def of_file(footer: Footer, orc: OrcType, stripes: Sequence[MeasuredColumn]) -> Iterator[Finding]:
    """Findings about the file's statistics of a column that was measured in all stripes."""
    measured = reduce(MeasuredColumn.plus, stripes)
    stats = footer.statistics(orc.id)
    if stats is not None:
        offsets = offsets_of([footer.stripe_footer(s) for s in footer.stripes], orc)
        for fault in faults(measured, stats, orc, FILE, offsets):
            yield _located(fault, footer, orc)
