"""What reports show: the facts of each filter, summed up by column and merged by stripe, and a column's streams."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, TypeVar

from bloomcli.errors import BloomError
from bloomcli.filters.kirsch_mitzenmacher import requested_fpp
from bloomcli.formats.answer import ENCRYPTED
from bloomcli.formats.base import FilterProblem
from bloomcli.formats.orc import spec
from bloomcli.formats.orc.bloom_filter import Filters, LoadedStream, Location
from bloomcli.formats.orc.footer import Footer
from bloomcli.formats.orc.schema import OrcType
from bloomcli.model.file import FilterFacts, MergedFilter, PageFacts

if TYPE_CHECKING:
    from bloomcli.model.inspect import FilterSummary

ALGORITHM = "KIRSCH_MITZENMACHER"
_TEXTS = ("STRING", "CHAR", "VARCHAR", "BINARY", "DECIMAL")

T = TypeVar("T")


def hash_name(orc: OrcType) -> str:
    """The hash of a type's values."""
    return "MURMUR3" if orc.kind in _TEXTS else "WANG"


def ordinal(location: Location) -> int:
    """The ordinal of a filter's column."""
    return location.stream.column


def facts(filters: Filters, location: Location, loaded: LoadedStream) -> Iterator[FilterFacts]:
    """The facts of each row group's filter, measured on its bits. `length` is the bitset's."""
    footer = filters.footer
    orc = footer.types[loaded.stream.column]
    for row_group, bits in enumerate(loaded.filters):
        ndv = bits.ndv_estimate
        fill = bits.fill
        yield FilterFacts(
            stripe=location.streams.stripe.ordinal,
            row_group=row_group,
            column=orc.label,
            physical=orc.name,
            logical=None,
            offset=loaded.stream.offset,
            length=len(bits.bitset),
            bitset_bytes=len(bits.bitset),
            algorithm=ALGORITHM,
            hash=hash_name(orc),
            compression=footer.codec.name,
            ndv_estimate=ndv,
            fill=fill,
            fpp=fill**bits.k,
            bits_per_value=bits.bits / ndv if ndv else None,
            hash_functions=bits.k,
            encoding=loaded.stream.kind,
            asked_fpp=requested_fpp(footer.stride, bits.bits),
            untrusted=loaded.untrusted,
        )


def raw(loaded: LoadedStream, row_group: int) -> tuple[bytes, bytes]:
    """Return a filter's header, which is empty in ORC, and its bitset."""
    return b"", bytes(loaded.filters[row_group].bitset)


def problem_facts(filters: Filters, location: Location, problem: FilterProblem) -> FilterFacts:
    """The facts of a stream that can't be used, with the problem."""
    types, stream = filters.footer.types, location.stream
    orc = types[stream.column] if stream.column < len(types) else None
    return FilterFacts(
        stripe=location.streams.stripe.ordinal,
        row_group=0,
        column=orc.label if orc else f"column {stream.column}",
        physical=orc.name if orc else "?",
        logical=None,
        offset=stream.offset,
        length=stream.length,
        encoding=stream.kind,
        problem=problem.reason,
    )


def summary(found: Sequence[FilterFacts]) -> tuple[FilterSummary, ...]:
    """Facts summed up by column and kind, in the order in which columns first appear."""
    order = {key: rank for rank, key in enumerate(dict.fromkeys((f.column, f.encoding) for f in found))}
    ordered = sorted(found, key=lambda f: order[f.column, f.encoding])
    return tuple(_sum(list(group)) for _, group in groupby(ordered, key=lambda f: (f.column, f.encoding)))


def _sum(group: list[FilterFacts]) -> FilterSummary:
    from bloomcli.model.inspect import FilterSummary

    first = group[0]
    good = [f for f in group if f.problem is None]
    return FilterSummary(
        column=first.column,
        physical=first.physical,
        logical=first.logical,
        filters=len(good),
        unreadable=len(group) - len(good),
        bitset_bytes=sum(f.bitset_bytes or 0 for f in good),
        fill=_mean([f.fill for f in good]),
        fpp=_mean([f.fpp for f in good]),
        max_fpp=max((f.fpp for f in good if f.fpp is not None), default=None),
        ndv_estimate=_mean([f.ndv_estimate for f in good]),
        bits=_same([f.bitset_bytes * 8 for f in good if f.bitset_bytes]),
        hash_functions=_same([f.hash_functions for f in good]),
        encoding=first.encoding,
        asked_fpp=_same([f.asked_fpp for f in good]),
        untrusted=next((f.untrusted for f in good if f.untrusted), None),
        problem=next((f.problem for f in group if f.problem), None),
    )


def _mean(values: Sequence[float | None]) -> float | None:
    known = [v for v in values if v is not None]
    return sum(known) / len(known) if known else None


def _same(values: Sequence[T]) -> T | None:
    return values[0] if values and all(v == values[0] for v in values) else None


def merged_filters(filters: Filters, column: int) -> Iterator[MergedFilter]:
    """Yield each stripe's filters merged, as orc-core's FileDump does with --rowindex."""
    filters.source.will_read(filters.ranges({column}))
    for location in filters.locations({column}):
        try:
            loaded = filters.load(location)
        except FilterProblem as error:
            yield MergedFilter(
                stripe=location.streams.stripe.ordinal,
                encoding=location.stream.kind,
                filters=0,
                problem=error.reason,
            )
        else:
            yield _merged(location, loaded)


def _merged(location: Location, loaded: LoadedStream) -> MergedFilter:
    stripe, encoding = location.streams.stripe.ordinal, location.stream.kind
    shapes = {(f.bits, f.k) for f in loaded.filters}
    if len(shapes) != 1:
        reason = "the row groups' filters differ in size" if shapes else "no filters"
        return MergedFilter(stripe=stripe, encoding=encoding, filters=len(loaded.filters), problem=reason)
    ((bits, k),) = shapes
    together = 0
    for one in loaded.filters:
        together |= int.from_bytes(one.bitset, "little")
    fill = together.bit_count() / bits
    return MergedFilter(
        stripe=stripe,
        encoding=encoding,
        filters=len(loaded.filters),
        hash_functions=k,
        bits=bits,
        set_bits=together.bit_count(),
        fill=fill,
        fpp=fill**k,
        problem=loaded.untrusted,
    )


def streams(footer: Footer, column: int) -> Iterator[PageFacts]:
    """Yield the column's streams, stripe by stripe; a row with a problem for a stripe that can't be read."""
    footer.will_read_stripes()
    for stripe in footer.stripes:
        try:
            found = footer.stripe_footer(stripe)
        except BloomError as error:
            yield PageFacts(row_group=0, stripe=stripe.ordinal, kind="?", offset=stripe.offset, problem=error.reason)
            continue
        encodings = found.message.columns
        encoding = spec.name_of("EncodingKind", encodings[column].kind) if column < len(encodings) else None
        for stream in found.of_column(column):
            yield PageFacts(
                row_group=0,
                stripe=stripe.ordinal,
                kind=stream.kind,
                offset=stream.offset,
                compressed_bytes=stream.length,
                encoding=encoding,
                problem=ENCRYPTED if column in footer.encrypted_columns else None,
            )
