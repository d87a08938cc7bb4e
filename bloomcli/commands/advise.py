"""advise: reads the metadata and sampled values of one file. `bloomcli.advice` computes the estimates over all files.

Filters are built for the values of a unit, and values are looked up in them. The row groups that a lookup reads are
counted three times: by min/max statistics, by everything that exists today (the filters, and dictionaries if all
named readers look values up in them), and with a new filter at each rate.

Samples take bounded memory: distinct values at random, and a sketch of the hashes. Both depend only on the set of
values, not on their order or frequency.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bloomcli.checks.additions import Readers
from bloomcli.commands.advise_options import ExtentOptions, LookupValues, UnitOptions
from bloomcli.commands.columns import is_named, type_alone
from bloomcli.concurrency.threads import Stop
from bloomcli.engine_filters.registry import filters_of
from bloomcli.errors import LiteralError
from bloomcli.filters.kirsch_mitzenmacher import KirschMitzenmacherFilter
from bloomcli.filters.sizing import tight_estimate
from bloomcli.filters.split_block import SplitBlockFilter
from bloomcli.formats.answer import Bits, Contents, UnitFacts, answers
from bloomcli.formats.base import FilterFile
from bloomcli.formats.format import Sizes
from bloomcli.formats.registry import format_named, open_file
from bloomcli.formats.sampling import BuiltFilter, Extent, UnitValues
from bloomcli.model.advice import RATE_SUMS, SUMS, ColumnExtents, ExistingSample, FileExtents, SampledRow, UnitSample
from bloomcli.model.dataset import Status
from bloomcli.model.file import Column, Presence
from bloomcli.storage.os_errors import convert_os_errors_of_file
from bloomcli.storage.registry import open_source
from bloomcli.values.literals import Literal, decode_bound, parse, render
from bloomcli.values.short_bounds import LONGEST_BOUND, cut_high, cut_low

Hashes = NDArray[np.uint64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

ALL_HASHES: Final = np.uint64((1 << 64) - 1)
"""The limit of a sketch that has the hashes of all values."""
_F1: Final = 0xFF51AFD7ED558CCD
_F2: Final = 0xC4CEB9FE1A85EC53


@convert_os_errors_of_file
def extents(path: str, options: ExtentOptions) -> SampledRow:
    """Read a file's metadata. Raises UnreadableError, UnsupportedError."""
    with open_source(path) as source:
        file = open_file(source, options.names, options.keys)
        readers = Readers(file.format, options.policy.for_file(path), file.encrypted_alike)
        chosen = _chosen(file, options)
        summaries = [_column(file, column, readers) for column in file.leaves if column.index in chosen]
        sizes = summaries[0][1] if summaries else ()
        return SampledRow(
            path=source.path,
            status=Status.DONE,
            format=file.format,
            row_groups=file.row_group_count,
            bytes_before=source.size,
            extents=FileExtents(
                format=file.format,
                bytes=source.size,
                rows=file.rows,
                units=tuple(file.units()),
                row_group_bytes=tuple(sizes),
                columns=tuple(column for column, _ in summaries),
                engine_filters=tuple(filter_.facts for filter_ in filters_of(file, chosen).filters),
                unverified=file.unverified,
            ),
        )


def _chosen(file: FilterFile, options: ExtentOptions) -> set[int]:
    """Ordinals of the leaves to examine. A file needs to have none of the named columns."""
    return {
        c.index
        for c in file.leaves
        if not c.not_in_table
        and (not options.columns or is_named(options.columns, c))
        and not is_named(options.exclude, c)
    }


def _column(file: FilterFile, column: Column, readers: Readers) -> tuple[ColumnExtents, list[int]]:
    typed = file.literal_column(column)
    unit_extents: list[Extent] = list(file.extents(column))
    refusal = readers.refusal(column) if column.unfilterable is None else None
    why = column.unfilterable or (None if refusal is None else refusal.reason)
    if why is None and any(extent.doubtful for extent in unit_extents):
        why = file.why_unfilterable(column) or file.why_unreadable(column)
    numbers = not typed.physical.endswith("BYTE_ARRAY") or (typed.logical or "").startswith("DECIMAL")
    nulls = [extent.nulls for extent in unit_extents]
    filters = [extent.filter_bytes for extent in unit_extents]
    lows, highs = [extent.low for extent in unit_extents], [extent.high for extent in unit_extents]
    summed = ColumnExtents(
        column=column.path,
        type=column.logical or column.physical,
        typed=replace(type_alone(typed), variant_path=column.variant_path),
        unfilterable=why,
        loses_rows=refusal is not None,
        values=tuple(extent.values for extent in unit_extents),
        nulls=None if None in nulls else sum(n for n in nulls if n is not None),
        chunk_bytes=sum(extent.chunk_bytes for extent in unit_extents),
        lows=tuple(low if low is None or numbers else cut_low(low) for low in lows),
        highs=tuple(high if high is None or numbers else _short(cut_high(high)) for high in highs),
        empty=bytes(extent.empty for extent in unit_extents),
        dictionary=sum(extent.only_dictionary for extent in unit_extents),
        filters=sum(size is not None for size in filters),
        without_filter=sum(extent.filter_bytes is None and not extent.empty for extent in unit_extents),
        filter_bytes=sum(size or 0 for size in filters),
        properties=frozenset() if why is not None and refusal is None else file.properties(column),
    )
    return summed, [extent.row_group_bytes for extent in unit_extents]


def _short(bound: bytes) -> bytes | None:
    """An upper bound, or None if it couldn't be cut: those of all files are held in memory."""
    return bound if len(bound) <= LONGEST_BOUND else None


@convert_os_errors_of_file
def units(path: str, options: UnitOptions) -> SampledRow:
    """Read the values of some units of a file, look values up, and measure the existing filters.

    Raises UnreadableError, UnsupportedError.
    """
    with open_source(path) as source:
        file = open_file(source, options.names, options.keys)
        smallest = Readers(file.format, options.policy.for_file(path)).smallest()
        samples = tuple(_unit_samples(file, options, options.units.get(path, ()), smallest))
        return SampledRow(path=source.path, status=Status.DONE, format=file.format, units=samples)


def mixed(hashes: Hashes) -> Hashes:
    """Murmur3's finalizer, a permutation of the 64-bit numbers. Source: Appleby, MurmurHash3.cpp, fmix64."""
    out: Hashes = hashes ^ (hashes >> 33)  # type: ignore[assignment]  # NumPy's stubs treat 33 as a signed array
    out *= _F1
    out ^= out >> 33
    out *= _F2
    out ^= out >> 33
    return out


class Sketch:
    """A bottom-k sketch: the `2**bits` smallest of the values' hashes, each mixed. Their number, divided by the share
    of the hash space below the next one, estimates the number of distinct values.

    Source: Beyer, Haas, Reinwald, Sismanis and Gemulla, "On Synopses for Distinct-Value Estimation under Multiset
    Operations" (2007).
    """

    def __init__(self, bits: int) -> None:
        self._most = 1 << bits
        self._hashes = np.empty(0, np.uint64)
        self._limit = ALL_HASHES

    def add(self, hashes: Hashes) -> None:
        """Add values."""
        smaller = mixed(hashes)
        smaller = smaller[smaller < self._limit]
        if not len(smaller):
            return
        self._hashes, self._limit = smallest(np.concatenate([self._hashes, smaller]), self._limit, self._most)

    def packed(self) -> bytes:
        """The limit below which the sketch has all hashes, and the hashes in ascending order."""
        return np.append(self._limit, self._hashes).tobytes()


def smallest(hashes: Hashes, limit: np.uint64, most: int) -> tuple[Hashes, np.uint64]:
    """The up to `most` smallest distinct hashes, and the limit below which there are no others."""
    distinct = np.unique(hashes)
    return (distinct, limit) if len(distinct) <= most else (distinct[:most], distinct[most])


class ValueSample:
    """A random sample of up to `most` distinct values: those whose hashes come first in an order that the seed
    selects.

    Source: Cohen and Kaplan, "Summarizing data using bottom-k sketches" (2007): a simple random sample without
    replacement of the distinct values.
    """

    def __init__(self, most: int, seed: int) -> None:
        self._most = most
        self._salt = np.uint64(seed & (1 << 64) - 1)
        self._kept: dict[int, object] = {}
        self._limit = ALL_HASHES

    def add(self, hashes: Hashes, key: Callable[[int], object]) -> None:
        """Add values. `key` returns the value at a position."""
        ranks = mixed(hashes ^ self._salt)
        places = np.flatnonzero(ranks <= self._limit)
        if not len(places):
            return
        lowest, first = np.unique(ranks[places], return_index=True)
        for rank, at in zip(lowest[: self._most].tolist(), first[: self._most].tolist(), strict=True):
            if rank not in self._kept:
                self._kept[rank] = key(int(places[at]))
        if len(self._kept) >= self._most:
            self._kept = dict(sorted(self._kept.items())[: self._most])
            self._limit = np.uint64(max(self._kept))

    def keys(self) -> list[object]:
        """The values, in a random order."""
        return [key for _, key in sorted(self._kept.items())]


_WANTED_BITS_BYTES: Final = 1 << 17
"""Bytes of the filter that finds looked-up values among the values of a unit."""
_LEAST: Final = 2
_VALUES_BYTES: Final = 1 << 18
"""Bytes of the values that are sampled from a unit."""
_NAN: Final = Literal(text="nan", unknowable="NaN is equal to no value")

Built = list[list[BuiltFilter]]
"""For each row group, a filter for each rate."""


def _unit_samples(file: FilterFile, options: UnitOptions, units: Iterable[int], least: int) -> Iterator[UnitSample]:
    """Yield a sample of each column of each unit. Raises CorruptFile, UnsupportedError.

    Args:
        file: an open file.
        options: the columns, and what is sampled and looked up in them.
        units: the numbers of the units.
        least: bytes of the smallest filter.
    """
    by_path: dict[str, Column] = {}
    for column in file.leaves:
        if not column.not_in_table:
            by_path.setdefault(column.path, column)
    wanted = {by_path[path].index: looked_up for path, looked_up in options.columns.items() if path in by_path}
    columns = [by_path[path] for path in options.columns if path in by_path]
    for unit in units:
        for values in file.unit_values(columns, unit, options.rates, least, Stop()):
            yield _UnitColumn(file, options, unit, values, wanted[values.column.index], least).sample()


class _UnitColumn:
    """One column of a unit."""

    def __init__(
        self,
        file: FilterFile,
        options: UnitOptions,
        unit: int,
        values: UnitValues,
        wanted: LookupValues | None,
        least: int,
    ) -> None:
        self._least = least
        self._file, self._options, self._unit, self._values, self._wanted = file, options, unit, values, wanted
        self._typed = file.literal_column(values.column)
        self._literals = [] if wanted is None else literals(wanted.values, wanted.typed, self._typed)
        self._facts = self._units(self._literals)
        self._sizes = format_named(file.format).sizes
        self._tight: Built = []

    def _units(self, wanted: Sequence[Literal]) -> list[UnitFacts]:
        return list(self._file.unit_facts(self._values.column, wanted, {self._unit}))

    def sample(self) -> UnitSample:
        """Read the values, and look values up."""
        options = self._options
        started = time.perf_counter()
        sketch = Sketch(options.sketch_bits)
        seed = options.seed * 0x9E3779B97F4A7C15 + self._unit * 0xD1B54A32D192ED03 + _number(self._file.source.path)
        chosen = ValueSample(options.values, seed) if self._wanted is None else None
        lookups = Lookups(self._literals, self._facts)
        built = self._read(sketch, chosen, lookups)
        seconds = time.perf_counter() - started
        values: list[bytes] = []
        cells = self._wanted
        if chosen is not None:
            raw_values = _bounded(v for v in self._values.plain(chosen.keys()) if v is not None)
            every = literals(tuple(raw_values), self._typed, self._typed)
            values = [v for v, literal in zip(raw_values, every, strict=True) if literal.unknowable is None]
            own = [literal for literal in every if literal.unknowable is None]
            self._facts = self._units(own)
            lookups = Lookups(own, self._facts, own=True)
            cells = _own(values, self._typed, options.parts)
        sums = np.zeros((cells.cell_count if cells else 0, SUMS + RATE_SUMS * len(options.rates)))
        if cells is not None and cells.values:
            counted = lookups.counted(cells)
            for facts, filters in zip(self._facts, built, strict=True):
                sums += lookups.sums(facts, filters, cells, counted, dictionary=options.dictionary)
        return UnitSample(
            column=self._values.column.path,
            unit=self._unit,
            typed=type_alone(self._typed),
            sketch=sketch.packed(),
            filter_bytes=tuple(sum(done[at].nbytes for done in built) for at in range(len(options.rates))),
            filter_fpp=tuple(sum(done[at].fpp for done in built) for at in range(len(options.rates))),
            highest_fpp=tuple(max((done[at].fpp for done in built), default=0.0) for at in range(len(options.rates))),
            tight_bytes=tuple(sum(done[at].nbytes for done in self._tight) for at in range(len(options.rates))),
            row_groups=len(built),
            fixed_filters=self._sizes is Sizes.OWN,
            seconds=seconds,
            page_reads=None if self._wanted else self._file.page_reads(self._values.column, self._unit, Stop()),
            existing=existing(self._facts, options.fpp),
            values=tuple(values),
            sums=sums.tobytes(),
        )

    def _read(self, sketch: Sketch, chosen: ValueSample | None, lookups: Lookups) -> Built:
        """Pass the values on, and build the filters."""
        options = self._options
        built: Built = []
        for filters, batches in self._values.row_groups:
            for batch in batches:
                filters.insert(batch.hashes, batch.hashed)
                if batch.more:
                    filters.insert(batch.more, len(batch.more) // 8)
                hashes = np.frombuffer(batch.hashes, np.uint64, batch.hashed)
                sketch.add(hashes)
                lookups.find(batch.hashes, batch.hashed)
                if chosen is not None:
                    chosen.add(hashes, batch.key)
            done = filters.finished()
            self._tight.append(tight(done, options.rates, self._least) if self._sizes is Sizes.ANY else done)
            built.append(self._tight[-1] if options.tight else done)
        return built


def tight(built: Sequence[BuiltFilter], rates: Sequence[float], least: int) -> list[BuiltFilter]:
    """The filters with tight sizes, where these are smaller.

    Args:
        built: split-block filters of a row group, one for each rate; filters of other kinds are unchanged.
        rates: the false-positive rates.
        least: bytes of the smallest filter.
    """
    blocks = (done.bits for done in built if isinstance(done.bits, SplitBlockFilter))
    largest = max(blocks, key=lambda bits: bits.nbytes, default=None)
    values = None if largest is None else largest.ndv_estimate
    if values is None:
        return list(built)
    sizes = [max(tight_estimate(round(values), rate), least) for rate in rates]
    return [
        BuiltFilter(None, size, rate) if size < done.nbytes else done
        for done, size, rate in zip(built, sizes, rates, strict=True)
    ]


def _number(path: str) -> int:
    """A number derived from a path, so that each file's values are chosen independently."""
    from hashlib import blake2b

    return int.from_bytes(blake2b(path.encode("utf-8", "surrogateescape"), digest_size=8).digest(), "little")


def _bounded(values: Iterable[bytes]) -> list[bytes]:
    """The first values, at least two, of up to `_VALUES_BYTES` together. Their order is random."""
    kept: list[bytes] = []
    room = _VALUES_BYTES
    for value in values:
        room -= len(value)
        if room < 0 and len(kept) >= _LEAST:
            break
        kept.append(value)
    return kept


def _own(values: Sequence[bytes], typed: Column, parts: int) -> LookupValues:
    """A unit's own values, distributed over `parts` cells in turn. Their order is random."""
    count = len(values)
    return LookupValues(
        typed=typed,
        values=tuple(values),
        cells=tuple(at % parts for at in range(count)),
        weights=(parts / max(count, 1),) * count,
        cell_count=parts,
        absent_from=parts,
        absent_to=parts,
    )


@lru_cache(maxsize=64)  # a process reads many files with the same values
def literals(values: tuple[bytes, ...], written: Column, typed: Column) -> tuple[Literal, ...]:
    """Values as a column looks them up. Values of a column with another type are converted by their texts."""
    same = type_alone(written) == type_alone(typed)
    return tuple(_literal(value, typed) if same else _converted(value, written, typed) for value in values)


def _converted(value: bytes, written: Column, typed: Column) -> Literal:
    if _is_nan(value, written):
        return _NAN
    text = render(value, written)
    try:
        return parse(text, typed)
    except LiteralError:
        return Literal(text=text, impossible="it isn't a value of the column's type")


def _is_nan(value: bytes, typed: Column) -> bool:
    return _is_float(typed) and decode_bound(value, typed) is None


def _is_float(typed: Column) -> bool:
    return typed.physical in {"FLOAT", "DOUBLE"} or typed.logical == "FLOAT16"


def _literal(value: bytes, typed: Column) -> Literal:
    if _is_nan(value, typed):
        return _NAN
    if _is_float(typed):
        return parse(render(value, typed), typed)  # a zero has two encodings
    return Literal(text="", encodings=(value,), order_key=decode_bound(value, typed))


class _LookupResults:
    """The results of one lookup of several hashes in a filter. No other hashes may be looked up."""

    def __init__(self, bits: SplitBlockFilter, hashes: frozenset[int]) -> None:
        self._hashes, self.trail = hashes, bits.trail

    def check(self, value: int) -> bool:
        """Whether the filter may have one of the hashes."""
        return value in self._hashes


class Lookups:
    """Values that are looked up in the row groups of a unit."""

    def __init__(self, wanted: Sequence[Literal], facts: Sequence[UnitFacts], *, own: bool = False) -> None:
        self._count = len(wanted)
        hashed = facts[0].lookups if facts else ()
        flat = [(value, at) for at, lookup in enumerate(hashed) for value in lookup.hashes]
        self._hashes = np.array([value for value, _ in flat], np.uint64)
        self._owners = np.array([at for _, at in flat], np.intp)
        self._blind = np.array([bool(lookup.unknowable) or not lookup.hashes for lookup in hashed], bool)
        self._bits = SplitBlockFilter.empty(_WANTED_BITS_BYTES) if flat else None
        self._hits: set[int] = set()
        self._own = own  # the values are the unit's own
        self._here: Flags = np.zeros(self._count, bool)
        if self._bits is not None:
            self._bits.insert_hashes(self._hashes.tobytes(), len(flat))

    def find(self, hashes: bytes | bytearray | memoryview, count: int) -> None:
        """Record which of the values are in the unit."""
        if self._bits is not None and count:
            flags = bytearray(count)
            if self._bits.check_hashes(hashes, count, flags) < count:
                maybe = np.frombuffer(hashes, np.uint64, count)[np.frombuffer(flags, bool)]
                self._hits.update(np.unique(maybe).tolist())

    def counted(self, cells: LookupValues) -> Flags:
        """Which values count in the unit: all except values that were assumed to be absent and aren't."""
        places = np.array(cells.cells, np.intp)
        absent = (places >= cells.absent_from) & (places < cells.absent_to)
        here = np.full(self._count, self._own)
        hits = np.array([value in self._hits for value in self._hashes.tolist()], bool)
        here[self._owners[hits]] = True
        counted: Flags = ~(absent & here)
        self._here = here
        return counted

    def sums(
        self,
        facts: UnitFacts,
        filters: Sequence[BuiltFilter],
        cells: LookupValues,
        counted: Flags,
        *,
        dictionary: bool,
    ) -> Floats:
        """The bytes and row groups that the lookups read in one row group, summed by cell."""
        passed = counted.copy()
        if facts.contents is not Contents.VALUES:
            passed[:] = False
        else:
            passed &= np.array([skip is not True for skip in facts.stats_skip], bool)
        today = self._today(facts, passed, dictionary=dictionary)
        size = facts.row_group_bytes
        columns = [passed, passed * size, today, today * size]
        places = np.array(cells.cells, np.intp)
        absent = (places >= cells.absent_from) & (places < cells.absent_to)
        for built in filters:
            # of absent values, the share that the filter doesn't exclude is on average its measured rate
            kept = np.where(absent, today * built.fpp, today * self._kept(built))
            columns += [kept, kept * size, today * built.nbytes]
        weights = np.array(cells.weights)
        sums: Floats = np.stack([np.bincount(places, weights * c, cells.cell_count) for c in columns], axis=1)
        return sums

    def _today(self, facts: UnitFacts, passed: Flags, *, dictionary: bool) -> Flags:
        """Which values the existing filter and the dictionary don't exclude."""
        excludes = facts.dictionary_excludes if dictionary else None
        today = passed.copy()
        if not facts.has_filter and excludes is None:
            return today
        places = np.flatnonzero(passed).tolist()
        if not places:
            return today
        chosen = facts._replace(
            lookups=[facts.lookups[at] for at in places],
            stats_skip=[facts.stats_skip[at] for at in places],
            dictionary_excludes=excludes,
            bits=self._looked_up(facts.bits),
        )
        (unit_answers,) = answers([chosen], explain=False)
        today[places] = [answer.together is not Presence.ABSENT for answer in unit_answers.answers]
        return today

    def _looked_up(self, bits: Bits | None) -> Bits | None:
        """A filter, with all values looked up in one call."""
        if not isinstance(bits, SplitBlockFilter):
            return bits
        flags = bytearray(len(self._hashes))
        bits.check_hashes(self._hashes.tobytes(), len(flags), flags)
        return _LookupResults(bits, frozenset(self._hashes[np.frombuffer(flags, bool)].tolist()))

    def _kept(self, built: BuiltFilter) -> Floats:
        """For each value, the probability that a filter doesn't exclude the row group; 0 or 1 if the filter was
        built."""
        if built.bits is not None:
            return self._maybe(built.bits).astype(float)
        kept: Floats = np.where(self._here | self._blind, 1.0, built.fpp)
        return kept

    def _maybe(self, bits: SplitBlockFilter | KirschMitzenmacherFilter) -> Flags:
        """Which values a filter answers with "maybe"."""
        flags = bytearray(len(self._hashes))
        if flags:
            bits.check_hashes(self._hashes.tobytes(), len(flags), flags)
        maybe: Flags = self._blind.copy()
        maybe[self._owners[np.frombuffer(flags, bool)]] = True
        return maybe


def existing(facts: Sequence[UnitFacts], fpp: float) -> ExistingSample:
    """Measure the existing filters that were read completely."""
    read = [unit.bits for unit in facts if isinstance(unit.bits, SplitBlockFilter | KirschMitzenmacherFilter)]
    blocks = [bits for bits in read if isinstance(bits, SplitBlockFilter) and bits.fpp <= fpp]
    return ExistingSample(
        unreadable=sum(unit.problem is not None for unit in facts),
        measured=len(read),
        foldable_bytes=sum(bits.nbytes - bits.folded_to(fpp).nbytes for bits in blocks),
        max_fpp=max((bits.fpp for bits in read), default=None),
    )
