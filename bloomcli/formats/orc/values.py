"""The values of columns as hashes, row group by row group: what goes into filters, and has to be found there.

pyarrow decodes a stripe of the chosen columns; the kernels hash straight from its buffers. What is hashed
is what orc-core hashes, by type:

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

import itertools
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from bloomcli import kernels
from bloomcli.errors import CorruptFile, UnsupportedError
from bloomcli.filters.kirsch_mitzenmacher import KirschMitzenmacherFilter
from bloomcli.formats.orc.footer import Footer, Stripe
from bloomcli.formats.orc.schema import OrcType
from bloomcli.literals import Literal
from bloomcli.model import Column
from bloomcli.source import Source

_INTEGERS: Final = {"BYTE": 1, "SHORT": 2, "INT": 4, "LONG": 8, "DATE": 4}
_FLOATS: Final = {"FLOAT": 4, "DOUBLE": 8}
_BYTES: Final = ("STRING", "VARCHAR", "CHAR", "BINARY")
_TIMESTAMPS: Final = ("TIMESTAMP", "TIMESTAMP_INSTANT")
_NANOS_PER_MILLI: Final = 1_000_000
_EXACT_TIMESTAMPS: Final = 26
"""The pyarrow whose ORC reader is known to refuse timestamps outside of what nanoseconds hold (1677 to 2262)."""
_SECOND: Final = 1_000_000_000
_DAY: Final = 86_400 * _SECOND
_UTC: Final = ("UTC", "GMT", "Etc/UTC", "Etc/GMT")
_ZEROS: Final = (struct.pack("<d", 0.0), struct.pack("<d", -0.0))
DECIMAL_DIGITS: Final = 38

_DECODED: Final = {
    "BYTE": "int8",
    "SHORT": "int16",
    "INT": "int32",
    "LONG": "int64",
    "DATE": "date32[day]",
    "FLOAT": "float",
    "DOUBLE": "double",
    "DECIMAL": "decimal128(",
    "TIMESTAMP": "timestamp[ns]",
    "TIMESTAMP_INSTANT": "timestamp[ns, tz=",
    "BINARY": "binary",
    **dict.fromkeys(("STRING", "CHAR", "VARCHAR"), "string"),
    **dict.fromkeys(("LIST", "MAP"), "int32"),
}
"""What pyarrow has to decode each kind as: its buffers are read by these widths."""

HASHABLE: Final = frozenset((*_INTEGERS, *_FLOATS, *_BYTES, *_TIMESTAMPS, "DECIMAL"))
"""Kinds of the leaves that filters can be made for."""
READABLE: Final = HASHABLE | {"LIST", "MAP"}
"""Kinds whose filters can be checked against the column."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hashed:
    """The hashes of the present values of one column in one row group, and the values on request."""

    count: int
    hashes: bytearray
    has_zero: bool
    values: Any
    """The Arrow array behind them, nulls included."""
    shifted: bytearray
    """The hashes of the moments that readers may see instead of some of the values."""

    def value(self, index: int) -> str:
        """The text of the value behind the hash at `index`. Slow: for the few that are reported."""
        return _text(self.values.drop_null()[index])


def _text(scalar: Any) -> str:
    """An Arrow value's text, also where Python has no such value: nanoseconds, far years, bytes that are no UTF-8."""
    import pyarrow as pa

    try:
        return str(scalar.as_py())
    except (ValueError, OverflowError):
        if pa.types.is_timestamp(scalar.type):
            wall = pa.scalar(scalar.value, pa.timestamp(scalar.type.unit)).cast(pa.string())
            return f"{wall.as_py()}Z" if scalar.type.tz else str(wall.as_py())
        if pa.types.is_date(scalar.type):
            return str(scalar.cast(pa.string()).as_py())
        return str(scalar.as_buffer().to_pybytes().decode("utf-8", "backslashreplace"))


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
    if orc.kind in _FLOATS:
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
    """Decodes stripes of chosen columns, and hands out their hashes by row group."""

    def __init__(self, source: Source, footer: Footer, columns: Sequence[OrcType]) -> None:
        from pyarrow import ArrowException, orc

        for column in columns:
            check_name(footer, column)
            _check_decoder(footer, column)
        self._footer = footer
        self._columns = columns
        self._names = sorted({_selection(footer, c) for c in columns})
        try:
            self._file = orc.ORCFile(source.arrow_file())
        except (ArrowException, OSError) as error:
            raise self._fault(f"the file can't be decoded ({error})", None) from None

    def _fault(self, reason: str, stripe: Stripe | None) -> CorruptFile:
        return CorruptFile(
            reason,
            path=self._footer.path,
            offset=stripe.offset if stripe else None,
            field=stripe.field if stripe else None,
            hint="the data is damaged, or holds values that can't be decoded exactly",
        )

    def row_groups(self, stripe: Stripe) -> Iterator[dict[int, Hashed]]:
        """For each row group of a stripe, the chosen columns' hashes by column id. Decodes the whole stripe once.

        Raises CorruptFile where the stripe can't be decoded, UnsupportedError.
        """
        from pyarrow import ArrowException

        try:
            batch = self._file.read_stripe(stripe.ordinal, columns=self._names)
        except (ArrowException, OSError) as error:
            raise self._fault(f"the stripe can't be decoded ({error})", stripe) from None
        if batch.num_rows != stripe.rows:
            raise self._fault(f"the stripe has {batch.num_rows} rows, its footer says {stripe.rows}", stripe)
        tops = {c.id: _top(batch, c, self._footer.path) for c in self._columns}
        shifts = False
        if any(c.kind == "TIMESTAMP" for c in self._columns):
            shifts = self._footer.stripe_footer(stripe).message.writer_timezone not in _UTC
        for column in self._columns:
            decoded = str(_descend(tops[column.id].slice(0, 0), column, self._footer).type)
            if not decoded.startswith(_DECODED[column.kind]):
                raise self._fault(f"column {column.path}, {column.name}, was decoded as {decoded}", stripe)
        for group in range(self._footer.row_groups(stripe)):
            start, rows = group * self._footer.stride, self._footer.rows_in(stripe, group)
            yield {
                c.id: _hashed(_descend(tops[c.id].slice(start, rows), c, self._footer), c, shifts=shifts)
                for c in self._columns
            }


def _ancestors(footer: Footer, orc: OrcType) -> list[OrcType]:
    """The types from the top-level column down to the type itself."""
    return [t for t in footer.types if t.id and t.id <= orc.id <= t.last]


def _selection(footer: Footer, orc: OrcType) -> str:
    """What pyarrow selects a column by: names of nested structs, down to the first list or map."""
    chain = _ancestors(footer, orc)
    names = [chain[0].steps[-1]]
    for parent, child in itertools.pairwise(chain):
        if parent.kind != "STRUCT":
            break
        names.append(child.steps[-1])
    return ".".join(names)


def _check_decoder(footer: Footer, orc: OrcType) -> None:
    """Timestamps need a pyarrow that refuses what it can't hold in nanoseconds; older ones may wrap around."""
    import pyarrow as pa

    if orc.kind in _TIMESTAMPS and int(pa.__version__.partition(".")[0]) < _EXACT_TIMESTAMPS:
        raise UnsupportedError(
            f"timestamps of column {orc.path} can't be read exactly by pyarrow {pa.__version__}",
            path=footer.path,
            field=f"types[{orc.id}]",
            hint=f"pip install 'pyarrow>={_EXACT_TIMESTAMPS}'",
        )


def check_name(footer: Footer, orc: OrcType) -> None:
    """pyarrow selects columns by name, so another of the same name could be decoded. Raises UnsupportedError."""
    if not orc.id:
        raise UnsupportedError(
            "the file's root is no struct: it can't be decoded",
            path=footer.path,
            field="types[0]",
            hint="write the file with a struct at its root",
        )
    name = _selection(footer, orc)
    if sum(t.path == name for t in footer.types) > 1:
        raise UnsupportedError(
            f"column {orc.path} can't be told from others of the same name",
            path=footer.path,
            field=f"types[{orc.id}]",
            hint="leave it out of --columns",
        )


def _top(batch: Any, orc: OrcType, path: str) -> Any:
    index = batch.schema.get_all_field_indices(orc.steps[0])
    if len(index) != 1:
        raise UnsupportedError(
            f"column {orc.path} can't be told from others of the same name", path=path, hint="leave it out"
        )
    return batch.column(index[0])


def _descend(array: Any, orc: OrcType, footer: Footer) -> Any:
    """The leaf's values in a slice of its top-level column: elements of lists and maps one after the other."""
    chain = _ancestors(footer, orc)
    if len(chain) == 1 and orc.kind not in {"LIST", "MAP"}:
        return array
    import pyarrow as pa
    import pyarrow.compute as pc

    for parent, child in itertools.pairwise(chain):
        if parent.kind == "STRUCT":
            array = pc.struct_field(array, [array.type.get_field_index(child.steps[-1])])
        elif parent.kind == "LIST":
            array = array.flatten()
        elif parent.kind == "MAP":
            entries = pa.list_(pa.struct([array.type.key_field, array.type.item_field]))
            array = pc.struct_field(array.cast(entries).flatten(), [0 if child.steps[-1] == "_key" else 1])
        else:
            raise UnsupportedError(f"column {orc.path} lies within a union", path=footer.path, hint="leave it out")
    if orc.kind == "MAP":
        array = array.cast(pa.list_(pa.struct([array.type.key_field, array.type.item_field])))
    return pc.list_value_length(array) if orc.kind in {"LIST", "MAP"} else array


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

    nanos = hashed.values.drop_null().cast(pa.int64())
    may = int.from_bytes(_view(_may_shift(nanos).cast(pa.uint8()).buffers()[1])[: len(nanos)], "little")
    found = int.from_bytes(flags, "little")
    for delta in (-_SECOND, _SECOND):
        out = bytearray(len(nanos))
        bits.check_hashes(_millis_hashes(pc.add(pc.if_else(_may_shift(nanos), nanos, 0), delta)), len(nanos), out)
        found |= int.from_bytes(out, "little") & may
    flags[:] = found.to_bytes(len(flags), "little")
    return flags.count(0)


def _hashed(array: Any, orc: OrcType, *, shifts: bool) -> Hashed:
    buffers = [_view(b) for b in array.buffers()]
    validity = buffers[0] if array.null_count else None
    offset, length = array.offset, len(array)
    out = bytearray(length * 8)
    zero = False
    if orc.kind in _INTEGERS or orc.kind in {"LIST", "MAP"}:
        width = _INTEGERS.get(orc.kind, 4)
        count = kernels.orc_hash_long(buffers[1], width, 1, offset, length, validity, out)
    elif orc.kind in _TIMESTAMPS:
        count = kernels.orc_hash_long(buffers[1], 8, _NANOS_PER_MILLI, offset, length, validity, out)
    elif orc.kind in _FLOATS:
        width = _FLOATS[orc.kind]
        count = kernels.orc_hash_double(buffers[1], width, offset, length, validity, out)
        zero = kernels.has_zero(buffers[1], width, offset, length, validity)
    elif orc.kind == "DECIMAL":
        count = kernels.orc_hash_decimal(buffers[1], array.type.scale, offset, length, validity, out)
    else:
        count = kernels.orc_hash_binary(buffers[1], buffers[2], offset, length, validity, out)
    twins = _shifted_hashes(array) if shifts and orc.kind == "TIMESTAMP" else bytearray()
    return Hashed(count=count, hashes=out, has_zero=zero, values=array, shifted=twins)
