"""Decodes a column's values in a stripe from its streams. Hashes, searches, samples, indexes and reports all read
values here.

    rows of the stripe -> PRESENT and LENGTH of the column's ancestors -> the column's own PRESENT -> values

    PRESENT                     which rows have a value            all kinds
    DATA                        the values                         integers, floating point
    DATA, LENGTH                bytes back to back, their lengths  strings and binaries, DIRECT
    DATA, LENGTH,               indexes in a dictionary, its       strings, DICTIONARY
      DICTIONARY_DATA             entries' lengths and bytes
    DATA, SECONDARY             seconds, nanoseconds               timestamps (see `hashes`)
    DATA, SECONDARY             varints, scales                    decimals
    LENGTH                      numbers of elements                lists and maps
    DATA                        numbers of members, a byte each    unions

Nulls have no bytes. Values are read in batches: at most a batch of numbers, or
4 MiB of strings, is in memory.

Source: the Apache ORC specification (ORC v1), Column Encodings.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, pairwise
from typing import Final, Generic, Self, TypeVar

from bloomcli import kernels, limits
from bloomcli.concurrency.threads import Stop
from bloomcli.errors import CorruptFile, UnsupportedError
from bloomcli.formats.base import LEAVE_OUT
from bloomcli.formats.orc import limits as orc_limits
from bloomcli.formats.orc import spec
from bloomcli.formats.orc.footer import Encoding, Footer, StripeFooter
from bloomcli.formats.orc.schema import SHORT_DIGITS, OrcType
from bloomcli.formats.orc.streams import Bits, ByteStream, Runs, byte_runs, integers
from bloomcli.formats.orc.zones import writer_zone
from bloomcli.words import counted

INTEGERS: Final = {"SHORT": 2, "INT": 4, "LONG": 8, "DATE": 4}
FLOATS: Final = {"FLOAT": 4, "DOUBLE": 8}
GEOSPATIAL: Final = ("GEOMETRY", "GEOGRAPHY")
"""Kinds of well-known binary (WKB)."""
BINARIES: Final = ("BINARY", *GEOSPATIAL)
TEXTS: Final = ("STRING", "VARCHAR", "CHAR")
STRINGS: Final = (*TEXTS, *BINARIES)
REPEATED: Final = ("LIST", "MAP")
TIMESTAMPS: Final = ("TIMESTAMP", "TIMESTAMP_INSTANT")

VERSIONS: Final = {"DIRECT": 1, "DIRECT_V2": 2, "DICTIONARY": 1, "DICTIONARY_V2": 2}
DIRECT: Final = ("DIRECT", "DIRECT_V2")
_ENCODINGS: Final[dict[str, tuple[str, ...]]] = {
    **dict.fromkeys((*INTEGERS, *REPEATED, *TIMESTAMPS, *BINARIES, "DECIMAL"), DIRECT),
    **dict.fromkeys((*FLOATS, "BYTE"), ("DIRECT",)),
    **dict.fromkeys(TEXTS, tuple(VERSIONS)),
}
"""The possible encodings of values of each kind."""

DECIMAL_BYTES: Final = 16
_TOGETHER_BYTES: Final = 4 << 20
"""Maximum bytes of strings that are read together."""
_TAG_MAX: Final = 255
SHOWN_BYTES: Final = 1024
"""Maximum bytes of a string that reports show."""


def _batches(count: int) -> Iterator[int]:
    """Split `count` into parts of at most a batch."""
    while count > 0:
        yield min(count, limits.ROWS_PER_BATCH)
        count -= limits.ROWS_PER_BATCH


class ColumnStreams:
    """One column's streams in one stripe, by kind. Raises UnsupportedError for a file of an unknown version, in which
    they may mean something else."""

    def __init__(self, footer: Footer, stripe: StripeFooter, orc: OrcType, stop: Stop) -> None:
        footer.refuse_unknown_version()
        self.orc = orc
        self.stop = stop
        self._footer = footer
        self._stripe = stripe

    def open(self, kind: str) -> ByteStream:
        """Open a stream at its start."""
        stream = self._stripe.find(kind, self.orc.id)
        return ByteStream(self._footer, self._stripe.stripe, stream, self.stop)

    def presence(self) -> Bits | None:
        """The PRESENT stream; None if all rows have a value."""
        return Bits(self.open("PRESENT")) if self._stripe.find("PRESENT", self.orc.id) is not None else None

    def encoding(self) -> Encoding:
        """The column's encoding. Raises CorruptFile, UnsupportedError."""
        encoding = self._stripe.encoding(self.orc.id)
        place = self._footer.place(self._stripe.stripe, f".footer.columns[{self.orc.id}]")
        if encoding is None:
            hint = "the file is damaged; get it from its source again"
            raise CorruptFile(f"column {self.orc.label} has no encoding", **place, hint=hint)
        if encoding.name not in _ENCODINGS[self.orc.kind]:
            unknown = encoding.name not in VERSIONS
            raise (UnsupportedError if unknown else CorruptFile)(
                f"column {self.orc.label}, {self.orc.name}, in the encoding {encoding.name}",
                **place,
                hint="rewrite the file with a released writer" if unknown else "the file is damaged",
            )
        return encoding

    def lengths(self) -> Runs:
        """The LENGTH stream."""
        return integers(self.open("LENGTH"), VERSIONS[self.encoding().name], signed=False)

    def zone(self) -> kernels.WriterZone:
        """The time zone of the column's timestamps. Raises UnsupportedError if it is unknown."""
        zone = writer_zone(_zone_name(self._stripe, self.orc))
        if zone is None:
            raise UnsupportedError(
                f"column {self.orc.label} can't be read: {why_zone_unknown(self._stripe, self.orc)}",
                **self._footer.place(self._stripe.stripe, ".footer.writerTimezone"),
                hint=f"{LEAVE_OUT}; where time zone data are missing, `pip install tzdata` brings them",
            )
        return zone


def _zone_name(stripe: StripeFooter, orc: OrcType) -> str:
    return "UTC" if orc.kind == "TIMESTAMP_INSTANT" else spec.text(stripe.message.writer_timezone)


def why_zone_unknown(stripe: StripeFooter, orc: OrcType) -> str | None:
    """Why a stripe's timestamps can't be converted; None if they can, and for all other kinds."""
    if orc.kind not in TIMESTAMPS or writer_zone(name := _zone_name(stripe, orc)) is not None:
        return None
    if not name:
        return "the stripe doesn't name its writer's time zone, and each reader takes its own"
    return f"nothing is known here of its writer's time zone, {name}"


@dataclass(frozen=True, slots=True)
class Values:
    """Non-null values of a column, in order. They are valid until the next ones are read.

    By the column's kind, `data` has for each value

        BOOLEAN                a byte, 0 or 1
        BYTE                   an int8
        SHORT to LONG, DATE    an int64
        LIST, MAP              the number of elements, an int64
        FLOAT, DOUBLE          4 or 8 bytes
        DECIMAL                16 bytes, little-endian two's complement, in the column's scale
        TIMESTAMP              an int64, and another in `nanos`: the two streams' numbers (see `hashes`)
        strings and binaries   its bytes, back to back; `lengths` has int64s
        the same, DICTIONARY   the index of its entry, an int64
    """

    count: int
    data: bytes | bytearray | memoryview
    lengths: memoryview | None = None
    nanos: memoryview | None = None
    digest: int | None = None
    """ORC's hash of a string that is too long to be read together with others: it comes alone, and `data` is cut off
    where it is longer than the reader's `longest`."""

    @property
    def cut(self) -> bool:
        """Whether `data` is only the start of a string."""
        return self.lengths is not None and self.digest is not None and len(self.data) < self.lengths.cast("q")[0]


Decode = Callable[[int], Iterator[Values]]
"""Yields the next values, at most a batch, in parts."""
SeekableStream = ByteStream | Runs | Bits
"""A stream that can be read from a position of the row index."""


class LeafReader:
    """Reads a column's own values, whichever rows they are of: from the first one, or from positions that its `parts`
    seek.

    Args:
        streams: the column's streams.
        longest: bytes of the longest string that is given whole, if it is longer than 4 MiB.

    Raises:
        CorruptFile, UnsupportedError: the column's encoding can't be read.
    """

    def __init__(self, streams: ColumnStreams, longest: int = 0) -> None:
        self.orc = streams.orc
        self._streams = streams
        self._longest = longest
        self.entries: int | None = None
        """The number of the dictionary's entries; None without a dictionary."""
        self.zone: kernels.WriterZone | None = None
        """The writer's time zone, of timestamps."""
        self.parts: dict[str, SeekableStream] = {}
        """The column's streams with positions, by kind, without PRESENT."""
        self._decode = self._opened()

    def take(self, count: int) -> Iterator[Values]:
        """Yield the next `count` values; with a dictionary, indexes of its entries. Consume all of them before the
        next call. Raises CorruptFile, UnsupportedError, Stopped."""
        for batch in _batches(count):
            self._streams.stop.check()
            yield from self._decode(batch)

    def dictionary(self) -> Iterator[Values]:
        """Yield the entries of the dictionary. Raises CorruptFile, UnsupportedError, Stopped."""
        entries = self.entries or 0
        if entries > orc_limits.DICTIONARY_MAX:
            raise self.fault(
                f"a dictionary of {counted(entries, 'entry')}, more than the {orc_limits.DICTIONARY_MAX}"
                " that are read"
            )
        decode = _strings(self._streams.open("DICTIONARY_DATA"), self._streams.lengths(), self._longest)
        for batch in _batches(entries):
            self._streams.stop.check()
            yield from decode(batch)

    def fault(self, reason: str, kind: str = "DATA") -> CorruptFile:
        """An error about the bytes of one of the column's streams."""
        return self._streams.open(kind).fault(reason)

    def _opened(self) -> Decode:
        """Open the column's streams."""
        orc, streams = self.orc, self._streams
        if orc.kind == "BOOLEAN":
            bits = Bits(streams.open("DATA"))
            self.parts = {"DATA": bits}
            return lambda count: iter((Values(count, bits.take(count).flags()),))
        encoding = streams.encoding()
        version = VERSIONS[encoding.name]
        if orc.kind in REPEATED:
            lengths = streams.lengths()
            self.parts = {"LENGTH": lengths}
            return _elements(lengths, streams.open("LENGTH"))
        data = streams.open("DATA")
        if orc.kind in INTEGERS:
            numbers = integers(data, version, signed=True)
            self.parts = {"DATA": numbers}
            return _integers(numbers, data, INTEGERS[orc.kind])
        if orc.kind == "BYTE":
            small = byte_runs(data)
            self.parts = {"DATA": small}
            return lambda count: iter((Values(count, small.take(count)),))
        if orc.kind in FLOATS:
            self.parts = {"DATA": data}
            width = FLOATS[orc.kind]
            return lambda count: iter((Values(count, data.take(count * width)),))
        if orc.kind in TIMESTAMPS:
            self.zone = streams.zone()
            seconds = integers(data, version, signed=True)
            nanos = integers(streams.open("SECONDARY"), version, signed=False)
            self.parts = {"DATA": seconds, "SECONDARY": nanos}
            return lambda count: iter((Values(count, seconds.take(count), nanos=nanos.take(count)),))
        if orc.kind == "DECIMAL":
            scales = integers(streams.open("SECONDARY"), version, signed=True)
            self.parts = {"DATA": data, "SECONDARY": scales}
            return _decimals(data, scales, orc)
        if encoding.name in DIRECT:
            lengths = streams.lengths()
            self.parts = {"DATA": data, "LENGTH": lengths}
            return _strings(data, lengths, self._longest)
        self.entries = encoding.entries
        indexes = integers(data, version, signed=False)
        self.parts = {"DATA": indexes}
        return lambda count: iter((Values(count, indexes.take(count)),))


def _sum(lengths: memoryview, count: int, stream: ByteStream) -> int:
    """The sum of lengths. Raises CorruptFile for an impossible one."""
    try:
        return kernels.orc_sum(lengths, count)
    except kernels.RunError as error:
        raise stream.fault(str(error)) from None


def _elements(lengths: Runs, stream: ByteStream) -> Decode:
    def decode(count: int) -> Iterator[Values]:
        sizes = lengths.take(count)
        _sum(sizes, count, stream)  # refuses impossible lengths
        yield Values(count, sizes)

    return decode


def _integers(runs: Runs, data: ByteStream, width: int) -> Decode:
    def decode(count: int) -> Iterator[Values]:
        values = runs.take(count)
        if not kernels.orc_fit(values, count, width):
            raise data.fault(f"an integer that its column's {counted(width, 'byte')} can't hold")
        yield Values(count, values)

    return decode


def _decimals(data: ByteStream, scales: Runs, orc: OrcType) -> Decode:
    most = SHORT_DIGITS if orc.precision <= SHORT_DIGITS else orc_limits.DECIMAL_DIGITS

    def decode(count: int) -> Iterator[Values]:
        value_scales = scales.take(count)
        out = bytearray(count * DECIMAL_BYTES)
        done = 0
        try:
            while True:
                done, data.at = kernels.orc_decimals(
                    data.data, data.at, value_scales, done, count, orc.scale, most, out
                )
                if done == count:
                    break
                data.more()
        except kernels.RunError as error:
            raise data.fault(str(error)) from None
        yield Values(count, out)

    return decode


def _strings(data: ByteStream, runs: Runs, longest: int) -> Decode:
    total = 0

    def decode(count: int) -> Iterator[Values]:
        nonlocal total
        lengths = runs.take(count)
        size = _sum(lengths, count, data)
        total += size
        data.check_size(total)  # before that much is read
        if size <= _TOGETHER_BYTES:
            yield Values(count, data.take(size), lengths)
            return
        ends = list(accumulate(lengths.cast("q"), initial=0))
        first = 0
        while first < count:
            last = max(bisect_right(ends, ends[first] + _TOGETHER_BYTES) - 1, first + 1)
            size = ends[last] - ends[first]
            some = lengths[first * 8 : last * 8]
            if size <= _TOGETHER_BYTES:
                yield Values(last - first, data.take(size), some)
            else:
                yield _long(data, size, size if size <= longest else SHOWN_BYTES, some)
            first = last

    return decode


def _long(data: ByteStream, size: int, kept: int, lengths: memoryview) -> Values:
    """Read one string, and keep its first `kept` bytes."""
    start = bytearray()
    murmur = kernels.OrcMurmur()
    for piece in data.pieces(size):
        murmur.update(piece)
        if len(start) < kept:
            start += piece[: kept - len(start)]
    return Values(1, start, lengths, digest=murmur.digest())


class Counted:
    """Rows of a stripe, at most a batch of them, as the levels above a column lead to its values. Only their number
    is known."""

    __slots__ = ("_count",)

    def __init__(self, count: int) -> None:
        self._count = count

    @classmethod
    def batches(cls, count: int) -> Iterator[Self]:
        """All of `count` rows, in batches."""
        return map(cls, _batches(count))

    def __len__(self) -> int:
        """Their number."""
        return self._count

    def where(self, present: Bits) -> Self:
        """The rows that have a value. Takes one of the next bits for each row."""
        return type(self)(present.take(self._count).ones())

    def elements(self, lengths: memoryview, total: int) -> Iterator[Self]:
        """The row of each element of their lists or maps, which have `total` elements, in batches."""
        del lengths
        return self.batches(total)

    def of_member(self, tags: memoryview, member: int) -> Self:
        """The rows whose union has its value in a member. `tags` has the number of the member for each row."""
        return type(self)(bytes(tags).count(member))

    def part(self, first: int, count: int) -> Self:
        """Some of them."""
        del first
        return type(self)(count)


R = TypeVar("R", bound=Counted)

_NO_MEMBER: Final = "a union's value is in a member that the type can't have"


class _Level:
    """Maps the rows of a struct, list, map or union above the column to those of one of its children."""

    def __init__(self, streams: ColumnStreams, child: OrcType) -> None:
        self._presence = streams.presence()
        self._lengths = streams.lengths() if streams.orc.kind in REPEATED else None
        self._tags = byte_runs(streams.open("DATA")) if streams.orc.kind == "UNION" else None
        self._members, self._child = streams.orc.children, child.id
        self._stream = streams.open("LENGTH" if self._tags is None else "DATA")
        self._stop = streams.stop
        parts = {"PRESENT": self._presence, "LENGTH": self._lengths, "DATA": self._tags}
        self.parts: dict[str, SeekableStream] = {kind: part for kind, part in parts.items() if part is not None}

    def children(self, chunks: Iterator[R], count: Callable[[int], None]) -> Iterator[R]:
        """The children of each chunk's rows. `count` is called with their number before they are given."""
        for chunk in chunks:
            present = chunk if self._presence is None else chunk.where(self._presence)
            if self._tags is not None:
                tags, member = self._tags.take(len(present)), self._members.index(self._child)
                if max(bytes(tags), default=0) >= len(self._members) or member > _TAG_MAX:
                    raise self._stream.fault(_NO_MEMBER)
                present = present.of_member(tags, member)
            if self._lengths is None:
                count(len(present))
                yield present
            elif len(present):
                self._stop.check()
                sizes = self._lengths.take(len(present))
                total = _sum(sizes, len(present), self._stream)
                count(total)
                yield from present.elements(sizes, total)


class ValueReader(Generic[R]):
    """Reads one column of one stripe, from the first row or from a position that its `parts` seek.

    Args:
        footer: the file.
        stripe: the stripe's footer.
        orc: the column.
        rows: `Counted`, or a subclass that also knows which rows they are.
        stop: ends reading.
        longest: as in `LeafReader`.

    Raises:
        CorruptFile, UnsupportedError: an encoding can't be read.
    """

    def __init__(
        self, footer: Footer, stripe: StripeFooter, orc: OrcType, rows: type[R], stop: Stop, longest: int = 0
    ) -> None:
        self._footer, self._stripe, self._rows = footer, stripe.stripe, rows
        path = pairwise([*footer.ancestors(orc), orc])
        self._levels = [_Level(ColumnStreams(footer, stripe, above, stop), child) for above, child in path]
        streams = ColumnStreams(footer, stripe, orc, stop)
        self._presence = streams.presence()
        self.leaf = LeafReader(streams, longest)
        own = self.leaf.parts if self._presence is None else {"PRESENT": self._presence, **self.leaf.parts}
        self.parts: list[Mapping[str, SeekableStream]] = [*(level.parts for level in self._levels), own]
        """For each type from the root down to the column, its streams with positions, by kind."""
        self._rows_read = [0] * (len(self._levels) + 1)
        """The rows so far of each ancestor and of the column, nulls included."""

    @property
    def rows_read(self) -> int:
        """The values of the column so far, nulls included."""
        return self._rows_read[-1]

    def take(self, rows: int) -> Iterator[tuple[Values, R]]:
        """Yield the non-null values of the next rows, and the row of each, counted from the first of these rows.
        Consume all of them before the next call. Raises CorruptFile, UnsupportedError, Stopped."""
        self._count(0, rows)
        chunks = self._rows.batches(rows)
        for depth, level in enumerate(self._levels, 1):
            chunks = level.children(chunks, partial(self._count, depth))
        for chunk in chunks:
            present = chunk if self._presence is None else chunk.where(self._presence)
            at = 0
            for values in self.leaf.take(len(present)):
                yield values, present.part(at, values.count)
                at += values.count

    def _count(self, depth: int, count: int) -> None:
        self._rows_read[depth] += count
        if self._rows_read[depth] > orc_limits.VALUES_MAX:
            raise UnsupportedError(
                f"a stripe with more than {orc_limits.VALUES_MAX} values of a column",
                **self._footer.place(self._stripe),
                hint="write the file with smaller stripes",
            )


CRASHING: Final = frozenset({"UNION", *TEXTS, *BINARIES})
"""Kinds by whose damaged tags and lengths pyarrow ends the process."""


def check_sizes(footer: Footer, stripe: StripeFooter, orc: OrcType) -> None:
    """Check the tags or lengths of a column of the kinds `CRASHING`. Raises CorruptFile, UnsupportedError."""
    streams = ColumnStreams(footer, stripe, orc, Stop())
    rows = stripe.stripe.rows
    if orc.kind == "UNION":
        for tags, _ in ValueReader(footer, stripe, orc._replace(kind="BYTE"), Counted, Stop()).take(rows):
            if max(bytes(tags.data), default=0) >= len(orc.children):
                raise streams.open("DATA").fault(_NO_MEMBER)
    elif streams.encoding().name in DIRECT:
        deque(ValueReader(footer, stripe, orc._replace(kind="LIST"), Counted, Stop()).take(rows), 0)
    else:
        lengths, stream = streams.lengths(), streams.open("LENGTH")
        for batch in _batches(streams.encoding().entries):
            _sum(lengths.take(batch), batch, stream)
