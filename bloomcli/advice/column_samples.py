"""The samples of one column, and the costs of lookups that follow from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import datasketches
import numpy as np

from bloomcli.advice.column_metadata import ColumnMetadata, UnitKey
from bloomcli.advice.lookup_costs import BYTES, NUMBER, FilterSizes, LookupCosts, RateEstimate
from bloomcli.advice.plan import Plan
from bloomcli.advice.statistics import EXACTLY_ONE, Floats, Ratio, SampleSize, ratio_in_units
from bloomcli.commands.options import LookupValues
from bloomcli.filters.sizing import tight_estimate, upper_bound_bytes
from bloomcli.model.advice import RATE_SUMS, SUMS, UnitSample
from bloomcli.values.literals import decode_bound

_NOTHING: Final = SampleSize(1, 1)


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
    plan: Plan
    rates: tuple[float, ...]
    cells: Cells
    value_samples: Mapping[UnitKey, UnitSample]
    """The samples of the units that values come from, in the order of `cells.value_units`."""
    lookup_samples: Mapping[UnitKey, UnitSample]
    settled: bool
    """As `LookupCosts.settled`."""
    tight: bool
    """New filters have tight sizes."""

    def tight_bytes(self, rate: int, all_bytes: float) -> float:
        """The bytes of tight filters: `all_bytes`, times their share in the sample."""
        found = sum(unit.filter_bytes[rate] for unit in self.units.values())
        return all_bytes * sum(unit.tight_bytes[rate] for unit in self.units.values()) / max(found, 1)

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
        found = [np.frombuffer(unit.sums).reshape(shape) for unit in self.lookup_samples.values() if unit.sums]
        stacked: Floats = np.stack(found) if found else np.zeros((0, *shape))
        return stacked

    def present(self) -> LookupCosts | None:
        """The costs of lookups of present values: the sampled ones. None without any."""
        value_units = [
            (at, key)
            for at, key in enumerate(self.cells.value_units)
            if self.value_samples[key].values and key in self.metadata.units  # wrong statistics may deny values
        ]
        if not value_units or not self.lookup_samples:
            return None
        sums = self._by_value_unit([at for at, _ in value_units], 0)
        places = {key: at for at, key in enumerate(self.lookup_samples)}
        own = np.zeros((len(value_units), self.parts, self.sums))
        remaining = np.zeros((len(value_units), self.parts, 2))
        for row, (_, key) in enumerate(value_units):
            unit = self.value_samples[key]
            if key in places:
                sums[row, :, places[key]] = 0
            own[row] = np.frombuffer(unit.sums).reshape(self.parts, self.sums)
            remaining[row] = self._in_parts(unit.values)
        remaining = np.maximum(remaining - own[:, :, :2], 0)
        keys = [key for _, key in value_units]
        return self._lookups(
            keys,
            sums,
            own,
            remaining,
            self.drawn(len(value_units)),
            sum(len(self.value_samples[k].values) for k in keys),
        )

    @property
    def parts(self) -> int:
        """The number of parts that the values of a unit are divided into."""
        return self.cells.parts

    def _by_value_unit(self, value_units: Sequence[int], first: int) -> Floats:
        """The sums of the cells of these value units, from cell `first` on: value units x parts x lookup units x
        sums."""
        cells = [[first + self.parts * at + part for part in range(self.parts)] for at in value_units]
        sums: Floats = np.ascontiguousarray(self.matrix()[:, np.array(cells, np.intp)].transpose(1, 2, 0, 3))
        return sums

    def _shares(self, counts: Sequence[int]) -> Floats:
        """For each number of values, the weights of the parts that they are divided into; their mean is 1."""
        parts = self.parts
        shares: Floats = np.array([[parts * len(range(part, n, parts)) / n for part in range(parts)] for n in counts])
        return shares

    def _in_parts(self, values: Sequence[bytes]) -> list[list[float]]:
        """`_remaining` for each part of the values, weighted so that their mean is that of all values."""
        parts = [values[part :: self.parts] for part in range(self.parts)]
        return [[self.parts * len(part) / len(values) * found for found in self._remaining(part)] for part in parts]

    def _remaining(self, values: Sequence[bytes]) -> list[float]:
        """The mean number of row groups, and the mean bytes, that remain in all units after min/max."""
        keys = [decode_bound(value, self.metadata.typed) for value in values]
        return [
            sum(coverage.at(key) for key in keys) / max(len(keys), 1)
            for coverage in (self.metadata.by_number, self.metadata.by_bytes)
        ]

    def _lookups(
        self,
        keys: Sequence[UnitKey],
        sums: Floats,
        own: Floats,
        remaining: Floats,
        value_units: SampleSize,
        values: int,
    ) -> LookupCosts:
        units = self.metadata.units
        order = {key: at for at, key in enumerate(units)}
        places = [order[key] for key in keys]
        whole = np.array([(unit.row_groups, unit.bytes) for unit in units.values()], float)
        extremes = [
            coverage.extremes([unit.hull for unit in units.values()])
            for coverage in (self.metadata.by_number, self.metadata.by_bytes)
        ]
        least = np.maximum(np.stack([low for low, _ in extremes], axis=1) - whole, 0)
        most = np.stack([high for _, high in extremes], axis=1) - (whole if self.metadata.single else 0)
        unsampled = [
            max(1 - len(self.value_samples[key].values) / max(self._distinct_of(key), 1.0), 0.0) for key in keys
        ]
        return LookupCosts(
            metadata=self.metadata,
            values=values,
            sums=sums,
            own=own,
            own_whole=whole[places],
            remaining=remaining,
            least=least[places],
            most=np.maximum(most, least)[places],
            mean_least=(float(least[:, 0].mean()), float(least[:, 1].mean())),
            mean_most=(float(np.maximum(most, least)[:, 0].mean()), float(np.maximum(most, least)[:, 1].mean())),
            value_units=value_units,
            lookup_units=self.drawn(len(self.lookup_samples)),
            unsampled=np.array(unsampled),
            shares=self._shares([len(self.value_samples[key].values) for key in keys]),
            settled=self.settled,
            rate_estimates=None,
            each=np.array([float(len(self.value_samples[key].values)) for key in keys]),
        )

    def _distinct_of(self, key: UnitKey) -> float:
        return float(datasketches.compact_theta_sketch.deserialize(self.value_samples[key].sketch).get_estimate())

    def absent(self) -> LookupCosts | None:
        """The costs of lookups of absent values. None without any."""
        value_units = [at for at, group in enumerate(self.cells.absent) if group]
        if not value_units or not self.lookup_samples:
            return None
        sums = self._by_value_unit(value_units, self.parts * len(self.cells.value_units))
        left = (self._remaining(self.cells.absent[at])[NUMBER] for at in value_units)
        if not sums.any() and not any(number < self.metadata.by_number.total for number in left):
            return None  # min/max excludes no row group for any of them
        remaining = np.array([self._in_parts(self.cells.absent[at]) for at in value_units])
        counts = [len(self.cells.absent[at]) for at in value_units]
        # absent values other than texts are drawn independently of the value units
        drawn = self.drawn(len(value_units)) if self._in_groups else SampleSize(len(value_units), len(value_units))
        return self._from_outside(sums, remaining, drawn, self._shares(counts), counts)

    def queried(self) -> LookupCosts | None:
        """The costs of lookups of the queries' literals. None without any."""
        if not self.cells.queried or not self.lookup_samples:
            return None
        sums = self.matrix()[:, -1:, :].transpose(1, 0, 2)[:, None]
        weighted = np.zeros((1, 1, 2))
        for value, weight in self.cells.queried:
            weighted[0, 0] += weight * np.array(self._remaining([value]))
        return self._from_outside(sums, weighted, None, np.ones((1, 1)), [len(self.cells.queried)])

    def _from_outside(
        self, sums: Floats, remaining: Floats, value_units: SampleSize | None, shares: Floats, counts: Sequence[int]
    ) -> LookupCosts:
        """The costs of lookups of values that don't come from a unit. If `value_units` is None, these are all values,
        not a sample of them."""
        count = len(sums)
        coverages = (self.metadata.by_number, self.metadata.by_bytes)
        tops = np.array([float(coverage.extremes([(None, None)])[1][0]) for coverage in coverages])
        exact = value_units is None
        least = remaining[:, 0] if exact else np.zeros((count, 2))
        most = remaining[:, 0] if exact else np.tile(tops, (count, 1))
        return LookupCosts(
            metadata=self.metadata,
            values=sum(counts),
            sums=sums,
            own=np.zeros((count, sums.shape[1], self.sums)),
            own_whole=np.zeros((count, 2)),
            remaining=remaining,
            least=least,
            most=most,
            mean_least=(float(least[:, NUMBER].mean()), float(least[:, BYTES].mean())),
            mean_most=(float(most[:, NUMBER].mean()), float(most[:, BYTES].mean())),
            value_units=_NOTHING if value_units is None else value_units,
            lookup_units=self.drawn(len(self.lookup_samples)),
            unsampled=np.zeros(count) if exact else np.ones(count),
            shares=shares,
            settled=self.settled,
            rate_estimates=None if exact else self._rate_estimates(),
            each=np.array(counts, float),
        )

    @property
    def _in_groups(self) -> bool:
        """Whether absent values are made from sampled ones, so that those of one unit resemble each other."""
        return self.metadata.typed.physical in {"BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"}

    def _rate_estimates(self) -> tuple[RateEstimate, ...]:
        """For each rate, the false-positive rate of new filters: the mean of all sampled ones, in an interval from 0
        to the highest. It isn't known here which of the filters are looked up after min/max."""
        units = list(self.units.values())
        groups = sum(unit.row_groups for unit in units)
        found = []
        for at, rate in enumerate(self.rates):
            most = max([rate, *(unit.highest_fpp[at] for unit in units)])
            mean = sum(unit.filter_fpp[at] for unit in units) / max(groups, 1)
            found.append(RateEstimate(most, Ratio(mean / most, 0.0, 0.0)))
        return tuple(found)

    def sizes(self, rate: int) -> FilterSizes:
        """The sizes of new filters at a rate, given by its position."""
        metadata, units = self.metadata, self.units
        found = np.array([unit.filter_bytes[rate] for unit in units.values()], float)
        if units and all(unit.fixed_filters for unit in units.values()):
            groups = sum(metadata.units[key].row_groups for key in units if key in metadata.units)
            return FilterSizes(most=float(found.sum()) / max(groups, 1) * metadata.row_groups, share=EXACTLY_ONE)
        bound = tight_estimate if self.tight else upper_bound_bytes
        tops = {key: float(bound(unit.values, self.rates[rate])) for key, unit in metadata.units.items()}
        most = np.array([tops.get(key, float(size)) for key, size in zip(units, found, strict=True)])
        return FilterSizes(most=sum(tops.values()), share=ratio_in_units(found, most, self.drawn(len(units))))
