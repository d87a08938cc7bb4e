"""The samples of one column, and the figures that follow from them: costs of lookups, sizes, distinct values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bloomcli.advice.column_metadata import ColumnMetadata, UnitKey
from bloomcli.advice.distinct import UnitSketch, distinct, distinct_per_unit
from bloomcli.advice.lookup_costs import NUMBER, FilterSizes, LookupCosts, Product, RateEstimate, summed
from bloomcli.advice.recommend import saved_at
from bloomcli.advice.statistics import EXACTLY_ONE, Floats, Ratio, SampleSize, ratio_in_units
from bloomcli.commands.advise_options import LookupValues
from bloomcli.filters.sizing import tight_estimate, upper_bound_bytes
from bloomcli.model.advice import (
    RATE_SUMS,
    SUMS,
    AtRate,
    ColumnAdvice,
    ExistingFilters,
    ExistingSample,
    Interval,
    LookupGain,
    PageIndexGain,
    UnitSample,
)
from bloomcli.values.literals import decode_bound


@dataclass(frozen=True, kw_only=True)
class Cells:
    """The values to look up in other units, in cells: first the sampled values, by value unit and part, then as many
    cells with absent values, and one cell with the literals of the queries."""

    value_units: tuple[UnitKey, ...]
    absent: tuple[tuple[bytes, ...], ...]
    """Absent values of each value unit."""
    queried: tuple[tuple[bytes, float], ...]
    """The literals of the queries with their weights, which sum to 1."""
    parts: int
    """The number of random parts that the values of a unit are divided into; each part has a cell."""

    @property
    def count(self) -> int:
        """The number of cells."""
        return 2 * self.parts * len(self.value_units) + 1

    def looked_up(self, metadata: ColumnMetadata, value_samples: Sequence[UnitSample]) -> LookupValues:
        """The values to look up, with their cells and weights."""
        values: list[bytes] = []
        cells: list[int] = []
        weights: list[float] = []
        first_absent = self.parts * len(self.value_units)
        for start, groups in ((0, [unit.values for unit in value_samples]), (first_absent, self.absent)):
            for at, group in enumerate(groups):
                for number, value in enumerate(group):
                    values.append(value)
                    cells.append(start + self.parts * at + number % self.parts)
                    weights.append(self.parts / len(group))  # so that the mean of all cells is the mean of all values
        for value, weight in self.queried:
            values.append(value)
            cells.append(self.count - 1)
            weights.append(weight)
        return LookupValues(
            typed=metadata.typed,
            values=tuple(values),
            cells=tuple(cells),
            weights=tuple(weights),
            cell_count=self.count,
            absent_from=first_absent,
            absent_to=2 * first_absent,
        )


@dataclass(frozen=True, kw_only=True)
class ColumnSamples:
    """The samples of one column."""

    metadata: ColumnMetadata
    rates: tuple[float, ...]
    cells: Cells
    value_samples: Mapping[UnitKey, UnitSample]
    """The samples of the units that values come from, in the order of `cells.value_units`."""
    lookup_samples: Mapping[UnitKey, UnitSample]
    settled: bool
    """Min/max alone decides which row groups are read today; see `LookupCosts.settled`."""
    tight: bool
    """New filters have tight sizes."""

    @property
    def sums(self) -> int:
        """The number of sums of a cell."""
        return SUMS + RATE_SUMS * len(self.rates)

    @property
    def units(self) -> dict[UnitKey, UnitSample]:
        """All sampled units."""
        return {**self.value_samples, **self.lookup_samples}

    def drawn(self, count: int) -> SampleSize:
        """The size of a sample of `count` units, out of those that have values of this column."""
        return SampleSize(len(self.metadata.units), min(count, len(self.metadata.units)))

    def matrix(self) -> Floats:
        """The sums of all cells: lookup units x cells x sums."""
        shape = (self.cells.count, self.sums)
        matrices = [np.frombuffer(unit.sums).reshape(shape) for unit in self.lookup_samples.values() if unit.sums]
        stacked: Floats = np.stack(matrices) if matrices else np.zeros((0, *shape))
        return stacked

    def present(self) -> LookupCosts | None:
        """The costs of lookups of present values: the sampled ones. None without any."""
        units = self.metadata.units
        at_key = {
            key: at
            for at, key in enumerate(self.cells.value_units)
            if self.value_samples[key].values and key in units  # wrong statistics may deny values
        }
        if not at_key or not self.lookup_samples:
            return None
        samples = [self.value_samples[key] for key in at_key]
        sums = self._by_value_unit(list(at_key.values()), 0)
        lookup_places = {key: at for at, key in enumerate(self.lookup_samples)}
        for row, key in enumerate(at_key):
            if key in lookup_places:
                sums[row, :, lookup_places[key]] = 0
        own = np.stack([np.frombuffer(sample.sums).reshape(self.cells.parts, self.sums) for sample in samples])
        remaining = np.array([self._in_parts(sample.values) for sample in samples])
        order = {key: at for at, key in enumerate(units)}
        places = [order[key] for key in at_key]
        whole = np.array([(unit.row_groups, unit.bytes) for unit in units.values()], float)
        extremes = [
            coverage.extremes([unit.hull for unit in units.values()])
            for coverage in (self.metadata.by_number, self.metadata.by_bytes)
        ]
        least = np.maximum(np.stack([low for low, _ in extremes], axis=1) - whole, 0)
        most = np.stack([high for _, high in extremes], axis=1) - (whole if self.metadata.single else 0)
        most = np.maximum(most, least)
        sketches = [UnitSketch.unpacked(self.value_samples[key].sketch, units[key].values) for key in at_key]
        unsampled = [
            max(1 - len(sample.values) / max(sketch.distinct, 1.0), 0.0)
            for sample, sketch in zip(samples, sketches, strict=True)
        ]
        return LookupCosts(
            metadata=self.metadata,
            sums=sums,
            own=own,
            own_whole=whole[places],
            remaining=np.maximum(remaining - own[:, :, :2], 0),
            least=least[places],
            most=most[places],
            mean_least=least.mean(axis=0),
            mean_most=most.mean(axis=0),
            value_units=self.drawn(len(samples)),
            lookup_units=self.drawn(len(self.lookup_samples)),
            unsampled=np.array(unsampled),
            counts=[len(sample.values) for sample in samples],
            settled=self.settled,
            rate_estimates=None,
        )

    def _by_value_unit(self, value_units: Sequence[int], first: int) -> Floats:
        """The sums of the cells of these value units, from cell `first` on: value units x parts x lookup units x
        sums."""
        parts = self.cells.parts
        cells = [[first + parts * at + part for part in range(parts)] for at in value_units]
        sums: Floats = np.ascontiguousarray(self.matrix()[:, np.array(cells, np.intp)].transpose(1, 2, 0, 3))
        return sums

    def _in_parts(self, values: Sequence[bytes]) -> list[list[float]]:
        """`_remaining` for each part of the values, weighted so that their mean is that of all values."""
        count = self.cells.parts
        parts = [values[part::count] for part in range(count)]
        return [[count * len(part) / len(values) * figure for figure in self._remaining(part)] for part in parts]

    def _remaining(self, values: Sequence[bytes]) -> list[float]:
        """The mean number of row groups, and the mean bytes, that remain in all units after min/max."""
        keys = [decode_bound(value, self.metadata.typed) for value in values]
        return [
            sum(coverage.at(key) for key in keys) / max(len(keys), 1)
            for coverage in (self.metadata.by_number, self.metadata.by_bytes)
        ]

    def absent(self) -> LookupCosts | None:
        """The costs of lookups of absent values. None without any."""
        value_units = [at for at, group in enumerate(self.cells.absent) if group]
        groups = [self.cells.absent[at] for at in value_units]
        if not groups or not self.lookup_samples:
            return None
        sums = self._by_value_unit(value_units, self.cells.parts * len(self.cells.value_units))
        left = (self._remaining(group)[NUMBER] for group in groups)
        if not sums.any() and not any(number < self.metadata.by_number.total for number in left):
            return None  # min/max excludes no row group for any of them
        remaining = np.array([self._in_parts(group) for group in groups])
        # absent values that are made from sampled ones resemble each other in a unit; others are drawn independently
        alike = self.metadata.typed.physical in {"BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"}
        drawn = self.drawn(len(groups)) if alike else SampleSize(len(groups), len(groups))
        return self._from_outside(sums, remaining, drawn, [len(group) for group in groups])

    def queried(self) -> LookupCosts | None:
        """The costs of lookups of the queries' literals. None without any."""
        if not self.cells.queried or not self.lookup_samples:
            return None
        sums = self.matrix()[:, -1:, :].transpose(1, 0, 2)[:, None]
        weighted = np.zeros((1, 1, 2))
        for value, weight in self.cells.queried:
            weighted[0, 0] += weight * np.array(self._remaining([value]))
        return self._from_outside(sums, weighted, None, [len(self.cells.queried)])

    def _from_outside(
        self, sums: Floats, remaining: Floats, value_units: SampleSize | None, counts: Sequence[int]
    ) -> LookupCosts:
        """The costs of lookups of values that don't come from a unit. If `value_units` is None, these are all values,
        not a sample of them."""
        count = len(sums)
        least = most = remaining[:, 0]
        if value_units is not None:
            coverages = (self.metadata.by_number, self.metadata.by_bytes)
            tops = [float(coverage.extremes([(None, None)])[1][0]) for coverage in coverages]
            least, most = np.zeros((count, 2)), np.tile(tops, (count, 1))
        return LookupCosts(
            metadata=self.metadata,
            sums=sums,
            own=np.zeros((count, sums.shape[1], self.sums)),
            own_whole=np.zeros((count, 2)),
            remaining=remaining,
            least=least,
            most=most,
            mean_least=least.mean(axis=0),
            mean_most=most.mean(axis=0),
            value_units=value_units or SampleSize(1, 1),
            lookup_units=self.drawn(len(self.lookup_samples)),
            unsampled=np.full(count, float(value_units is not None)),
            counts=counts,
            settled=self.settled,
            rate_estimates=None if value_units is None else self._rate_estimates(),
        )

    def _rate_estimates(self) -> tuple[RateEstimate, ...]:
        """For each rate, the false-positive rate of new filters: the mean of all sampled ones, in an interval from 0
        to the highest. It isn't known here which of the filters are looked up after min/max."""
        units = list(self.units.values())
        groups = sum(unit.row_groups for unit in units)
        estimates = []
        for at, rate in enumerate(self.rates):
            most = max([rate, *(unit.highest_fpp[at] for unit in units)])
            mean = sum(unit.filter_fpp[at] for unit in units) / max(groups, 1)
            estimates.append(RateEstimate(most, Ratio(mean / most, 0.0, 0.0)))
        return tuple(estimates)

    def sizes(self, rate: int) -> FilterSizes:
        """The sizes of new filters at a rate, given by its position."""
        metadata, units = self.metadata, self.units
        sizes = np.array([unit.filter_bytes[rate] for unit in units.values()], float)
        if units and all(unit.fixed_filters for unit in units.values()):
            groups = sum(metadata.units[key].row_groups for key in units if key in metadata.units)
            return FilterSizes(most=float(sizes.sum()) / max(groups, 1) * metadata.row_groups, share=EXACTLY_ONE)
        bound = tight_estimate if self.tight else upper_bound_bytes
        tops = {key: float(bound(unit.values, self.rates[rate])) for key, unit in metadata.units.items()}
        most = np.array([tops.get(key, float(size)) for key, size in zip(units, sizes, strict=True)])
        return FilterSizes(most=sum(tops.values()), share=ratio_in_units(sizes, most, self.drawn(len(units))))

    def tight_bytes(self, rate: int, all_bytes: float) -> float:
        """The bytes of tight filters: `all_bytes`, times their share in the sample."""
        total = sum(unit.filter_bytes[rate] for unit in self.units.values())
        return all_bytes * sum(unit.tight_bytes[rate] for unit in self.units.values()) / max(total, 1)


def column_advice(samples: ColumnSamples, fpp: float, lookups: int | None, present_share: float) -> ColumnAdvice:
    """All figures of a column.

    Args:
        samples: what was measured.
        fpp: the requested rate.
        lookups: the lookups of the queries; None without queries.
        present_share: the share of lookups whose value the column has.
    """
    metadata = samples.metadata
    kinds = (samples.present(), samples.absent(), samples.queried())
    wanted = samples.rates.index(fpp)
    sizes = [samples.sizes(at) for at in range(len(samples.rates))]
    rates = tuple(_at_rate(at, rate, kinds, sizes[at], samples) for at, rate in enumerate(samples.rates))
    chosen = rates[wanted]
    units = [
        UnitSketch.unpacked(unit.sketch, metadata.units[key].values)
        for key, unit in samples.units.items()
        if key in metadata.units
    ]
    present, absent, queried = (
        None
        if kind is None
        else LookupGain(values=sum(kind.counts), today=kind.today, with_filter=kind.with_filter(wanted))
        for kind in kinds
    )
    return replace(
        unmeasured(metadata, lookups, fpp),
        filter_bytes=chosen.filter_bytes,
        seconds_to_add=_seconds(samples),
        distinct=distinct(units, len(metadata.units), metadata.values) if units else None,
        distinct_per_row_group=distinct_per_unit(units, len(metadata.units), metadata.values) if units else None,
        overlap=None if kinds[0] is None else kinds[0].overlap,
        present=present,
        absent=absent,
        queried=queried,
        rates=rates,
        saved_bytes=saved_at(chosen, present_share),
        existing=_existing(metadata, [unit.existing for unit in samples.units.values()]),
        page_index=_page_index(samples),
        sampled_row_groups=len(samples.units),
    )


def _at_rate(
    at: int, rate: float, kinds: Sequence[LookupCosts | None], sizes: FilterSizes, samples: ColumnSamples
) -> AtRate:
    costs = [None if kind is None else kind.with_filter(at) for kind in kinds]
    saved = [None if kind is None else kind.saved(at, sizes) for kind in kinds]
    return AtRate(
        fpp=rate,
        filter_bytes=sizes.interval,
        tight_bytes=samples.tight_bytes(at, sizes.interval.estimate),
        present=costs[0],
        absent=costs[1],
        queried=costs[2],
        saved_present=saved[0],
        saved_absent=saved[1],
        saved_queried=saved[2],
    )


def _seconds(samples: ColumnSamples) -> Interval | None:
    """The seconds to decode and hash all values on one core, at the speed measured in the sample."""
    units = samples.metadata.units
    pairs = [(unit.seconds, units[key].values) for key, unit in samples.units.items() if key in units]
    if not pairs:
        return None
    seconds, values = (np.array(column, float) for column in zip(*pairs, strict=True))
    top = float((seconds / np.maximum(values, 1)).max()) or 1e-12
    share = ratio_in_units(seconds / top, np.maximum(values, 1), samples.drawn(len(pairs)))
    return summed([(1, Product(top * samples.metadata.values, others=(share,)))])


def _page_index(samples: ColumnSamples) -> PageIndexGain | None:
    reads = [unit.page_reads for unit in samples.value_samples.values() if unit.page_reads is not None]
    if not reads:
        return None
    today, with_index = (sum(column) / len(reads) for column in zip(*reads, strict=True))
    return PageIndexGain(bytes=today, with_index=with_index)


def _existing(metadata: ColumnMetadata, samples: Sequence[ExistingSample]) -> ExistingFilters | None:
    """The existing filters, without a judgement unless they can't be read."""
    if not metadata.filters:
        return None
    measured = sum(sample.measured for sample in samples)
    return ExistingFilters(
        filters=metadata.filters,
        row_groups_without_filter=metadata.without_filter,
        bitset_bytes=metadata.filter_bytes,
        max_fpp=max((sample.max_fpp for sample in samples if sample.max_fpp is not None), default=None),
        foldable_bytes=sum(sample.foldable_bytes for sample in samples) * metadata.filters // max(measured, 1),
        judgement="unreadable" if any(sample.unreadable for sample in samples) else "worth",
    )


def unmeasured(metadata: ColumnMetadata, lookups: int | None, fpp: float) -> ColumnAdvice:
    """The figures of a column whose values weren't read: those from metadata."""
    return ColumnAdvice(
        column=metadata.column,
        type=metadata.type,
        recommended=False,
        reason="",
        reason_id="",
        fpp=fpp,
        files=metadata.files,
        row_groups=metadata.row_groups,
        rows=metadata.rows,
        nulls=metadata.nulls,
        column_bytes=metadata.bytes,
        dictionary_row_groups=metadata.dictionary,
        one_value_per_row_group=metadata.one_value_per_row_group,
        unfilterable=metadata.unfilterable,
        loses_rows=metadata.loses_rows,
        lookups=lookups,
        variant_path=metadata.typed.variant_path,
        properties=tuple(sorted(metadata.properties)),
        existing=_existing(metadata, ()),
    )
