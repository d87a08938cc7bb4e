"""Makes an index's bits for a column's stripes from the values.

ORC's filters can't be used: their hashes differ from Parquet's, and filters of different sizes can't be merged. See
bloomcli/index/format.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from bloomcli.concurrency.threads import Stop
from bloomcli.formats import index_bits
from bloomcli.formats.base import BitsSource, RowGroupBits
from bloomcli.formats.index_bits import BitsMaker
from bloomcli.formats.orc.arrow_forms import forms_of
from bloomcli.formats.orc.bloom_filter import Filters
from bloomcli.formats.orc.footer import Footer, Stream, StripeFooter
from bloomcli.formats.orc.schema import OrcType, literal_column
from bloomcli.formats.orc.values import DIRECT, REPEATED, TEXTS, Counted, ValueReader, Values
from bloomcli.model.file import Column

_LONGEST: Final = 64 << 20
"""Maximum bytes of a string that is read. A stripe with a longer string may have any value."""
_VALUES: Final = ("PRESENT", "DATA", "LENGTH", "SECONDARY", "DICTIONARY_DATA")
_ABOVE: Final = ("PRESENT", "LENGTH")


def indexed_column(footer: Footer, column: Column) -> Column:
    """The column with the Parquet type whose hashes an index has. A CHAR's blanks at the end aren't hashed."""
    orc = footer.types[column.index]
    typed = literal_column(orc)
    return replace(typed, logical="CHAR") if orc.kind == "CHAR" else index_bits.indexed_column(typed)


def row_groups(filters: Filters, column: Column, fpp: float, stop: Stop) -> Iterator[RowGroupBits]:
    """Yield the bits of each stripe of a file, in order: an index's row groups are ORC's stripes.

    Args:
        filters: the file's filters.
        column: one of its leaf columns.
        fpp: the rate of the bits.
        stop: cancels the reading.

    Raises:
        CorruptFile, UnsupportedError: the column's streams can't be read.
        Stopped: soon after `stop` is set.
    """
    footer = filters.footer
    orc = footer.types[column.index]
    readable = orc.id not in filters.unfilterable
    footer.will_read_stripes()
    if readable:
        stripes = map(footer.stripe_footer, footer.stripes)
        filters.source.will_read(s.range for stripe in stripes for s in _streams(filters, stripe, orc))
    for stripe in footer.stripes:
        stop.check()
        none = RowGroupBits(stripe.ordinal, stripe.rows)
        if not stripe.rows:
            yield none
        elif not readable:
            yield none._replace(possible=True)
        else:
            yield _stripe(filters, footer.stripe_footer(stripe), orc, fpp, stop, none)


def sources(filters: Filters, column: Column) -> Iterator[BitsSource]:
    """Estimate what `row_groups` reads of each stripe."""
    footer = filters.footer
    orc = footer.types[column.index]
    footer.will_read_stripes()
    for stripe in footer.stripes:
        read = bool(stripe.rows) and orc.id not in filters.unfilterable
        streams = _streams(filters, footer.stripe_footer(stripe), orc) if read else ()
        yield BitsSource(reads=sum(s.length for s in streams))


def _stripe(
    filters: Filters, streams: StripeFooter, orc: OrcType, fpp: float, stop: Stop, none: RowGroupBits
) -> RowGroupBits:
    footer, typed = filters.footer, literal_column(orc)
    reader = ValueReader(footer, streams, orc, Counted, stop, _LONGEST)
    repeated = any(t.kind in REPEATED for t in footer.ancestors(orc))
    whole = _is_whole_dictionary(streams, orc)
    maker = BitsMaker(reader.leaf.entries if whole else None if repeated else streams.stripe.rows, fpp)
    for values in reader.leaf.dictionary() if whole else _referred(reader, streams.stripe.rows):
        stop.check()
        if values.cut:  # a string is longer than what is read
            return none._replace(possible=True)
        maker.add(index_bits.hashes_of(forms_of(values, reader.leaf), typed))
    if not maker.count:
        return none
    return none._replace(bits=maker.bits(), decoded=sum(s.length for s in _streams(filters, streams, orc)))


def _referred(reader: ValueReader[Counted], rows: int) -> Iterator[Values]:
    """The values of a stripe without a dictionary. Raises CorruptFile if a value refers to an entry."""
    for values, _ in reader.take(rows):
        if reader.leaf.entries is not None:  # an empty dictionary
            raise reader.leaf.fault("an index beyond the dictionary's entries")
        yield values


def _is_whole_dictionary(streams: StripeFooter, orc: OrcType) -> bool:
    """Whether every value is an entry of a dictionary that isn't empty."""
    encoding = streams.encoding(orc.id)
    return orc.kind in TEXTS and encoding is not None and encoding.entries > 0 and encoding.name not in DIRECT


def _streams(filters: Filters, streams: StripeFooter, orc: OrcType) -> list[Stream]:
    """The streams of a column that are read in a stripe: with a dictionary, only its entries."""
    if _is_whole_dictionary(streams, orc):
        named = [(kind, orc.id) for kind in ("DICTIONARY_DATA", "LENGTH")]
    else:
        named = [(kind, t.id) for t in filters.footer.ancestors(orc) for kind in _ABOVE]
        named += [(kind, orc.id) for kind in _VALUES]
    candidates = (streams.find(kind, column) for kind, column in named)
    return [stream for stream in candidates if stream is not None]
