"""Lists the streams of a column, the entries of its row index, and its filters merged by stripe."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bloomcli.errors import BloomError
from bloomcli.formats.answer import ENCRYPTED, WRONG
from bloomcli.formats.base import FilterProblem
from bloomcli.formats.orc import bounds, spec, statistics
from bloomcli.formats.orc import limits as orc_limits
from bloomcli.formats.orc.filter_header import LoadedStream
from bloomcli.formats.orc.filters import Filters, Location
from bloomcli.formats.orc.footer import Footer, Stripe
from bloomcli.formats.orc.schema import OrcType, literal_column
from bloomcli.model.file import IndexEntry, MergedFilter, PageFacts
from bloomcli.values.literals import decode_bound, render


def streams(footer: Footer, column: int) -> Iterator[PageFacts]:
    """Yield the column's streams, stripe by stripe; a row with a problem for a stripe that can't be read."""
    footer.will_read_stripes()
    for stripe in footer.stripes:
        try:
            found = footer.stripe_footer(stripe)
        except BloomError as error:
            yield PageFacts(row_group=0, stripe=stripe.ordinal, kind="?", offset=stripe.offset, problem=error.reason)
            continue
        encodings = found.message.columns
        encoding = spec.name_of("EncodingKind", encodings[column].kind) if column < len(encodings) else None
        for stream in found.of_column(column):
            yield PageFacts(
                row_group=0,
                stripe=stripe.ordinal,
                kind=stream.kind,
                offset=stream.offset,
                compressed_bytes=stream.length,
                encoding=encoding,
                problem=ENCRYPTED if column in footer.encrypted_columns else None,
            )


def index(filters: Filters, column: int) -> Iterator[IndexEntry]:
    """Yield the entries of the column's row index, stripe by stripe.

    Bounds that the row group's filter contradicts aren't shown.
    """
    footer = filters.footer
    orc = footer.types[column]
    listed = 0
    filters.source.will_read(_index_ranges(filters, column))
    for stripe in footer.stripes:
        try:
            for entry in _entries(filters, stripe, orc):
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
        try:
            found = filters.footer.stripe_footer(stripe)
        except BloomError:  # reading the index reports it
            continue
        for stream in (found.find("ROW_INDEX", column), filters.preferred(found, column)):
            if stream is not None:
                yield stream.offset, stream.length


def _entries(filters: Filters, stripe: Stripe, orc: OrcType) -> Iterator[IndexEntry]:
    footer = filters.footer
    found = footer.stripe_footer(stripe)
    if orc.id in footer.encrypted_columns:
        yield IndexEntry(row_group=0, stripe=stripe.ordinal, problem=ENCRYPTED)
        return
    stream = found.find("ROW_INDEX", orc.id)
    if stream is None:
        return
    data = footer.read_index(stream, stripe)
    message = spec.parse("RowIndex", data, footer.path, stream.offset, f"{stripe.field}.streams[{stream.position}]")
    loaded = _loaded(filters, stripe.ordinal, orc.id)
    statistics.believe((entry.statistics for entry in message.entry), orc, footer.created_by)
    for row_group, entry in enumerate(message.entry):
        yield _entry(orc, stripe.ordinal, row_group, entry, loaded)


def _loaded(filters: Filters, stripe: int, column: int) -> LoadedStream | None:
    """The filters that readers use in a stripe; None if there are none that can be used."""
    location = filters.location(column, 0, stripe)
    try:
        loaded = None if location is None else filters.load(location)
    except FilterProblem:
        return None
    return None if loaded is None or loaded.untrusted is not None else loaded


def _entry(orc: OrcType, stripe: int, row_group: int, entry: Any, loaded: LoadedStream | None) -> IndexEntry:
    stats = entry.statistics if entry.HasField("statistics") else None
    typed = literal_column(orc)
    low, high = (None, None) if stats is None or orc.fault is not None else statistics.bounds(stats, orc)
    problem = None
    if loaded is not None and row_group < len(loaded.filters):
        bits = loaded.filters[row_group]
        if any(bounds.missing_bounds(stats, orc, typed, bits)):
            low = high = None
            problem = f"min/max not shown: {WRONG}"
    known = stats is not None and stats.HasField("number_of_values")
    return IndexEntry(
        row_group=row_group,
        stripe=stripe,
        values=int(stats.number_of_values) if known and stats is not None else None,
        has_nulls=bool(stats.has_null) if stats is not None and stats.HasField("has_null") else None,
        min=None if low is None or decode_bound(low, typed) is None else render(low, typed),
        max=None if high is None or decode_bound(high, typed) is None else render(high, typed),
        positions=tuple(map(int, entry.positions)),
        problem=problem,
    )


def merged_filters(filters: Filters, column: int) -> Iterator[MergedFilter]:
    """Yield each stripe's filters merged, as orc-core's FileDump does with --rowindex."""
    filters.source.will_read(filters.ranges({column}))
    for location in filters.locations({column}):
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
    for one in loaded.filters:
        together |= int.from_bytes(one.bitset, "little")
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
