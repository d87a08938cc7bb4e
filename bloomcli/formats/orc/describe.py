"""What reports show: the facts of each filter, summed up by column and merged by stripe; a column's streams, the
entries of its row index, and its statistics and storage over all stripes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Final, TypeVar

from bloomcli.errors import BloomError
from bloomcli.filters.kirsch_mitzenmacher import requested_fpp
from bloomcli.formats.answer import ENCRYPTED, WRONG
from bloomcli.formats.base import FilterProblem
from bloomcli.formats.column_facts import NO_BOUNDS, Bounds, ColumnFacts, merged_bounds
from bloomcli.formats.orc import limits as orc_limits
from bloomcli.formats.orc import statistics
from bloomcli.formats.orc.bloom_filter import UTF8, Filters, LoadedStream, Location
from bloomcli.formats.orc.footer import DICTIONARIES, INDEX_KINDS, Footer, Stripe
from bloomcli.formats.orc.row_index import RowIndex
from bloomcli.formats.orc.schema import OrcType, column_of, literal_column
from bloomcli.formats.orc.statistics import missing_bounds
from bloomcli.formats.orc.values import STRINGS, TEXTS, TIMESTAMPS
from bloomcli.model.file import Column, FilterFacts, IndexEntry, MergedFilter, PageFacts
from bloomcli.model.inspect import FilterSummary
from bloomcli.rules.writer_table import Part
from bloomcli.values.literals import bound_text

T = TypeVar("T")


def ordinal(location: Location) -> int:
    """The ordinal of a filter's column."""
    return location.stream.column


def facts(filters: Filters, location: Location, loaded: LoadedStream) -> Iterator[FilterFacts]:
    """The facts of each row group's filter, measured on its bits. `length` is the bitset's."""
    footer = filters.footer
    orc = footer.types[loaded.stream.column]
    for row_group, bits in enumerate(loaded.filters):
        ndv = bits.ndv_estimate
        fill = bits.fill
        yield FilterFacts(
            stripe=location.streams.stripe.ordinal,
            row_group=row_group,
            column=orc.label,
            physical=orc.name,
            offset=loaded.stream.offset,
            length=len(bits.bitset),
            bitset_bytes=len(bits.bitset),
            algorithm="KIRSCH_MITZENMACHER",
            hash="MURMUR3" if orc.kind in {*STRINGS, "DECIMAL"} else "WANG",
            compression=footer.codec.name,
            ndv_estimate=ndv,
            fill=fill,
            fpp=fill**bits.k,
            bits_per_value=bits.bits / ndv if ndv else None,
            hash_functions=bits.k,
            encoding=loaded.stream.kind,
            asked_fpp=requested_fpp(footer.stride, bits.bits),
            untrusted=loaded.untrusted,
        )


def raw(loaded: LoadedStream, row_group: int) -> tuple[bytes, bytes]:
    """Return a filter's header, which is empty in ORC, and its bitset."""
    return b"", bytes(loaded.filters[row_group].bitset)


def problem_facts(filters: Filters, location: Location, problem: FilterProblem) -> FilterFacts:
    """The facts of a stream that can't be used, with the problem."""
    types, stream = filters.footer.types, location.stream
    orc = types[stream.column] if stream.column < len(types) else None
    return FilterFacts(
        stripe=location.streams.stripe.ordinal,
        row_group=0,
        column=orc.label if orc else f"column {stream.column}",
        physical=orc.name if orc else "?",
        offset=stream.offset,
        length=stream.length,
        encoding=stream.kind,
        problem=problem.reason,
    )


def summary(filter_facts: Sequence[FilterFacts]) -> tuple[FilterSummary, ...]:
    """Facts summed up by column and kind, in the order in which columns first appear."""
    order = {key: rank for rank, key in enumerate(dict.fromkeys((f.column, f.encoding) for f in filter_facts))}
    ordered = sorted(filter_facts, key=lambda f: order[f.column, f.encoding])
    return tuple(_sum(list(group)) for _, group in groupby(ordered, key=lambda f: (f.column, f.encoding)))


def _sum(group: list[FilterFacts]) -> FilterSummary:
    first = group[0]
    good = [f for f in group if f.problem is None]
    return FilterSummary(
        column=first.column,
        physical=first.physical,
        logical=first.logical,
        filters=len(good),
        unreadable=len(group) - len(good),
        bitset_bytes=sum(f.bitset_bytes or 0 for f in good),
        fill=_mean([f.fill for f in good]),
        fpp=_mean([f.fpp for f in good]),
        max_fpp=max((f.fpp for f in good if f.fpp is not None), default=None),
        ndv_estimate=_mean([f.ndv_estimate for f in good]),
        bits=_same([f.bitset_bytes * 8 for f in good if f.bitset_bytes]),
        hash_functions=_same([f.hash_functions for f in good]),
        encoding=first.encoding,
        asked_fpp=_same([f.asked_fpp for f in good]),
        untrusted=next((f.untrusted for f in good if f.untrusted), None),
        problem=next((f.problem for f in group if f.problem), None),
    )


def _mean(values: Sequence[float | None]) -> float | None:
    numbers = [v for v in values if v is not None]
    return sum(numbers) / len(numbers) if numbers else None


def _same(values: Sequence[T]) -> T | None:
    return values[0] if values and all(v == values[0] for v in values) else None


def merged_filters(filters: Filters, column: Column) -> Iterator[MergedFilter]:
    """Yield each stripe's filters merged, as orc-core's FileDump does with --rowindex."""
    filters.source.will_read(filters.ranges({column.index}))
    for location in filters.locations({column.index}):
        try:
            loaded = filters.load(location)
        except FilterProblem as error:
            yield MergedFilter(
                stripe=location.streams.stripe.ordinal,
                encoding=location.stream.kind,
                filters=0,
                problem=error.reason,
            )
        else:
            yield _merged(location, loaded)


def _merged(location: Location, loaded: LoadedStream) -> MergedFilter:
    stripe, encoding = location.streams.stripe.ordinal, location.stream.kind
    shapes = {(f.bits, f.k) for f in loaded.filters}
    if len(shapes) != 1:
        reason = "the row groups' filters differ in size" if shapes else "no filters"
        return MergedFilter(stripe=stripe, encoding=encoding, filters=len(loaded.filters), problem=reason)
    ((bits, k),) = shapes
    together = 0
    for filter_ in loaded.filters:
        together |= int.from_bytes(filter_.bitset, "little")
    fill = together.bit_count() / bits
    return MergedFilter(
        stripe=stripe,
        encoding=encoding,
        filters=len(loaded.filters),
        hash_functions=k,
        bits=bits,
        set_bits=together.bit_count(),
        fill=fill,
        fpp=fill**k,
        problem=loaded.untrusted,
    )


def pages(footer: Footer, column: Column) -> Iterator[PageFacts]:
    """Yield the column's streams, stripe by stripe; a row with a problem for a stripe that can't be read."""
    footer.will_read_stripes()
    for stripe in footer.stripes:
        try:
            stripe_footer = footer.stripe_footer(stripe)
        except BloomError as error:
            yield PageFacts(row_group=0, stripe=stripe.ordinal, kind="?", offset=stripe.offset, problem=error.reason)
            continue
        encoding = stripe_footer.encoding(column.index)
        for stream in stripe_footer.of_column(column.index):
            yield PageFacts(
                row_group=0,
                stripe=stripe.ordinal,
                kind=stream.kind,
                offset=stream.offset,
                compressed_bytes=stream.length,
                encoding=None if encoding is None else encoding.name,
                problem=ENCRYPTED if column.index in footer.encrypted_columns else None,
            )


def index(filters: Filters, column: Column) -> Iterator[IndexEntry]:
    """Yield the entries of the column's row index, stripe by stripe.

    Bounds that the row group's filter contradicts aren't shown.
    """
    footer = filters.footer
    orc = footer.types[column.index]
    listed = 0
    filters.source.will_read(_index_ranges(filters, column.index))
    for stripe in footer.stripes:
        try:
            for entry in _index_entries(filters, stripe, orc):
                if listed == orc_limits.ENTRIES_LISTED_MAX:
                    reason = f"not listed: entries after the first {listed:,}"
                    yield IndexEntry(row_group=entry.row_group, stripe=stripe.ordinal, problem=reason)
                    return
                listed += 1
                yield entry
        except BloomError as error:
            yield IndexEntry(row_group=0, stripe=stripe.ordinal, problem=error.reason)


def _index_ranges(filters: Filters, column: int) -> Iterator[tuple[int, int]]:
    """Yield the offset and length of what `index` reads of each stripe: the row index, and the filters."""
    filters.footer.will_read_stripes()
    for stripe in filters.footer.stripes:
        with suppress(BloomError):  # reading the index reports it
            yield from filters.ranges_to_look_up(column, [stripe])


def _index_entries(filters: Filters, stripe: Stripe, orc: OrcType) -> Iterator[IndexEntry]:
    footer = filters.footer
    stripe_footer = footer.stripe_footer(stripe)
    if orc.id in footer.encrypted_columns:
        yield IndexEntry(row_group=0, stripe=stripe.ordinal, problem=ENCRYPTED)
        return
    if stripe_footer.find("ROW_INDEX", orc.id) is None:
        return
    entries = RowIndex(footer, stripe_footer, orc).stored
    loaded, _ = filters.usable(stripe, orc)
    statistics.believe((entry.statistics for entry in entries), orc, footer.created_by)
    for row_group, entry in enumerate(entries):
        yield _index_entry(orc, stripe.ordinal, row_group, entry, loaded)


def _index_entry(orc: OrcType, stripe: int, row_group: int, entry: Any, loaded: LoadedStream | None) -> IndexEntry:
    stats = entry.statistics if entry.HasField("statistics") else None
    typed = literal_column(orc)
    low, high = (None, None) if stats is None or orc.fault is not None else statistics.bounds(stats, orc)
    problem = None
    if loaded is not None and row_group < len(loaded.filters):
        bits = loaded.filters[row_group]
        if any(missing_bounds(stats, orc, typed, bits)):
            low = high = None
            problem = f"min/max not shown: {WRONG}"
    has_count = stats is not None and stats.HasField("number_of_values")
    return IndexEntry(
        row_group=row_group,
        stripe=stripe,
        values=int(stats.number_of_values) if has_count and stats is not None else None,
        has_nulls=bool(stats.has_null) if stats is not None and stats.HasField("has_null") else None,
        min=bound_text(low, typed),
        max=bound_text(high, typed),
        positions=tuple(map(int, entry.positions)),
        problem=problem,
    )


CONTRADICTED: Final = "no filter has the file's own minimum or maximum: the filters or the statistics are wrong"


class Contradictions:
    """Finds columns whose filters don't have the file's own minimum or maximum, in any row group.

    Then either the filters or the statistics are wrong. A column is compared if it has filters that can be trusted in
    every stripe.
    """

    def __init__(self, footer: Footer) -> None:
        self._footer = footer
        self._missing: dict[int, set[str]] = {}
        self._stripes: dict[int, set[int]] = {}

    def compare(self, stripe: int, loaded: LoadedStream) -> None:
        """Look the file's bounds up in the filters of a column in a stripe."""
        column = loaded.stream.column
        if loaded.untrusted is not None or loaded.stream.kind != UTF8:
            return
        self._stripes.setdefault(column, set()).add(stripe)
        orc, stats = self._footer.types[column], _statistics(self._footer, column)
        typed = literal_column(orc)
        missing = self._missing.setdefault(column, {"minimum", "maximum"})
        for bits in loaded.filters:
            if not missing:
                break
            missing &= {which for which, _ in missing_bounds(stats, orc, typed, bits)}

    def contradicted(self, column: int) -> bool:
        """Whether a bound of the file is in no filter of the column."""
        stripes = {s.ordinal for s in self._footer.stripes if s.rows}
        return bool(self._missing.get(column)) and self._stripes.get(column, set()) >= stripes


@dataclass(slots=True)
class _ColumnStorage:
    """The storage of one column in all stripes."""

    bytes: int = 0
    encodings: dict[str, None] = field(default_factory=dict)
    dictionaries: list[int] = field(default_factory=list)
    stripes: int = 0


def column_facts(footer: Footer, columns: set[int] | None, contradictions: Contradictions) -> Iterator[ColumnFacts]:
    """Yield the facts of these columns (all but structs if None), in schema order. Raises CorruptFile."""
    chosen = [t for t in footer.types if t.kind != "STRUCT" and (columns is None or t.id in columns)]
    stored = {t.id: _ColumnStorage() for t in chosen}
    for stripe in footer.stripes:
        streams = footer.stripe_footer(stripe)
        for column, storage in stored.items():
            storage.stripes += 1
            storage.bytes += sum(s.length for s in streams.of_column(column) if s.kind not in INDEX_KINDS)
            if (encoding := streams.encoding(column)) is not None:
                storage.encodings[encoding.name] = None
                if encoding.name in DICTIONARIES:
                    storage.dictionaries.append(encoding.entries)
    for orc in chosen:
        facts = _facts(footer, orc, stored[orc.id])
        yield facts._replace(bounds=Bounds(problem=CONTRADICTED)) if contradictions.contradicted(orc.id) else facts


def _facts(footer: Footer, orc: OrcType, stored: _ColumnStorage) -> ColumnFacts:
    typed = literal_column(orc)
    encrypted = orc.id in footer.encrypted_columns
    values, nulls = (None, None) if encrypted else _counts(footer, orc)
    everywhere = stored.stripes and len(stored.dictionaries) == stored.stripes and not encrypted
    return ColumnFacts(
        column_of(orc),
        typed,
        encodings=() if encrypted else tuple(stored.encodings),
        compression=("encrypted",) if encrypted else (footer.codec.name,),
        values=values,
        nulls=nulls,
        compressed_bytes=None if encrypted else stored.bytes,
        distinct=max(stored.dictionaries) if everywhere else None,
        distinct_from="dictionary" if everywhere else None,
        bounds=NO_BOUNDS if encrypted or orc.fault is not None else _bounds(footer, orc),
    )


def _statistics(footer: Footer, column: int) -> Any | None:
    """The file's statistics of a column. Those of an encrypted column describe its mask."""
    stats = footer.statistics(column)
    if stats is not None and footer.rows:
        statistics.believe((stats,), footer.types[column], footer.created_by, Part.FILE_BOUNDS)
    return stats


def _counts(footer: Footer, orc: OrcType) -> tuple[int | None, int | None]:
    """(values, nulls), None if unknown. A column in a struct has a value or a null for each value of the struct."""
    stats = _statistics(footer, orc.id)
    if stats is None or not stats.HasField("number_of_values"):
        return None, None
    values = int(stats.number_of_values)
    if stats.HasField("has_null") and not stats.has_null:
        return values, 0
    above = footer.ancestors(orc)
    if not above or above[-1].kind != "STRUCT" or above[-1].id in footer.encrypted_columns:
        return None, None
    parent = _statistics(footer, above[-1].id)
    if parent is None or not parent.HasField("number_of_values") or parent.number_of_values < values:
        return None, None
    return int(parent.number_of_values), int(parent.number_of_values) - values


def _bounds(footer: Footer, orc: OrcType) -> Bounds:
    stats = _statistics(footer, orc.id)
    if stats is None or (stats.HasField("number_of_values") and stats.number_of_values == 0):
        return NO_BOUNDS
    low, high = statistics.bounds(stats, orc)
    if low is None and high is None:
        return NO_BOUNDS
    low_exact = high_exact = None
    if orc.kind in TIMESTAMPS:  # rounded to milliseconds, down and up
        low_exact = high_exact = False
    elif orc.kind in TEXTS:
        low_exact = stats.string_statistics.HasField("minimum")
        high_exact = stats.string_statistics.HasField("maximum")
    merged = merged_bounds((low,), (high,), literal_column(orc), ((low_exact,), (high_exact,)))
    if orc.kind == "CHAR":  # stored and compared with blanks, looked up without them
        low, high = (None if b is None else b.rstrip(b" ") for b in (merged.low, merged.high))
        return merged._replace(low=low, high=high)
    return merged
