"""The row index of a column in a stripe: the statistics of each row group, and its start in each of the column's
streams.

An entry has numbers for PRESENT, if the stripe has that stream, and then for the streams of the column's kind:

    compressed file     bytes to the chunk, bytes to skip in it       uncompressed file: bytes to the place
    runs of numbers     and values to skip in the run
    runs of bits        and bytes to skip in the run, bits to skip in the byte

Dictionaries and the lengths of their entries have none: they belong to the whole stripe.

Source: the Apache ORC specification, Row Group Index; orc-core's RecordReaderImpl and TreeWriterBase.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Final

from bloomcli.errors import CorruptFile, UnsupportedError
from bloomcli.formats.orc import spec, statistics
from bloomcli.formats.orc.compression import HEADER
from bloomcli.formats.orc.footer import Footer, StripeFooter
from bloomcli.formats.orc.schema import OrcType
from bloomcli.formats.orc.streams import Position
from bloomcli.formats.orc.values import DIRECT, FLOATS, INTEGERS, REPEATED, STRINGS, TEXTS, TIMESTAMPS
from bloomcli.words import counted

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
    "UNION": (("DATA", _RUNS),),
}
_PAST_BYTES: Final = 8 << 10
"""Bytes after the next row group's start into which the last run of an uncompressed stream can reach."""
_CHUNK_BYTES: Final = 64 << 10
"""Bytes of a compressed chunk that are read ahead. A larger chunk takes another read."""


class RowIndex:
    """The row index of a column in a stripe, as stored.

    Attributes:
        streams, orc: the stripe's footer, and the column.
        stream: the stream; None if the stripe doesn't have it.
        entries: one for each row group. None at all if readers can't use those in the file: with another number of
            entries than the stripe has row groups, statistics and positions are of other rows.
        problem: why readers can't use those in the file; None if they can, and without any.
    """

    def __init__(self, footer: Footer, streams: StripeFooter, orc: OrcType) -> None:
        self.streams, self.orc = streams, orc
        self.stream = streams.find("ROW_INDEX", orc.id)
        self.entries: Sequence[Any] = ()
        self.problem: str | None = None
        self._footer = footer
        self._compressed = footer.codec.name != "NONE"
        if self.stream is None or not footer.stride or orc.id in footer.encrypted_columns:
            return  # the index of an encrypted column describes its mask
        try:
            entries = self.stored
        except (CorruptFile, UnsupportedError) as error:
            self.problem = f"the row index can't be read: {error.reason}"
            return
        count, wanted = len(entries), footer.row_groups(streams.stripe)
        if count == wanted:
            self.entries = entries
        else:
            named = "entry" if count == 1 else "entries"
            self.problem = f"the row index has {count} {named} for {counted(wanted, 'row group')}"

    @cached_property
    def stored(self) -> Sequence[Any]:
        """The entries in the file. Raises CorruptFile, UnsupportedError."""
        if self.stream is None:
            return ()
        stripe = self.streams.stripe
        data = self._footer.read_index(self.stream, stripe)
        return list(spec.parse("RowIndex", data, self._footer.path, self.stream.offset, stripe.field).entry)

    def statistics(self, group: int) -> Any | None:
        """The statistics of a row group; None if there are none."""
        if group < len(self.entries) and self.entries[group].HasField("statistics"):
            return self.entries[group].statistics
        return None

    @cached_property
    def believed(self) -> Sequence[Any | None]:
        """The statistics of each of `Footer.units`; None for all where no entries can be used. What is known to be
        wrong in them is taken out of `entries` (see `statistics.believe`)."""
        stats = [entry.statistics for entry in self.entries]
        statistics.believe(stats, self.orc, self._footer.created_by)
        return stats or [None] * len(self._footer.units(self.streams.stripe))

    @cached_property
    def _layout(self) -> Sequence[tuple[str, int]] | None:
        """The kinds of the streams with positions, and the further numbers of each; None if unknown."""
        orc, encoding = self.orc, self.streams.encoding(self.orc.id)
        if encoding is None or self._footer.version_error is not None:  # other versions have other streams
            return None
        layout = _STREAMS.get(orc.kind)
        if orc.kind in TEXTS and encoding.name not in DIRECT:
            layout = (("DATA", _RUNS),)
        if layout is not None and self.streams.find("PRESENT", orc.id) is not None:
            layout = (("PRESENT", _BITS), *layout)
        return layout

    @property
    def numbers(self) -> int | None:
        """The number of numbers that an entry needs for its positions; None if unknown."""
        layout = self._layout
        return None if layout is None else sum((2 if self._compressed else 1) + more for _, more in layout)

    def positions(self, group: int) -> dict[str, Position] | None:
        """The positions of a row group, whose entry has at least `numbers`, by kind of stream; None if a byte would
        have more than 8 bits."""
        rest = iter(self.entries[group].positions)
        positions = {}
        for kind, more in self._layout or ():
            chunk, skip = next(rest), next(rest) if self._compressed else 0
            positions[kind] = Position(chunk, skip, next(rest) if more else 0, next(rest) if more == _BITS else 0)
            if positions[kind].bits > 7:
                return None
        return positions


def end_before(position: Position, *, compressed: bool) -> int:
    """The approximate end of the bytes that the row group before a position needs, from the stream's start."""
    if not compressed:
        return position.chunk + _PAST_BYTES
    inside = position.skip or position.values or position.bits
    return position.chunk + (HEADER + _CHUNK_BYTES if inside else 0)
