"""The row index of a column in a stripe: its entries as reports list them, and the start of a row group in each of
the column's streams.

An entry has numbers for PRESENT, if the stripe has that stream, and then for the streams of the column's kind:

    compressed file     bytes to the chunk, bytes to skip in it       uncompressed file: bytes to the place
    runs of numbers     and values to skip in the run
    runs of bits        and bytes to skip in the run, bits to skip in the byte

Dictionaries and the lengths of their entries have none: they belong to the whole stripe.

Source: the Apache ORC specification, Row Group Index; orc-core's RecordReaderImpl and TreeWriterBase.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from bloomcli.errors import BloomError
from bloomcli.formats.answer import ENCRYPTED, WRONG
from bloomcli.formats.orc import limits as orc_limits
from bloomcli.formats.orc import statistics
from bloomcli.formats.orc.bloom_filter import Filters, LoadedStream
from bloomcli.formats.orc.compression import HEADER
from bloomcli.formats.orc.footer import Stripe, StripeFooter
from bloomcli.formats.orc.schema import OrcType, literal_column
from bloomcli.formats.orc.streams import Position
from bloomcli.formats.orc.values import DIRECT, FLOATS, INTEGERS, REPEATED, STRINGS, TEXTS, TIMESTAMPS
from bloomcli.model.file import IndexEntry
from bloomcli.values.literals import bound_text

_RAW, _RUNS, _BITS = 0, 1, 2
"""The number of further numbers after the place."""
_STREAMS: Final[Mapping[str, tuple[tuple[str, int], ...]]] = {
    **dict.fromkeys((*INTEGERS, "BYTE"), (("DATA", _RUNS),)),
    **dict.fromkeys(FLOATS, (("DATA", _RAW),)),
    **dict.fromkeys(STRINGS, (("DATA", _RAW), ("LENGTH", _RUNS))),
    **dict.fromkeys(TIMESTAMPS, (("DATA", _RUNS), ("SECONDARY", _RUNS))),
    **dict.fromkeys(REPEATED, (("LENGTH", _RUNS),)),
    "BOOLEAN": (("DATA", _BITS),),
    "DECIMAL": (("DATA", _RAW), ("SECONDARY", _RUNS)),
    "STRUCT": (),
}
_PAST_BYTES: Final = 8 << 10
"""Bytes after the next row group's start into which the last run of an uncompressed stream can reach."""
_CHUNK_BYTES: Final = 64 << 10
"""Bytes of a compressed chunk that are read ahead. A larger chunk takes another read."""


Layout = tuple[tuple[str, int], ...]
"""The kinds of a column's streams with positions, and the further numbers of each."""


def layout_of(stripe: StripeFooter, orc: OrcType, encoding: str) -> Layout | None:
    """What an entry of the column has numbers for; None if unknown."""
    streams = _STREAMS.get(orc.kind)
    if streams is not None and orc.kind in TEXTS and encoding not in DIRECT:
        streams = (("DATA", _RUNS),)
    if streams is not None and stripe.find("PRESENT", orc.id) is not None:
        streams = (("PRESENT", _BITS), *streams)
    return streams


def numbers(layout: Layout, *, compressed: bool) -> int:
    """The number of numbers in an entry."""
    return sum((2 if compressed else 1) + more for _, more in layout)


def positions(layout: Layout, entry: Sequence[int], *, compressed: bool) -> dict[str, Position] | None:
    """The positions in an entry by kind of stream; None if a byte would have more than 8 bits. The entry has at least
    the layout's numbers."""
    rest = iter(entry)
    found = {}
    for kind, more in layout:
        chunk, skip = next(rest), next(rest) if compressed else 0
        found[kind] = Position(chunk, skip, next(rest) if more else 0, next(rest) if more == _BITS else 0)
        if found[kind].bits > 7:
            return None
    return found


def end_before(position: Position, *, compressed: bool) -> int:
    """The approximate end of the bytes that the row group before a position needs, from the stream's start."""
    if not compressed:
        return position.chunk + _PAST_BYTES
    inside = position.skip or position.values or position.bits
    return position.chunk + (HEADER + _CHUNK_BYTES if inside else 0)


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
        with suppress(BloomError):  # reading the index reports it
            yield from filters.ranges_to_look_up(column, [stripe])


def _entries(filters: Filters, stripe: Stripe, orc: OrcType) -> Iterator[IndexEntry]:
    footer = filters.footer
    found = footer.stripe_footer(stripe)
    if orc.id in footer.encrypted_columns:
        yield IndexEntry(row_group=0, stripe=stripe.ordinal, problem=ENCRYPTED)
        return
    stream = found.find("ROW_INDEX", orc.id)
    if stream is None:
        return
    entries = filters.stored_entries(found, stream)
    loaded, _ = filters.usable(stripe, orc)
    statistics.believe((entry.statistics for entry in entries), orc, footer.created_by)
    for row_group, entry in enumerate(entries):
        yield _entry(orc, stripe.ordinal, row_group, entry, loaded)


def _entry(orc: OrcType, stripe: int, row_group: int, entry: Any, loaded: LoadedStream | None) -> IndexEntry:
    stats = entry.statistics if entry.HasField("statistics") else None
    typed = literal_column(orc)
    low, high = (None, None) if stats is None or orc.fault is not None else statistics.bounds(stats, orc)
    problem = None
    if loaded is not None and row_group < len(loaded.filters):
        bits = loaded.filters[row_group]
        if any(statistics.missing_bounds(stats, orc, typed, bits)):
            low = high = None
            problem = f"min/max not shown: {WRONG}"
    known = stats is not None and stats.HasField("number_of_values")
    return IndexEntry(
        row_group=row_group,
        stripe=stripe,
        values=int(stats.number_of_values) if known and stats is not None else None,
        has_nulls=bool(stats.has_null) if stats is not None and stats.HasField("has_null") else None,
        min=bound_text(low, typed),
        max=bound_text(high, typed),
        positions=tuple(map(int, entry.positions)),
        problem=problem,
    )
