"""Columns with figures written by hand, for tests of recommendations and reports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from bloomcli.model.advice import (
    AdviseReport,
    AtRate,
    ColumnAdvice,
    ExistingFilters,
    Interval,
    LookupCost,
    LookupGain,
)

MIB: Final = 1 << 20
GROUPS: Final = 100
GROUP_BYTES: Final = 10 * MIB


def exact(value: float) -> Interval:
    """A figure without uncertainty."""
    return Interval(estimate=value, low=value, high=value)


def cost(share: float, *, groups: int = GROUPS) -> LookupCost:
    """The cost of reading this share of the row groups."""
    return LookupCost(row_groups=exact(share), bytes=exact(share * groups * GROUP_BYTES))


def gain(today: float, with_filter: float, *, groups: int = GROUPS, values: int = 100) -> LookupGain:
    """A lookup that reads the share `today` of the row groups, and the share `with_filter` with a filter."""
    return LookupGain(values=values, today=cost(today, groups=groups), with_filter=cost(with_filter, groups=groups))


def column(name: str = "id", *, filter_bytes: float = MIB, spread: float = 0.0, **given: Any) -> ColumnAdvice:
    """A column of 100 row groups of 10 MiB. Min/max excludes nothing, each value is in one row group, and filters
    save nearly everything. `spread` widens the interval of the saved bytes, as a share of them."""
    groups = given.get("row_groups", GROUPS)
    known: dict[str, Any] = {
        "type": "INT64",
        "recommended": False,
        "reason": "",
        "reason_id": "",
        "files": 10,
        "row_groups": groups,
        "rows": 1_000_000,
        "nulls": 0,
        "distinct": exact(1_000_000),
        "distinct_per_row_group": exact(1_000_000 / groups),
        "overlap": exact(1.0),
        "dictionary_row_groups": 0,
        "present": gain(1.0, 0.02, groups=groups),
        "absent": gain(1.0, 0.01, groups=groups),
        "filter_bytes": exact(filter_bytes),
    } | given
    if "saved_bytes" not in known:
        gains = [known["queried"]] if known.get("queried") else [known["present"], known["absent"]]
        saved = [g.today.bytes.estimate - g.with_filter.bytes.estimate - filter_bytes for g in gains if g is not None]
        mean = sum(saved) / len(saved) if saved else 0.0
        known["saved_bytes"] = Interval(estimate=mean, low=mean * (1 - spread), high=mean * (1 + spread))
    return ColumnAdvice(column=name, **known)


def at_rates(sizes: Sequence[tuple[float, float]], *, today: float = 1000 * MIB) -> tuple[AtRate, ...]:
    """Filters at several rates: `sizes` has pairs of rate and bytes. With them, lookups read false positives only."""
    return tuple(
        AtRate(
            fpp=fpp,
            filter_bytes=exact(nbytes),
            present=cost(fpp + 0.01),
            absent=cost(fpp),
            queried=None,
            saved_present=exact(today * (0.99 - fpp)),
            saved_absent=exact(today * (1 - fpp)),
            saved_queried=None,
        )
        for fpp, nbytes in sizes
    )


def existing(**given: Any) -> ExistingFilters:
    """Good filters in all row groups."""
    known: dict[str, Any] = {
        "filters": GROUPS,
        "row_groups_without_filter": 0,
        "bitset_bytes": MIB,
        "max_fpp": 0.008,
        "foldable_bytes": 0,
    }
    return ExistingFilters(**known | given)


def report(*columns: ColumnAdvice, **given: Any) -> AdviseReport:
    """A report with these columns, of ten files."""
    known: dict[str, Any] = {
        "paths": ("lake",),
        "files": 10,
        "row_groups": GROUPS,
        "rows": 1_000_000,
        "bytes": GROUPS * GROUP_BYTES,
        "sampled_files": 10,
        "sampled_row_groups": GROUPS,
        "seed": 0,
        "fpp": 0.01,
        "readers": (),
    }
    return AdviseReport(columns=columns, **known | given)
