"""The filters of an ORC file: which columns can have them, where they are, how a stream of them is read and written,
and whether readers may use them.

    BLOOM_FILTER, BLOOM_FILTER_UTF8: one filter for each row group

    BloomFilterIndex { BloomFilter { numHashFunctions, bitset (longs) | utf8bitset (the same longs, LE) } ... }

Only this module decides whether a filter can be used. Readers must ignore some well-formed filters;
`why_untrusted` says why (orc-core's StripePlanner and RecordReaderImpl, BloomFilterIO).

A stream is written row group by row group: `encoded` filters are parts of the stream's message that follow each
other, so that no message holds every filter of the stripe.

Source: orc_proto.proto.
"""

from __future__ import annotations

from array import array
from collections.abc import Container, Iterator, Sequence
from functools import cached_property, partial
from typing import Any, Final, NamedTuple

from bloomcli.errors import CorruptFile, UnsupportedError
from bloomcli.filters.kirsch_mitzenmacher import KirschMitzenmacherFilter
from bloomcli.formats.base import FilterProblem
from bloomcli.formats.orc import hashes, spec
from bloomcli.formats.orc.footer import Footer, Stream, Stripe, StripeFooter
from bloomcli.formats.orc.row_index import RowIndex
from bloomcli.formats.orc.schema import SHORT_DIGITS, OrcType, literal_column
from bloomcli.formats.orc.values import TEXTS, TIMESTAMPS, why_zone_unknown
from bloomcli.hints import removing
from bloomcli.rules.writer_table import Part, fault_of
from bloomcli.words import counted

UTF8: Final = "BLOOM_FILTER_UTF8"
ORIGINAL: Final = "BLOOM_FILTER"
KINDS: Final = (UTF8, ORIGINAL)
"""The kinds of filter streams. Readers prefer the first."""

BLOOM_ENCODING: Final = 1
"""ColumnEncoding.bloomEncoding of columns with a BLOOM_FILTER_UTF8 stream: UTF-8 strings, UTC timestamps."""

PROBED: Final = hashes.READABLE | {"BOOLEAN", "UNION"}
"""Kinds whose filters can be read. A union's filter holds its tags; a boolean's is never looked up."""
_HIVE_12055: Final = 3
_ORC_135: Final = 6
_FUNCTIONS_MAX: Final = 1024


class LoadedStream(NamedTuple):
    """The filters of one column in one stripe."""

    stream: Stream
    filters: tuple[KirschMitzenmacherFilter, ...]
    """One for each row group."""
    untrusted: str | None
    """Why readers must not use them; None if they may."""


def badly_hashed(created_by: str, orc: OrcType) -> bool:
    """Whether a writer hashes a column's values wrongly."""
    return fault_of(created_by, Part.FILTER, literal_column(orc)) is not None


def holds_lengths(footer: Footer, orc: OrcType) -> bool:
    """Whether the filters are ORC C++'s for lists, maps or unions: it inserts nothing for batches without nulls.

    Predicates are on leaf columns, so no reader uses these filters, and no row is lost.
    """
    return footer.message.writer == spec.ORC_CPP and orc.kind in {"LIST", "MAP", "UNION"}


def why_untrusted(footer: Footer, stripe_footer: StripeFooter, orc: OrcType, kind: str) -> str | None:
    """Why readers must not use the filters of a column; None if they may."""
    if badly_hashed(footer.created_by, orc):
        shown = spec.text(footer.message.software_version) or "of an unknown version, before 1.6.11"
        return f"ORC C++ {shown} hashed values wrongly"
    if holds_lengths(footer, orc):
        return "ORC C++ leaves lengths of lists and maps, and tags of unions, out where a batch has no nulls"
    if orc.kind == "DECIMAL" and orc.precision <= SHORT_DIGITS and footer.version not in spec.VERSIONS:
        version = ".".join(map(str, footer.version))
        return f"orc-core hashes short decimals as numbers in files of version {version}, and looks texts up"
    writer = footer.postscript.writer_version
    if kind == ORIGINAL:
        if orc.kind in TEXTS and writer < _HIVE_12055:
            return "strings were hashed in the writer's own character set before HIVE-12055"
        if orc.kind == "DECIMAL":
            return "decimals in BLOOM_FILTER streams were hashed wrongly before ORC-101"
        if orc.kind == "TIMESTAMP" and writer < _ORC_135:
            return "timestamps were hashed in the writer's local time before ORC-135"
        return None
    encoding = stripe_footer.encoding(orc.id)
    bloom = 0 if encoding is None else encoding.bloom or 0
    if bloom > BLOOM_ENCODING:
        return f"bloomEncoding {bloom} is not known"
    if not bloom and orc.kind == "TIMESTAMP":
        return "without bloomEncoding 1 timestamps are in the writer's local time"
    return None


def kinds_of_option(footer: Footer, orc: OrcType, option: str | None) -> tuple[str, ...]:
    """The kinds of streams that are written for the option `kind`: with "both" also BLOOM_FILTER, if old readers may
    use the bits of a BLOOM_FILTER_UTF8 stream."""
    if orc.kind in TEXTS:
        sound = footer.postscript.writer_version >= _HIVE_12055
    else:
        sound = orc.kind not in {"DECIMAL", "TIMESTAMP"}
    return (UTF8, ORIGINAL) if option == "both" and sound else (UTF8,)


class Location(NamedTuple):
    """The location of one column's filters in one stripe."""

    streams: StripeFooter
    stream: Stream


class Filters:
    """The filter streams that the stripes' footers list. Each is read on demand.

    Attributes:
        source: the file's bytes.
        footer: its metadata.
    """

    def __init__(self, footer: Footer) -> None:
        self.source = footer.source
        self.footer = footer

    def locations(self, columns: set[int] | None) -> Iterator[Location]:
        """Every filter stream of these columns (all if None), stripe by stripe, in the order of the file."""
        self.footer.will_read_stripes()
        for stripe in self.footer.stripes:
            streams = self.footer.stripe_footer(stripe)
            chosen = streams.streams
            if columns is not None:
                chosen = tuple(sorted((s for c in columns for s in streams.of_column(c)), key=lambda s: s.position))
            yield from (Location(streams, stream) for stream in chosen if stream.kind in KINDS)

    def ranges(self, columns: set[int] | None) -> Iterator[tuple[int, int]]:
        """Yield the offset and length of these columns' filter streams (all if None)."""
        return (stream.range for _, stream in self.locations(columns))

    def ranges_to_look_up(self, column: int, stripes: Sequence[Stripe]) -> Iterator[tuple[int, int]]:
        """Yield the offset and length of the filters that readers use and of the row indexes in these stripes. Filter
        streams are usually compressed, so each is read whole."""
        for streams in map(self.footer.stripe_footer, stripes):
            for stream in (self.preferred(streams, column), streams.find("ROW_INDEX", column)):
                if stream is not None:
                    yield stream.range

    def value_ranges(self, streams: StripeFooter, column: int) -> Iterator[tuple[int, int]]:
        """Yield the offset and length of the streams with a column's values in a stripe, and of its row index."""
        above = self.footer.ancestors(self.footer.types[column])
        yield from (stream.range for stream in self.value_streams(streams, column))
        for kind in ("PRESENT", "LENGTH"):
            streams_above = (streams.find(kind, orc.id) for orc in above)
            yield from (s.range for s in streams_above if s is not None)

    def value_streams(self, streams: StripeFooter, column: int) -> Sequence[Stream]:
        """A column's streams in a stripe, without filters."""
        return [stream for stream in streams.of_column(column) if stream.kind not in KINDS]

    def preferred(self, streams: StripeFooter, column: int) -> Stream | None:
        """The filter stream of a column that readers use; None where it has none in the stripe."""
        return next((s for kind in KINDS if (s := streams.find(kind, column)) is not None), None)

    def location(self, column: int, row_group: int, stripe: int) -> Location | None:
        """The filters of a column in a stripe that readers use; None where it has none."""
        del row_group
        streams = self.footer.stripe_footer(self.footer.stripes[stripe])
        stream = self.preferred(streams, column)
        return None if stream is None else Location(streams, stream)

    def load(self, location: Location) -> LoadedStream:
        """Read a stream's filters. Raises FilterProblem."""
        footer, (streams, stream) = self.footer, location
        types, stripe = footer.types, streams.stripe
        field = f"{stripe.field}.streams[{stream.position}]"
        wrong = partial(FilterProblem, path=footer.path, offset=stream.offset, field=field)
        if stream.column >= len(types):
            raise wrong(f"the stream is of column {stream.column}, the file has {len(types)}", id="filter-column")
        if stream.column in footer.encrypted_columns:
            raise wrong(
                "the column is encrypted, and these filters aren't: anybody can look guesses up, and a reader without"
                " the key loses rows by them",
                id="filter-plaintext",
                hint=removing(types[stream.column].label, after=" takes them out, without a key"),
            )
        try:
            data = footer.read_stream(stream, stripe)
            index = spec.parse("BloomFilterIndex", data, footer.path, stream.offset, stripe.field)
        except (CorruptFile, UnsupportedError) as error:
            raise wrong(f"the stream can't be read: {error.reason}", id="filter-header") from None
        del data  # up to 128 MiB, and the message is as large
        count, wanted = len(index.bloom_filter), footer.row_groups(stripe)
        if count != wanted:
            raise wrong(f"{counted(count, 'filter')} for {counted(wanted, 'row group')}", id="filter-count")
        filters = []
        for item in index.bloom_filter:
            bits = item.utf8bitset if stream.kind == UTF8 else array("Q", item.bitset).tobytes()
            if not bits or len(bits) % 8:
                size = counted(len(bits), "byte")
                raise wrong(f"a bitset of {size}; it has to be a positive multiple of 8", id="filter-num-bytes")
            if not 1 <= item.num_hash_functions <= _FUNCTIONS_MAX:
                reason = f"{item.num_hash_functions} hash functions can't be"
                raise wrong(reason, id="filter-hash-functions")
            filters.append(KirschMitzenmacherFilter(bits, item.num_hash_functions))
        untrusted = why_untrusted(footer, streams, types[stream.column], stream.kind)
        return LoadedStream(stream, tuple(filters), untrusted)

    def usable(self, stripe: Stripe, orc: OrcType) -> tuple[LoadedStream | None, str | None]:
        """The filters that readers use in a stripe, or why they can't be used; both None without filters."""
        location = self.location(orc.id, 0, stripe.ordinal)
        if location is None:
            return None, None
        try:
            loaded = self.load(location)
        except FilterProblem as error:
            return None, error.reason
        if loaded.untrusted is not None:
            return None, loaded.untrusted
        if orc.kind not in PROBED:
            return None, f"how values of {orc.name} are hashed isn't known"
        if location.stream.kind == ORIGINAL and orc.kind == "TIMESTAMP":
            return None, "a BLOOM_FILTER stream holds timestamps in the writer's local time"
        return loaded, None

    def columns(self) -> set[int]:
        """Ids of the columns with filters in any stripe; without structs, whose filters are empty."""
        types = self.footer.types
        ids = {stream.column for _, stream in self.locations(None)}
        return {column for column in ids if column < len(types) and types[column].kind != "STRUCT"}

    def bitset_bytes(self, location: Location) -> int | None:
        """Bytes of each filter in a stream; None if the stream can't be read, or sizes differ."""
        try:
            sizes = {len(f.bitset) for f in self.load(location).filters}
        except FilterProblem:
            return None
        return sizes.pop() if len(sizes) == 1 else None

    def statistics(self, streams: StripeFooter, column: int) -> Sequence[Any | None]:
        """A column's statistics in each of a stripe's `Footer.units`, as `RowIndex.believed`."""
        return RowIndex(self.footer, streams, self.footer.types[column]).believed

    @cached_property
    def unfilterable(self) -> dict[int, str]:
        """Why types can't have a filter, by id, each as a noun phrase. Types that can have one are left out."""
        causes: dict[int, str] = {}
        for orc in self.footer.types:
            if orc.id in self.footer.encrypted_columns:
                causes[orc.id] = "encrypted: ORC's filters aren't, so that one would give the column's values away"
            elif orc.kind == "BOOLEAN":
                causes[orc.id] = "boolean: it has two values, and no reader uses a filter on it"
            elif not orc.id:
                causes[orc.id] = f"{orc.name} at the file's root, which is no struct: readers look columns up by name"
            elif any(t.kind == "UNION" for t in self.footer.ancestors(orc)):
                causes[orc.id] = "within a union: its values can't be hashed exactly"
            elif orc.kind not in hashes.HASHABLE or orc.fault is not None:
                causes[orc.id] = f"{orc.name}: its values can't be hashed exactly"
            elif orc.kind in TIMESTAMPS:
                stripes = (self.footer.stripe_footer(s) for s in self.footer.stripes if s.rows)
                reason = next((why for s in stripes if (why := why_zone_unknown(s, orc)) is not None), None)
                if reason is not None:
                    causes[orc.id] = f"{orc.name}: {reason}"
        return causes

    @cached_property
    def not_comparable(self) -> dict[int, str]:
        """Why the values of columns can't be compared with their filters, by id. Others are left out."""
        causes: dict[int, str] = {}
        for orc in self.footer.types:
            if orc.kind == "UNION":
                causes[orc.id] = "they are a union's tags, which no reader asks for"
            elif orc.kind == "DECIMAL" and orc.fault is not None:
                causes[orc.id] = orc.fault
            elif any(t.kind == "UNION" for t in self.footer.ancestors(orc)):
                causes[orc.id] = "it lies within a union"
            elif orc.kind not in hashes.READABLE:
                causes[orc.id] = f"how values of {orc.name} are hashed isn't known"
        return causes

    def proven(self, columns: set[int] | None) -> set[int]:
        """Ids of the columns whose statistics are checked: these ones, or those with filters if it is None."""
        return self.columns() if columns is None else columns

    def readable(self, column: int) -> bool:
        """Whether a column's values are read, to compare them with its filters or its statistics."""
        return column not in self.not_comparable or self.footer.types[column].kind == "BOOLEAN"

    def to_check(
        self, streams: StripeFooter, columns: set[int] | None, proven: set[int]
    ) -> dict[int, list[Location]]:
        """The columns of a stripe with filters of these columns (of all if None), and those whose statistics are
        `proven`: the filters of each that can be compared with the values."""
        locations: dict[int, list[Location]] = {column: [] for column in sorted(proven)}
        for stream in streams.streams:
            comparable = stream.column < len(self.footer.types) and stream.column not in self.footer.encrypted_columns
            if stream.kind in KINDS and comparable and (columns is None or stream.column in columns):
                locations.setdefault(stream.column, []).append(Location(streams, stream))
        return locations

    def bytes_to_check(self, streams: StripeFooter, column: int) -> int:
        """Compressed bytes of a column's values in a stripe, which are compared with its filters."""
        return sum(s.length for s in self.value_streams(streams, column)) if self.readable(column) else 0

    def deep_bytes(self, columns: set[int] | None, units: Container[int] | None) -> int:
        """Compressed bytes of all values of these columns that are compared with filters or statistics in the stripes
        `units`."""
        self.footer.will_read_stripes()
        proven = self.proven(columns)
        stripes = (self.footer.stripe_footer(s) for s in self.footer.stripes if units is None or s.ordinal in units)
        return sum(self.bytes_to_check(s, column) for s in stripes for column in self.to_check(s, columns, proven))


_FRAME: Final = 32
"""Maximum bytes of an entry without its bits."""


def most_bytes(filters: int, bits: int) -> int:
    """Maximum uncompressed bytes of a BLOOM_FILTER_UTF8 stream of `filters` filters, each of `bits` bits."""
    return filters * (bits // 8 + _FRAME)


class NewStream(NamedTuple):
    """A new filter stream, compressed."""

    kind: str
    column: int
    packed: Sequence[bytes]
    checksum: int
    """A checksum of its uncompressed bytes (see `compression.Packer`)."""

    @property
    def length(self) -> int:
        """Bytes on disk."""
        return sum(map(len, self.packed))


def encoded(kind: str, bits: KirschMitzenmacherFilter) -> bytes:
    """A row group's filter as a stream of a kind has it, after the filters of the row groups before."""
    index = spec.message("BloomFilterIndex")()
    item = index.bloom_filter.add(num_hash_functions=bits.k)
    if kind == UTF8:
        item.utf8bitset = bytes(bits.bitset)
    else:
        item.bitset.extend(memoryview(bits.bitset).cast("Q"))
    data: bytes = index.SerializeToString()
    return data
