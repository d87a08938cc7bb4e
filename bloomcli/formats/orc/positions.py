"""The start of a row group in its column's streams, by the entries of the row index.

An entry has numbers for PRESENT, if the stripe has that stream, and then for the streams of the column's kind:

    compressed file     bytes to the chunk, bytes to skip in it       uncompressed file: bytes to the place
    runs of numbers     and values to skip in the run
    runs of bits        and bytes to skip in the run, bits to skip in the byte

Dictionaries and the lengths of their entries have none: they belong to the whole stripe.

Source: the Apache ORC specification, Row Group Index; orc-core's RecordReaderImpl and TreeWriterBase.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from bloomcli.formats.orc.compression import HEADER
from bloomcli.formats.orc.footer import StripeFooter
from bloomcli.formats.orc.schema import OrcType
from bloomcli.formats.orc.streams import Position
from bloomcli.formats.orc.values import DIRECT, FLOATS, INTEGERS, REPEATED, TIMESTAMPS

_RAW, _RUNS, _BITS = 0, 1, 2
"""The number of further numbers after the place."""
_TEXTS: Final = ("STRING", "VARCHAR", "CHAR")
_STREAMS: Final[Mapping[str, tuple[tuple[str, int], ...]]] = {
    **dict.fromkeys((*INTEGERS, "BYTE"), (("DATA", _RUNS),)),
    **dict.fromkeys(FLOATS, (("DATA", _RAW),)),
    **dict.fromkeys((*_TEXTS, "BINARY"), (("DATA", _RAW), ("LENGTH", _RUNS))),
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


def stream_positions(
    stripe: StripeFooter, orc: OrcType, encoding: str, entry: Sequence[int], *, compressed: bool
) -> dict[str, Position] | None:
    """The positions of the column's streams by kind; None if an entry doesn't have the numbers of these streams."""
    streams = _STREAMS.get(orc.kind)
    if streams is None:
        return None
    if orc.kind in _TEXTS and encoding not in DIRECT:
        streams = (("DATA", _RUNS),)
    present = stripe.find("PRESENT", orc.id) is not None
    if present:
        streams = (("PRESENT", _BITS), *streams)
    place = 2 if compressed else 1
    if len(entry) != sum(place + more for _, more in streams):
        return None
    numbers = iter(entry)
    found = {}
    for kind, more in streams:
        chunk, skip = next(numbers), next(numbers) if compressed else 0
        found[kind] = Position(chunk, skip, next(numbers) if more else 0, next(numbers) if more == _BITS else 0)
        if found[kind].bits > 7:
            return None
    return found


def end_before(position: Position, *, compressed: bool) -> int:
    """The approximate end of the bytes that the row group before a position needs, from the stream's start."""
    if not compressed:
        return position.chunk + _PAST_BYTES
    inside = position.skip or position.values or position.bits
    return position.chunk + (HEADER + _CHUNK_BYTES if inside else 0)
