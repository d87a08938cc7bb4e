"""Filters that are there already: where there are none yet, and whether those that are there are what is asked for.

What meets an order is left alone, so that a run can be started again; what doesn't is never passed over in silence.
A filter meets an order to add when it can be read, readers may use it, it is of the kind and variant that are asked
for, and no larger than the cap. Its measured rate has to meet the one that is asked for, unless the filter is as
large as the order makes any for that column: then it can't be better. A rate that nobody asked for isn't held
against filters of other writers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from bloomcli.errors import FilterExists
from bloomcli.formats.add_options import recorded_choices, refuse_foreign
from bloomcli.formats.base import FilterFile, SizeRule
from bloomcli.model.file import Column, FilterFacts

Place = tuple[int, int | None, int]
"""Column ordinal, stripe, row group."""

Present = dict[Place, dict[str | None, FilterFacts]]
"""The filters at each place by kind, of which only ORC has two; of several of one kind the first, as readers do."""


def holds_nothing(file: FilterFile) -> bool:
    """There are no rows to make a filter for. (Without a row index, an ORC file has rows but no row groups.)"""
    return not file.row_group_count and not (file.stripes and file.rows)


def present(file: FilterFile, columns: Sequence[Column]) -> Present:
    """Every filter of these columns that readers may come to, read and measured. Other columns aren't looked at."""
    places: Present = {}
    for column in columns:
        for found in file.facts({column.index}):
            place = (column.index, found.stripe, found.row_group)
            places.setdefault(place, {}).setdefault(found.encoding, found)
    return places


def incomplete(file: FilterFile, columns: Sequence[Column], there: Present) -> bool:
    """Some column lacks a filter somewhere."""
    filtered = {index for index, _, _ in there}
    return not holds_nothing(file) and any(c.index not in filtered or file.without_filter(c) for c in columns)


def shortfall(
    file: FilterFile, columns: Sequence[Column], rule: SizeRule, there: Present, rated: Callable[[Place], bool]
) -> FilterExists | None:
    """The first filter that isn't what the rule asks for, as the error that says so; None where all are.

    `rated` tells whether the filter at a place has to meet the rule's rate, or its number of values.
    """

    @cache
    def largest() -> dict[tuple[int | None, int | None, str], int | None]:
        refuse_foreign(rule.options, file.format, file.source.path)
        plan = file.plan_add(columns, rule, replace=True)
        return {(c.stripe, c.row_group, c.column): c.bitset_bytes for c in plan.estimate}

    def size_asked_for(found: FilterFacts) -> int | None:
        """What the rule would make here, at most; only for some formats it is known by row group."""
        sizes = largest()
        by_stripe = sizes.get((found.stripe, None, found.column))
        return sizes.get((found.stripe, found.row_group, found.column), by_stripe)

    def too_little(found: FilterFacts) -> str | None:
        if rule.ndv is None and found.fpp is not None and found.fpp <= rule.fpp:
            return None
        asked = size_asked_for(found)
        if asked is not None and found.bitset_bytes is not None and found.bitset_bytes >= asked:
            return None
        if rule.ndv is not None:
            return f"it has {found.bitset_bytes} bytes, {rule.ndv} values take {asked}"
        return f"its false-positive rate is {found.fpp:.3g}, {rule.fpp:g} is asked for"

    by_index = {c.index: c for c in columns}
    for place, kinds in there.items():
        first = next(iter(kinds))
        kind = rule.choice("kind")
        wanted = file.encodings(by_index[place[0]], kind)
        if kind is None and wanted[0] not in kinds:
            wanted = (first,)
        for encoding in wanted:
            if encoding not in kinds:
                return _error(file, kinds[first], f"there is no {encoding} stream")
            used = kinds[encoding]
            why = _unfit(used, rule) or (too_little(used) if rated(place) else None)
            if why is not None:
                return _error(file, used, why)
    return None


def _unfit(found: FilterFacts, rule: SizeRule) -> str | None:
    """Why a filter isn't of use for what is asked for, whatever its rate."""
    if found.problem is not None:
        return f"it can't be read ({found.problem})"
    chosen = recorded_choices(rule.options)
    recorded = {name: value for name in chosen if (value := getattr(found, name)) is not None}
    for name, value in recorded.items():
        if value != chosen[name]:
            return f"its {name} is {value}, {chosen[name]} is asked for"
    if found.untrusted is not None and not recorded:
        return f"readers must not use it ({found.untrusted})"
    if rule.max_bytes is not None and (found.bitset_bytes or 0) > rule.max_bytes:
        return f"it has {found.bitset_bytes} bytes, at most {rule.max_bytes} are asked for"
    return None


def _error(file: FilterFile, found: FilterFacts, why: str) -> FilterExists:
    where = f"stripe {found.stripe}" if found.stripe is not None else f"row group {found.row_group}"
    return FilterExists(
        f"column {found.column} has a filter in {where} that isn't what is asked for: {why}",
        path=file.source.path,
        offset=found.offset,
        hint="--replace builds new ones in place of all present ones",
    )
