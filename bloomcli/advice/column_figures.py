"""Computes the figures of a column from its samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from bloomcli.advice.column_metadata import ColumnMetadata
from bloomcli.advice.column_samples import ColumnSamples
from bloomcli.advice.distinct import UnitSketch, distinct, distinct_per_unit
from bloomcli.advice.lookup_costs import FilterSizes, LookupCosts, Product, summed
from bloomcli.advice.recommend import saved_at
from bloomcli.advice.statistics import ratio_in_units
from bloomcli.model.advice import (
    AtRate,
    ColumnAdvice,
    ExistingFilters,
    ExistingSample,
    Interval,
    LookupGain,
    PageIndexGain,
)


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
        UnitSketch(unit.sketch, metadata.units[key].values)
        for key, unit in samples.units.items()
        if key in metadata.units
    ]
    present, absent, queried = (
        None
        if kind is None
        else LookupGain(values=kind.values, today=kind.today, with_filter=kind.with_filter(wanted))
        for kind in kinds
    )
    return replace(
        unmeasured(metadata, lookups, fpp),
        filter_bytes=chosen.filter_bytes,
        seconds_to_add=_seconds(samples),
        distinct=distinct(units, len(metadata.units), metadata.values) if units else None,
        distinct_per_row_group=distinct_per_unit(
            units, len(metadata.units), metadata.values, samples.plan.sketch_bits
        )
        if units
        else None,
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
    known = [(unit.seconds, units[key].values) for key, unit in samples.units.items() if key in units]
    if not known:
        return None
    taken, values = (np.array(column, float) for column in zip(*known, strict=True))
    top = float((taken / np.maximum(values, 1)).max()) or 1e-12
    share = ratio_in_units(taken / top, np.maximum(values, 1), samples.drawn(len(known)))
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
    measured = sum(one.measured for one in samples)
    return ExistingFilters(
        filters=metadata.filters,
        row_groups_without_filter=metadata.without_filter,
        bitset_bytes=metadata.filter_bytes,
        max_fpp=max((one.max_fpp for one in samples if one.max_fpp is not None), default=None),
        foldable_bytes=sum(one.foldable_bytes for one in samples) * metadata.filters // max(measured, 1),
        judgement="unreadable" if any(one.unreadable for one in samples) else "worth",
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
