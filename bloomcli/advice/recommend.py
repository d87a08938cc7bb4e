"""Decides from a column's figures whether to add a filter, and gives the reason in one sentence. Opens no files.

A filter is recommended if one lookup reads clearly less with it: the lower end of the interval of the saved bytes is
above 0, and the estimate is at least the share `LEAST_SAVED` of the bytes that a lookup reads today. Some columns are
excluded first: a filter is impossible or loses rows, no query looks the column up, min/max leaves at most two row
groups, or each row group has most of the values.

Without queries, it isn't known which columns are looked up. Columns of types whose values are measured (prices,
times), and the row numbers that pandas stores, then get a filter only if the user names them.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final, NamedTuple

from bloomcli.model.advice import SELDOM, AdviseReport, AtRate, ColumnAdvice, ExistingFilters, Interval, LookupGain
from bloomcli.rules.readers import DICTIONARIES, GAINS, Encoded, reader, uses
from bloomcli.words import are, plural, rate, size

LEAST_SAVED: Final = 0.1
"""The least share of the bytes of a lookup that a filter has to save."""
PRUNED: Final = 2.0
"""If at most this number of row groups, and at most half of them, remain for a value after min/max, a filter saves
little."""
MOST_OF_THE_ROW_GROUPS: Final = 0.5
"""If each value is in this share of the other row groups, too, a filter can't exclude them."""
FEW_IN_ONE: Final = 20
"""For a single row group: a column counts as one with few values if each occurs at least this often on average."""
SATURATED: Final = 0.5
"""The false-positive rate from which on a filter counts as saturated: it excludes at most half of the absent
values."""
FOLDABLE: Final = 0.1
"""The least share of the bytes of filters that `bloom fold` has to save."""
_MEASURES: Final = re.compile(r"FLOAT|DOUBLE|DECIMAL\(\d+, ?[1-9]|TIMESTAMP|TIME\b|INT96|INTERVAL", re.IGNORECASE)
"""Types of measured values, which queries compare with ranges more often than with `=`."""
_ROW_NUMBERS: Final = re.compile(r"__index_level_\d+__")
"""Names that pandas gives to an unnamed index, which it stores if rows were dropped or put in another order."""


def encoded(column: ColumnAdvice) -> Encoded:
    """How the column is encoded, which decides what filters do for a reader."""
    kind = column.type.partition("(")[0]
    groups = column.row_groups, column.dictionary_row_groups or 0
    return Encoded(column.column, kind, *groups, column.properties)


class _Verdict(NamedTuple):
    """The reason for a recommendation, or against one."""

    reason_id: str
    reason: str

    @property
    def recommended(self) -> bool:
        """Whether a new filter is recommended."""
        return self.reason_id == "saves"


def recommend(column: ColumnAdvice, figures: AdviseReport, *, named: bool = False) -> ColumnAdvice:
    """The column with its recommendation (`recommended`, `reason`, `reason_id`), and with a judgement on its existing
    filters.

    Args:
        column: its figures.
        figures: what is known of all columns together.
        named: the user named the column.
    """
    if _is_row_number(column, named):
        column = replace(column, page_index=None)
    verdict = _on_new_filters(column, figures, named)
    if column.existing is not None and column.existing.filters:
        existing = judge(column, column.existing, figures)
        column = replace(column, existing=existing)
        verdict = _on_existing(existing, verdict)
    column = replace(
        column, recommended=verdict.recommended, reason_id=verdict.reason_id, reason=verdict.reason, fpp=figures.fpp
    )
    return with_reads(column, figures.present_share)


def judge(column: ColumnAdvice, existing: ExistingFilters, figures: AdviseReport) -> ExistingFilters:
    """The existing filters of a column, with their judgement."""
    if existing.judgement == "unreadable":
        return existing
    if _worthless(column, figures) is not None:
        judgement = "not-worth"
    elif existing.max_fpp is not None and existing.max_fpp >= SATURATED:
        judgement = "saturated"
    elif existing.row_groups_without_filter:
        judgement = "missing"
    elif existing.foldable_bytes >= FOLDABLE * max(existing.bitset_bytes, 1):
        judgement = "foldable"
    else:
        judgement = "worth"
    return replace(existing, judgement=judgement)


def _on_new_filters(column: ColumnAdvice, figures: AdviseReport, named: bool) -> _Verdict:
    """The verdict on new filters."""
    share, log = figures.present_share, figures.queries
    why_not = _worthless(column, figures)
    if why_not is not None:
        return why_not
    if log is not None and not column.lookups:
        statements = plural(log.about_table, "statement")
        return _Verdict("not-queried", f"none of the {statements} about the table looks values of it up")
    saved, today = column.saved_bytes, _reads(column, share)[0]
    if not _gains(column, share) and column.nulls is not None and column.nulls >= column.rows:
        return _Verdict("unknown", "it has no values, only nulls" if column.rows else "it has no rows")
    if saved is None or not _gains(column, share):
        why = "the sample has no row group with values"
        if figures.failed:
            why = f"{plural(len(figures.failed), 'file')} of the sample could not be read"
        return _Verdict("unknown", f"no value of it was looked up: {why}")
    # if some row groups have filters, add the missing ones, even if the sample has few row groups without filters
    partly = column.existing is not None and column.existing.filters and column.existing.row_groups_without_filter
    if (saved.low > 0 or (partly and saved.estimate > 0)) and saved.estimate >= LEAST_SAVED * today:
        saves = _saves(column, share)
        measured = log is None and not named and _MEASURES.match(column.type)
        if measured or _is_row_number(column, named):
            values = f"values of a {column.type}" if measured else "row numbers of pandas"
            why = f"a lookup would read {_bytes(saved.estimate)} less, but {values} are seldom looked up by `=`"
            return _Verdict(SELDOM, why)
        return _Verdict("saves", saves)
    return _saves_too_little(column, share)


def _is_row_number(column: ColumnAdvice, named: bool) -> bool:
    """Whether the column has the row numbers that pandas stores, and neither the user nor a query names it."""
    return _ROW_NUMBERS.fullmatch(column.column) is not None and not (column.lookups or named)


def _worthless(column: ColumnAdvice, figures: AdviseReport) -> _Verdict | None:
    """The reason for which a filter of any size is useless or harmful for the column; None if there is no such
    reason."""
    if column.unfilterable is not None:
        return _Verdict("loses-rows" if column.loses_rows else "unfilterable", column.unfilterable)
    left = _remaining_row_groups(column)
    if left is not None and column.row_groups > 1 and left <= min(PRUNED, column.row_groups / 2):
        some = _of(left, column.row_groups)
        return _Verdict("sorted", f"sorted: min/max leaves {some} for a value, without a filter")
    named = [use for who in figures.readers for use in uses(reader(who), figures.formats, [encoded(column)])]
    if named and all(use.verdict == DICTIONARIES for use in named):
        return _Verdict(
            "dictionary",
            f"the named readers look values up in dictionaries, which {_all(column.row_groups)} already",
        )
    if named and all(use.verdict != GAINS for use in named):
        why = "; ".join(f"{use.title} {use.reason}" for use in named)
        return _Verdict("no-reader", f"no named reader gains: {why}")
    if column.one_value_per_row_group:  # as the rule profit-constant says of a file
        return _Verdict("few-values", f"min/max names the only value of {_each(column.row_groups)}")
    # with literals of queries, the looked-up values are known; otherwise frequent values count
    return _few_values(column) if column.queried is None else None


def _remaining_row_groups(column: ColumnAdvice) -> float | None:
    """The number of row groups that remain for a value after min/max."""
    return None if column.overlap is None else column.overlap.estimate * column.row_groups


def _few_values(column: ColumnAdvice) -> _Verdict | None:
    whole, each = column.distinct, column.distinct_per_row_group
    if whole is None or each is None or whole.estimate <= 0:
        return None
    if column.row_groups <= 1:
        if (column.rows - (column.nulls or 0)) / whole.estimate < FEW_IN_ONE:
            return None
        return _Verdict(
            "few-values",
            f"few values: {_count(whole.estimate)} distinct values in {plural(column.rows, 'row')}",
        )
    others = (column.row_groups * each.estimate / whole.estimate - 1) / (column.row_groups - 1)
    if others < MOST_OF_THE_ROW_GROUPS:
        return None
    return _Verdict(
        "few-values",
        f"in most row groups: on average a row group has {_count(each.estimate)} of the"
        f" {_count(whole.estimate)} distinct values",
    )


def _saves_too_little(column: ColumnAdvice, share: float) -> _Verdict:
    """The verdict on a filter that saves too little: names what excludes row groups already."""
    today, after = _reads(column, share)
    left = _remaining_row_groups(column)
    groups = column.row_groups
    existing = column.existing
    if existing is not None and existing.filters and not existing.row_groups_without_filter:
        return _Verdict("has-filters", _has(existing))
    if today <= 0:
        return _Verdict("sorted", "nothing to save: min/max excludes every row group for the values looked up")
    if left is not None and groups > 1 and left < MOST_OF_THE_ROW_GROUPS * groups:
        with_filter = sum(w * gain.with_filter.row_groups.estimate for gain, _, w in _gains(column, share))
        return _Verdict(
            "sorted",
            f"min/max leaves {_of(left, groups)} for a value; with a filter {_count(with_filter * groups)} are read",
        )
    if (few := _few_values(column)) is not None:
        return few
    saved = column.saved_bytes
    if saved is not None and saved.estimate <= 0 < today - after:
        filters = _bytes(today - after - saved.estimate)
        return _Verdict(
            "costs-more",
            f"a lookup reads {filters} of filters to read {_bytes(today - after)} less of the rows",
        )
    if saved is not None and saved.low <= 0 < saved.estimate and saved.estimate >= LEAST_SAVED * today:
        larger = " (a larger --sample narrows it)" if column.sampled_row_groups < column.row_groups else ""
        return _Verdict(
            "unknown",
            f"uncertain: a lookup reads {_bytes(saved.estimate)} less on average, but the 95 % interval contains 0"
            + larger,
        )
    after = after if saved is None else today - saved.estimate  # with the filters that it reads
    return _Verdict("costs-more", f"a lookup reads {_bytes(after)} with a filter, and {_bytes(today)} without one")


def _on_existing(existing: ExistingFilters, new: _Verdict) -> _Verdict:
    """The verdict on a column that has filters, given the verdict on new filters."""
    single = existing.filters == 1
    filters = f"its {plural(existing.filters, 'filter')} of {size(existing.bitset_bytes)}"
    saturated = (
        f"{filters} {are(existing.filters)} saturated (rate{'' if single else 's'} up to {rate(existing.max_fpp)})"
    )
    match existing.judgement:
        case "not-worth":
            return new._replace(reason=f"{new.reason}; {filters} can go")
        case "saturated" if new.recommended:
            return new._replace(reason=f"{saturated}; with {'a new one' if single else 'new ones'}, {new.reason}")
        case "saturated":
            return _Verdict(new.reason_id, f"{new.reason}; {saturated}")
        case "missing":
            missing = f"{plural(existing.row_groups_without_filter, 'row group')} without a filter"
            return new._replace(reason=f"it has {missing}: with filters, {new.reason}") if new.recommended else new
        case "foldable":
            fold = f"`bloom fold` saves {size(existing.foldable_bytes)}"
            return _Verdict("has-filters", f"{filters} {are(existing.filters)} larger than the rate needs: {fold}")
        case "unreadable":
            return _Verdict("has-filters", "it has filters that can't be read: `bloom validate` says why")
    return _Verdict("has-filters", _has(existing))


def _has(existing: ExistingFilters) -> str:
    rates = "a rate" if existing.filters == 1 else "rates"
    worst = "" if existing.max_fpp is None else f", with {rates} of at most {rate(existing.max_fpp)}"
    return f"it has {plural(existing.filters, 'filter')} of {size(existing.bitset_bytes)}{worst}"


def with_reads(column: ColumnAdvice, share: float) -> ColumnAdvice:
    """The column with the bytes that a lookup reads today and with the filter; `share` of its values are present."""
    saved = column.saved_bytes
    if saved is None or not _gains(column, share):
        return column
    today, _ = _reads(column, share)
    return replace(column, today_bytes=today, with_filter_bytes=max(today - saved.estimate, 0.0))


def _reads(column: ColumnAdvice, share: float) -> tuple[float, float]:
    """The bytes of row groups that one lookup reads: (today, with the filter). They are those of the queries'
    literals; without any, the mean for present and absent values."""
    gains = _gains(column, share)
    today = sum(weight * gain.today.bytes.estimate for gain, _, weight in gains)
    return today, sum(weight * gain.with_filter.bytes.estimate for gain, _, weight in gains)


def _gains(column: ColumnAdvice, share: float) -> list[tuple[LookupGain, str, float]]:
    """The lookups that the recommendation depends on, each with a description of its values and its weight."""
    if column.queried is not None and column.queried.values:
        return [(column.queried, "a value of the queries", 1.0)]
    present, absent = (gain if gain is not None and gain.values else None for gain in (column.present, column.absent))
    both = zip(
        ((present, "a value that the column has"), (absent, "one that it doesn't have")),
        _weights(present, absent, share),
        strict=True,
    )
    return [(gain, what, weight) for (gain, what), weight in both if gain is not None and weight]


def _weights(present: object, absent: object, share: float) -> tuple[float, float]:
    """The weights of figures of present and of absent values; a figure that is None has the weight 0.

    Args:
        present, absent: the figures, or None.
        share: the share of the lookups whose value is present.
    """
    if present is None or absent is None:
        return float(present is not None), float(absent is not None)
    return share, 1 - share


def _mean(present: Interval | None, absent: Interval | None, share: float) -> Interval | None:
    """The mean of two figures. The ends of the interval are means, too. None if both figures are."""
    pairs = zip((present, absent), _weights(present, absent, share), strict=True)
    both = [(interval, weight) for interval, weight in pairs if interval is not None]
    if not both:
        return None
    return Interval(
        estimate=sum(weight * interval.estimate for interval, weight in both),
        low=sum(weight * interval.low for interval, weight in both),
        high=sum(weight * interval.high for interval, weight in both),
    )


def saved_at(rate: AtRate, share: float) -> Interval | None:
    """The bytes that one lookup reads less with filters of this rate: for the queries' literals; without any, the
    mean for present and absent values."""
    if rate.saved_queried is not None:
        return rate.saved_queried
    return _mean(rate.saved_present, rate.saved_absent, share)


def _saves(column: ColumnAdvice, share: float) -> str:
    """The reason for a filter that saves: the row groups that lookups read today and with the filter."""
    groups = column.row_groups
    parts = []
    for gain, what, _ in _gains(column, share):
        after, today = (_count(cost.row_groups.estimate * groups) for cost in (gain.with_filter, gain.today))
        parts.append(f"{after} instead of {today} for {what}")
    return f"of {plural(groups, 'row group')}, a lookup reads {' and '.join(parts)}"


def _count(value: float) -> str:
    """Format a number of row groups or values; small numbers have a decimal place, unless they are whole."""
    return f"{value:,.0f}" if value >= 20 or abs(value - round(value)) < 0.05 else f"{value:,.1f}"


def _of(part: float, whole: int) -> str:
    return f"{_count(part)} of {plural(whole, 'row group')}"


def _all(groups: int) -> str:
    return "the row group has" if groups == 1 else f"all {groups:,} row groups have"


def _each(groups: int) -> str:
    return "the row group" if groups == 1 else f"each of the {groups:,} row groups"


def _bytes(value: float) -> str:
    return size(round(value))
