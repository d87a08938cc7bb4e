"""The bytes of Hudi's filters. All integers are big-endian, 32 bits.

    simple:  version -1 | k | u8 hash (0 Jenkins, 1 Murmur) | m | ceil(m / 8) bytes of bits
    old:     k          |                                     m | ceil(m / 8) bytes of bits, by Jenkins' hash
    dynamic: version -1 | k | u8 hash | m | keys per row | keys in the last row | rows | each row as a simple filter

A base file has them as base64. Sources: Hudi's InternalFilter, InternalBloomFilter, InternalDynamicBloomFilter,
BloomFilterUtils: m = ceil(-n ln p / (ln 2)^2), k = ceil(m / n ln 2).
"""

from __future__ import annotations

import math
from struct import Struct
from typing import Final, NamedTuple

from bloomcli.engine_filters.base import BitRow
from bloomcli.words import counted

COLUMN: Final = "_hoodie_record_key"
"""The column whose values the filters have."""
_INT: Final = Struct(">i")
_VERSION: Final = -1
_HASHES: Final = {0: "jenkins", 1: "murmur"}
_K_MAX: Final = 1024
"""The largest k that is believed: 30 is that of the default rate of 1e-9, and 1024 that of 2^-1024."""


class LayoutError(Exception):
    """The bytes aren't a filter. Arguments: the reason, and the position of the fault."""


class Decoded(NamedTuple):
    """A filter."""

    rows: tuple[BitRow, ...]
    header: bytes
    """The bytes before the first row's bits; in a dynamic filter before its first row."""
    hash: str
    end: int
    """The position after the filter."""
    keys_per_row: int | None = None
    """For a dynamic filter, the keys for which a row was sized."""

    @property
    def sized_for(self) -> int:
        """The number of keys for which the size was chosen: n of m; in a simple filter by `asked_fpp`."""
        if self.keys_per_row is not None:
            return self.keys_per_row * len(self.rows)
        return max(1, round(-self.rows[0].bits * math.log(2) ** 2 / math.log(self.asked_fpp)))

    @property
    def asked_fpp(self) -> float:
        """The rate for which the size was chosen. A simple filter has only k = ceil(-log2 p): of the rates that give
        it, the power of ten if there is one, else the middle one."""
        _, bits, k = self.rows[0]
        if self.keys_per_row:
            return math.exp(-bits / self.keys_per_row * math.log(2) ** 2)
        power = 10.0 ** math.ceil(-k * math.log10(2))
        return power if power < 2.0 ** (1 - k) else 2.0 ** (0.5 - k)


class _Reader:
    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data, self.at = data, at

    def take(self, count: int, what: str) -> bytes:
        """The next bytes. Their number is compared with the bytes that are there first."""
        if count > len(self.data) - self.at:
            left = len(self.data) - self.at
            raise LayoutError(f"it ends within its {what}: {counted(count, 'byte')} needed, {left} there", self.at)
        self.at += count
        return self.data[self.at - count : self.at]

    def integer(self, what: str, least: int) -> int:
        """The next integer."""
        start = self.at
        (number,) = _INT.unpack(self.take(_INT.size, what))
        if number < least:
            raise LayoutError(f"its {what}, {number}, is less than {least}", start)
        return int(number)

    def head(self) -> tuple[int, str, int]:
        """k, the hash and m."""
        start = self.at
        first, name = self.integer("version", _VERSION), _HASHES[0]
        if first == _VERSION:
            first = self.integer("number of hash functions", 1)
            kind = self.take(1, "type of hash")[0]
            if kind not in _HASHES:
                raise LayoutError(f"its type of hash, {kind}, is unknown", self.at - 1)
            name = _HASHES[kind]
        if not 1 <= first <= _K_MAX:
            raise LayoutError(f"its number of hash functions, {first}, isn't between 1 and {_K_MAX}", start)
        return first, name, self.integer("number of bits", 1)

    def row(self) -> tuple[BitRow, str]:
        """A simple filter, and its hash."""
        k, name, bits = self.head()
        return BitRow(self.take((bits + 7) // 8, "bits"), bits, k), name


def simple(data: bytes) -> Decoded:
    """Decode a simple filter. Raises LayoutError."""
    reader = _Reader(data)
    row, name = reader.row()
    return Decoded((row,), data[: reader.at - len(row.bitset)], name, reader.at)


def dynamic(data: bytes) -> Decoded:
    """Decode a dynamic filter. Raises LayoutError, also where a row has another k, m or hash than the filter."""
    reader = _Reader(data)
    head = reader.head()
    keys = reader.integer("keys per row", 1)
    reader.integer("keys in the last row", 0)
    count = reader.integer("number of rows", 1)
    header = data[: reader.at]
    rows: list[BitRow] = []
    for _ in range(count):  # ends with the data
        start = reader.at
        row, name = reader.row()
        if (row.k, name, row.bits) != head:
            raise LayoutError(f"its row {len(rows)} differs from the filter in its m, its k or its hash", start)
        rows.append(row)
    return Decoded(tuple(rows), header, head[1], reader.at, keys)
