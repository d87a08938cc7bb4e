"""The existing filters of a file: which columns have none, and whether the filters meet a request to add.

Filters that meet a request are kept, so that a run can be repeated. An existing filter that doesn't meet it is always
an error.

A filter meets a request when it can be read, readers may use it, it is of the requested kind and variant, and it is
no larger than the cap. Its measured rate has to meet the requested one, unless the filter is as large as the largest
filter that the request allows for that column, so that no better one can be made. A default rate that the caller
didn't request doesn't apply to filters of other writers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from bloomcli.errors import FilterExists
from bloomcli.formats.add_options import recorded_choices, refuse_foreign
from bloomcli.formats.base import FilterFile
from bloomcli.formats.size_rule import SizeRule
from bloomcli.model.file import Column, FilterFacts
from bloomcli.words import counted

ChunkKey = tuple[int, int | None, int]
"""Column ordinal, stripe, row group."""

Existing = dict[ChunkKey, dict[str | None, FilterFacts]]
"""The filters of each chunk by kind. Only ORC has two kinds. Of several filters of a kind, readers use the first."""


def has_no_rows(file: FilterFile) -> bool:
    """Whether the file has no rows to filter. (Without a row index, an ORC file has rows but no row groups.)"""
    return not file.row_group_count and not (file.stripes and file.rows)


def existing_filters(file: FilterFile, columns: Sequence[Column]) -> Existing:
    """Every filter of these columns that readers may use, read and measured. Other columns aren't read."""
    existing: Existing = {}
    for column in columns:
        for found in file.facts({column.index}):
            key = (column.index, found.stripe, found.row_group)
            existing.setdefault(key, {}).setdefault(found.encoding, found)
    return existing


def incomplete(file: FilterFile, columns: Sequence[Column], existing: Existing) -> bool:
    """Whether a chunk of these columns has no filter."""
    filtered = {index for index, _, _ in existing}
    return not has_no_rows(file) and any(c.index not in filtered or file.without_filter(c) for c in columns)


def shortfall(
    file: FilterFile,
    columns: Sequence[Column],
    rule: SizeRule,
    existing: Existing,
    has_to_meet_size: Callable[[ChunkKey], bool],
) -> FilterExists | None:
    """The error about the first filter that doesn't meet the rule; None if all do.

    `has_to_meet_size` says whether the filter of a chunk has to meet the rule's rate, or its number of values.
    """

    @cache
    def largest() -> dict[tuple[int | None, int | None, str], int | None]:
        refuse_foreign(rule.options, file.format, file.source.path)
        plan = file.plan_add(columns, rule, replace=True)
        return {(c.stripe, c.row_group, c.column): c.bitset_bytes for c in plan.estimate}

    def largest_size(found: FilterFacts) -> int | None:
        """Bytes of the largest filter that the rule makes for the chunk. Some formats have one size for a stripe."""
        sizes = largest()
        by_stripe = sizes.get((found.stripe, None, found.column))
        return sizes.get((found.stripe, found.row_group, found.column), by_stripe)

    def too_small(found: FilterFacts) -> str | None:
        fpp = rule.of(found.column).fpp
        if rule.ndv is None and found.fpp is not None and found.fpp <= fpp:
            return None
        size = largest_size(found)
        if size is not None and found.bitset_bytes is not None and found.bitset_bytes >= size:
            return None
        if rule.ndv is not None:
            take = "takes" if rule.ndv == 1 else "take"
            return f"it has {found.bitset_bytes} bytes, {counted(rule.ndv, 'value')} {take} {size}"
        return f"its false-positive rate is {found.fpp:.3g}, {fpp:g} is requested"

    by_index = {c.index: c for c in columns}
    for key, kinds in existing.items():
        first = next(iter(kinds))
        kind = rule.choice("kind")
        wanted = file.encodings(by_index[key[0]], kind)
        if kind is None and wanted[0] not in kinds:
            wanted = (first,)
        for encoding in wanted:
            if encoding not in kinds:
                return _error(file, kinds[first], f"there is no {encoding} stream")
            used = kinds[encoding]
            why = _unfit(used, rule) or (too_small(used) if has_to_meet_size(key) else None)
            if why is not None:
                return _error(file, used, why)
    return None


def _unfit(found: FilterFacts, rule: SizeRule) -> str | None:
    """Return the reason, other than its rate, why a filter doesn't meet the rule; None if it does."""
    if found.problem is not None:
        return f"it can't be read ({found.problem})"
    chosen = recorded_choices(rule.options)
    recorded = {name: value for name in chosen if (value := getattr(found, name)) is not None}
    for name, value in recorded.items():
        if value != chosen[name]:
            return f"its {name} is {value}, {chosen[name]} is requested"
    if found.untrusted is not None and not recorded:
        return f"readers must not use it ({found.untrusted})"
    if rule.max_bytes is not None and (found.bitset_bytes or 0) > rule.max_bytes:
        return f"it has {found.bitset_bytes} bytes, at most {rule.max_bytes} are requested"
    return None


def _error(file: FilterFile, found: FilterFacts, why: str) -> FilterExists:
    where = f"stripe {found.stripe}" if found.stripe is not None else f"row group {found.row_group}"
    return FilterExists(
        f"column {found.column} has a filter in {where} that doesn't meet the request: {why}",
        path=file.source.path,
        offset=found.offset,
        hint="--replace builds new ones in place of all existing ones",
    )
