"""Checks filters against the limits of a policy: required columns, largest false-positive rate, largest size."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from typing import Final

from bloomcli import limits
from bloomcli.checks import group_ranges
from bloomcli.errors import near_names
from bloomcli.filters import sizing
from bloomcli.formats.base import FilterFile
from bloomcli.formats.registry import format_named
from bloomcli.hints import folding
from bloomcli.model.file import Column, FilterFacts, Severity
from bloomcli.model.validate import Finding
from bloomcli.policy.globs import is_glob, matches
from bloomcli.policy.policy import FilePolicy
from bloomcli.values import variant_paths
from bloomcli.words import counted

_SHOWN: Final = 8
"""The maximum number of row groups or columns that a message lists."""
_USUAL_FPP: Final = 0.01
"""The rate for which sizes are judged if the policy sets none: the default of `bloom add` and of parquet-java."""


def required(file: FilterFile, names: Sequence[str], rules: FilePolicy | None = None) -> Iterator[Finding]:
    """Findings about required columns: no filter in a row group that has values, or no such column in the file.

    A glob that matches no column isn't a finding, nor is a table column that the file doesn't have, because it has no
    values there. `rules` contains the rates for hints.
    """
    columns = [column for column in file.columns if not column.not_in_table]
    filtered: set[int] | None = None
    for column in columns:
        if matches(names, column.path):
            without = file.without_filter(column)
            if without:
                filtered = file.filtered_columns() if filtered is None else filtered
                limit = None if rules is None else rules.limits(column.path).max_fpp
                yield _without(file, column, without, in_part=column.index in filtered, limit=limit)
    for name, paths, similar in names_not_in(file, names):
        yield Finding(
            id="filter-required",
            severity=Severity.ERROR,
            message="the file has no such column",
            column=name,
            hint=similar or f"the file's columns: {_shown(paths)}",
        )


def names_not_in(file: FilterFile, names: Sequence[str]) -> Iterator[tuple[str, Collection[str], str | None]]:
    """Yield each name that isn't a glob and that neither the file nor its table has, with the names of their columns,
    and a hint if some are similar."""
    columns = [column for column in file.columns if not column.not_in_table]
    paths = {name for column in columns for name in (column.path, column.name)}.union(file.missing_columns)
    for name in names:
        if not {name, variant_paths.canonical(name)} & paths and not is_glob(name):
            near = near_names(name, paths)
            shown = (other if other == other.strip() else repr(other) for other in near)
            yield name, paths, f"did you mean {', '.join(shown)}?" if near else None


def _shown(paths: Collection[str]) -> str:
    return ", ".join([*sorted(paths)[:_SHOWN], *(["..."] if len(paths) > _SHOWN else [])]) or "none"


def _without(
    file: FilterFile, column: Column, without: Sequence[int], *, in_part: bool, limit: float | None
) -> Finding:
    """The finding. `in_part`: other row groups have a filter, so that `add` needs --replace. `limit`: the highest
    rate."""
    in_all = file.row_group_count if file.stripes is None else file.stripes
    form = format_named(file.format)
    lower = None if limit is None or limit >= _USUAL_FPP / form.rate_margin else limit
    return Finding(
        id="filter-required",
        severity=Severity.ERROR,
        message=f"no filter in {len(without)} of {counted(in_all, form.unit)}",
        row_group=without[0] if file.stripes is None else None,
        stripe=None if file.stripes is None else without[0],
        column=column.path,
        hint=form.adding(column.path, *(["--replace"] if in_part else []), limit=lower),
        places=group_ranges.of_numbers(without),
    )


def rates_and_sizes(file: FilterFile, facts: Sequence[FilterFacts], policy: FilePolicy) -> Iterator[Finding]:
    """Findings about filters whose measured rate is above the limit, or that are larger than that rate needs."""
    limits_of = {path: policy.limits(path) for path in {fact.column for fact in facts}}
    for fact in facts:
        limit = limits_of[fact.column]
        if limit.max_fpp is not None and fact.fpp is not None and fact.fpp > limit.max_fpp:
            yield _finding(
                fact,
                "filter-fpp",
                f"the measured false-positive rate is {fact.fpp:.4g}, above {limit.max_fpp:g}",
                format_named(file.format).adding(fact.column, "--replace", limit=limit.max_fpp),
            )
        if limit.max_oversize is None or fact.bitset_bytes is None:
            continue
        fpp = limit.max_fpp or _USUAL_FPP
        needed = _needed_bytes(fact, fpp)
        if needed and fact.bitset_bytes > needed * limit.max_oversize:
            yield _finding(
                fact,
                "filter-oversized",
                f"the bitset's {fact.bitset_bytes} bytes are {fact.bitset_bytes / needed:.0f} times what its values"
                f" need for a rate of {fpp:g}, {needed}; accepted are {limit.max_oversize:g} times",
                _shrinking(file, fact, fpp, needed * limit.max_oversize),
            )


def _shrinking(file: FilterFile, fact: FilterFacts, fpp: float, most: float) -> str:
    """The command that makes a column's filters smaller: `fold`, or `add` if halving can't reach `most` bytes."""
    size = fact.bitset_bytes or 0
    halved = size // (size & -size) * limits.FILTER_MIN_BYTES
    if file.unfoldable is not None or halved > most:
        return format_named(file.format).adding(fact.column, "--replace", limit=fpp)
    return folding(fact.column, fpp)


def _needed_bytes(fact: FilterFacts, fpp: float) -> int | None:
    """The size in bytes of the smallest bitset that a writer would make.

    A power of two that meets the expected rate; for ORC filters, the size for the row index stride.
    """
    if fact.hash_functions is None:
        if fact.ndv_estimate is None:
            return None
        size = limits.FILTER_MIN_BYTES
        while size < limits.FILTER_MAX_BYTES and sizing.expected_fpp(round(fact.ndv_estimate), size) > fpp:
            size *= 2
        return size
    if not fact.asked_fpp or fact.asked_fpp >= fpp or fact.bitset_bytes is None:
        return fact.bitset_bytes  # the stride determines the size, and no smaller size meets the rate
    return math.ceil(fact.bitset_bytes * math.log(fpp) / math.log(fact.asked_fpp))  # m is proportional to ln p


def _finding(fact: FilterFacts, id: str, message: str, hint: str) -> Finding:  # noqa: A002  it is the finding's id
    return Finding(
        id=id,
        severity=Severity.ERROR,
        message=message,
        row_group=fact.row_group,
        stripe=fact.stripe,
        column=fact.column,
        offset=fact.offset,
        hint=hint,
    )
