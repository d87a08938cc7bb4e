"""Hashes a column's values directly from its streams, without arrays in between.

    PRESENT                     which rows have a value            all kinds
    DATA                        the values                         integers, floating point
    DATA, LENGTH                bytes back to back, their lengths  strings and binaries, DIRECT
    DATA, LENGTH,               indexes in a dictionary, its       strings, DICTIONARY
      DICTIONARY_DATA             entries' lengths and bytes
    DATA, SECONDARY             seconds, nanoseconds               timestamps (see `timestamps`)
    DATA, SECONDARY             varints, scales                    decimals
    LENGTH                      numbers of elements                lists and maps

Nulls have no bytes, and aren't hashed. Of the column's ancestors and its PRESENT stream, only the number of values
in a number of rows matters, not which rows have values. Columns within a union aren't read.

Values are read in batches, and at most one batch is in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from bloomcli import kernels, limits
from bloomcli.concurrency.cancellation import Stop
from bloomcli.errors import CorruptFile, UnsupportedError
from bloomcli.formats.orc import limits as orc_limits
from bloomcli.formats.orc import spec
from bloomcli.formats.orc.footer import Footer, StripeFooter
from bloomcli.formats.orc.schema import SHORT_DIGITS, OrcType
from bloomcli.formats.orc.streams import ByteStream, Presence, Runs, byte_runs, integers
from bloomcli.formats.orc.timestamps import TimestampHasher
from bloomcli.formats.orc.zones import writer_zone
from bloomcli.storage.base import Source
from bloomcli.words import counted

INTEGERS: Final = {"SHORT": 2, "INT": 4, "LONG": 8, "DATE": 4}
FLOATS: Final = {"FLOAT": 4, "DOUBLE": 8}
_BYTES: Final = ("STRING", "VARCHAR", "CHAR", "BINARY")
REPEATED: Final = ("LIST", "MAP")
TIMESTAMPS: Final = ("TIMESTAMP", "TIMESTAMP_INSTANT")
_KINDS: Final = frozenset((*INTEGERS, *FLOATS, *_BYTES, *REPEATED, *TIMESTAMPS, "BYTE", "DECIMAL"))

_PLAIN: Final = ("DIRECT",)
VERSIONS: Final = {"DIRECT": 1, "DIRECT_V2": 2, "DICTIONARY": 1, "DICTIONARY_V2": 2}
DIRECT: Final = ("DIRECT", "DIRECT_V2")
_ENCODINGS: Final[dict[str, tuple[str, ...]]] = {
    **dict.fromkeys((*INTEGERS, *REPEATED, *TIMESTAMPS, "BINARY", "DECIMAL"), DIRECT),
    **dict.fromkeys((*FLOATS, "BYTE"), _PLAIN),
    **dict.fromkeys(("STRING", "VARCHAR", "CHAR"), tuple(VERSIONS)),
}
"""The possible encodings of values of each kind."""


@dataclass(frozen=True, slots=True)
class BatchHashes:
    """Hashes of the non-null values of some rows, at most a batch."""

    count: int
    hashes: bytearray
    has_zero: bool
    other_hashes: bytearray
    """Hashes that some readers compute for a value in place of its hash in `hashes`."""
    owners: bytearray
    """For each hash in `other_hashes`, the number of its value in the batch, as int64."""


def why_unreadable(footer: Footer, orc: OrcType) -> str | None:
    """Why a column's values can't be read; None where they can."""
    if orc.kind == "DECIMAL" and orc.fault is not None:
        return orc.fault
    if any(t.kind == "UNION" for t in footer.ancestors(orc)):
        return "it lies within a union"
    return None if orc.kind in _KINDS else f"how values of {orc.name} are hashed isn't known"


def _batches(count: int) -> Iterator[int]:
    """Split `count` into parts of at most a batch."""
    while count > 0:
        yield min(count, limits.ROWS_PER_BATCH)
        count -= limits.ROWS_PER_BATCH


class Streams:
    """One column's streams in one stripe, by kind. Raises UnsupportedError for a file of an unknown version, in which
    they may mean something else."""

    def __init__(self, source: Source, footer: Footer, stripe: StripeFooter, orc: OrcType, stop: Stop) -> None:
        footer.refuse_unknown_version()
        self._source = source
        self._footer = footer
        self._stripe = stripe
        self._orc = orc
        self._stop = stop

    def open(self, kind: str) -> ByteStream:
        """Open a stream at its start."""
        found = self._stripe.find(kind, self._orc.id)
        return ByteStream(self._source, self._footer.codec, self._stripe.stripe, found, self._stop)

    def presence(self) -> Presence | None:
        """The PRESENT stream; None if all rows have a value."""
        return Presence(self.open("PRESENT")) if self._stripe.find("PRESENT", self._orc.id) is not None else None

    def encoding(self) -> tuple[str, int]:
        """The column's encoding, and the number of its dictionary's entries."""
        columns = self._stripe.message.columns
        field = f"{self._stripe.stripe.field}.footer.columns[{self._orc.id}]"
        if self._orc.id >= len(columns):
            raise CorruptFile(
                f"column {self._orc.label} has no encoding",
                path=self._footer.path,
                offset=self._stripe.stripe.offset,
                field=field,
                hint="the file is damaged; get it from its source again",
            )
        found = columns[self._orc.id]
        name = spec.name_of("EncodingKind", found.kind)
        if name not in _ENCODINGS[self._orc.kind]:
            unknown = name not in VERSIONS
            raise (UnsupportedError if unknown else CorruptFile)(
                f"column {self._orc.label}, {self._orc.name}, in the encoding {name}",
                path=self._footer.path,
                offset=self._stripe.stripe.offset,
                field=field,
                hint="rewrite the file with a released writer" if unknown else "the file is damaged",
            )
        return name, int(found.dictionary_size)

    def lengths(self) -> Runs:
        """The LENGTH stream."""
        return integers(self.open("LENGTH"), VERSIONS[self.encoding()[0]], signed=False)

    def zone(self) -> kernels.WriterZone:
        """The time zone of the column's timestamps. Raises UnsupportedError if it is unknown."""
        zone = writer_zone(_zone_name(self._stripe, self._orc))
        if zone is None:
            raise UnsupportedError(
                f"column {self._orc.label} can't be read: {why_zone_unknown(self._stripe, self._orc)}",
                path=self._footer.path,
                offset=self._stripe.stripe.offset,
                field=f"{self._stripe.stripe.field}.footer.writerTimezone",
                hint="leave it out of --columns; where time zone data are missing, `pip install tzdata` brings them",
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


class _Level:
    """Counts the child values of a struct, list or map above the column."""

    def __init__(self, streams: Streams, orc: OrcType) -> None:
        self._presence = streams.presence()
        self._lengths = streams.lengths() if orc.kind in REPEATED else None
        self._fault = streams.open("LENGTH").fault

    def children(self, rows: int) -> int:
        """The number of children of the next `rows` values."""
        if self._presence is None and self._lengths is None:
            return rows
        total = 0
        for batch in _batches(rows):
            present = batch if self._presence is None else self._presence.take(batch)
            total += present if self._lengths is None else _sum(self._lengths.take(present), present, self._fault)
        return total


def _sum(lengths: memoryview, count: int, fault: Callable[[str], CorruptFile]) -> int:
    try:
        return kernels.orc_sum(lengths, count)
    except kernels.RunError as error:
        raise fault(str(error)) from None


class ValueCounter:
    """Counts a column's values in rows. Nulls of the column or its ancestors, and empty lists, have no value."""

    def __init__(self, source: Source, footer: Footer, stripe: StripeFooter, orc: OrcType, stop: Stop) -> None:
        self._levels = [_Level(Streams(source, footer, stripe, t, stop), t) for t in footer.ancestors(orc)]
        self._presence = Streams(source, footer, stripe, orc, stop).presence()
        self._path = footer.path
        self._stripe = stripe.stripe
        self._stop = stop
        self._seen = [0] * (len(self._levels) + 2)
        """The values so far: of each ancestor, of the column with nulls, and of the column without nulls."""

    def values(self, rows: int) -> Iterator[int]:
        """The number of values in the next rows, in batches. Raises UnsupportedError."""
        for depth, level in enumerate(self._levels):
            self._add(depth, rows)
            rows = level.children(rows)
        self._add(-2, rows)
        for batch in _batches(rows):
            self._stop.check()
            present = batch if self._presence is None else self._presence.take(batch)
            self._add(-1, present)
            yield present

    def _add(self, depth: int, count: int) -> None:
        self._seen[depth] += count
        if self._seen[depth] > orc_limits.VALUES_MAX:
            raise UnsupportedError(
                f"a stripe with more than {orc_limits.VALUES_MAX} values of a column",
                path=self._path,
                offset=self._stripe.offset,
                field=self._stripe.field,
                hint="write the file with smaller stripes",
            )


class ColumnReader:
    """Hashes the values of one column of one stripe, from the first row to the last."""

    def __init__(
        self, source: Source, footer: Footer, stripe: StripeFooter, orc: OrcType, stop: Stop, *, repeats: bool = False
    ) -> None:
        """`repeats`: give hashes of other readings for each of equal neighbours, not only for the first."""
        self._counter = ValueCounter(source, footer, stripe, orc, stop)
        streams = Streams(source, footer, stripe, orc, stop)
        self._timestamps = _timestamp_hasher(streams, repeats=repeats) if orc.kind in TIMESTAMPS else None
        self._hash = _hasher(streams, orc, stop) if self._timestamps is None else self._timestamps.hash_next

    def take(self, rows: int) -> Iterator[BatchHashes]:
        """Hash the non-null values of the next rows, in batches. Consume them before the next call. Raises
        CorruptFile, UnsupportedError, Stopped."""
        for count in self._counter.values(rows):
            out = bytearray(count * 8)
            zero = self._hash(count, out)
            owners, other_hashes = (
                (bytearray(), bytearray()) if self._timestamps is None else self._timestamps.other_hashes()
            )
            yield BatchHashes(count, out, zero, other_hashes, owners)


Hasher = Callable[[int, bytearray], bool]
"""Writes the hashes of the next values (at most a batch) to `out`; returns whether one of them is a zero."""


def _hasher(streams: Streams, orc: OrcType, stop: Stop) -> Hasher:
    encoding, entries = streams.encoding()
    if orc.kind in INTEGERS:
        return _integers(streams, VERSIONS[encoding], INTEGERS[orc.kind])
    if orc.kind == "BYTE":
        return _bytes(streams)
    if orc.kind in REPEATED:
        return _lengths(streams)
    if orc.kind in FLOATS:
        return _floats(streams, FLOATS[orc.kind])
    if orc.kind == "DECIMAL":
        return _decimals(streams, orc, VERSIONS[encoding])
    if encoding in DIRECT:
        return _strings(streams.open("DATA"), streams.lengths())
    return _entries(streams, VERSIONS[encoding], entries, stop)


def _timestamp_hasher(streams: Streams, *, repeats: bool) -> TimestampHasher:
    encoding, _ = streams.encoding()
    return TimestampHasher(
        streams.open("DATA"), streams.open("SECONDARY"), VERSIONS[encoding], streams.zone(), repeats=repeats
    )


def _integers(streams: Streams, version: int, width: int) -> Hasher:
    data = streams.open("DATA")
    runs = integers(data, version, signed=True)

    def hash_next(count: int, out: bytearray) -> bool:
        values = runs.take(count)
        if not kernels.orc_fit(values, count, width):
            raise data.fault(f"an integer that its column's {counted(width, 'byte')} can't hold")
        kernels.orc_hash_long(values, 8, 1, 0, count, None, out)
        return False

    return hash_next


def _bytes(streams: Streams) -> Hasher:
    runs = byte_runs(streams.open("DATA"))

    def hash_next(count: int, out: bytearray) -> bool:
        kernels.orc_hash_long(runs.take(count), 1, 1, 0, count, None, out)
        return False

    return hash_next


def _lengths(streams: Streams) -> Hasher:
    runs = streams.lengths()
    fault = streams.open("LENGTH").fault

    def hash_next(count: int, out: bytearray) -> bool:
        values = runs.take(count)
        _sum(values, count, fault)  # refuses impossible lengths
        kernels.orc_hash_long(values, 8, 1, 0, count, None, out)
        return False

    return hash_next


def _floats(streams: Streams, width: int) -> Hasher:
    data = streams.open("DATA")

    def hash_next(count: int, out: bytearray) -> bool:
        values = data.take(count * width)
        kernels.orc_hash_double(values, width, 0, count, None, out)
        return kernels.has_zero(values, width, 0, count, None)

    return hash_next


def _decimals(streams: Streams, orc: OrcType, version: int) -> Hasher:
    data = streams.open("DATA")
    scales = integers(streams.open("SECONDARY"), version, signed=True)
    most = SHORT_DIGITS if orc.precision <= SHORT_DIGITS else orc_limits.DECIMAL_DIGITS

    def hash_next(count: int, out: bytearray) -> bool:
        taken = scales.take(count)
        done = 0
        try:
            while True:
                done, data.at = kernels.orc_hash_decimals(
                    data.data, data.at, taken, done, count, orc.scale, most, out
                )
                if done == count:
                    return False
                data.more()
        except kernels.RunError as error:
            raise data.fault(str(error)) from None

    return hash_next


def _strings(data: ByteStream, runs: Runs) -> Hasher:
    total = 0

    def hash_next(count: int, out: bytearray) -> bool:
        nonlocal total
        lengths = runs.take(count)
        total += _sum(lengths, count, data.fault)
        data.check_size(total)  # before that much is read
        done = 0
        try:
            while True:
                done, data.at = kernels.orc_hash_lengths(data.data, data.at, lengths, done, count, out)
                if done == count:
                    return False
                value = kernels.OrcMurmur()  # it crosses chunks, and may be of any length
                for piece in data.pieces(int.from_bytes(lengths[done * 8 : done * 8 + 8], "little")):
                    value.update(piece)
                out[done * 8 : done * 8 + 8] = value.digest().to_bytes(8, "little")
                done += 1
        except kernels.RunError as error:
            raise data.fault(str(error)) from None

    return hash_next


def hashed_entries(streams: Streams, entries: int, stop: Stop) -> bytearray:
    """The hashes of all entries of a stripe's dictionary. Raises CorruptFile, UnsupportedError."""
    if entries > orc_limits.DICTIONARY_MAX:
        raise streams.open("DATA").fault(
            f"a dictionary of {counted(entries, 'entry')}, more than the {orc_limits.DICTIONARY_MAX} that are read"
        )
    entry = _strings(streams.open("DICTIONARY_DATA"), streams.lengths())
    table = bytearray()
    for batch in _batches(entries):
        stop.check()
        out = bytearray(batch * 8)
        entry(batch, out)
        table += out
    return table


def _entries(streams: Streams, version: int, entries: int, stop: Stop) -> Hasher:
    """Hash each entry of the dictionary once."""
    data = streams.open("DATA")
    table = hashed_entries(streams, entries, stop)
    indexes = integers(data, version, signed=False)

    def hash_next(count: int, out: bytearray) -> bool:
        try:
            kernels.orc_gather(table, indexes.take(count), count, out)
        except kernels.RunError as error:
            raise data.fault(str(error)) from None
        return False

    return hash_next
