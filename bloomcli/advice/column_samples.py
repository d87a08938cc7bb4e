"""All that was sampled of one column, and the lookups that it tells of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bloomcli.advice.coverage import Coverage
from bloomcli.advice.lookup_costs import BYTES, NUMBER, Chance, FilterSizes, Lookups, filter_sizes
from bloomcli.advice.plan import Plan
from bloomcli.advice.ratios import Ratio, Sampled
from bloomcli.advice.universe import UnitKey, Universe
from bloomcli.commands.advise_options import LookupValues
from bloomcli.commands.value_sample import numpy
from bloomcli.filters.sizing import tight_estimate, upper_bound_bytes
from bloomcli.model.column_sample import RATE_SUMS, SUMS, UnitSample
from bloomcli.values.literals import decode_bound

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_NOTHING: Final = Sampled(1, 1)


@dataclass(frozen=True, kw_only=True)
class Cells:
    """Which cells of the looked-up values belong to which kind: givers, as many for absent values, and one more."""

    givers: tuple[UnitKey, ...]
    absent: tuple[tuple[bytes, ...], ...]
    """Absent values of each giver."""
    queried: tuple[tuple[bytes, float], ...]
    """Literals of the queries and their weights, which sum to 1."""
    parts: int
    """Random parts of a giver's values: each has a cell."""

    @property
    def count(self) -> int:
        """The number of cells."""
        return 2 * self.parts * len(self.givers) + 1

    def looked_up(self, universe: Universe, given: Sequence[UnitSample]) -> LookupValues:
        """All values with their cells and weights."""
        values: list[bytes] = []
        cells: list[int] = []
        weights: list[float] = []
        first_absent = self.parts * len(self.givers)
        for start, groups in ((0, [unit.values for unit in given]), (first_absent, self.absent)):
            for at, group in enumerate(groups):
                for number, value in enumerate(group):
                    values.append(value)
                    cells.append(start + self.parts * at + number % self.parts)
                    weights.append(self.parts / len(group))  # the mean of all cells is that of all values
        for value, weight in self.queried:
            values.append(value)
            cells.append(self.count - 1)
            weights.append(weight)
        return LookupValues(
            typed=universe.typed,
            values=tuple(values),
            cells=tuple(cells),
            weights=tuple(weights),
            cell_count=self.count,
            absent_from=first_absent,
            absent_to=2 * first_absent,
        )


@dataclass(frozen=True, kw_only=True)
class Samples:
    """All that was sampled of one column."""

    universe: Universe
    plan: Plan
    rates: tuple[float, ...]
    cells: Cells
    given: Mapping[UnitKey, UnitSample]
    """Of the units that give values, in the order of `cells.givers`."""
    taken: Mapping[UnitKey, UnitSample]
    settled: bool
    tight: bool
    """New filters have tight sizes."""

    def tight_bytes(self, rate: int, all_bytes: float) -> float:
        """Bytes of tight filters, by their share of `all_bytes` in the sample."""
        found = sum(unit.filter_bytes[rate] for unit in self.units.values())
        return all_bytes * sum(unit.tight_bytes[rate] for unit in self.units.values()) / max(found, 1)

    @property
    def sums(self) -> int:
        """Sums of a cell."""
        return SUMS + RATE_SUMS * len(self.rates)

    @property
    def units(self) -> dict[UnitKey, UnitSample]:
        """All sampled units."""
        return {**self.given, **self.taken}

    def drawn(self, count: int) -> Sampled:
        """How units of this column were drawn: those that have values."""
        return Sampled(len(self.universe.units), min(count, len(self.universe.units)))

    def matrix(self) -> Floats:
        """Takers x cells x sums."""
        np = numpy()
        shape = (self.cells.count, self.sums)
        found = [np.frombuffer(unit.sums).reshape(shape) for unit in self.taken.values() if unit.sums]
        stacked: Floats = np.stack(found) if found else np.zeros((0, *shape))
        return stacked

    def present(self) -> Lookups | None:
        """The sampled values."""
        np = numpy()
        givers = [(at, key) for at, key in enumerate(self.cells.givers) if self.given[key].values]
        if not givers or not self.taken:
            return None
        sums = self._by_giver([at for at, _ in givers], 0)
        places = {key: at for at, key in enumerate(self.taken)}
        own = np.zeros((len(givers), self.parts, self.sums))
        left = np.zeros((len(givers), self.parts, 2))
        for row, (_, key) in enumerate(givers):
            unit = self.given[key]
            if key in places:
                sums[row, :, places[key]] = 0
            own[row] = np.frombuffer(unit.sums).reshape(self.parts, self.sums)
            left[row] = self._in_parts(unit.values)
        left = np.maximum(left - own[:, :, :2], 0)
        keys = [key for _, key in givers]
        return self._lookups(
            keys, sums, own, left, self.drawn(len(givers)), sum(len(self.given[k].values) for k in keys)
        )

    @property
    def parts(self) -> int:
        """Parts of a giver's values."""
        return self.cells.parts

    def _by_giver(self, givers: Sequence[int], first: int) -> Floats:
        """Givers x parts x takers x sums."""
        np = numpy()
        cells = [[first + self.parts * at + part for part in range(self.parts)] for at in givers]
        sums: Floats = np.ascontiguousarray(self.matrix()[:, np.array(cells, np.intp)].transpose(1, 2, 0, 3))
        return sums

    def _shares(self, counts: Sequence[int]) -> Floats:
        """For each number of values, the weights of its parts, whose mean is 1."""
        np = numpy()
        parts = self.parts
        shares: Floats = np.array([[parts * len(range(part, n, parts)) / n for part in range(parts)] for n in counts])
        return shares

    def _in_parts(self, values: Sequence[bytes]) -> list[list[float]]:
        """`_left` of each part of the values, weighted so that their mean is that of all values."""
        parts = [values[part :: self.parts] for part in range(self.parts)]
        return [[self.parts * len(part) / len(values) * found for found in self._left(part)] for part in parts]

    def _left(self, values: Sequence[bytes]) -> list[float]:
        """Means of the row groups and bytes that min/max leave in all units."""
        keys = [decode_bound(value, self.universe.typed) for value in values]
        return [
            sum(coverage.at(key) for key in keys) / max(len(keys), 1)
            for coverage in (self.universe.by_number, self.universe.by_bytes)
        ]

    def _lookups(
        self, keys: Sequence[UnitKey], sums: Floats, own: Floats, left: Floats, givers: Sampled, values: int
    ) -> Lookups:
        np = numpy()
        units = self.universe.units
        order = {key: at for at, key in enumerate(units)}
        places = [order[key] for key in keys]
        whole = np.array([(unit.row_groups, unit.bytes) for unit in units.values()], float)
        extremes = [
            coverage.extremes([unit.hull for unit in units.values()])
            for coverage in (self.universe.by_number, self.universe.by_bytes)
        ]
        least = np.maximum(np.stack([low for low, _ in extremes], axis=1) - whole, 0)
        most = np.stack([high for _, high in extremes], axis=1) - (whole if self.universe.single else 0)
        untaken = [max(1 - len(self.given[key].values) / max(self._distinct_of(key), 1.0), 0.0) for key in keys]
        return Lookups(
            universe=self.universe,
            values=values,
            sums=sums,
            own=own,
            own_whole=whole[places],
            left=left,
            least=least[places],
            most=np.maximum(most, least)[places],
            mean_least=(float(least[:, 0].mean()), float(least[:, 1].mean())),
            mean_most=(float(np.maximum(most, least)[:, 0].mean()), float(np.maximum(most, least)[:, 1].mean())),
            givers=givers,
            takers=self.drawn(len(self.taken)),
            untaken=np.array(untaken),
            shares=self._shares([len(self.given[key].values) for key in keys]),
            settled=self.settled,
            chances=None,
            each=np.array([float(len(self.given[key].values)) for key in keys]),
        )

    def _distinct_of(self, key: UnitKey) -> float:
        from bloomcli.commands.value_sample import datasketches

        return float(datasketches().compact_theta_sketch.deserialize(self.given[key].sketch).get_estimate())

    def absent(self) -> Lookups | None:
        """The values that aren't there."""
        np = numpy()
        givers = [at for at, group in enumerate(self.cells.absent) if group]
        if not givers or not self.taken:
            return None
        sums = self._by_giver(givers, self.parts * len(self.cells.givers))
        if not sums.any() and not self._rules_out(givers):
            return None
        left = np.array([self._in_parts(self.cells.absent[at]) for at in givers])
        counts = [len(self.cells.absent[at]) for at in givers]
        # others than texts are drawn independently of the givers
        drawn = self.drawn(len(givers)) if self._in_groups else Sampled(len(givers), len(givers))
        return self._from_outside(sums, left, drawn, self._shares(counts), counts)

    def _rules_out(self, givers: Sequence[int]) -> bool:
        """Min/max leaves something of fewer row groups than all for the values."""
        return any(self._left(self.cells.absent[at])[NUMBER] < self.universe.by_number.total for at in givers)

    def queried(self) -> Lookups | None:
        """The literals of the queries."""
        np = numpy()
        if not self.cells.queried or not self.taken:
            return None
        sums = self.matrix()[:, -1:, :].transpose(1, 0, 2)[:, None]
        weighted = np.zeros((1, 1, 2))
        for value, weight in self.cells.queried:
            weighted[0, 0] += weight * np.array(self._left([value]))
        return self._from_outside(sums, weighted, None, np.ones((1, 1)), [len(self.cells.queried)])

    def _from_outside(
        self, sums: Floats, left: Floats, givers: Sampled | None, shares: Floats, counts: Sequence[int]
    ) -> Lookups:
        """Values that come from no unit; without givers, they are all that there are."""
        np = numpy()
        count = len(sums)
        tops = np.array([_highest(self.universe.by_number), _highest(self.universe.by_bytes)])
        exact = givers is None
        least = left[:, 0] if exact else np.zeros((count, 2))
        most = left[:, 0] if exact else np.tile(tops, (count, 1))
        return Lookups(
            universe=self.universe,
            values=sum(counts),
            sums=sums,
            own=np.zeros((count, sums.shape[1], self.sums)),
            own_whole=np.zeros((count, 2)),
            left=left,
            least=least,
            most=most,
            mean_least=(float(least[:, NUMBER].mean()), float(least[:, BYTES].mean())),
            mean_most=(float(most[:, NUMBER].mean()), float(most[:, BYTES].mean())),
            givers=_NOTHING if givers is None else givers,
            takers=self.drawn(len(self.taken)),
            untaken=np.zeros(count) if exact else np.ones(count),
            shares=shares,
            settled=self.settled,
            chances=None if exact else self._chances(),
            each=np.array(counts, float),
        )

    @property
    def _in_groups(self) -> bool:
        """Absent values are made from sampled ones, so that those of a giver resemble each other."""
        return self.universe.typed.physical in {"BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"}

    def _chances(self) -> tuple[Chance, ...]:
        """How often new filters may have a value that they don't have: the mean of all sampled ones, from 0 to the
        highest. Which of them the values meet that min/max leaves isn't known here."""
        units = list(self.units.values())
        groups = sum(unit.row_groups for unit in units)
        found = []
        for at, rate in enumerate(self.rates):
            most = max([rate, *(unit.highest_fpp[at] for unit in units)])
            mean = sum(unit.filter_fpp[at] for unit in units) / max(groups, 1)
            found.append(Chance(most, Ratio(mean / most, 0.0, 0.0)))
        return tuple(found)

    def sizes(self, rate: int) -> FilterSizes:
        """New filters at a rate."""
        np = numpy()
        universe, units = self.universe, self.units
        found = np.array([unit.filter_bytes[rate] for unit in units.values()], float)
        fixed = bool(units) and all(unit.fixed_filters for unit in units.values())
        if fixed:
            groups = sum(universe.units[key].row_groups for key in units if key in universe.units)
            return filter_sizes(
                found, found, float(found.sum()) / max(groups, 1) * universe.row_groups, _NOTHING, fixed=True
            )
        bound = tight_estimate if self.tight else upper_bound_bytes
        tops = {key: float(bound(unit.values, self.rates[rate])) for key, unit in universe.units.items()}
        most = np.array([tops.get(key, float(size)) for key, size in zip(units, found, strict=True)])
        return filter_sizes(found, most, sum(tops.values()), self.drawn(len(units)), fixed=False)


def _highest(coverage: Coverage) -> float:
    _, most = coverage.extremes([(None, None)])
    return float(most[0])
