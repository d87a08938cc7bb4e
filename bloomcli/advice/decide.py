"""Turns the figures of all columns into advice: which columns get filters, and at which sizes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Final

from bloomcli.advice.budget import Choice, Size, choose
from bloomcli.advice.recommend import encoded, recommend, saved_at, with_reads
from bloomcli.commands.sampling import Budget
from bloomcli.model.advice import SELDOM, AdviseReport, AdviseTotal, AtRate, ColumnAdvice, LookupCost, LookupGain
from bloomcli.model.reader_use import ReaderUse
from bloomcli.rules.readers import current, reader, uses
from bloomcli.words import size


def decide(figures: AdviseReport, *, budget: Budget | None = None, named: Collection[str] = ()) -> AdviseReport:
    """The report with a recommendation for each column; recommended columns come first.

    Args:
        figures: the result of `bloomcli.advice.measure`.
        budget: limits the bytes of all new filters; None for no limit.
        named: the columns that the user named.
    """
    log = figures.queries
    columns = [
        recommend(_with_share(column, figures.bytes), figures, named=column.column in named)
        for column in figures.columns
    ]
    limit = None if budget is None else budget.of(figures.bytes)
    gap = None
    if limit is not None:
        columns, choice = within_budget(columns, limit, figures)
        gap = choice.gap
    recommended = sorted((c for c in columns if c.recommended), key=lambda c: -(_saved(c) * (c.lookups or 1)))
    others = sorted((c for c in columns if not c.recommended), key=lambda c: c.reason_id != SELDOM)
    return replace(
        figures,
        columns=(*recommended, *others),
        total=_total(recommended, figures) if recommended else None,
        uses=tuple(_uses(figures, columns)),
        tight_saves=_tight_saves(recommended) if recommended else None,
        budget_bytes=limit,
        budget_used=None if limit is None else round(sum(_bytes(c) for c in recommended)),
        budget_gap=gap,
        queries=None
        if log is None  # a report must not contain the values of the queries
        else replace(log, columns=tuple(replace(column, literals=()) for column in log.columns)),
    )


def within_budget(
    columns: Sequence[ColumnAdvice], limit: int, figures: AdviseReport
) -> tuple[list[ColumnAdvice], Choice]:
    """The columns with the filters that save most within `limit` bytes, and the choice.

    The sizes of a recommended column are those at the measured rates, down to `figures.fpp`. The weight of a column
    is its number of lookups in the queries; without queries, all columns have the same weight.
    """
    wanted = [index for index, column in enumerate(columns) if column.recommended]
    # ascending rates: if several rates have the same size, the lowest is chosen
    rates = [sorted((r for r in columns[i].rates if r.fpp >= figures.fpp), key=lambda r: r.fpp) for i in wanted]
    share = figures.present_share
    choice = choose(
        [[_size(columns[i], rate, share) for rate in of_one] for i, of_one in zip(wanted, rates, strict=True)], limit
    )
    advice = list(columns)
    for index, of_one, position in zip(wanted, rates, choice.sizes, strict=True):
        if position is None:
            advice[index] = _over_budget(columns[index], of_one, limit)
        else:
            advice[index] = at_rate(columns[index], of_one[position], figures)
    return advice, choice


def _size(column: ColumnAdvice, rate: AtRate, share: float) -> Size:
    saved = saved_at(rate, share)
    return Size(rate.filter_bytes.estimate, 0.0 if saved is None else saved.estimate * (column.lookups or 1))


def _over_budget(column: ColumnAdvice, rates: Sequence[AtRate], limit: int) -> ColumnAdvice:
    smallest = min((rate.filter_bytes.estimate for rate in rates), default=0.0)
    why = (
        f"its smallest filters take {size(round(smallest))}, and the budget is {size(limit)}"
        if smallest > limit
        else f"its filters, {size(round(smallest))} at least, save less for each byte than the recommended ones"
    )
    return replace(column, recommended=False, reason_id="over-budget", reason=f"over the budget: {why}")


def at_rate(column: ColumnAdvice, rate: AtRate, figures: AdviseReport) -> ColumnAdvice:
    """The column with the figures of filters at another rate."""
    advice = replace(
        column,
        fpp=rate.fpp,
        filter_bytes=rate.filter_bytes,
        present=_with(column.present, rate.present),
        absent=_with(column.absent, rate.absent),
        queried=_with(column.queried, rate.queried),
        saved_bytes=saved_at(rate, figures.present_share),
    )
    return with_reads(_with_share(advice, figures.bytes), figures.present_share)


def _with_share(column: ColumnAdvice, total: int) -> ColumnAdvice:
    return replace(column, filter_share=_bytes(column) / total if column.filter_bytes is not None and total else None)


def _with(gain: LookupGain | None, cost: LookupCost | None) -> LookupGain | None:
    return gain if gain is None or cost is None else replace(gain, with_filter=cost)


def _total(recommended: Sequence[ColumnAdvice], figures: AdviseReport) -> AdviseTotal:
    """The recommended filters together. Without queries, each column counts once."""
    weights = [column.lookups or 1 for column in recommended]
    filters = sum(map(_bytes, recommended))
    seconds = [column.seconds_to_add.estimate for column in recommended if column.seconds_to_add is not None]

    def mean(values: Sequence[float | None]) -> float:
        return sum(weight * (value or 0.0) for weight, value in zip(weights, values, strict=True)) / sum(weights)

    return AdviseTotal(
        lookups=None if figures.queries is None else sum(column.lookups or 0 for column in recommended),
        today_bytes=mean([column.today_bytes for column in recommended]),
        with_filter_bytes=mean([column.with_filter_bytes for column in recommended]),
        filter_bytes=filters,
        filter_share=filters / figures.bytes if figures.bytes else None,
        seconds_to_add=sum(seconds),
    )


_USEFUL: Final = frozenset({"dictionary", "has-filters", "no-reader"})
"""Reasons of columns that get no new filter, and for which filters matter to some readers."""


def _uses(figures: AdviseReport, columns: Sequence[ColumnAdvice]) -> Iterator[ReaderUse]:
    """Yield what filters do for each reader."""
    useful = [encoded(column) for column in columns if column.recommended or column.reason_id in _USEFUL]
    readers = {who.name: who for who in map(reader, figures.readers)} or current(figures.formats)
    for who in readers.values():
        yield from uses(who, figures.formats, useful)


def _tight_saves(recommended: Sequence[ColumnAdvice]) -> int:
    """The bytes that tight sizes would save; 0 if sizes are tight."""
    rates = [rate for column in recommended for rate in column.rates if rate.fpp == column.fpp]
    return round(sum(at.filter_bytes.estimate - at.tight_bytes for at in rates if at.tight_bytes is not None))


def _saved(column: ColumnAdvice) -> float:
    return 0.0 if column.saved_bytes is None else column.saved_bytes.estimate


def _bytes(column: ColumnAdvice) -> float:
    return 0.0 if column.filter_bytes is None else column.filter_bytes.estimate
