"""Hashes the values of columns, row group by row group, to build filters or to check them.

Columns are read directly from their streams (see `column_reader`). Hashed is what orc-core hashes, by type:

    tinyint to bigint, date      the number                            Wang
    timestamp                    milliseconds, rounded down            Wang
    float (widened), double      the double's bits, NaN canonical      Wang
    string, char, varchar        the bytes                             Murmur3
    decimal                      its text, trailing zeros trimmed      Murmur3
    list, map                    the number of elements                Wang

Nulls are never hashed. If a floating-point column has a zero of either sign, filters get both zeros.

A timestamp without a zone is hashed as the writer's wall clock showed it, as if it were UTC. Where readers disagree
(see `timestamps`), the hashes of the other readings are returned too.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from bloomcli import kernels
from bloomcli.concurrency.cancellation import Stop
from bloomcli.formats.orc import limits as orc_limits
from bloomcli.formats.orc.column_reader import TIMESTAMPS, BatchHashes, ColumnReader, why_unreadable
from bloomcli.formats.orc.footer import Footer, StripeFooter
from bloomcli.formats.orc.schema import OrcType
from bloomcli.model.file import Column
from bloomcli.storage.base import Source

if TYPE_CHECKING:
    from bloomcli.values.literals import Literal

_INTEGERS: Final = ("BYTE", "SHORT", "INT", "LONG", "DATE")
FLOATS: Final = {"FLOAT": 4, "DOUBLE": 8}
_BYTES: Final = ("STRING", "VARCHAR", "CHAR", "BINARY")
_NANOS_PER_MILLI: Final = 1_000_000
_LONG: Final = (1 << 64) - 1
"""Java's longs wrap around."""
_ZEROS: Final = (struct.pack("<d", 0.0), struct.pack("<d", -0.0))

HASHABLE: Final = frozenset((*_INTEGERS, *FLOATS, *_BYTES, *TIMESTAMPS, "DECIMAL"))
"""Kinds of leaf columns that can have filters."""
READABLE: Final = HASHABLE | {"LIST", "MAP"}
"""Kinds whose filters can be checked against the column."""


def why_not_comparable(footer: Footer, orc: OrcType) -> str | None:
    """Why a column's values can't be compared with its filters; None if they can."""
    if orc.kind == "UNION":
        return "they are a union's tags, which no reader asks for"
    return why_unreadable(footer, orc)


def zero_hashes() -> bytearray:
    """Both zeros' hashes."""
    out = bytearray(16)
    kernels.orc_hash_double(b"".join(_ZEROS), 8, 0, 2, None, out)
    return out


def literal_hashes(literal: Literal, orc: OrcType, typed: Column) -> list[int]:
    """The hashes to look up for a typed value."""
    return [encoded_hash(encoded, orc, typed) for encoded in literal.encodings]


def encoded_hash(encoded: bytes, orc: OrcType, typed: Column) -> int:
    """The hash of a value, whose PLAIN bytes in the literal's column are `encoded`."""
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
        text = encoded.decode("utf-8", "surrogateescape").rstrip(" ")  # no meaning: readers cut, then pad
        padded = text.ljust(orc.maximum_length)
        return kernels.orc_hash_bytes(padded.encode("utf-8", "surrogateescape"))
    elif orc.kind in _BYTES:
        return kernels.orc_hash_bytes(encoded)
    else:
        kernels.orc_hash_long(encoded, len(encoded), 1, 0, 1, None, out)
    return int.from_bytes(out, "little")


def row_groups(
    source: Source, footer: Footer, streams: StripeFooter, orc: OrcType, stop: Stop, *, repeats: bool = False
) -> Iterator[Iterator[BatchHashes]]:
    """For each row group of a stripe, yield a column's hashes in batches. Consume each before the next.

    Hashes of other readings are given for the first of equal neighbours, or with `repeats` for each.

    Raises CorruptFile if the stripe can't be decoded, UnsupportedError; Stopped soon after `stop` is set.
    """
    reader = ColumnReader(source, footer, streams, orc, stop, repeats=repeats)
    for group in range(footer.row_groups(streams.stripe)):
        yield reader.take(footer.rows_in(streams.stripe, group))


def memory(streams: StripeFooter, orc: OrcType) -> int:
    """Maximum bytes of memory for reading a column of a stripe, apart from a few windows and batches: those of its
    dictionary's hashes."""
    columns = streams.message.columns
    entries = columns[orc.id].dictionary_size if orc.id < len(columns) else 0
    return 8 * min(int(entries), orc_limits.DICTIONARY_MAX)
