"""The values of columns as hashes, row group by row group: what goes into filters, and has to be found there.

Most columns are read straight from their streams (see `column_reader`): pyarrow takes longer to import than that
does for a small file. It decodes the stripes of the others (timestamps, decimals), and the kernels hash from its
buffers. What is hashed is what orc-core hashes, by type:

    tinyint to bigint, date      the number                            Wang
    timestamp                    milliseconds, UTC, rounded down       Wang
    float (widened), double      the double's bits, NaN canonical      Wang
    string, char, varchar        the bytes                             Murmur3
    decimal                      its text, trailing zeros trimmed      Murmur3
    list, map                    the number of elements                Wang

Nulls are never hashed. If a zero of either sign occurs in a floating-point column, both are given.

A timestamp (without zone) is stored as seconds, rounded towards zero, and nanoseconds. Whether a second has to be
taken off again is decided by its sign, which orc-core takes from the instant and ORC C++, which decodes here, from
the wall clock. Where the two have different signs, within a day of 1970 in a file whose writer's zone isn't UTC,
readers see one second more or less, and the hashes of those moments are given too.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from bloomcli import kernels
from bloomcli.filters.kirsch_mitzenmacher import KirschMitzenmacherFilter
from bloomcli.formats.orc.arrow_reader import ArrowReader, check_name
from bloomcli.formats.orc.column_reader import ColumnReader, readable
from bloomcli.formats.orc.footer import Footer, Stripe
from bloomcli.formats.orc.schema import OrcType
from bloomcli.formats.orc.shown import ShownValues
from bloomcli.literals import Literal
from bloomcli.model import Column
from bloomcli.source import Source

_INTEGERS: Final = ("BYTE", "SHORT", "INT", "LONG", "DATE")
FLOATS: Final = {"FLOAT": 4, "DOUBLE": 8}
_BYTES: Final = ("STRING", "VARCHAR", "CHAR", "BINARY")
_TIMESTAMPS: Final = ("TIMESTAMP", "TIMESTAMP_INSTANT")
_NANOS_PER_MILLI: Final = 1_000_000
_SECOND: Final = 1_000_000_000
_DAY: Final = 86_400 * _SECOND
_UTC: Final = ("UTC", "GMT", "Etc/UTC", "Etc/GMT")
_ZEROS: Final = (struct.pack("<d", 0.0), struct.pack("<d", -0.0))
DECIMAL_DIGITS: Final = 38

HASHABLE: Final = frozenset((*_INTEGERS, *FLOATS, *_BYTES, *_TIMESTAMPS, "DECIMAL"))
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
    array: Any = None
    """The Arrow array behind them, nulls included; None where pyarrow didn't decode them."""


def _text(scalar: Any) -> str:
    """The text of a decimal or a moment, also one that Python has no value for: nanoseconds, far years."""
    import pyarrow as pa

    try:
        return str(scalar.as_py())
    except (ValueError, OverflowError):
        wall = pa.scalar(scalar.value, pa.timestamp(scalar.type.unit)).cast(pa.string())
        return f"{wall.as_py()}Z" if scalar.type.tz else str(wall.as_py())


def zero_hashes() -> bytearray:
    """Both zeros' hashes."""
    out = bytearray(16)
    kernels.orc_hash_double(b"".join(_ZEROS), 8, 0, 2, None, out)
    return out


def literal_hashes(literal: Literal, orc: OrcType, typed: Column) -> list[int]:
    """The hashes to look up for a typed value."""
    return [_hash_literal(encoded, orc, typed) for encoded in literal.encodings]


def _hash_literal(encoded: bytes, orc: OrcType, typed: Column) -> int:
    out = bytearray(8)
    if orc.kind in FLOATS:
        kernels.orc_hash_double(encoded, len(encoded), 0, 1, None, out)
    elif orc.kind in _TIMESTAMPS:
        kernels.orc_hash_long(encoded, 8, _NANOS_PER_MILLI, 0, 1, None, out)
    elif orc.kind == "DECIMAL":
        unscaled = int.from_bytes(encoded, "big", signed=True)
        return kernels.orc_hash_bytes(
            kernels.orc_decimal_text(unscaled.to_bytes(16, "little", signed=True), typed.scale)
        )
    elif orc.kind == "CHAR":
        padded = encoded.decode("utf-8", "surrogateescape").ljust(orc.maximum_length)
        return kernels.orc_hash_bytes(padded.encode("utf-8", "surrogateescape"))
    elif orc.kind in _BYTES:
        return kernels.orc_hash_bytes(encoded)
    else:
        kernels.orc_hash_long(encoded, len(encoded), 1, 0, 1, None, out)
    return int.from_bytes(out, "little")


class StripeReader:
    """Reads stripes of chosen columns, and hands out their hashes by row group. Not for several threads at once."""

    def __init__(self, source: Source, footer: Footer, columns: Sequence[OrcType]) -> None:
        for column in columns:
            check_name(footer, column)
        self._source = source
        self._footer = footer
        self._columns = columns
        self._decoded = [c for c in columns if not readable(footer, c)]
        self._arrow = ArrowReader(source, footer, self._decoded) if self._decoded else None

    def row_groups(self, stripe: Stripe) -> Iterator[dict[int, Hashed]]:
        """For each row group of a stripe, the chosen columns' hashes by column id.

        Raises CorruptFile where the stripe can't be decoded, UnsupportedError.
        """
        streams = self._footer.stripe_footer(stripe)
        readers = {
            c.id: ColumnReader(self._source, self._footer, streams, c)
            for c in self._columns
            if c not in self._decoded
        }
        arrays = None if self._arrow is None else self._arrow.stripe(stripe)
        shifts = streams.message.writer_timezone not in _UTC
        shown = ShownValues(self._source, self._footer, stripe)
        for group in range(self._footer.row_groups(stripe)):
            found = {}
            for c in self._columns:
                if arrays is not None and c.id not in readers:
                    found[c.id] = _hashed(arrays.array(c, group), c, shifts=shifts)
                    continue
                taken = readers[c.id].take(self._footer.rows_in(stripe, group))
                found[c.id] = Hashed(
                    count=taken.count,
                    hashes=taken.hashes,
                    has_zero=taken.has_zero,
                    value=partial(shown.text, c, group),
                    shifted=bytearray(),
                )
            yield found


def _view(buffer: Any) -> memoryview:
    """An Arrow buffer as unsigned bytes, which is not what Arrow calls them."""
    return memoryview(b"") if buffer is None else memoryview(buffer).cast("B")


def _may_shift(nanos: Any) -> Any:
    """Which of the moments readers may take for one a second earlier or later: those near 1970, with a fraction."""
    import pyarrow.compute as pc

    near = pc.and_(pc.less_equal(nanos, _DAY), pc.greater_equal(nanos, -_DAY))
    return pc.and_(near, pc.not_equal(pc.multiply(pc.divide(nanos, _SECOND), _SECOND), nanos))


def _millis_hashes(nanos: Any) -> bytearray:
    out = bytearray(len(nanos) * 8)
    if len(nanos):
        kernels.orc_hash_long(_view(nanos.buffers()[1]), 8, _NANOS_PER_MILLI, nanos.offset, len(nanos), None, out)
    return out


def _shifted_hashes(values: Any) -> bytearray:
    import pyarrow as pa
    import pyarrow.compute as pc

    nanos = values.cast(pa.int64())
    bounds = pc.min_max(nanos).as_py()
    if bounds["min"] is None or bounds["min"] > _DAY or bounds["max"] < -_DAY:
        return bytearray()
    found = nanos.filter(_may_shift(nanos))
    return _millis_hashes(pc.subtract(found, _SECOND)) + _millis_hashes(pc.add(found, _SECOND))


def found_shifted(hashed: Hashed, flags: bytearray, bits: KirschMitzenmacherFilter) -> int:
    """Set the flags of the lost values that the filter holds a second off; returns how many are still lost."""
    import pyarrow as pa
    import pyarrow.compute as pc

    nanos = hashed.array.drop_null().cast(pa.int64())
    may = int.from_bytes(_view(_may_shift(nanos).cast(pa.uint8()).buffers()[1])[: len(nanos)], "little")
    found = int.from_bytes(flags, "little")
    for delta in (-_SECOND, _SECOND):
        out = bytearray(len(nanos))
        bits.check_hashes(_millis_hashes(pc.add(pc.if_else(_may_shift(nanos), nanos, 0), delta)), len(nanos), out)
        found |= int.from_bytes(out, "little") & may
    flags[:] = found.to_bytes(len(flags), "little")
    return flags.count(0)


def _hashed(array: Any, orc: OrcType, *, shifts: bool) -> Hashed:
    """Timestamps or decimals, which is what pyarrow decodes."""
    buffers = [_view(b) for b in array.buffers()]
    validity = buffers[0] if array.null_count else None
    offset, length = array.offset, len(array)
    out = bytearray(length * 8)
    if orc.kind == "DECIMAL":
        count = kernels.orc_hash_decimal(buffers[1], array.type.scale, offset, length, validity, out)
    else:
        count = kernels.orc_hash_long(buffers[1], 8, _NANOS_PER_MILLI, offset, length, validity, out)
    return Hashed(
        count=count,
        hashes=out,
        has_zero=False,
        value=lambda index: _text(array.drop_null()[index]),
        shifted=_shifted_hashes(array) if shifts and orc.kind == "TIMESTAMP" else bytearray(),
        array=array,
    )
