"""The values of columns as hashes, row group by row group: what goes into filters, and has to be found there.

Columns are read straight from their streams (see `column_reader`): pyarrow takes longer to import than that does for
a small file. It decodes the stripes of decimals only, and the kernels hash from its buffers. What is hashed is what
orc-core hashes, by type:

    tinyint to bigint, date      the number                            Wang
    timestamp                    milliseconds, rounded down            Wang
    float (widened), double      the double's bits, NaN canonical      Wang
    string, char, varchar        the bytes                             Murmur3
    decimal                      its text, trailing zeros trimmed      Murmur3
    list, map                    the number of elements                Wang

Nulls are never hashed. If a zero of either sign occurs in a floating-point column, both are given.

Of a timestamp without a zone that is what the writer's wall clock showed, as if it were UTC's; where readers
disagree about it (see `moments`), the hashes of what others see are given too.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import compress
from typing import Any, Final

from bloomcli import kernels
from bloomcli.filters.kirsch_mitzenmacher import KirschMitzenmacherFilter
from bloomcli.formats.orc.arrow_reader import ArrowReader, undecodable
from bloomcli.formats.orc.column_reader import TIMESTAMPS, ColumnReader, readable
from bloomcli.formats.orc.footer import Footer, Stripe
from bloomcli.formats.orc.schema import OrcType
from bloomcli.formats.orc.shown import ShownValues
from bloomcli.literals import Literal
from bloomcli.model import Column
from bloomcli.source import Source

_INTEGERS: Final = ("BYTE", "SHORT", "INT", "LONG", "DATE")
FLOATS: Final = {"FLOAT": 4, "DOUBLE": 8}
_BYTES: Final = ("STRING", "VARCHAR", "CHAR", "BINARY")
_NANOS_PER_MILLI: Final = 1_000_000
_LONG: Final = (1 << 64) - 1
"""Java's longs wrap around."""
_ZEROS: Final = (struct.pack("<d", 0.0), struct.pack("<d", -0.0))

HASHABLE: Final = frozenset((*_INTEGERS, *FLOATS, *_BYTES, *TIMESTAMPS, "DECIMAL"))
"""Kinds of the leaves that filters can be made for."""
READABLE: Final = HASHABLE | {"LIST", "MAP"}
"""Kinds whose filters can be checked against the column."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hashed:
    """The hashes of the present values of one column in one row group, and the values on request."""

    count: int
    hashes: bytearray
    has_zero: bool
    value: Callable[[int], str]
    """The text of the value behind the hash at an index. Slow: for the few that are reported."""
    shifted: bytearray
    """The hashes of the moments that readers may see instead of some of the values."""
    owners: bytearray
    """For each of the shifted, an int64: the index of the value."""


def unread(footer: Footer, orc: OrcType) -> str | None:
    """Why a column's values can't be held against its filters; None where they can."""
    if orc.kind == "UNION":
        return "they are a union's tags, which no reader asks for"
    if orc.kind not in READABLE:
        return f"how values of {orc.name} are hashed isn't known"
    return None if readable(footer, orc) else undecodable(footer, orc)


def zero_hashes() -> bytearray:
    """Both zeros' hashes."""
    out = bytearray(16)
    kernels.orc_hash_double(b"".join(_ZEROS), 8, 0, 2, None, out)
    return out


def literal_hashes(literal: Literal, orc: OrcType, typed: Column) -> list[int]:
    """The hashes to look up for a typed value."""
    return [encoded_hash(encoded, orc, typed) for encoded in literal.encodings]


def encoded_hash(encoded: bytes, orc: OrcType, typed: Column) -> int:
    """The hash of a value that is given as PLAIN bytes of its literal's column."""
    out = bytearray(8)
    if orc.kind in FLOATS:
        kernels.orc_hash_double(encoded, len(encoded), 0, 1, None, out)
    elif orc.kind in TIMESTAMPS:
        millis = int.from_bytes(encoded, "little", signed=True) // _NANOS_PER_MILLI
        kernels.orc_hash_long((millis & _LONG).to_bytes(8, "little"), 8, 1, 0, 1, None, out)
    elif orc.kind == "DECIMAL":
        unscaled = int.from_bytes(encoded, "big", signed=True)
        return kernels.orc_hash_bytes(
            kernels.orc_decimal_text(unscaled.to_bytes(16, "little", signed=True), typed.scale)
        )
    elif orc.kind == "CHAR":
        text = encoded.decode("utf-8", "surrogateescape").rstrip(" ")  # of no meaning: readers cut, then pad
        padded = text.ljust(orc.maximum_length)
        return kernels.orc_hash_bytes(padded.encode("utf-8", "surrogateescape"))
    elif orc.kind in _BYTES:
        return kernels.orc_hash_bytes(encoded)
    else:
        kernels.orc_hash_long(encoded, len(encoded), 1, 0, 1, None, out)
    return int.from_bytes(out, "little")


class StripeReader:
    """Reads stripes of chosen columns, and hands out their hashes by row group. Not for several threads at once."""

    def __init__(self, source: Source, footer: Footer, columns: Sequence[OrcType]) -> None:
        self._source = source
        self._footer = footer
        self._columns = columns
        self._decoded = [c for c in columns if not readable(footer, c)]
        self._native = [c for c in columns if readable(footer, c)]
        self._arrow = ArrowReader(source, footer, self._decoded) if self._decoded else None

    def row_groups(self, stripe: Stripe) -> Iterator[dict[int, Hashed]]:
        """For each row group of a stripe, the chosen columns' hashes by column id.

        Raises CorruptFile where the stripe can't be decoded, UnsupportedError.
        """
        streams = self._footer.stripe_footer(stripe)
        readers = {c.id: ColumnReader(self._source, self._footer, streams, c) for c in self._native}
        arrays = None if self._arrow is None else self._arrow.stripe(stripe)
        shown = ShownValues(self._source, self._footer, stripe)
        for group in range(self._footer.row_groups(stripe)):
            found = {}
            for c in self._columns:
                if arrays is not None and c.id not in readers:
                    found[c.id] = _hashed(arrays.array(c, group))
                    continue
                taken = readers[c.id].take(self._footer.rows_in(stripe, group))
                found[c.id] = Hashed(
                    count=taken.count,
                    hashes=taken.hashes,
                    has_zero=taken.has_zero,
                    value=partial(shown.text, c, group),
                    shifted=taken.others,
                    owners=taken.owners,
                )
            yield found


def _view(buffer: Any) -> memoryview:
    """An Arrow buffer as unsigned bytes, which is not what Arrow calls them."""
    return memoryview(b"") if buffer is None else memoryview(buffer).cast("B")


def found_shifted(hashed: Hashed, flags: bytearray, bits: KirschMitzenmacherFilter) -> int:
    """Set the flags of the lost values that the filter holds as others see them; returns how many are still lost."""
    count = len(hashed.shifted) // 8
    held = bytearray(count)
    bits.check_hashes(hashed.shifted, count, held)
    for owner in compress(memoryview(hashed.owners).cast("q"), held):
        flags[owner] = 1
    return flags.count(0)


def _hashed(array: Any) -> Hashed:
    """Decimals, which is what pyarrow decodes."""
    buffers = [_view(b) for b in array.buffers()]
    validity = buffers[0] if array.null_count else None
    out = bytearray(len(array) * 8)
    count = kernels.orc_hash_decimal(buffers[1], array.type.scale, array.offset, len(array), validity, out)
    return Hashed(
        count=count,
        hashes=out,
        has_zero=False,
        value=lambda index: str(array.drop_null()[index].as_py()),
        shifted=bytearray(),
        owners=bytearray(),
    )
