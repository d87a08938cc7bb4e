"""The metadata and the values of ORC stripes, row group by row group, for `advise`."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import Final

from bloomcli import limits
from bloomcli.concurrency.cancellation import Stop
from bloomcli.formats.orc import limits as orc_limits
from bloomcli.formats.orc import statistics, values
from bloomcli.formats.orc.column_reader import DIRECT, FLOATS, INTEGERS, TIMESTAMPS, VERSIONS, BatchHashes, Streams
from bloomcli.formats.orc.filter_header import KINDS
from bloomcli.formats.orc.filters import Filters
from bloomcli.formats.orc.footer import StripeFooter
from bloomcli.formats.orc.schema import OrcType
from bloomcli.formats.orc.streams import ByteStream, Runs, byte_runs, integers
from bloomcli.formats.sampling import Extent, KirschMitzenmacherBuilder, RowGroupValues, SampleBatch, UnitValues
from bloomcli.model.file import Column

_LONGEST: Final = 1 << 16
"""Maximum bytes of a value that is looked up."""
_NANOS_BYTES: Final = 16

Pick = Callable[[int, Sequence[int]], list[bytes | None]]
"""(number of next values, positions among them) -> PLAIN bytes of these; all next values are consumed."""


def extents(filters: Filters, column: Column) -> Iterator[Extent]:
    """The row index's facts about a column in each row group."""
    footer = filters.footer
    orc = footer.types[column.index]
    footer.will_read_stripes()
    filters.source.will_read(_indexes(filters, column.index))
    for stripe in footer.stripes:
        streams = footer.stripe_footer(stripe)
        index = filters.row_index(streams, orc.id)
        chunk = sum(s.length for s in streams.of_column(orc.id) if s.kind not in KINDS)
        used = filters.preferred(streams, orc.id)
        groups = footer.row_groups(stripe) if footer.stride else min(stripe.rows, 1)
        for group in range(groups):
            rows = footer.rows_in(stripe, group) if footer.stride else stripe.rows
            found = index[group] if group < len(index) else None
            counted = found is not None and found.HasField("number_of_values")
            low, high = (None, None) if found is None or orc.fault else statistics.bounds(found, orc)
            if orc.kind == "CHAR":  # stored with blanks, compared without them
                low, high = statistics.unpadded(low, high)
            yield Extent(
                rows=rows,
                row_group_bytes=stripe.data_length * rows // stripe.rows,
                chunk_bytes=chunk * rows // stripe.rows,
                values=int(found.number_of_values) if found is not None and counted else rows,
                nulls=max(rows - found.number_of_values, 0) if found is not None and counted else None,
                low=low,
                high=high,
                empty=bool(found is not None and counted and not found.number_of_values),
                filter_bytes=None if used is None else used.length // max(groups, 1),
            )


def _indexes(filters: Filters, column: int) -> Iterator[tuple[int, int]]:
    """The row index of a column in all stripes."""
    for stripe in filters.footer.stripes:
        stream = filters.footer.stripe_footer(stripe).find("ROW_INDEX", column)
        if stream is not None:
            yield stream.offset, stream.length


def unit_values(
    filters: Filters, columns: Sequence[Column], unit: int, rates: Sequence[float], stop: Stop
) -> Iterator[UnitValues]:
    """The values of columns in a stripe. Raises CorruptFile, UnsupportedError."""
    footer = filters.footer
    streams = footer.stripe_footer(footer.stripes[unit])
    filters.source.will_read(r for c in columns for r in filters.value_ranges(streams, c.index))
    for column in columns:
        orc = footer.types[column.index]
        if orc.id in footer.encrypted_columns or orc.fault is not None or not footer.stride:
            continue
        yield UnitValues(
            column, _row_groups(filters, streams, orc, rates, stop), _PlainValues(filters, streams, orc, stop)
        )


def _row_groups(
    filters: Filters, streams: StripeFooter, orc: OrcType, rates: Sequence[float], stop: Stop
) -> Iterator[RowGroupValues]:
    stride = filters.footer.stride
    if stride > orc_limits.STRIDE_TRUSTED:
        stride = max((min(s.rows, stride) for s in filters.footer.stripes), default=0)
    before = 0

    def batches(taken: Iterator[BatchHashes]) -> Iterator[SampleBatch]:
        nonlocal before
        for one in taken:
            zeros = values.zero_hashes() if one.has_zero else b""
            yield SampleBatch(one.hashes, one.count, before.__add__, bytes(zeros) + bytes(one.other_hashes))
            before += one.count

    for taken in values.row_groups(filters.source, filters.footer, streams, orc, stop):
        yield RowGroupValues(KirschMitzenmacherBuilder(stride, rates), batches(taken))


class _PlainValues:
    """Returns values of a stripe by their numbers among its non-null values: reads the column again."""

    def __init__(self, filters: Filters, stripe: StripeFooter, orc: OrcType, stop: Stop) -> None:
        self._streams = Streams(filters.source, filters.footer, stripe, orc, stop)
        self._orc = orc

    def __call__(self, keys: Sequence[object]) -> Sequence[bytes | None]:
        wanted = sorted({key for key in keys if isinstance(key, int)})
        if not wanted:
            return []
        pick = _pick(self._streams, self._orc)
        found: dict[int, bytes | None] = {}
        for first in range(0, wanted[-1] + 1, limits.ROWS_PER_BATCH):
            count = min(limits.ROWS_PER_BATCH, wanted[-1] + 1 - first)
            here = wanted[bisect_left(wanted, first) : bisect_left(wanted, first + count)]
            found.update(zip(here, pick(count, [number - first for number in here]), strict=True))
        return [found[key] for key in keys if isinstance(key, int)]


def _pick(streams: Streams, orc: OrcType) -> Pick:
    encoding, entries = streams.encoding()
    if orc.kind in INTEGERS:
        width = 8 if orc.kind == "LONG" else 4
        return _numbers(integers(streams.open("DATA"), VERSIONS[encoding], signed=True), 8, width)
    if orc.kind == "BYTE":
        return _numbers(byte_runs(streams.open("DATA")), 1, 4)
    if orc.kind in FLOATS:
        return _floats(streams.open("DATA"), FLOATS[orc.kind])
    if orc.kind in TIMESTAMPS:
        return _moments(streams, VERSIONS[encoding])
    if orc.kind == "DECIMAL":
        return _decimals(streams, orc, VERSIONS[encoding])
    if encoding in DIRECT:
        return _strings(streams.open("DATA"), streams.lengths())
    return _entries(streams, VERSIONS[encoding], entries)


def _numbers(runs: Runs, width: int, wide: int) -> Pick:
    def pick(count: int, wanted: Sequence[int]) -> list[bytes | None]:
        taken = runs.take(count).cast("q" if width == 8 else "b")
        return [taken[at].to_bytes(wide, "little", signed=True) for at in wanted]

    return pick


def _floats(data: ByteStream, width: int) -> Pick:
    def pick(count: int, wanted: Sequence[int]) -> list[bytes | None]:
        taken = data.take(count * width)
        return [bytes(taken[at * width : (at + 1) * width]) for at in wanted]

    return pick


def _moments(streams: Streams, version: int) -> Pick:
    seconds = integers(streams.open("DATA"), version, signed=True)
    nanos = integers(streams.open("SECONDARY"), version, signed=False)
    wall = streams.zone().wall

    def pick(count: int, wanted: Sequence[int]) -> list[bytes | None]:
        whole, rest = seconds.take(count).cast("q"), nanos.take(count).cast("q")
        return [wall(whole[at], rest[at]).to_bytes(_NANOS_BYTES, "little", signed=True) for at in wanted]

    return pick


def _decimals(streams: Streams, orc: OrcType, version: int) -> Pick:
    data = streams.open("DATA")
    scales = integers(streams.open("SECONDARY"), version, signed=True)

    def pick(count: int, wanted: Sequence[int]) -> list[bytes | None]:
        taken = scales.take(count).cast("q")
        numbers = [data.take_varint() for _ in range(count)]
        found: list[bytes | None] = []
        for at in wanted:
            shift = orc.scale - taken[at]
            value = numbers[at] * 10**shift if shift >= 0 else None
            found.append(
                None if value is None else value.to_bytes(max(value.bit_length() // 8 + 1, 1), "big", signed=True)
            )
        return found

    return pick


def _strings(data: ByteStream, runs: Runs) -> Pick:
    def pick(count: int, wanted: Sequence[int]) -> list[bytes | None]:
        sizes = runs.take(count).cast("q")
        ends = list(accumulate(sizes))
        found: list[bytes | None] = []
        at = 0
        for number in wanted:
            start, size = ends[number] - sizes[number], sizes[number]
            _skip(data, start - at)
            found.append(_kept(data, size))
            at = start + size
        _skip(data, ends[-1] - at)
        return found

    return pick


def _skip(data: ByteStream, size: int) -> None:
    if size:
        for _ in data.pieces(size):
            pass


def _kept(data: ByteStream, size: int) -> bytes | None:
    if size > _LONGEST:
        _skip(data, size)
        return None
    return bytes(data.take(size)) if size else b""


def _entries(streams: Streams, version: int, entries: int) -> Pick:
    """Read a batch's indexes, and then the entries that the picked ones refer to."""
    indexes = integers(streams.open("DATA"), version, signed=False)

    def pick(count: int, wanted: Sequence[int]) -> list[bytes | None]:
        taken = indexes.take(count).cast("q")
        numbers = array("q", (taken[at] for at in wanted))
        if not numbers:
            return []
        if not 0 <= min(numbers) <= max(numbers) < entries:
            raise streams.open("DATA").fault("an index beyond the dictionary's entries")
        found: dict[int, bytes | None] = {}
        entry = _strings(streams.open("DICTIONARY_DATA"), streams.lengths())
        order = sorted(set(numbers))
        for first in range(0, order[-1] + 1, limits.ROWS_PER_BATCH):
            size = min(limits.ROWS_PER_BATCH, order[-1] + 1 - first)
            here = order[bisect_left(order, first) : bisect_left(order, first + size)]
            found.update(zip(here, entry(size, [n - first for n in here]), strict=True))
        return [found[n] for n in numbers]

    return pick
